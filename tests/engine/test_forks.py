"""Forks side by side: launch, queue, isolation, order, aborts, depth."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from forkdeck.config.settings import ForkSettings, Settings
from forkdeck.errors import BadRequest, RateLimited
from forkdeck.model.events.fork import BatchDetached, ForkEnded, ForkStarted
from forkdeck.model.events.step import RequestSent
from forkdeck.model.intents import (
    AbortAll,
    AbortFork,
    AnswerRequest,
    InterruptParent,
    SendPrompt,
    StartFork,
)
from forkdeck.model.tooling import ToolResult
from tests.engine.conftest import MakeRig
from tests.engine.fakes import Asked, Reply
from tests.engine.rig import REPORT, Rig, join, parent_then

EIGHT = [f"t{i}" for i in range(8)]


async def test_eight_forks_return_in_input_order_and_share_the_parents_prefix(rig: Rig) -> None:
    """T64, T30, T35: reports in input order, every fork's request begins with the parent's."""

    def child(asked: Asked) -> Reply:
        return Reply(f"{asked.run}: {REPORT}", delay_s=(9 - int(asked.run[1:])) * 0.1)

    rig.provider.script = parent_then(join(*EIGHT, max_concurrency=8), child)
    await rig.say("Do it")
    result = rig.results()[0]
    order = [result["content"].index(f'id="{name}"') for name in EIGHT]
    assert order == sorted(order)
    assert "is_error" not in result
    assert "8 of 8 forks done" in result["content"]
    for number in range(1, 9):
        assert rig.fork(f"f{number}").outcome == "done"
        assert rig.fork(f"f{number}").delivered
        rig.assert_shares(f"f{number}", rig.bodies("p")[0])
        assert rig.cache(f"f{number}").verdict == "HIT"


async def test_first_requests_of_a_warm_batch_leave_at_once(rig: Rig) -> None:
    """T38: a before_call batch on a warm prefix holds nobody and spaces nothing."""
    rig.provider.script = parent_then(join(*EIGHT, max_concurrency=8), lambda _: Reply(REPORT))
    await rig.say()
    sent = [at for run, at in rig.provider.sent_ms if run != "p"]
    assert max(sent) - min(sent) <= 20
    asked = rig.sink.of(RequestSent, "p")[0].at_ms
    assert min(sent) - asked <= 50


async def test_at_most_max_concurrency_run_and_the_rest_queue_first_in_first_out(rig: Rig) -> None:
    """The default is four per batch; places pass on in order."""
    free = asyncio.Event()
    rig.provider.script = parent_then(join(*EIGHT), lambda _: Reply(REPORT, hold=free))
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: sum(f.status == "RUN" for f in rig.state.forks.values()) == 4)
    assert [f.status for f in rig.state.forks.values()][4:] == ["QUE"] * 4
    free.set()
    await rig.idle()
    assert [e.run for e in rig.sink.of(ForkStarted)] == [f"f{n}" for n in range(1, 9)]


async def test_two_batches_of_one_answer_never_exceed_eight_places(rig: Rig) -> None:
    """The limit of the working directory holds over batches."""
    free = asyncio.Event()
    calls = [*join(*EIGHT, max_concurrency=8).calls, *join("x", "y", max_concurrency=8).calls]
    rig.provider.script = parent_then(Reply("two", calls), lambda _: Reply(REPORT, hold=free))
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: len(rig.provider.requests) == 9)
    await asyncio.sleep(0.01)
    assert len(rig.provider.requests) == 9
    free.set()
    await rig.idle()
    assert len(rig.results()) == 2


async def test_one_failing_fork_never_touches_its_siblings(rig: Rig) -> None:
    """T61, T67: one error among three is a partial batch, no error result."""

    def child(asked: Asked) -> Reply:
        if asked.run == "f2":
            return Reply(error=BadRequest("The request is wrong.", "Fix it.", status=400))
        return Reply(REPORT)

    rig.provider.script = parent_then(join("a", "b", "c"), child)
    await rig.say()
    assert [rig.fork(h).outcome for h in ("f1", "f2", "f3")] == ["done", "failed", "done"]
    result = rig.results()[0]
    assert "is_error" not in result
    assert 'status="failed" reason="The request is wrong."' in result["content"]


async def test_a_batch_of_failures_is_an_error(rig: Rig) -> None:
    """T67: is_error only when no task completed; T50: the report is not the parent's text."""
    rig.provider.script = parent_then(
        Reply("PARENT WORDS", join("a", "b").calls),
        lambda _: Reply(error=BadRequest("No.", status=400)),
    )
    await rig.say()
    result = rig.results()[0]
    assert result["is_error"] is True
    assert "PARENT WORDS" not in result["content"]
    assert rig.fork("f1").report == ""


