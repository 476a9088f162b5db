"""Moving about on the deck: selection, zoom, peek, scroll, order, density, search."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from forkdeck.model.ids import PARENT, handle_number
from forkdeck.model.state import DeckState
from forkdeck.store import selectors
from forkdeck.store.asking import plan_ask
from forkdeck.ui.layout import DENSITIES
from forkdeck.ui.prompt import Purpose
from forkdeck.ui.screens.deck_base import SORTS, DeckBase
from forkdeck.ui.widgets.pane import Pane

_SECOND_DIGIT_MS = 400


def ordered(state: DeckState, sort: str) -> list[str]:
    """Return all handles in one of the board's orders."""
    if sort == "attention":
        return selectors.attention_order(state)
    keys: dict[str, Callable[[str], tuple[Decimal | int, int]]] = {
        "number": lambda handle: (0, handle_number(handle)),
        "age": lambda handle: (state.forks[handle].queued_at_ms, handle_number(handle)),
        "cost": lambda handle: (-_spent(state, handle), handle_number(handle)),
    }
    return sorted(state.forks, key=keys[sort])


def _spent(state: DeckState, handle: str) -> Decimal:
    run = state.runs.get(handle)
    return run.cost.usd if run is not None else Decimal(0)


class DeckMoves(DeckBase):
    """Keys that change only how the person looks at the deck."""

    _digits: tuple[str, int] = ("", 0)
    _query: str = ""

    # --- selection

    def select(self, run: str) -> None:
        """Select a run; its pane comes on screen when there are panes."""
        if run != PARENT and run not in self.state.forks:
            return
        self.view.peeking = False
        self.view.selected = run
        if not self.in_prompt or self.area.purpose.kind == "steer":
            self.area.turn_to(self.prompt_purpose())
        self.replan()

    def _visible(self) -> list[str]:
        """The runs the cursor goes through, in the order they stand on screen."""
        plan = self.plan
        if plan is not None and plan.board:
            known = set(self.view.order)
            shown = [handle for handle in self.body.board.visible_handles if handle in known]
            return shown or list(self.view.order)
        return list(self.view.panes) if not self.view.zoomed else list(self.view.order)

    def _step(self, by: int) -> None:
        runs = self._visible()
        if not runs:
            self._scroll(by)
            return
        if self.view.selected not in runs:
            self.select(runs[0] if by > 0 else runs[-1])
            return
        self.select(runs[max(0, min(len(runs) - 1, runs.index(self.view.selected) + by))])

    def do_move_down(self) -> None:
        """Next fork; with tiles, the one below."""
        self._step(self.body.board.columns if self._tiled() else 1)

    def do_move_up(self) -> None:
        """Previous fork; with tiles, the one above."""
        self._step(-self.body.board.columns if self._tiled() else -1)

    def _tiled(self) -> bool:
        return self.plan is not None and bool(self.plan.board) and self.plan.density == "tiles"

    def do_move_left(self) -> None:
        """Left in the grid; in the zoom fold everything; in grouped rows fold the group."""
        self._sideways(-1)

    def do_move_right(self) -> None:
        """Right in the grid; in the zoom unfold; in grouped rows open the group."""
        self._sideways(1)

    def _sideways(self, by: int) -> None:
        pane = self.pane
        if self.view.zoomed:
            if pane is not None:
                pane.fold(opened=by > 0)
        elif (
            self.fork is not None
            and self.body.board.display
            and not self._tiled()
            and (self.body.board.fold_group(self.fork, folded=by < 0))
        ):
            return
        else:
            self._step(by)

    def do_move_first(self) -> None:
        """The first fork; in the zoom, the first row."""
        if self.view.zoomed:
            self._on_pane(Pane.to_start)
        elif self._visible():
            self.select(self._visible()[0])

    def do_move_last(self) -> None:
        """The last fork; in the zoom, the last row, followed."""
        if self.view.zoomed or not self._visible():
            self._on_pane(Pane.to_end)
        else:
            self.select(self._visible()[-1])

    def do_fork_number(self) -> None:
        """A fork by its number; a second digit within 400 ms makes it a two-digit one."""
        typed, since = self._digits
        now = self.now_ms()
        both = typed + self.key
        if not typed or now - since > _SECOND_DIGIT_MS or f"f{both}" not in self.state.forks:
            both = self.key
        self._digits = (both, now)
        if f"f{both}" in self.state.forks:
            self.select(f"f{both}")
        else:
            self.say(f"there is no fork {both}")

    def do_fork_parent(self) -> None:
        """The parent; right after a digit, the second digit of a fork."""
        typed, since = self._digits
        if typed and self.now_ms() - since <= _SECOND_DIGIT_MS and f"f{typed}0" in self.state.forks:
            self._digits = ("", 0)
            self.select(f"f{typed}0")
            return
        self.select(PARENT)

    def do_owed_next(self) -> None:
        """The next that needs the person, oldest first, after the one selected."""
        waiting = self._waiting()
        if not waiting:
            self.say("nothing needs you")
            return
        selected = self.view.selected
        at = waiting.index(selected) + 1 if selected in waiting else 0
        if self.in_prompt:
            self.focus_deck()
        self.view.order = tuple(self.fresh_order())
        self.select(waiting[at % len(waiting)])

    def _waiting(self) -> list[str]:
        state = self.state
        since: dict[str, int] = {}
        for ask in state.asks:
            since.setdefault(ask.run, ask.at_ms)
        for handle in selectors.owed(state):
            since.setdefault(handle, state.forks[handle].owed_at_ms or 0)
        return sorted(since, key=lambda run: since[run])

    # --- order and density

    def fresh_order(self) -> list[str]:
        """Return the order of the board as chosen, with `W` only what needs the person."""
        order = ordered(self.state, self.view.sort)
        if self.view.only_owed:
            waiting = set(self._waiting())
            order = [handle for handle in order if handle in waiting]
        return order

    def kept_order(self) -> list[str]:
        """Return the order on screen, with what is new at its end: rows stay where they are."""
        wanted = self.fresh_order()
        if not self.in_prompt and self.view.order:
            known = set(wanted)
            kept = [handle for handle in self.view.order if handle in known]
            seen = set(kept)
            return kept + [handle for handle in wanted if handle not in seen]
        return wanted

    def do_owed_only(self) -> None:
        """Show only what needs the person, or all again."""
        self.view.only_owed = not self.view.only_owed
        self.view.order = tuple(self.fresh_order())
        self.say("only what needs you; W shows all" if self.view.only_owed else "all forks")
        self.replan()

    def do_view_sort(self) -> None:
        """Another order of the board."""
        at = SORTS.index(self.view.sort)
        self.view.sort = SORTS[(at + 1) % len(SORTS)]
        self.body.board.sort = f"by {self.view.sort}"
        self.view.order = tuple(self.fresh_order())
        self.replan()

    def do_view_denser(self) -> None:
        """Panes to tiles to rows."""
        self._density(1)

    def do_view_roomier(self) -> None:
        """Rows to tiles to panes."""
        self._density(-1)

    def _density(self, by: int) -> None:
        now = self.view.density or (self.plan.density if self.plan else "rows")
        at = max(0, min(len(DENSITIES) - 1, DENSITIES.index(now) + by))
        self.view.density = DENSITIES[at]
        self.replan()
        if self.plan is not None and self.plan.density != self.view.density:
            self.say(f"{self.view.density} do not fit here")

    # --- zoom and peek

    def do_plan(self) -> None:
        """Show the launch that waits for a yes."""
        raise NotImplementedError

    def do_zoom_toggle(self) -> None:
        """Zoom into the selected run, or out; of a planned fork, its plan is what there is."""
        if not self.view.zoomed and self.fork and plan_ask(self.state, self.fork):
            self.do_plan()
            return
        self.view.zoomed = not self.view.zoomed
        self.area.turn_to(self.prompt_purpose())
        self.replan()

    def zoom_into(self, run: str) -> None:
        """Select a run and fill the body with it."""
        self.select(run)
        if not self.view.zoomed:
            self.do_zoom_toggle()

    def do_zoom_next(self) -> None:
        """The next fork, in the zoom."""
        self._neighbour(1)

    def do_zoom_previous(self) -> None:
        """The previous fork, in the zoom."""
        self._neighbour(-1)

    def _neighbour(self, by: int) -> None:
        runs = [PARENT, *self.view.order]
        at = runs.index(self.view.selected) if self.view.selected in runs else 0
        self.select(runs[(at + by) % len(runs)])

    def do_fork_peek(self) -> None:
        """Look closer at the selected run and write to it; without room for a pane, zoom."""
        handle = self.fork
        if handle is None:
            self.focus_prompt()
            return
        if self.pane is None:
            self.view.zoomed = True
        self.replan()
        self.focus_prompt(self.steer_purpose(handle))
        self.view.peeking = True
        self.after_scroll()

    # --- scrolling

    def _on_pane(self, action: Callable[[Pane], object]) -> None:
        pane = self.pane or self.pane_of(PARENT)
        if pane is not None:
            action(pane)
            self.after_scroll()

    def after_scroll(self) -> None:
        """Called when a pane was scrolled: a card or a report may have been read now."""
        raise NotImplementedError

    def _scroll(self, by: int) -> None:
        self._on_pane(lambda pane: pane.scroll_lines(by))

    def do_zoom_down(self) -> None:
        """One line down."""
        self._scroll(1)

    def do_zoom_up(self) -> None:
        """One line up."""
        self._scroll(-1)

    def do_page_down(self) -> None:
        """One page down."""
        self._on_pane(lambda pane: pane.scroll_page(1))

    def do_page_up(self) -> None:
        """One page up."""
        self._on_pane(lambda pane: pane.scroll_page(-1))

    def do_prompt_scroll_down(self) -> None:
        """Scroll the conversation without leaving the prompt."""
        self._from_prompt(1)

    def do_prompt_scroll_up(self) -> None:
        """Scroll the conversation without leaving the prompt."""
        self._from_prompt(-1)

    def _from_prompt(self, pages: int) -> None:
        peeked = self.view.zoomed or self.view.peeking
        pane = self.pane if peeked else self.pane_of(PARENT)
        if pane is not None:
            pane.scroll_page(pages)
            self.after_scroll()

    def do_turn_next(self) -> None:
        """The next turn or step."""
        self._on_pane(lambda pane: pane.to_turn(1))

    def do_turn_previous(self) -> None:
        """The previous turn or step."""
        self._on_pane(lambda pane: pane.to_turn(-1))

    def do_view_verbosity(self) -> None:
        """Unfold everything in the selected pane, or fold it again."""
        self.view.opened = not self.view.opened
        self._on_pane(lambda pane: pane.fold(opened=self.view.opened))

    # --- search

    def do_search_text(self) -> None:
        """Ask for a text to search in the selected conversation."""
        self.focus_prompt(Purpose("search", self.view.selected, "Search this conversation"))

    def search(self, query: str) -> None:
        """Show the first match of `query`, from the end of the conversation back."""
        self._query = query
        self.focus_deck()
        self._find(back=True)

    def do_search_next(self) -> None:
        """Next match."""
        self._find(back=False)

    def do_search_previous(self) -> None:
        """Previous match."""
        self._find(back=True)

    def _find(self, *, back: bool) -> None:
        pane = self.pane or self.pane_of(PARENT)
        if not self._query:
            self.say("nothing is searched for: / asks what")
        elif pane is None or not pane.find(self._query, back=back):
            self.say(f"no {self._query!r} in this conversation")
