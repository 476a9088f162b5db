"""The parent's conversation: turns, the prompt queue, interrupts, resends and wakes.

The deck hands over what the person wants; the supervisor says when a fork has settled. One turn
runs at a time, in a task that this object owns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from forkdeck.engine.limit_words import raise_it
from forkdeck.engine.repair import interrupted_results
from forkdeck.engine.run import Slot, text_block
from forkdeck.engine.run_loop import PAUSED
from forkdeck.engine.user_slot import due, file_blocks, first_blocks, slot
from forkdeck.errors import AuthFailed, ContextTooLong, ForkDeckError
from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.events.turn import PromptQueued, PromptWithdrawn, TurnEnded, TurnStarted
from forkdeck.model.ids import PARENT
from forkdeck.model.intents import IntentResult
from forkdeck.model.raw import JsonDict, clean_text
from forkdeck.model.words import MessageKind

if TYPE_CHECKING:
    from forkdeck.engine.compaction import Compactor
    from forkdeck.engine.durability import Durable
    from forkdeck.engine.limits import Purse
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.run import Run
    from forkdeck.engine.run_loop import LoopEnd, RunLoop
    from forkdeck.engine.time_watch import TimeWatch
    from forkdeck.model.state import HistoryEntry

Source: TypeAlias = Literal["prompt", "wake", "resend", "compact"]
"""Why a turn begins."""

MAKE_ROOM = "Make room with /compact, then send it again with r; or start anew with /clear."
TOO_LONG = "Compacting cannot make enough room: ask for less at once, or start anew with /clear."

MAKE_ROOM_ALONE = "Start it in a new session."
"""The same where nobody is attached."""


class Conversation:
    """Drives the parent.

    Args:
        parts: The deck's parts.
        durable: The hub with joined syncs.
        loop: Drives conversations.
        purse: Knows whether the session's budget is spent.
        clock: Ends a turn at the session's time limit.
        run: The parent.
        waiting: Gives the batches whose calls wait for them.
        compactor: Shortens the conversation.
    """

    def __init__(
        self,
        parts: EngineParts,
        durable: Durable,
        loop: RunLoop,
        purse: Purse,
        clock: TimeWatch,
        run: Run,
        waiting: Callable[[], Sequence[str]],
        compactor: Compactor,
    ) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._durable = durable
        self._loop = loop
        self._purse = purse
        self._clock = clock
        self._expired = ""
        self._waiting = waiting
        self._compactor = compactor
        self._turn: asyncio.Task[None] | None = None
        self._told_context = False
        self._roomy = True
        """Whether compacting may still make room for the running turn."""
        self._closing = False
        self._source: Source = "prompt"
        self._hint = ""
        self.run = run
        self.typing = False
        self.changed: Callable[[], None] = lambda: None
        run.slot = self._slot
        run.pause = compactor.due

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        return self._turn is not None

    @property
    def wake_due(self) -> bool:
        """Whether the parent will be woken now, were it idle."""
        return bool(self._wakeable())

    # --- what the person wants ------------------------------------------------------------

    async def prompt(self, text: str) -> IntentResult:
        """Start a turn with a prompt, or queue it while one runs."""
        text = clean_text(text)
        if not text.strip():
            return IntentResult(ok=False, text="The prompt is empty.")
        if self.busy or self._hub.state.prompts:
            prompt = f"u{self._hub.state.seq + 1}"
            self._hub.append(PromptQueued(prompt=prompt, text=text))
            if not self.busy:
                self._next()
            return IntentResult(ok=True, text="queued")
        self._start("prompt", text)
        return IntentResult(ok=True)

    def withdraw(self, prompt: str) -> IntentResult:
        """Take a queued prompt back."""
        if all(each.prompt != prompt for each in self._hub.state.prompts):
            return IntentResult(ok=False, text="That prompt is not queued any more.")
        self._hub.append(PromptWithdrawn(prompt=prompt))
        return IntentResult(ok=True)

    def resend(self) -> IntentResult:
        """Send the failed or interrupted turn again."""
        if self.busy:
            return IntentResult(ok=False, text="A turn is running.")
        turn = self._hub.state.parent.turn
        if not self.run.messages or not turn.resendable:
            return IntentResult(ok=False, text="There is no failed turn to send again.")
        # A compaction that failed is what the person wants again, not an answer.
        again = self._source == "compact" and turn.outcome == "failed"
        self._start("compact" if again else "resend", "")
        return IntentResult(ok=True)

    def compact(self, hint: str) -> IntentResult:
        """Compact the conversation, as a turn of its own that can be interrupted."""
        if self.busy:
            return IntentResult(ok=False, text="A turn is running; compact after it.")
        if not self.run.messages:
            return IntentResult(ok=False, text="There is no conversation to compact.")
        self._hint = hint
        self._start("compact", "")
        return IntentResult(ok=True, text="compacting")

    async def interrupt(self) -> IntentResult:
        """End the running turn; forks it waited for go on in the background."""
        turn = self._turn
        if turn is None:
            return IntentResult(ok=False, text="The parent is not running.")
        turn.cancel()
        await asyncio.wait({turn})
        await asyncio.sleep(0)  # its end is noted by a callback
        living = sum(not fork.settled for fork in self._hub.state.forks.values())
        text = "parent stopped"
        if living:
            running = f"{living} fork{'s' if living != 1 else ''} still running"
            text = f"parent stopped · {running} · X aborts all"
        return IntentResult(ok=True, text=text)

    def settled(self) -> None:
        """Look whether the idle parent should be woken, after a fork settled or typing ended."""
        if not self.busy and not self._closing and self._wakeable():
            self._start("wake", "")

    async def close(self) -> None:
        """End the running turn and start no other."""
        self._closing = True
        if self._turn is not None:
            self._turn.cancel()
            await asyncio.wait({self._turn})
            await asyncio.sleep(0)  # its end is noted by a callback

    # --- turns ----------------------------------------------------------------------------

    def _start(self, source: Source, text: str) -> None:
        number = self._hub.state.parent.turn.turn + 1
        self._source = source
        self._hub.append(TurnStarted(turn=number, source=source))
        task = asyncio.create_task(self._run_turn(number, source, text), name=f"turn {number}")
        self._turn = task
        self._expired = self.run.stop = ""
        watch = asyncio.create_task(self._watch_time(task), name=f"time of turn {number}")
        task.add_done_callback(lambda _: watch.cancel())
        task.add_done_callback(lambda done: self._turn_done(done, number, text))

    def _turn_done(self, task: asyncio.Task[None], number: int, text: str) -> None:
        self._turn = None
        if task.cancelled():
            self._stopped(number, text)
        self.changed()
        if self._closing:
            return
        if self._hub.state.parent.turn.outcome != "failed":
            self._next()
        if not self.busy:
            self.settled()

    def _stopped(self, number: int, text: str) -> None:
        """End an interrupted turn; a prompt that did not enter the history yet is kept in it."""
        if not self._hub.state.parent.turn.running:
            return
        history = self._hub.state.parent.history
        entered = bool(history) and history[-1].turn == number
        if text and not entered:
            blocks = interrupted_results(self.run.messages)
            if not _introduced(history):
                blocks.extend(first_blocks(self._parts, self._parts.offered))
            event = self.run.user_message("prompt", [*blocks, text_block(text)], text=text)
            self.run.take(event, self._hub)
        if self._expired:
            remedy = raise_it("session", "time", attached=self._parts.attached)
            self._hub.append(
                TurnEnded(turn=number, outcome="failed", reason=self._expired, remedy=remedy)
            )
            return
        self._hub.append(TurnEnded(turn=number, outcome="interrupted", reason="interrupted"))

    def _next(self) -> None:
        """Send the oldest queued prompt."""
        prompts = self._hub.state.prompts
        if prompts:
            self._hub.append(PromptWithdrawn(prompt=prompts[0].prompt, why="sent"))
            self._start("prompt", prompts[0].text)

    async def _run_turn(self, number: int, source: Source, text: str) -> None:
        """Run one turn; every way out ends it with its event."""
        self._roomy = True
        try:
            await self._durable.ready()
            if source == "compact":
                await self._compact(self._hint)
                self._hub.append(TurnEnded(turn=number, outcome="completed", reason="compacted"))
            else:
                await self._add_input(source, text)
                self._end(number, await self._drive())
        except ContextTooLong as error:
            roomy = self._roomy and self._compactor.possible
            remedy = MAKE_ROOM if roomy else TOO_LONG
            self._fail(number, error, remedy if self._parts.attached else MAKE_ROOM_ALONE)
        except AuthFailed as error:
            self._fail(number, error, error.remedy or self._again("Set a key, then "))
        except ForkDeckError as error:
            self._fail(number, error, error.remedy or self._again())
        except Exception as error:  # noqa: BLE001 - the door of every run task
            inside = ForkDeckError(f"An error inside ForkDeck: {type(error).__name__}: {error}")
            self._fail(number, inside, f"{self._again()} The session log holds everything.")
        self._watch_context()
        await self._durable.sync()

    def _again(self, first: str = "") -> str:
        """Return how to send a turn again: a key needs someone who presses it."""
        way = "resend with r." if self._parts.attached else "run it again."
        return first + way if first else way.capitalize()

    async def _watch_time(self, turn: asyncio.Task[None]) -> None:
        """End a turn at the session's time limit; forks it waits for end by their own clocks."""
        over = await self._clock.until_over(self.run)
        if over and not self._waiting():
            self._expired = over
            turn.cancel()

    async def _drive(self) -> LoopEnd:
        """Drive the run to its end, compacting it between two steps when that is due.

        A request that does not fit although nobody foresaw it is answered so too, once.
        """
        while True:
            try:
                end = await self._loop.drive(self.run)
            except ContextTooLong:
                compacts = self._compactor.automatic and self._compactor.possible
                if not (self._roomy and compacts):
                    raise
                await self._compact()
                self._roomy = False
                continue
            if end.reason != PAUSED:
                return end
            self._watch_context()
            await self._compact()

    async def _compact(self, hint: str = "") -> None:
        await self._compactor.compact(hint)
        self._told_context = False

    def _end(self, number: int, end: LoopEnd) -> None:
        outcome: Literal["completed", "failed"] = "completed"
        if end.outcome == "failed" or end.reason.startswith("session "):
            outcome = "failed"
        remedy = end.remedy
        if end.outcome == "partial" and not remedy:
            remedy = "The answer was cut; say how to go on."
        self._hub.append(TurnEnded(turn=number, outcome=outcome, reason=end.reason, remedy=remedy))

    def _fail(self, number: int, error: ForkDeckError, remedy: str) -> None:
        self._hub.append(TurnEnded(turn=number, outcome="failed", reason=error.what, remedy=remedy))

    async def _add_input(self, source: Source, text: str) -> None:
        """Put the turn's input into the history, behind results of calls that never ended."""
        run = self.run
        quoted: list[JsonDict] = []
        faults: list[str] = []
        if source == "prompt":
            quoted, faults = await file_blocks(run, text)
        if self._compactor.due([*quoted, *self._slot().blocks, text_block(text)]):
            await self._compact()
        blocks: list[JsonDict] = interrupted_results(run.messages)
        if source == "resend":
            ends_in_user = bool(run.messages) and run.messages[-1]["role"] == "user"
            if not ends_in_user:
                await self._add("notification", [*blocks, text_block("Go on.")], "", Slot())
            return
        waits = self._slot()
        if source == "wake":
            await self._add("notification", [*blocks, *waits.blocks], waits.shown, waits)
            return
        if not _introduced(self._hub.state.parent.history):
            blocks.extend(first_blocks(self._parts, self._parts.offered))
        for fault in faults:
            self._hub.append(NoticeRaised(severity="warning", what=fault))
        prompt = text_block(text)
        await self._add("prompt", [*blocks, *waits.blocks, *quoted, prompt], text, waits)

    async def _add(
        self, kind: MessageKind, blocks: Sequence[JsonDict], text: str, waits: Slot
    ) -> None:
        event = self.run.user_message(kind, blocks, text=text, delivers=waits.delivers)
        self.run.take(event, self._hub)
        await self._durable.sync()

    def _slot(self) -> Slot:
        return slot(self._parts, self._waiting(), self.run.delivering)

    def _wakeable(self) -> list[str]:
        """Return due reports of forks that the model launched in the background."""
        if self._parts.settings.forks.wake != "auto" or self.typing or not self.run.messages:
            return []
        if self._purse.session_exhausted():
            return []
        state = self._hub.state
        if state.prompts or state.parent.turn.outcome in ("failed", "interrupted"):
            return []
        found = [(h, state.batches[state.forks[h].batch]) for h in due(state, self._waiting())]
        return [handle for handle, batch in found if batch.background and batch.tool != "user"]

    def _watch_context(self) -> None:
        """Tell once when the conversation nearly fills the model's context."""
        if self._told_context or not self._compactor.near:
            return
        self._told_context = True
        measured = self._hub.state.parent.context_tokens or 0
        filled = self._compactor.filled
        share = filled * 100 // (self.run.facts.context_tokens or filled or 1)
        about = "about " if filled > measured else ""
        compacts = self._compactor.automatic
        self._hub.append(
            NoticeRaised(
                run=PARENT,
                severity="warning",
                what=f"The conversation fills {about}{share} % of the model's context.",
                kept="It is compacted before the next step: a summary takes the place of its older "
                "messages."
                if compacts
                else "",
                remedy="" if compacts else "Make room with /compact, or start anew with /clear.",
            )
        )


def _introduced(history: Iterable[HistoryEntry]) -> bool:
    """Whether the history already says where it is: its first prompt does, and a summary."""
    return any(entry.kind in ("prompt", "summary") for entry in history)