async def test_abort_of_one_keeps_its_text_and_leaves_the_others(rig: Rig) -> None:
    """T56, T58: partial text and usage are kept, siblings go on, the queue is not started."""
    free = asyncio.Event()

    def child(asked: Asked) -> Reply:
        return Reply(f"Half a thought of {asked.run}", hold=free)

    rig.provider.script = parent_then(join("a", "b", "c", max_concurrency=2), child)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.runs.get("f2") and rig.state.runs["f2"].stream)
    assert (await rig.do(AbortFork(handle="f3"))).ok
    assert (await rig.do(AbortFork(handle="f1"))).ok
    assert not (await rig.do(AbortFork(handle="f1"))).ok
    await rig.until(lambda: rig.fork("f1").status == "ABRT")
    assert rig.fork("f3").status == "ABRT"
    assert rig.fork("f1").report.startswith("Half a thought")
    assert rig.state.runs["f1"].usage.prompt_tokens > 0
    assert rig.fork("f2").status == "RUN"
    free.set()
    await rig.idle()
    assert rig.fork("f2").outcome == "done"
    assert rig.bodies("f3") == []
    assert not rig.sink.of(ForkStarted, "f3")


async def test_abort_all_ends_every_fork_once(rig: Rig) -> None:
    """T62, T101: each fork ends exactly once, whatever comes later."""
    never = asyncio.Event()
    rig.provider.script = parent_then(
        join(*EIGHT), lambda _: Reply("x", hold=never), last="Stopped, I see."
    )
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.provider.open == 4)
    result = await rig.do(AbortAll())
    assert len(result.handles) == 8
    await rig.idle()
    assert rig.provider.open == 0
    assert [rig.fork(h).outcome for h in rig.state.forks] == ["aborted"] * 8
    assert sorted(e.run for e in rig.sink.of(ForkEnded)) == [f"f{n}" for n in range(1, 9)]
    assert rig.results()[0]["is_error"] is True
    assert not (await rig.do(AbortAll())).ok


async def test_abort_in_the_tick_of_the_end_keeps_the_finished_report(rig: Rig) -> None:
    """T59: what was finished stays done."""
    rig.provider.script = parent_then(join("a"), lambda _: Reply(REPORT))
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.sink.of(ForkEnded))
    await rig.do(AbortFork(handle="f1"))
    await rig.idle()
    assert rig.fork("f1").outcome == "done"
    assert len(rig.sink.of(ForkEnded)) == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fork", {"task": "again"}),
        ("fork_join", {"tasks": [{"id": "a", "task": "again"}]}),
        ("agent", {"prompt": "again", "description": "again"}),
    ],
)
async def test_a_fork_may_not_fork_whatever_the_tool(rig: Rig, name: str, arguments: dict) -> None:
    """T22: every delegating tool is refused by depth; nothing is created."""

    def child(asked: Asked) -> Reply:
        return Reply("I try.", [(name, arguments)]) if asked.number == 1 else Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    refused = rig.results("f1")[-1]
    assert refused["is_error"] is True
    assert "may not fork" in refused["content"]
    assert list(rig.state.forks) == ["f1"]
    assert rig.worktrees.log == []


async def test_text_that_quotes_fork_tags_does_not_block_forking(rig: Rig) -> None:
    """T20: recursion is refused by depth, never by a word in the text."""
    rig.provider.script = parent_then(join("a"), lambda _: Reply(REPORT))
    await rig.say("<fork_boilerplate> <fork-boilerplate> You are fork f1. [fork]")
    assert rig.fork("f1").outcome == "done"


