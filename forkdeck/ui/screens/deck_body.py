"""The body of the deck screen: parent, board, live panes, facts; placed by a plan.

It owns a fixed set of widgets, whatever the number of forks, and gives each of them only the
states that changed what it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message
from textual.widget import Widget

from forkdeck.model.ids import PARENT
from forkdeck.model.state import DeckState
from forkdeck.ui.layout import Plan, Size
from forkdeck.ui.widgets.board import Board
from forkdeck.ui.widgets.empty import EmptyDeck
from forkdeck.ui.widgets.facts import Facts
from forkdeck.ui.widgets.facts_of import deck_sections, fork_list, fork_sections
from forkdeck.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from forkdeck.ui.screens.deck_base import DeckBase, View

MAX_PANES = 6
"""Live panes at most (3x2)."""

LOW_PARENT = 6
"""A parent of fewer rows has no header."""


class DeckBody(Container, can_focus=True):
    """Places its widgets by absolute offsets, from a `Plan`."""

    class Picked(Message):
        """A fork (or the parent) was clicked."""

        def __init__(self, run: str) -> None:
            super().__init__()
            self.run = run

    class Asked(Message):
        """Something was clicked that stands for an action of the screen."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self) -> None:
        super().__init__(id="body")
        self.parent_pane = Pane(PARENT, id="parent")
        self.board = Board(id="board")
        self.panes = [Pane("f1", kind="fork", id=f"pane{index}") for index in range(MAX_PANES)]
        self.facts = Facts(id="facts")
        self.empty = EmptyDeck(id="empty")
        self._plan: Plan | None = None
        self._shown: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        """Yield every widget once; the plan shows some of them."""
        for widget in (self.parent_pane, self.board, *self.panes, self.facts, self.empty):
            # The body holds the focus for all of them: one zone, one place for keys.
            widget.can_focus = False
            widget.display = False
            yield widget

    # --- placing

    def apply(self, plan: Plan, shown: Sequence[str]) -> None:
        """Place everything; `shown` are the runs of the live panes in their order."""
        if plan != self._plan:
            self._plan = plan
            self.parent_pane.header = not (plan.stacked and plan.parent.height < LOW_PARENT)
            self._place_all(plan)
        if plan.density != "panes":
            self.board.density = plan.density
        self._shown = tuple(shown)
        for index, pane in enumerate(self.panes):
            if index < len(plan.panes) and index < len(shown):
                kind = "zoom" if plan.zoomed else "tile" if plan.board_beside else "fork"
                pane.point_at(shown[index], kind)

    def _place_all(self, plan: Plan) -> None:
        _place(self.parent_pane, 0, 0, plan.parent)
        if plan.stacked:
            x, y = 0, plan.parent.height
        else:
            x, y = (plan.parent.width + 1 if plan.parent else 0), 0
        _place(self.board, x, y, plan.board)
        _place(self.empty, x, y, plan.empty)
        if plan.zoomed:
            side = Size(plan.facts.width, max(0, plan.facts.height - 1) if plan.facts else 0)
            _place(self.facts, plan.panes[0].width, 1, side)
        else:
            _place(self.facts, x, plan.board.height, plan.facts)
        if plan.board_beside:
            x += plan.board.width + 1
        else:
            y += plan.board.height
        self._place_panes(plan, x, y)

    def _place_panes(self, plan: Plan, x: int, y: int) -> None:
        for index, pane in enumerate(self.panes):
            if index >= len(plan.panes):
                _place(pane, 0, 0, Size())
                continue
            column, row = index % plan.columns, index // plan.columns
            above = sum(plan.panes[at * plan.columns].height for at in range(row))
            size = plan.panes[index]
            _place(pane, x + column * (size.width + 1), y + above, size)

    # --- drawing

    def pane_of(self, run: str) -> Pane | None:
        """Return the pane on screen that shows a run."""
        plan = self._plan
        if plan is None:
            return None
        if run == PARENT and plan.parent:
            return self.parent_pane
        for index, shown in enumerate(self._shown[: len(plan.panes)]):
            if shown == run:
                return self.panes[index]
        return None

    def draw(
        self, old: DeckState, new: DeckState, now_ms: int, view: View, *, board: bool, spin: bool,
        recorded: bool,
    ) -> None:  # fmt: skip
        """Hand a newer state to what shows something of it that changed.

        Args:
            old: The state drawn before; the same one when only time has passed.
            new: The state to draw.
            now_ms: The session's time.
            view: How the person looks at it.
            board: Whether the board is due.
            spin: Whether spinners and ages turn.
            recorded: Whether cards can be answered.
        """
        plan = self._plan
        if plan is None:
            return
        common = new.asks is not old.asks or new.forks is not old.forks
        changed = common or new.parent is not old.parent or new.batches is not old.batches
        if plan.parent and (changed or (spin and new.parent.turn.running)):
            self.parent_pane.update_state(new, now_ms, recorded=recorded)
        for pane in self.panes[: len(plan.panes)]:
            run = pane.run
            if common or spin or new.runs.get(run) is not old.runs.get(run):
                pane.update_state(new, now_ms, recorded=recorded)
        if plan.board and (board or spin):
            self.board.update_state(new, now_ms, view.selected, list(view.order))
        if plan.facts and (board or spin):
            self._draw_facts(plan, new, now_ms, view)
        if plan.empty:
            self.empty.update_state(new)

    def _draw_facts(self, plan: Plan, state: DeckState, now_ms: int, view: View) -> None:
        ascii_only = self.facts.options.ascii_only
        self.facts.headed = not plan.zoomed
        if not plan.zoomed:
            self.facts.update_sections(deck_sections(state, now_ms))
            return
        width = plan.facts.width
        sections = fork_sections(state, view.selected, now_ms, width, ascii_only=ascii_only)
        if not sections:
            sections = [*deck_sections(state, now_ms), fork_list(state, ascii_only=ascii_only)]
        self.facts.update_sections(sections, selected=view.selected)

    def draw_all(self, state: DeckState, now_ms: int, view: View, *, recorded: bool) -> None:
        """Draw everything anew, after a layout change."""
        for pane in (self.parent_pane, *self.panes):
            if pane.display:
                pane.update_state(state, now_ms, recorded=recorded)
        self.draw(state, state, now_ms, view, board=True, spin=False, recorded=recorded)

    def mark(self, selected: str, *, focused: bool) -> None:
        """Draw the bar on the selected run's pane and row."""
        self.board.focused_zone = focused
        for pane in (self.parent_pane, *self.panes):
            chosen = pane.display and pane.run == selected
            pane.set_mark(("focus" if focused else "rest") if chosen else "")

    # --- the mouse

    def on_click(self, event: events.Click) -> None:
        """Select what was clicked; a click on a foldable item turns it."""
        widget = event.widget
        if widget is self.board:
            handle = self.board.handle_at(event.x, event.y)
            if handle:
                self.post_message(self.Picked(handle))
        elif widget is self.facts and self._plan is not None and self._plan.zoomed:
            run, action = self.facts.run_at(event.y), self.facts.action_at(event.y)
            if run:
                self.post_message(self.Picked(run))
            elif action:
                self.post_message(self.Asked(action))
        elif isinstance(widget, Pane):
            if self.screen.get_selected_text():
                # The end of a drag: the text stays selected for the copy key.
                return
            if event.y == 0 or not widget.fold_at(event.y):
                self.post_message(self.Picked(widget.run))

    def on_resize(self) -> None:
        """The screen plans again for the new size."""
        cast("DeckBase", self.screen).replan()


def _place(widget: Widget, x: int, y: int, size: Size) -> None:
    widget.display = bool(size)
    if size:
        widget.styles.offset = (x, y)
        widget.styles.width = size.width
        widget.styles.height = size.height
