"""Going on after a crash at any point of the log, and exactly-once delivery under any order."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from forkdeck.model.events import Event
from forkdeck.model.events.fork import ForkEnded
from forkdeck.model.events.session import SessionClosed
from forkdeck.model.events.turn import MessageAdded, TurnEnded
from forkdeck.model.intents import (
    AbortAll,
    AbortFork,
    InterruptParent,
    ResumeFork,
    SendPrompt,
    StartFork,
    SteerFork,
)
from forkdeck.model.tooling import ToolResult
from forkdeck.model.words import TERMINAL
from forkdeck.store.reducer import fold
from forkdeck.store.selectors import living
from tests.engine.conftest import MakeRig
from tests.engine.fakes import Asked, Net, Reply
from tests.engine.rig import REPORT, Rig, parent_then, tasks

READ = ("read", {"path": "a.py"})


def rich_script(asked: Asked) -> Reply:
    """A parent that reads, forks (one of them writes) and concludes; forks that read."""
    if asked.run != "p":
        return Reply(REPORT) if asked.results else Reply("I look.", [READ, READ])
    calls = [READ, ("fork_join", tasks("a", "b")), ("fork", {"task": "w", "write": True})]
    return {1: Reply("First.", calls), 2: Reply("Done.")}.get(asked.number, Reply("And on."))


async def recorded(make_rig: MakeRig) -> list[Event]:
    rig = await make_rig()
    rig.provider.script = rich_script
    await rig.say("Do it")
    return [e for e in rig.sink.events if not isinstance(e, SessionClosed)]


def delivered(events: list[Event]) -> list[str]:
    return [h for e in events if isinstance(e, MessageAdded) for h in e.delivers]


async def test_a_session_goes_on_after_a_crash_at_any_event(
    make_rig: MakeRig, tmp_path: Path
) -> None:
    """T29-like: nothing RUNNING is left, the history is valid, every report arrives once."""
    events = await recorded(make_rig)
    heads = next((tmp_path / "session-0" / "heads").iterdir())
    for cut in range(3, len(events) + 1):
        state = fold(events[:cut])
        directory = tmp_path / f"cut-{cut}"
        (directory / "heads").mkdir(parents=True)
        (directory / "heads" / heads.name).write_text(heads.read_text())
        rig = Rig(directory, Net())
        rig.provider.script = lambda asked: Reply("I go on.")
        await rig.open(state, resume=True)
        assert living(rig.state) == [], cut
        assert not rig.state.parent.turn.running
        assert rig.state.asks == ()
        for number, fork in enumerate(list(rig.state.forks.values())):
            assert fork.status in TERMINAL
            if number == 0 and fork.outcome == "interrupted":
                await rig.do(ResumeFork(handle=fork.handle))
                await rig.idle()
        await rig.say("What now?")
        assert rig.state.parent.turn.outcome == "completed", cut
        sent = delivered([*events[:cut], *rig.sink.events])
        assert len(sent) == len(set(sent)), cut
        assert set(rig.state.forks) == set(sent), cut
        await rig.close()
        assert rig.net.faults == [], cut
        assert rig.provider.open == 0


async def test_reports_given_before_an_interrupt_count_as_delivered(make_rig: MakeRig) -> None:
    """The turn is stopped in the call behind fork_join; its reports are not sent a second time."""
    rig = await make_rig()

    async def hang(*_: object) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError

    rig.tools["read"].behaviour = hang
    first = Reply("Both.", [("fork_join", tasks("a", "b")), READ])
    rig.provider.script = parent_then(first, lambda _: Reply(REPORT))
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: any(tool.name == "read" for tool in rig.state.parent.tools))
    await rig.do(InterruptParent())
    await rig.idle()
    rig.provider.script = lambda _: Reply("on")
    await rig.say("And?")
    assert delivered(rig.sink.events) == ["f1", "f2"]
    assert all(rig.fork(handle).delivered for handle in ("f1", "f2"))


class Chaos:
    """Random interleavings: answers, aborts, steers and interrupts in any order."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self.rig = rig
        self.random = random.Random(seed)
        self.waiting: list[asyncio.Event] = []

    def answer(self, asked: Asked) -> Reply:
        event = asyncio.Event()
        self.waiting.append(event)
        roll = self.random.random()
        if asked.run == "p":
            if roll < 0.5 and asked.number < 12:
                names = [f"n{asked.number}{i}" for i in range(self.random.randint(1, 4))]
                background = self.random.random() < 0.5
                more = {"background": background, "write": self.random.random() < 0.3}
                return Reply("fork", [("fork_join", tasks(*names, **more)), READ], hold=event)
            return Reply("talk", hold=event)
        if roll < 0.15:
            return Reply("half", cut=True, hold=event)
        if roll < 0.4 and asked.number < 5:
            return Reply("look", [READ], hold=event)
        return Reply("" if roll < 0.5 else REPORT, hold=event)

    async def act(self) -> None:
        rig, pick = self.rig, self.random
        handles = list(rig.state.forks) or ["f1"]
        roll = pick.random()
        if roll < 0.45 and self.waiting:
            self.waiting.pop(pick.randrange(len(self.waiting))).set()
        elif roll < 0.55:
            await rig.do(AbortFork(handle=pick.choice(handles)))
        elif roll < 0.60:
            await rig.do(InterruptParent())
        elif roll < 0.68:
            await rig.do(SteerFork(handle=pick.choice(handles), text="hey"))
        elif roll < 0.76:
            await rig.do(ResumeFork(handle=pick.choice(handles)))
        elif roll < 0.82:
            await rig.do(StartFork(task="side", count=pick.randint(1, 2)))
        elif roll < 0.84:
            await rig.do(AbortAll())
        else:
            await rig.do(SendPrompt(text=f"prompt {pick.random()}"))
        for _ in range(pick.randint(0, 30)):
            await asyncio.sleep(0)


