"""The one loop that drives a conversation: step, tools, step, until the model is done.

The parent's turns and every fork go through `RunLoop.drive`; what differs stands in the `Run`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from forkdeck.engine.limits import LimitReached
from forkdeck.engine.run import Slot, text_block
from forkdeck.model.raw import JsonDict

if TYPE_CHECKING:
    from forkdeck.engine.dispatch import Dispatcher
    from forkdeck.engine.durability import Durable
    from forkdeck.engine.limits import Purse
    from forkdeck.engine.marks import Marks
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.run import Run
    from forkdeck.engine.step import Answer, Asker

CUT_ANSWERS = ("max_tokens", "model_context_window_exceeded", "pause_turn")
"""Stop reasons of an answer that was not finished by the model itself."""

LAST_STEP = (
    "[limit] Your {limit} limit is reached. This is your last step and tools are off: "
    "report now what you found or did, and what is left."
)
NOT_RUN = "Not run: {why}."
PAUSED = "paused"
"""Reason of a drive that `Run.pause` ended between two steps; it can be driven on."""


@dataclass(frozen=True)
class LoopEnd:
    """How a drive ended.

    Attributes:
        outcome: ``done``, ``partial`` or ``failed``; from the stop reason, never from text.
        reason: The stop reason or the limit's name.
        text: Text of the last answer.
        remedy: What the person can do.
    """

    outcome: Literal["done", "partial", "failed"]
    reason: str
    text: str = ""
    remedy: str = ""


class RunLoop:
    """Drives runs; one object serves all of them.

    Args:
        parts: The deck's parts.
        durable: The hub with joined syncs.
        asker: Does the steps.
        dispatcher: Does the tool calls.
        purse: Decides on the next step.
        marks: Tells that a limit is near.
    """

    def __init__(
        self,
        parts: EngineParts,
        durable: Durable,
        asker: Asker,
        dispatcher: Dispatcher,
        purse: Purse,
        marks: Marks,
    ) -> None:
        self._parts = parts
        self._durable = durable
        self._asker = asker
        self._dispatcher = dispatcher
        self._purse = purse
        self._marks = marks

    async def drive(self, run: Run) -> LoopEnd:
        """Ask until the model is done; the run's last message must be the user's.

        Raises:
            PrefixChanged: A request would not extend the last one.
            ProviderError: The endpoint refused, or every attempt failed.
        """
        last = ""
        while True:
            try:
                plan = await self._purse.plan(run, last)
            except LimitReached as reached:
                self._marks.note(run, last=reached.limit)
                told = f"{reached.what} {reached.remedy}".strip()
                return LoopEnd("partial", reached.limit, _last(run), told)
            if plan.last and not last and run.steps:
                self._purse.release(run.run)
                self._marks.note(run, last=plan.last)
                await self._say(run, LAST_STEP.format(limit=plan.last))
                last = plan.last
                continue
            last = plan.last
            try:
                self._marks.note(run, beginning=1, last=last)
                answer = await self._asker.ask(run, plan.max_tokens)
            finally:
                self._purse.release(run.run)
            await self._durable.sync()
            end = self._ended(run, answer, last)
            self._marks.note(run)
            if end is not None:
                if answer.calls:
                    await self._refuse_open_calls(run, answer, last)
                elif end.outcome == "done" and await self._steered(run):
                    continue
                return end
            results = await self._dispatcher.run_calls(run, answer.calls)
            if run.halted:
                # A tool that took its cancellation for its own must not keep the run alive.
                raise asyncio.CancelledError
            await self._add_results(run, results)
            if run.pause is not None and run.pause():
                return LoopEnd("partial", PAUSED, _last(run))

    def _ended(self, run: Run, answer: Answer, last: str) -> LoopEnd | None:
        """Return how the run ended with this answer, or None when it goes on."""
        if answer.stop_reason == "refusal":
            return LoopEnd("failed", "refusal", answer.text, answer.refusal or "")
        if last:
            return LoopEnd("partial", last, answer.text or _last(run))
        if answer.stop_reason in CUT_ANSWERS:
            return LoopEnd("partial", answer.stop_reason, answer.text or _last(run))
        if answer.calls:
            return None
        return LoopEnd("done", answer.stop_reason, answer.text)

    async def _steered(self, run: Run) -> bool:
        """Deliver what the person said meanwhile; false when there is nothing."""
        slot = run.slot() if run.slot is not None and not run.is_parent else Slot()
        if not slot.blocks:
            return False
        event = run.user_message("notification", slot.blocks, text=slot.shown)
        run.take(event, self._parts.hub)
        await self._durable.sync()
        return True

    async def _add_results(self, run: Run, results: list[JsonDict]) -> None:
        """Put the results, then whatever waits for the next user slot, into one message."""
        slot = run.slot() if run.slot is not None else Slot()
        notes = [text_block(note) for note in run.notes]
        run.notes.clear()
        blocks = [*results, *notes, *slot.blocks]
        event = run.results_message(blocks, text=slot.shown, delivers=slot.delivers)
        run.take(event, self._parts.hub)
        await self._durable.sync()

    async def _say(self, run: Run, text: str) -> None:
        """Add a text to the run's trailing user slot."""
        run.take(run.user_message("notification", [text_block(text)]), self._parts.hub)
        await self._durable.sync()

    async def _refuse_open_calls(self, run: Run, answer: Answer, last: str) -> None:
        """Answer calls that will not run, so that the history stays valid."""
        why = f"the answer was cut ({answer.stop_reason})"
        if answer.stop_reason == "refusal":
            why = "the model refused in this answer"
        elif last:
            why = f"the {last} limit is reached, and this was the last step"
        results = self._dispatcher.refuse(run, answer.calls, NOT_RUN.format(why=why))
        run.take(run.results_message(results), self._parts.hub)
        await self._durable.sync()


def _last(run: Run) -> str:
    return run.texts[-1] if run.texts else ""
