"""What all parts of the deck screen share: its state, its widgets, and small helpers.

The screen is put together in ``deck.py`` from parts that each hold the keys of one concern;
they meet here. Data comes from the `Deck` port; nothing here knows whether it is live.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.reactive import reactive
from textual.screen import Screen

from forkdeck.errors import ForkDeckError
from forkdeck.model.ids import PARENT
from forkdeck.model.intents import AbortAll, AbortFork, CompactParent, Intent, IntentResult
from forkdeck.model.ports import Deck
from forkdeck.model.state import EMPTY, Ask, DeckState
from forkdeck.model.words import Severity
from forkdeck.store.asking import answerable_ask, shown_ask
from forkdeck.ui.approvals import AnswerGuard
from forkdeck.ui.bindings import Zone
from forkdeck.ui.flush import Flush, Flusher
from forkdeck.ui.keyboard import Keyed
from forkdeck.ui.layout import Density, Plan
from forkdeck.ui.prompt import PARENT as TO_PARENT
from forkdeck.ui.prompt import PromptArea, Purpose
from forkdeck.ui.prompt_box import PromptBox
from forkdeck.ui.screens.deck_body import DeckBody
from forkdeck.ui.widgets.pane import Pane

SORTS = ("attention", "number", "age", "cost")
"""The orders of the board, as `s` goes through them."""


@dataclass(slots=True)
class View:
    """How the person looks at the deck; never part of its state."""

    selected: str = PARENT
    """The run that keys act on: the parent or a fork's handle."""
    zoomed: bool = False
    peeking: bool = False
    density: Density | None = None
    sort: str = "attention"
    only_owed: bool = False
    order: tuple[str, ...] = ()
    panes: tuple[str, ...] = ()
    opened: bool = False
    """Whether every item was unfolded."""


def _never(_: DeckState) -> bool:
    """A message that only a key ends."""
    return False


class DeckBase(Keyed, Screen[None], inherit_bindings=False):
    """State and helpers; see `DeckScreen`."""

    state: reactive[DeckState] = reactive(EMPTY, repaint=False, always_update=True, init=False)

    deck: Deck
    box: PromptBox
    body: DeckBody
    flusher: Flusher
    guard: AnswerGuard
    view: View
    plan: Plan | None
    flush: Flush
    message: tuple[str, Severity] | None
    message_until: Callable[[DeckState], bool]
    leader: bool
    """Whether the next key follows Ctrl+X."""
    led: events.Key | None
    """The key that followed it, on its way up from the prompt."""
    asked_to_settle: set[tuple[str, int | None]]

    # --- where we are

    @property
    def area(self) -> PromptArea:
        """The prompt's text."""
        return self.box.area

    @property
    def replaying(self) -> bool:
        """Whether this deck is a replay."""
        return self.deck.transport is not None

    @property
    def in_prompt(self) -> bool:
        """Whether letters are letters."""
        return self.area.has_focus

    @property
    def zones(self) -> tuple[Zone, ...]:
        """Where a key is looked up."""
        if self.in_prompt:
            return ("prompt",)
        deck: Zone = "zoom" if self.view.zoomed else "deck"
        return ("replay", deck) if self.replaying else (deck,)

    def now_ms(self) -> int:
        """Return monotonic milliseconds, for keys and cards."""
        return self.deck_app.clock.monotonic_ms()

    def pane_of(self, run: str) -> Pane | None:
        """Return the pane that shows a run now, if one does."""
        return self.body.pane_of(run)

    @property
    def pane(self) -> Pane | None:
        """The pane of the selected run, if it has one on screen."""
        return self.pane_of(self.view.selected)

    @property
    def fork(self) -> str | None:
        """The selected fork's handle; None while the parent is selected."""
        return self.view.selected if self.view.selected in self.state.forks else None

    @property
    def shown_ask(self) -> Ask | None:
        """The request of the selected run, or of the plan that it is part of."""
        return answerable_ask(self.state, self.view.selected)

    def ask_panes(self, ask: Ask) -> list[Pane]:
        """Return the panes on screen that show a request: the selected run's, the asking run's."""
        runs = {run for run in (self.view.selected, ask.run) if shown_ask(self.state, run) == ask}
        return [pane for pane in map(self.pane_of, runs) if pane is not None]

    # --- saying and doing

    def say(
        self, text: str, severity: Severity = "info", until: Callable[[DeckState], bool] = _never
    ) -> None:
        """Show a message above the prompt until the next key that acts.

        Args:
            text: What is said; nothing when empty.
            severity: Its colour.
            until: Tells of a state that what the message says goes on is over.
        """
        self.message = (text, severity) if text else None
        self.message_until = until
        self.draw_lines()

    def submit(self, intent: Intent, after: Callable[[IntentResult], None] | None = None) -> None:
        """Hand an intent to the deck; what comes of it is shown in the strip."""
        self.run_worker(self._submit(intent, after), group="intents", exit_on_error=False)

    async def _submit(self, intent: Intent, after: Callable[[IntentResult], None] | None) -> None:
        try:
            result = await self.deck.submit(intent)
        except ForkDeckError as error:
            result = IntentResult(ok=False, text=f"{error.what} {error.remedy}".strip())
        if result.text:
            until = over_of(intent, result) if result.ok else _never
            self.say(result.text, "info" if result.ok else "warning", until)
        if after is not None:
            after(result)
        self.flusher.flush()

    def draw_lines(self) -> None:
        """Draw title, strip and footer."""
        raise NotImplementedError

    def replan(self) -> None:
        """Lay the body out again."""
        raise NotImplementedError

    # --- the prompt and the zones

    def focus_prompt(self, purpose: Purpose | None = None, text: str = "") -> None:
        """Go to the prompt, for its conversation or for something else."""
        wanted = purpose or self.prompt_purpose()
        self.box.display = True
        self.area.turn_to(wanted, text)
        self.area.focus()

    def focus_deck(self) -> None:
        """Go to the deck zone; a purpose of the prompt ends."""
        self.area.turn_to(self.prompt_purpose())
        self.box.display = not self.replaying
        self.body.focus()

    def prompt_purpose(self) -> Purpose:
        """Return what the prompt is for when nothing else was asked: the zoomed fork, or all."""
        handle = self.fork
        if not self.view.zoomed or handle is None or self.replaying:
            return TO_PARENT
        return self.steer_purpose(handle)

    def steer_purpose(self, handle: str) -> Purpose:
        """Return the purpose of a text to a fork: steering it, or continuing it."""
        fork = self.state.forks[handle]
        name = fork.name
        if fork.settled:
            return Purpose("resume", handle, f"Continue {name} with a message")
        when = "when it starts" if fork.started_at_ms is None else "after the current step"
        return Purpose("steer", handle, f"Steer {name}: it reads this {when}")

    def select(self, run: str) -> None:
        """Select a run; its pane comes on screen when there are panes."""
        raise NotImplementedError


def over_of(intent: Intent, result: IntentResult) -> Callable[[DeckState], bool]:
    """Return how to tell that what an intent began has ended, so that nothing says it goes on."""
    match intent:
        case CompactParent():
            return lambda state: not state.parent.turn.running
        case AbortFork() | AbortAll():
            return lambda state: all(
                each not in state.forks or state.forks[each].settled for each in result.handles
            )
        case _:
            return _never