async def test_interrupting_a_waiting_parent_detaches_its_forks(rig: Rig) -> None:
    """T73, T63: the turn ends, the forks go on, their reports come as one notification."""
    free = asyncio.Event()
    rig.provider.script = parent_then(join("a", "b"), lambda _: Reply(REPORT, hold=free))
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.provider.open == 2)
    said = await rig.do(InterruptParent())
    assert said.text == "parent stopped · 2 forks still running · X aborts all"
    assert rig.state.parent.turn.outcome == "interrupted"
    assert rig.sink.of(BatchDetached)
    assert [f.status for f in rig.state.forks.values()] == ["RUN", "RUN"]
    free.set()
    await rig.idle()
    assert not rig.fork("f1").delivered
    await rig.say("And now?")
    assert "moved to background by the user" in rig.results()[0]["content"]
    assert rig.sent_text().count("<task-notification>") == 1
    assert rig.fork("f1").delivered
    assert rig.fork("f2").delivered


async def test_a_429_is_waited_out_and_never_fails_a_fork(rig: Rig) -> None:
    """T54: a told wait is kept, shown, and followed by one report."""

    def child(asked: Asked) -> Reply:
        if asked.number <= 2:
            return Reply(error=RateLimited("Too many.", status=429, retry_after_s=18))
        return Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    assert rig.fork("f1").outcome == "done"
    assert rig.clock.ms >= 36_000
    assert rig.state.runs["f1"].counters.turns == 1


async def test_the_persons_fork_never_enters_the_parents_conversation(rig: Rig) -> None:
    """T26: the directive stays out; the report comes with who started it."""
    rig.provider.script = lambda asked: Reply(REPORT if asked.run != "p" else "ok")
    await rig.say("hello")
    result = await rig.do(StartFork(task="do X in secret words"))
    assert result.handles == ("f1",)
    await rig.idle()
    rig.assert_shares("f1", rig.bodies("p")[0])
    await rig.say("next")
    text = rig.sent_text()
    assert "secret words" not in text
    assert "fork f1 (started by the user):" in text


async def test_a_private_fork_is_never_delivered(rig: Rig) -> None:
    """--private: the report stays with the person."""
    rig.provider.script = lambda asked: Reply(REPORT if asked.run != "p" else "ok")
    await rig.say("hello")
    await rig.do(StartFork(task="look", private=True))
    await rig.idle()
    await rig.say("next")
    assert "task-notification" not in rig.sent_text()
    assert not rig.fork("f1").delivered


async def test_fork_without_a_conversation_is_refused(rig: Rig) -> None:
    """T7: nothing to fork from, with the way out."""
    result = await rig.do(StartFork(task="look"))
    assert not result.ok
    assert "no conversation to fork from" in result.text
    assert (await rig.do(StartFork(task="look", seed="none"))).ok
    await rig.idle()


async def test_background_forks_wake_an_idle_parent_once(rig: Rig) -> None:
    """T62, T79: one notification for the batch, delivered once."""
    free = asyncio.Event()
    first = join("a", "b", background=True)

    def script(asked: Asked) -> Reply:
        if asked.run != "p":
            return Reply(REPORT, hold=free)
        return first if asked.number == 1 else Reply(f"answer {asked.number}")

    rig.provider.script = script
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: not rig.state.parent.turn.running and rig.provider.open == 2)
    assert "Started in the background: f1 (a), f2 (b)" in rig.results()[0]["content"]
    free.set()
    await rig.idle()
    assert rig.state.parent.turn.turn == 2
    assert rig.sent_text().count("<task-notification>") == 1
    assert rig.sent_text().count("<fork-report") == 2
    await rig.say("more")
    assert rig.sent_text().count("<task-notification>") == 1


async def test_a_rejected_call_names_its_field_and_starts_nothing(make_rig: MakeRig) -> None:
    """T65: a precise error before anything starts."""
    rig = await make_rig()
    rig.provider.script = parent_then(join("a", "a"), lambda _: Reply(REPORT))
    await rig.say()
    assert "tasks[1].id" in rig.results()[0]["content"]
    assert rig.results()[0]["is_error"] is True
    assert rig.state.forks == {}


