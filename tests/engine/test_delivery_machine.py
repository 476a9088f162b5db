"""Exactly-once delivery as a state machine over the real deck with a scripted model (T62).

Hypothesis interleaves answers, prompts, forks, aborts, steers, resumes, interrupts and restarts;
after every rule the invariants of `FORKS` "States and results" hold.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from forkdeck.model.events import Event
from forkdeck.model.events.fork import ForkEnded, ForkReopened
from forkdeck.model.events.session import SessionClosed
from forkdeck.model.events.turn import MessageAdded
from forkdeck.model.intents import (
    AbortAll,
    AbortFork,
    InterruptParent,
    NoteTyping,
    ResumeFork,
    SendPrompt,
    StartFork,
    SteerFork,
)
from forkdeck.store.reducer import fold
from forkdeck.store.selectors import living
from tests.engine.fakes import Asked, Net, Reply
from tests.engine.rig import REPORT, Rig, tasks
from tests.soak import laws

READ = ("read", {"path": "a.py"})
PICK = st.integers(0, 7)


class Delivery(RuleBasedStateMachine):
    """A person and a model that do anything in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = Path(tempfile.mkdtemp(prefix="forkdeck-machine-"))
        self.held: list[asyncio.Event] = []
        self.plan: list[str] = []
        self.log: list[Event] = []
        self.run(self._open(None))

    # --- the world ------------------------------------------------------------------------

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 20))

    async def _open(self, state: Any) -> None:
        self.net = Net()
        self.rig = Rig(self.directory / "session", self.net)
        self.rig.provider.script = self._answer
        if state is None:
            await self.rig.open()
        else:
            await self.rig.open(state, resume=True)

    def _answer(self, asked: Asked) -> Reply:
        event = asyncio.Event()
        self.held.append(event)
        what = self.plan.pop() if self.plan else "talk"
        if asked.run == "p":
            if what in ("join", "background"):
                more = {"background": what == "background"}
                return Reply("I fork.", [("fork_join", tasks("a", "b", **more)), READ], hold=event)
            return Reply("I talk.", hold=event)
        if what == "look":
            return Reply("I look.", [READ], hold=event)
        if what == "empty":
            return Reply("", hold=event)
        return (
            Reply("no", stop="refusal", hold=event)
            if what == "refuse"
            else Reply(REPORT, hold=event)
        )

    async def _settle(self, turns: int = 40) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    def _do(self, intent: Any) -> None:
        self.run(self.rig.do(intent))
        self.run(self._settle())

    def _handle(self, pick: int) -> str:
        handles = list(self.rig.state.forks)
        return handles[pick % len(handles)] if handles else "f1"

    # --- what happens ---------------------------------------------------------------------

    @rule(what=st.sampled_from(["talk", "join", "background", "look", "empty", "refuse"]))
    def model_will(self, what: str) -> None:
        self.plan.insert(0, what)

    @rule(what=st.sampled_from(["join", "background"]))
    def prompt_that_forks(self, what: str) -> None:
        self.plan.append(what)
        self._do(SendPrompt(text="go"))

    @rule(pick=PICK, steps=st.integers(0, 30))
    def answer(self, pick: int, steps: int) -> None:
        if self.held:
            self.held.pop(pick % len(self.held)).set()
        self.run(self._settle(steps))

    @rule()
    def prompt(self) -> None:
        self._do(SendPrompt(text="and?"))

    @rule(private=st.booleans())
    def person_forks(self, private: bool) -> None:
        self._do(StartFork(task="side", private=private))

    @rule(pick=PICK)
    def abort(self, pick: int) -> None:
        self._do(AbortFork(handle=self._handle(pick)))

    @rule(pick=PICK)
    def abort_at_the_last_answer(self, pick: int) -> None:
        """T59: the abort and the end of a stream in the same tick."""
        if self.held:
            self.held.pop(pick % len(self.held)).set()
        self._do(AbortFork(handle=self._handle(pick)))

    @rule(pick=PICK)
    def resume(self, pick: int) -> None:
        self._do(ResumeFork(handle=self._handle(pick)))

    @rule(pick=PICK)
    def steer(self, pick: int) -> None:
        self._do(SteerFork(handle=self._handle(pick), text="hey"))

    @rule()
    def interrupt(self) -> None:
        self._do(InterruptParent())

    @rule(on=st.booleans())
    def typing(self, on: bool) -> None:
        self._do(NoteTyping(typing=on))

    @rule()
    def abort_all(self) -> None:
        self._do(AbortAll())

    @rule(lost=st.integers(0, 12), clean=st.booleans())
    def restart(self, lost: int, clean: bool) -> None:
        """Close in good order, or lose the process and the last lines of the log."""
        events = list(self.rig.sink.events)
        self.run(self.rig.close())
        if clean:
            events = list(self.rig.sink.events)
        elif len(events) > 3:
            events = events[: max(3, len(events) - lost)]
        self._check_net()
        self.held.clear()
        self.log += [e for e in events if not isinstance(e, SessionClosed)]
        self.run(self._open(fold(self.log)))

    # --- what must hold -------------------------------------------------------------------

    @property
    def events(self) -> list[Event]:
        return [*self.log, *self.rig.sink.events]

    @invariant()
    def each_end_is_delivered_at_most_once(self) -> None:
        ends: dict[str, int] = {}
        reopened: dict[str, int] = {}
        for event in self.events:
            if isinstance(event, ForkEnded):
                ends[event.run] = ends.get(event.run, 0) + 1
            elif isinstance(event, ForkReopened):
                reopened[event.run] = reopened.get(event.run, 0) + 1
            elif isinstance(event, MessageAdded):
                for handle in event.delivers:
                    ends.setdefault(handle, 0)
        for handle, fork in self.rig.state.forks.items():
            again = reopened.get(handle, 0)
            assert ends.get(handle, 0) == again + (1 if fork.settled else 0), handle
            sent = self._sent(handle)
            assert sent <= again + 1, f"{handle} was delivered {sent} times"
            assert not (fork.private and sent), f"{handle} is private"
            assert fork.delivered is (self._since_reopened(handle) == 1), handle

    @invariant()
    def the_log_tells_the_state(self) -> None:
        assert fold(self.events) == self.rig.state

    def _sent(self, handle: str) -> int:
        return sum(
            event.delivers.count(handle) for event in self.events if isinstance(event, MessageAdded)
        )

    def _since_reopened(self, handle: str) -> int:
        count = 0
        for event in self.events:
            if isinstance(event, ForkReopened) and event.run == handle:
                count = 0
            elif isinstance(event, MessageAdded):
                count += event.delivers.count(handle)
        return count

    def _check_net(self) -> None:
        assert self.net.faults == []
        assert self.rig.provider.open == 0

    def teardown(self) -> None:
        """Let everything finish, then every report but the private ones has arrived, once."""
        try:
            self.rig.provider.script = lambda _: Reply(REPORT)
            for event in self.held:
                event.set()
            self.run(self.rig.do(NoteTyping(typing=False)))
            self.run(self.rig.idle())
            self.run(self.rig.say("last"))
            self.run(self.rig.idle())
            assert living(self.rig.state) == []
            for handle, fork in self.rig.state.forks.items():
                assert fork.delivered is not fork.private, handle
            self.each_end_is_delivered_at_most_once()
            self.run(self.rig.close())
            self._check_net()
        finally:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()
            shutil.rmtree(self.directory, ignore_errors=True)


TestDelivery = Delivery.TestCase
TestDelivery.settings = laws(
    40,
    stateful_step_count=25,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)
