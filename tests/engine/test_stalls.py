"""Diagnosed stalls: which clock, since when, cleared by headway, and never an action."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from forkdeck.config.settings import ForkSettings, Settings, StallSettings
from forkdeck.model.events.fork import ForkEnded, ForkRecovered, ForkSlowed, ForkStopped
from forkdeck.model.intents import AbortFork, CancelTool, SendPrompt
from forkdeck.model.tooling import ToolResult
from forkdeck.store.selectors import activity, attention_order, badge, counts
from tests.engine.conftest import MakeRig
from tests.engine.fakes import Asked, Reply
from tests.engine.rig import REPORT, Rig, join, parent_then


async def slow(rig: Rig, handle: str = "f1") -> None:
    await rig.until(lambda: handle in rig.state.forks and rig.fork(handle).slow is not None, "slow")


async def test_a_silent_stream_is_slow_until_it_speaks(rig: Rig) -> None:
    """The silence clock, both before the first byte and in the middle of an answer."""
    first, half = asyncio.Event(), asyncio.Event()
    rig.provider.script = parent_then(join("a"), lambda _: Reply(REPORT, gate=first, hold=half))
    await rig.do(SendPrompt(text="go"))
    await slow(rig)
    facts = rig.fork("f1").slow
    assert facts is not None
    assert (facts.clock, facts.what) == ("silence", "no answer yet")
    assert rig.hub.now_ms() - facts.since_ms >= 60_000
    assert badge(rig.state, "f1") == "SLOW"
    assert ("SLOW", 1) in counts(rig.state)
    assert attention_order(rig.state)[0] == "f1"
    assert activity(rig.state, "f1").argument == "no answer yet"
    first.set()
    await rig.until(lambda: rig.fork("f1").slow is None, "recovered")
    await slow(rig)
    assert rig.sink.of(ForkSlowed, "f1")[1].what == "the answer stands still"
    half.set()
    await rig.idle()
    assert rig.fork("f1").outcome == "done"
    assert rig.fork("f1").slow is None
    assert rig.sink.of(ForkStopped) == []
    assert len(rig.bodies("f1")) == 1


async def test_a_long_tool_is_slow_and_only_a_key_ends_it(rig: Rig) -> None:
    """The tool clock; K ends the tool alone."""
    never = asyncio.Event()

    async def wait(*_: Any) -> ToolResult:
        await never.wait()
        return ToolResult(content="")

    rig.tools["bash"].behaviour = wait

    def child(asked: Asked) -> Reply:
        return Reply("", [("bash", {"command": "sleep 9"})]) if asked.number == 1 else Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.do(SendPrompt(text="go"))
    await slow(rig)
    facts = rig.fork("f1").slow
    assert facts is not None
    assert (facts.clock, facts.what) == ("tool", "bash sleep 9 runs long")
    assert rig.hub.now_ms() - facts.since_ms >= 120_000
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert rig.state.runs["f1"].tools, "it is still running"
    assert (await rig.do(CancelTool(run="f1"))).ok
    await rig.idle()
    assert rig.fork("f1").outcome == "done"
    assert rig.sink.of(ForkRecovered, "f1")


async def test_the_same_error_again_is_slow_until_something_works(rig: Rig) -> None:
    """The error clock counts equal errors of different calls, and clears."""
    badges: list[str] = []

    def read(arguments: Any, _: Any) -> ToolResult:
        bad = arguments["path"] != "good"
        return ToolResult(content="no such file" if bad else "x", status="error" if bad else "ok")

    rig.tools["read"].behaviour = read

    def child(asked: Asked) -> Reply:
        badges.append(badge(rig.state, "f1"))
        names = ["a", "b", "c", "good"]
        if asked.number <= len(names):
            return Reply("", [("read", {"path": names[asked.number - 1]})])
        return Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    assert badges == ["RUN", "RUN", "RUN", "SLOW", "RUN"]
    assert rig.sink.of(ForkSlowed, "f1")[0].what == "the same error 3 times: no such file"


async def test_zero_switches_the_clocks_off(make_rig: MakeRig) -> None:
    """Settings, each by itself."""
    off = StallSettings(silence_s=0, tool_s=0, repeats=0, errors=0)
    rig = await make_rig(settings=Settings(forks=ForkSettings(plan="never"), stalls=off))
    hold = asyncio.Event()

    def child(asked: Asked) -> Reply:
        if asked.number < 6:
            return Reply("", [("edit", {"path": "a"})])
        return Reply(REPORT, hold=hold)

    rig.provider.script = parent_then(join("a"), child)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.runs.get("f1") and rig.state.runs["f1"].stream)
    await rig.clock.sleep(3_600)
    hold.set()
    await rig.idle()
    assert rig.sink.of(ForkSlowed) == []


async def test_waiting_for_the_person_or_the_endpoint_is_not_slow(make_rig: MakeRig) -> None:
    """ASK and WAIT say so themselves."""
    rig = await make_rig(rules=(("ask", "read"),))

    def child(asked: Asked) -> Reply:
        return Reply("", [("read", {"path": "a.py"})]) if asked.number == 1 else Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: badge(rig.state, "f1") == "ASK" if "f1" in rig.state.forks else False)
    await rig.clock.sleep(3_600)
    assert badge(rig.state, "f1") == "ASK"
    await rig.do(AbortFork(handle="f1"))
    await rig.idle()
    assert rig.sink.of(ForkSlowed) == []
    assert rig.sink.of(ForkEnded, "f1")[0].outcome == "aborted"


@pytest.mark.parametrize("status", ["STOP", "SAVE"])
def test_a_fork_that_is_being_ended_is_not_slow(status: str) -> None:
    """The badge says what is going on."""
    from msgspec.structs import replace

    from forkdeck.model.state import EMPTY, SlowFacts
    from forkdeck.store.changes import fork_of, with_fork

    fork = fork_of(EMPTY, "f1")
    assert fork is not None
    ended = replace(fork, status=status, slow=SlowFacts("tool", 0, "x"))
    assert badge(with_fork(EMPTY, ended), "f1") == status