@pytest.mark.parametrize("seed", [*range(25), 213])
async def test_any_interleaving_delivers_each_report_once(
    make_rig: MakeRig, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T62, T79, T101: each end once, each delivery once, nothing left running, all valid."""
    rig = await make_rig()
    chaos = Chaos(rig, seed)

    async def slow_disk(function: Any, *arguments: Any) -> Any:
        for _ in range(chaos.random.randint(0, 60)):
            await asyncio.sleep(0)
        return function(*arguments)

    def in_turns(_: Any, function: Any, *arguments: Any) -> asyncio.Task[Any]:
        return asyncio.ensure_future(slow_disk(function, *arguments))

    # No thread: the seed alone says how everything interleaves, so that a failure comes again.
    monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", in_turns)

    async def slow(*_unused: Any) -> ToolResult:
        for _ in range(chaos.random.randint(0, 5)):
            await asyncio.sleep(0)
        return ToolResult(content="x")

    rig.tools["read"].behaviour = slow
    rig.provider.script = chaos.answer
    for _ in range(80):
        await chaos.act()
    rig.provider.script = lambda _: Reply(REPORT)
    for event in chaos.waiting:
        event.set()
    await rig.idle()
    rig.provider.script = parent_then(Reply("x"), lambda _: Reply(REPORT))
    await rig.say("last")
    await rig.idle()
    assert living(rig.state) == []
    made = sum(line.startswith("create") for line in rig.worktrees.log)
    assert made == sum(line.startswith("remove") for line in rig.worktrees.log)
    ends = [e.run for e in rig.sink.of(ForkEnded)]
    reopened = [e.run for e in rig.sink.events if type(e).__name__ == "ForkReopened"]
    assert len(ends) == len(rig.state.forks) + len(reopened)
    sent = delivered(rig.sink.events)
    for handle in rig.state.forks:
        assert 1 <= sent.count(handle) <= 1 + reopened.count(handle), handle
        assert rig.fork(handle).delivered
    starts = sum(type(e).__name__ == "TurnStarted" for e in rig.sink.events)
    assert starts == len(rig.sink.of(TurnEnded))
    assert fold(rig.sink.events) == rig.state