async def test_a_nested_fork_does_not_wait_for_its_parents_place(make_rig: MakeRig) -> None:
    """T72, T23: depth 2 with one place in all ends; the parent may still fork meanwhile."""
    settings = Settings(forks=ForkSettings(plan="never", max_depth=2, max_per_directory=1))
    rig = await make_rig(settings=settings)

    def child(asked: Asked) -> Reply:
        if asked.run == "f1" and asked.number == 1:
            return join("inner")
        return Reply(REPORT)

    rig.provider.script = parent_then(join("a", max_concurrency=1), child)
    await rig.say()
    assert [(f.depth, f.outcome) for f in rig.state.forks.values()] == [(1, "done"), (2, "done")]
    assert "<fork-report" in rig.results("f1")[0]["content"]


async def test_stopping_a_fork_stops_what_it_started(make_rig: MakeRig) -> None:
    """An abort cascades to nested forks."""
    settings = Settings(forks=ForkSettings(plan="never", max_depth=2))
    rig = await make_rig(settings=settings)
    never = asyncio.Event()

    def child(asked: Asked) -> Reply:
        return join("inner") if asked.run == "f1" else Reply("half", hold=never)

    rig.provider.script = parent_then(join("a"), child)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.runs.get("f2") and rig.state.runs["f2"].stream)
    await rig.do(AbortFork(handle="f1"))
    await rig.idle()
    assert [f.outcome for f in rig.state.forks.values()] == ["aborted", "aborted"]


async def test_fork_while_the_parent_streams_starts_at_its_first_byte(rig: Rig) -> None:
    """before_call over the streaming step's own request, behind its message_start."""
    first_byte = asyncio.Event()
    await rig.say("before")
    rig.provider.script = lambda asked: (
        Reply("talk", gate=first_byte) if asked.run == "p" else Reply(REPORT)
    )
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.parent.requested)
    assert (await rig.do(StartFork(task="look"))).ok
    await rig.until(lambda: rig.fork("f1").status == "WAIT")
    assert "f1" not in rig.net.by_run
    first_byte.set()
    await rig.idle()
    rig.assert_shares("f1", rig.bodies("p")[1])
    assert rig.cache("f1").verdict == "HIT"


async def test_fork_while_the_parents_tools_run_uses_placeholders(rig: Rig) -> None:
    """T3: neutral text for every open call, also for one that is no fork."""
    free = asyncio.Event()

    async def wait(*_: object) -> ToolResult:
        await free.wait()
        return ToolResult(content="x")

    rig.tools["bash"].behaviour = wait
    first = Reply("I build.", [("bash", {"command": "ls"})])
    rig.provider.script = parent_then(first, lambda _: Reply(REPORT))
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.parent.tools)
    assert (await rig.do(StartFork(task="look"))).ok
    await rig.until(lambda: rig.fork("f1").settled)
    assert rig.fork("f1").seed == "placeholder"
    assert "not available to this copy" in rig.results("f1")[0]["content"]
    free.set()
    await rig.idle()


async def test_a_costly_launch_asks_first(make_rig: MakeRig) -> None:
    """Above the usual price that starts by itself the plan is asked about; no starts nothing."""
    settings = Settings(forks=ForkSettings(plan_above_usd=Decimal("0.01")))
    rig = await make_rig(settings=settings)
    rig.provider.script = parent_then(join("a", "b"), lambda _: Reply(REPORT))
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.asks)
    ask = rig.state.asks[0].event
    assert ask.argument.startswith("2 forks, $")
    assert "f1 a (read-only): Look at a." in ask.argument
    assert [fork.status for fork in rig.state.forks.values()] == ["PLAN", "PLAN"]
    await rig.do(AnswerRequest(request=ask.request, answer="deny"))
    await rig.idle()
    assert [fork.status for fork in rig.state.forks.values()] == ["ABRT", "ABRT"]
    assert list(rig.net.by_run) == ["p"]
    assert not rig.sink.of(ForkStarted)
    assert rig.results()[0]["is_error"] is True


@pytest.mark.moves_cache_prefix(reason="an effort override is a head of its own")
async def test_an_override_says_what_it_loses(rig: Rig) -> None:
    """T33: allowed, and told beforehand."""
    first = Reply("", [("fork", {"task": "Look.", "effort": "low"})])
    rig.provider.script = parent_then(first, lambda _: Reply(REPORT))
    await rig.say()
    assert rig.fork("f1").effort == "low"
    assert rig.cache("f1").verdict == "COLD"
    assert "the whole shared cache is lost" in rig.results()[0]["content"]
