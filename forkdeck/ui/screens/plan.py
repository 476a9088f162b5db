"""The launch plan in full: ``/plan``, or Enter on a planned fork.

It never opens by itself: the question stands as a card in the conversation until then. What is
answered goes to the deck as an intent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events

from forkdeck.model.intents import AbortFork, AnswerRequest, Intent
from forkdeck.model.launching import PlannedFork
from forkdeck.model.ports import Deck
from forkdeck.model.state import Ask
from forkdeck.ui.approvals import AnswerGuard
from forkdeck.ui.bindings import Keys, Zone, footer_keys
from forkdeck.ui.lines import Row, line
from forkdeck.ui.plan_rows import FIRST_FORK, plan_rows
from forkdeck.ui.screens.page import Page


class PlanScreen(Page):
    """One open question about a launch.

    Args:
        deck: Whose question.
        ask: The question.
        submit: Hands an intent to the deck and shows what came of it.
        reason: Called with the request when it is to be refused with words that are typed next.
        selected: The fork the cursor begins on.
    """

    ZONE: ClassVar[Zone] = "plan"

    def __init__(
        self,
        deck: Deck,
        ask: Ask,
        *,
        submit: Callable[[Intent], None],
        reason: Callable[[str], None],
        selected: str = "",
    ) -> None:
        super().__init__()
        self._deck, self._ask = deck, ask
        self._submit, self._reason = submit, reason
        self._guard = AnswerGuard()
        handles = [fork.handle for fork in self._forks]
        self.selected = handles.index(selected) if selected in handles else 0

    @property
    def _forks(self) -> tuple[PlannedFork, ...]:
        plan = self._ask.event.plan
        return () if plan is None else plan.forks

    @property
    def _open(self) -> bool:
        return any(ask.event.request == self._ask.event.request for ask in self._deck.state.asks)

    @property
    def _read(self) -> bool:
        """Whether the last row of the plan is on screen."""
        return bool(self.sheet.rows) and self.sheet.at_end

    def on_mount(self) -> None:
        """Follow the deck: forks may be left out, the question may be taken back."""
        self.set_interval(0.5, self.refresh_rows)

    def page_rows(self, width: int, height: int) -> Sequence[Row]:
        """Return the plan."""
        ascii_only = self.deck_app.draw_options.ascii_only
        rows = plan_rows(self._ask, self._deck.state, selected=self.selected, width=width,
                         ascii_=ascii_only)  # fmt: skip
        if not self._open:
            rows[0] = line([("heading", "launch plan"), ("muted", "   answered already")],
                           width=width, margin=1, fill="panel")  # fmt: skip
        return rows

    def refresh_rows(self) -> None:
        """Draw, and note what of the plan was on screen."""
        super().refresh_rows()
        self._guard.showing(self._ask.event.request, self._now_ms(), whole=self._read)

    def page_keys(self) -> tuple[Keys, Keys]:
        """Return the footer's keys for this deck."""
        able = self._deck.capabilities
        left, right = footer_keys(self.zones, live=able.live and not able.recorded)
        return [*left, ("Esc", "back, decides nothing")], right

    def entries(self) -> int:
        """The plan's forks."""
        return len(self._forks)

    def row_of(self, entry: int) -> int:
        """Forks begin under the heads."""
        return entry + FIRST_FORK

    async def press(self, event: events.Key) -> bool:
        """Do what the key means; an answer needs a moment without keys before it."""
        handled = await super().press(event)
        self._guard.showing(self._ask.event.request, self._now_ms(), whole=self._read)
        self._guard.key_came(self._now_ms())
        return handled

    def _now_ms(self) -> int:
        return self.deck_app.clock.monotonic_ms()

    def _may(self, *, allows: bool) -> bool:
        if self._deck.capabilities.recorded:
            why = "recorded: a replay is not answered"
        elif not self._open:
            why = "this plan was answered already"
        else:
            why = self._guard.refusal(self._ask.event.request, self._now_ms(), allows=allows)
        if why:
            self.say(why)
        return not why

    def do_plan_launch(self) -> None:
        """Start the forks that were not left out."""
        if self._may(allows=True):
            self.dismiss()
            self._submit(AnswerRequest(request=self._ask.event.request, answer="once"))

    def do_plan_refuse(self) -> None:
        """Refuse the launch; nothing has started."""
        if self._may(allows=False):
            self.dismiss()
            self._submit(AnswerRequest(request=self._ask.event.request, answer="deny"))

    def do_plan_reason(self) -> None:
        """Refuse it with a reason that is typed in the deck's prompt."""
        if self._may(allows=False):
            self.dismiss()
            self._reason(self._ask.event.request)

    def do_plan_leave(self) -> None:
        """Leave the fork under the cursor out of the launch."""
        handle = self._forks[self.selected].handle
        fork = self._deck.state.forks.get(handle)
        if self._deck.capabilities.recorded or not self._open:
            self.say("this plan cannot be changed any more")
        elif fork is None or fork.settled:
            self.say("it is left out already")
        else:
            self._submit(AbortFork(handle=handle))
            self.call_later(self.refresh_rows)
