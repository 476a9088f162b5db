"""One fork's life: report, limits, steering, write forks, resume."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from forkdeck.model.events.fork import ForkEnded, ForkSteered
from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.events.work import WorktreeCreated
from forkdeck.model.intents import (
    AbortFork,
    ApplyWork,
    DiscardWork,
    ResumeFork,
    SendPrompt,
    StartFork,
    SteerFork,
    UndoLast,
)
from forkdeck.model.tooling import ToolResult
from tests.engine.conftest import MakeRig
from tests.engine.fakes import Asked, Reply
from tests.engine.rig import REPORT, Rig, join, parent_then

READ = ("read", {"path": "a.py"})


def fork_with(**more: Any) -> Reply:
    return Reply("", [("fork_join", {"tasks": [{"id": "a", "task": "Look.", **more}]})])


async def test_a_pointer_is_asked_for_once_more(rig: Rig) -> None:
    """G1: the report is asked for in the same fork, append-only."""

    def child(asked: Asked) -> Reply:
        return Reply("See my report above.") if asked.number == 1 else Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    assert (rig.fork("f1").outcome, rig.fork("f1").degraded) == ("done", False)
    assert rig.fork("f1").report == REPORT
    assert "[report]" in rig.sent_text("f1")


async def test_no_report_falls_back_to_the_longest_text(rig: Rig) -> None:
    """T51: degraded is partial, and says so."""

    def child(asked: Asked) -> Reply:
        return Reply("A long narration of what I do.", [READ]) if asked.number == 1 else Reply("")

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    fork = rig.fork("f1")
    assert (fork.outcome, fork.degraded, fork.reason) == ("partial", True, "no report")
    assert fork.report == "A long narration of what I do."
    assert "gave no proper report" in rig.results()[0]["content"]


async def test_turns_end_in_one_last_step_to_report(rig: Rig) -> None:
    """At the cap the fork reports once more, without tools, and is partial."""

    def child(asked: Asked) -> Reply:
        if "[limit] Your turns limit" in asked.text:
            return Reply(REPORT)
        return Reply("", [READ])

    rig.provider.script = parent_then(fork_with(max_turns=3), child)
    await rig.say()
    assert (rig.fork("f1").outcome, rig.fork("f1").reason) == ("partial", "turns")
    assert rig.fork("f1").report == REPORT
    assert len(rig.bodies("f1")) == 4


async def test_a_last_step_that_calls_tools_runs_none(rig: Rig) -> None:
    """The history stays valid for a resume."""
    rig.provider.script = parent_then(fork_with(max_turns=1), lambda _: Reply("busy", [READ]))
    await rig.say()
    assert len([x for x in rig.tool_log if x[0].startswith("f1")]) == 1
    assert rig.fork("f1").report == "busy"
    rig.provider.script = lambda _: Reply(REPORT)
    assert (await rig.do(ResumeFork(handle="f1"))).ok
    await rig.idle()
    assert rig.fork("f1").outcome == "done"


async def test_money_is_checked_before_each_step(rig: Rig) -> None:
    """A budget is never overrun by more than its reserve; the cap is PART."""
    rig.provider.script = parent_then(
        fork_with(budget_usd=0.12), lambda a: Reply("x" * 400, [READ])
    )
    await rig.say()
    fork = rig.fork("f1")
    assert (fork.outcome, fork.reason) == ("partial", "budget")
    assert rig.state.runs["f1"].cost.usd <= 12
    assert any("max_tokens" in body and body["max_tokens"] < 8_000 for body in rig.bodies("f1"))


async def test_a_big_repository_is_told_once_before_its_first_copy(rig: Rig) -> None:
    rig.worktrees.heavy = "This repository has 30,000 files."
    rig.provider.script = lambda asked: Reply("ok" if asked.run == "p" else REPORT)
    await rig.say()
    for _ in range(2):
        assert (await rig.do(StartFork(task="Mend it.", write=True))).ok
        await rig.idle()
    kinds = [type(e) for e in rig.sink.events if isinstance(e, NoticeRaised | WorktreeCreated)]
    assert kinds == [NoticeRaised, WorktreeCreated, WorktreeCreated]
    assert rig.sink.of(NoticeRaised)[0].what == rig.worktrees.heavy


async def test_a_fork_is_refused_a_budget_that_nothing_could_keep(rig: Rig) -> None:
    call = fork_with(budget_usd=1, model="unpriced")
    rig.provider.script = parent_then(call, lambda _: Reply(REPORT))
    await rig.say()
    assert rig.state.forks == {}
    assert "no price of unpriced is known" in rig.results()[0]["content"]


async def test_a_budget_that_pays_nothing_starts_nothing(rig: Rig) -> None:
    """No request leaves that cannot be paid."""
    rig.provider.script = parent_then(fork_with(budget_usd=0.0001), lambda _: Reply(REPORT))
    await rig.say()
    assert rig.bodies("f1") == []
    assert rig.fork("f1").outcome == "partial"


async def test_time_ends_a_stuck_tool_and_then_asks_for_the_report(rig: Rig) -> None:
    """The limit cancels the current tool; the grace ends the rest."""
    stuck = asyncio.Event()

    async def wait(*_: Any) -> ToolResult:
        await stuck.wait()
        return ToolResult(content="")

    rig.tools["bash"].behaviour = wait

    def child(asked: Asked) -> Reply:
        if asked.number == 1:
            return Reply("", [("bash", {"command": "x"})])
        return Reply(REPORT)

    rig.provider.script = parent_then(fork_with(timeout_s=30), child)
    await rig.say()
    assert (rig.fork("f1").outcome, rig.fork("f1").reason) == ("partial", "time")
    assert rig.fork("f1").report == REPORT
    rig.provider.script = parent_then(fork_with(timeout_s=30), lambda _: Reply("half", hold=stuck))
    rig.provider.requests.clear()
    await rig.say("again")
    assert (rig.fork("f2").outcome, rig.fork("f2").report) == ("partial", "half")


async def test_structured_output_is_checked(rig: Rig) -> None:
    """T77: no structured value is failed, and its text is kept; T45: no tool is added for it."""
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    answers = {"f1": ['{"n": "x"}', '```json\n{"n": 3}\n```'], "f2": ["words", "only words"]}

    def child(asked: Asked) -> Reply:
        return Reply(answers[asked.run][asked.number - 1])

    calls = [*fork_with(output_schema=schema).calls, *fork_with(output_schema=schema).calls]
    rig.provider.script = parent_then(Reply("", calls), child)
    await rig.say()
    assert rig.fork("f1").outcome == "done"
    assert rig.fork("f2").outcome == "failed"
    assert rig.fork("f2").reason.startswith("no structured value")
    assert rig.fork("f2").report == "only words"
    assert rig.fork("f2").name == "a-2"
    first, second = (str(block["content"]) for block in rig.results())
    assert '<fork-report id="a" fork="f1" status="done"' in first
    assert '>\n{"n": 3}\n</fork-report>' in first
    assert '<fork-report id="a" fork="f2" status="failed"' in second
    one, other = (
        json.loads((rig.directory / "forks" / handle / "result.json").read_text())
        for handle in ("f1", "f2")
    )
    assert (one["id"], one["name"], one["value"]) == ("a", "a", {"n": 3})
    assert one["report"].startswith("```json")
    assert (other["id"], other["name"], "value" in other) == ("a", "a-2", False)
    assert rig.bodies("f1")[0]["tools"] == rig.bodies("p")[0]["tools"]


async def test_steering_is_delivered_behind_the_results(rig: Rig) -> None:
    """Queued, then delivered at the next tool boundary; refused when it is over."""
    free = asyncio.Event()

    async def wait(*_: Any) -> ToolResult:
        await free.wait()
        return ToolResult(content="x")

    rig.tools["read"].behaviour = wait

    def child(asked: Asked) -> Reply:
        return Reply("", [READ]) if asked.number == 1 else Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.runs.get("f1") and rig.state.runs["f1"].tools)
    assert (await rig.do(SteerFork(handle="f1", text="look at b too"))).ok
    assert rig.fork("f1").steering == ("look at b too",)
    free.set()
    await rig.idle()
    assert rig.fork("f1").steering == ()
    assert [e.delivered for e in rig.sink.of(ForkSteered)] == [False, True]
    last = rig.bodies("f1")[-1]["messages"][-1]["content"]
    assert [b["type"] for b in last] == ["tool_result", "text"]
    assert not (await rig.do(SteerFork(handle="f1", text="x"))).ok


async def test_steering_during_the_last_answer_makes_one_more_step(rig: Rig) -> None:
    """What was said in time is never lost."""
    hold = asyncio.Event()
    rig.provider.script = parent_then(
        join("a"), lambda a: Reply(REPORT, hold=hold if a.number == 1 else None)
    )
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.runs.get("f1") and rig.state.runs["f1"].stream)
    await rig.do(SteerFork(handle="f1", text="and c"))
    hold.set()
    await rig.idle()
    assert len(rig.bodies("f1")) == 2
    assert "and c" in rig.sent_text("f1")


async def test_a_write_forks_work_is_saved_before_its_worktree_goes(rig: Rig) -> None:
    """T80: saved, removed, applied, undone; T32: the notice is in the directive."""
    rig.provider.script = parent_then(join("a", write=True), lambda _: Reply(REPORT))
    await rig.say()
    assert rig.worktrees.log == ["create f1", "save f1", "remove f1"]
    directive = rig.bodies("f1")[0]["messages"][0]["content"][-1]["text"]
    assert "your own copy of the repository, seen at /w" in directive
    assert "2 uncommitted files" in directive
    assert "refs/forkdeck/s/f1/work/1" in rig.results()[0]["content"]
    assert not (await rig.do(DiscardWork(handle="f9"))).ok
    assert (await rig.do(ApplyWork(handle="f1"))).ok
    assert not (await rig.do(ApplyWork(handle="f1"))).ok
    assert not (await rig.do(DiscardWork(handle="f1"))).ok
    assert (await rig.do(UndoLast())).text.startswith("undone: apply of fork f1")
    assert (await rig.do(DiscardWork(handle="f1"))).ok
    assert (await rig.do(UndoLast(handle="f1"))).ok
    assert not (await rig.do(UndoLast())).ok
    rig.worktrees.conflict = True
    refused = await rig.do(ApplyWork(handle="f1"))
    assert "It conflicts." in refused.text
    work = rig.fork("f1").work
    assert work is not None
    assert work.conflicts == ("a.py",)
    assert (await rig.deck.diff("f1")).commit == "beef"


async def test_a_failed_save_keeps_the_directory_and_the_report(rig: Rig) -> None:
    """T81, T53: the outcome stands, the directory stays, the person is told."""
    rig.worktrees.fail_save = True
    rig.provider.script = parent_then(join("a", write=True), lambda _: Reply(REPORT))
    await rig.say()
    assert rig.fork("f1").outcome == "done"
    assert "remove f1" not in rig.worktrees.log
    tree = rig.fork("f1").worktree
    assert tree is not None
    assert tree.kept_why == "the disk is full."
    assert "stays in its worktree" in rig.results()[0]["content"]


async def test_a_worktree_that_cannot_be_made_fails_only_that_fork(rig: Rig) -> None:
    """T88: never a silent fall back to the shared directory."""
    rig.worktrees.fail_create = True
    calls = [("fork_join", {"tasks": [{"id": "a", "task": "x", "write": True},
                                      {"id": "b", "task": "y"}]})]  # fmt: skip
    rig.provider.script = parent_then(Reply("", calls), lambda _: Reply(REPORT))
    await rig.say()
    assert [rig.fork(h).outcome for h in ("f1", "f2")] == ["failed", "done"]
    assert rig.bodies("f1") == []


async def test_without_git_write_is_refused_by_name(make_rig: MakeRig) -> None:
    """T88: named, before anything starts."""
    rig = await make_rig(worktrees=None)
    rig.provider.script = parent_then(join("a", write=True), lambda _: Reply(REPORT))
    await rig.say()
    assert "write: a write fork needs git" in rig.results()[0]["content"]
    assert rig.state.forks == {}
    assert not rig.deck.capabilities.worktrees


async def test_an_aborted_fork_goes_on_where_it_was(rig: Rig) -> None:
    """T40: append-only; the interrupted call is answered; u undoes the abort."""
    stuck = asyncio.Event()

    async def wait(*_: Any) -> ToolResult:
        await stuck.wait()
        return ToolResult(content="")

    rig.tools["read"].behaviour = wait

    def child(asked: Asked) -> Reply:
        return Reply("thinking aloud", [READ]) if asked.number == 1 else Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.runs.get("f1") and rig.state.runs["f1"].tools)
    await rig.do(AbortFork(handle="f1"))
    await rig.idle()
    assert rig.fork("f1").status == "ABRT"
    assert b"Aborted" in bytes(rig.state.runs["f1"].history[-1].message)
    assert (await rig.do(UndoLast(handle="f1"))).ok
    await rig.idle()
    assert rig.fork("f1").outcome == "done"
    assert [e.outcome for e in rig.sink.of(ForkEnded, "f1")] == ["aborted", "done"]
    assert not rig.fork("f1").delivered
    await rig.say("next")
    assert "task-notification" in rig.sent_text()
    assert not (await rig.do(ResumeFork(handle="f9"))).ok


async def test_a_fork_that_was_asked_to_go_on_is_not_asked_twice(rig: Rig) -> None:
    """The second request is answered at once and starts no second run."""
    rig.provider.script = parent_then(fork_with(max_turns=1), lambda _: Reply("busy", [READ]))
    await rig.say()
    rig.provider.script = lambda _: Reply(REPORT)
    assert (await rig.do(ResumeFork(handle="f1"))).ok
    again = await asyncio.wait_for(rig.do(ResumeFork(handle="f1")), 5)
    assert (again.ok, again.text) == (False, "f1 goes on already.")
    await rig.idle()
    assert [e.outcome for e in rig.sink.of(ForkEnded, "f1")] == ["partial", "done"]
    assert (await rig.do(ResumeFork(handle="f1"))).ok
    await rig.idle()


async def test_a_resumed_write_fork_gets_its_work_back(rig: Rig) -> None:
    """A new worktree, and the saved commit in it."""
    hold = asyncio.Event()
    rig.provider.script = parent_then(
        join("a", write=True), lambda a: Reply(REPORT, hold=hold if a.number == 1 else None)
    )
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.runs.get("f1") and rig.state.runs["f1"].stream)
    await rig.do(AbortFork(handle="f1"))
    await rig.idle()
    assert (await rig.do(ResumeFork(handle="f1", text="mind the tests"))).ok
    await rig.idle()
    command, access = rig.worktrees.spaces["f1"].commands[0]
    assert "read-tree" in command
    assert "beef" in command
    assert access == "fork"
    assert "mind the tests" in rig.sent_text("f1")
    assert rig.fork("f1").outcome == "done"


async def test_report_and_result_stand_on_the_disk(rig: Rig) -> None:
    """T55: counts, tokens and cost of every outcome."""

    def child(asked: Asked) -> Reply:
        if asked.number == 1:
            return Reply("", [READ, READ])
        raise_ = asked.run == "f2"
        return Reply(REPORT, stop="refusal" if raise_ else None)

    rig.provider.script = parent_then(join("a", "b"), child)
    await rig.say()
    for handle, outcome in (("f1", "done"), ("f2", "failed")):
        found = json.loads((rig.directory / "forks" / handle / "result.json").read_text())
        assert (found["outcome"], found["turns"], found["tool_calls"]) == (outcome, 2, 2)
        assert float(found["cost_usd"]) > 0
    path = rig.directory / "forks" / "f1" / "report.md"
    assert path.read_text() == REPORT
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_resumed_fork_counts_the_time_of_all_its_runs(rig: Rig) -> None:
    """Turns, tokens and cost cover both runs, so the time does as well."""
    rig.provider.script = parent_then(join("a"), lambda _: Reply(REPORT, delay_s=25))
    await rig.say()
    await rig.clock.sleep(100)
    assert (await rig.do(ResumeFork(handle="f1"))).ok
    await rig.until(lambda: rig.fork("f1").settled)
    await rig.idle()
    found = json.loads((rig.directory / "forks" / "f1" / "result.json").read_text())
    assert (found["turns"], found["run_ms"], found["queued_ms"]) == (2, 50_000, None)


@pytest.mark.parametrize(
    "seed", ["before_call", "placeholder", "completed_turns", "turns:1", "none"]
)
async def test_every_seed_makes_a_valid_conversation(rig: Rig, seed: str) -> None:
    """T1, T2, T4, T5, T6: the net checks roles and pairs; no foreign assistant message."""
    first = Reply("", [READ, ("fork", {"task": "Look.", "seed": seed}), READ], thinking="t")

    def script(asked: Asked) -> Reply:
        if asked.run != "p":
            return Reply(REPORT)
        return {1: Reply("hello"), 2: Reply("", [READ]), 3: first}.get(asked.number, Reply("ok"))

    rig.provider.script = script
    await rig.say("one")
    await rig.say("two")
    assert rig.fork("f1").outcome == "done"
    body = rig.bodies("f1")[0]
    own = [m for b in rig.bodies("p") for m in b["messages"] if m["role"] == "assistant"]
    if seed != "turns:1":
        assert all(m in own for m in body["messages"] if m["role"] == "assistant")
    expected = {"turns:1": "COLD", "none": "COLD"}.get(seed, "HIT")
    verdict = rig.cache("f1").verdict
    assert verdict == expected or seed == "completed_turns"


async def test_followers_wait_for_the_leaders_first_byte(rig: Rig) -> None:
    """T38: a cold group warms the cache with one request, then the others go, spaced."""
    first_byte = asyncio.Event()
    group = {"f2", "f3", "f4", "f5"}
    asked_first: list[str] = []

    def child(asked: Asked) -> Reply:
        # Whoever is ready first leads.
        if asked.run in group and not asked_first:
            asked_first.append(asked.run)
            return Reply(REPORT, gate=first_byte)
        return Reply(REPORT)

    rig.provider.script = lambda a: child(a) if a.run != "p" else Reply("ok")
    await rig.say("one")
    await rig.do(StartFork(task="x"))
    await rig.idle()
    rig.clock.ms += 301_000
    rig.clock.sleepers.clear()
    await rig.do(StartFork(task="look", count=4))
    await asyncio.sleep(0)
    # Each follower gets to its wait in its own time; none may pass it.
    await rig.until(
        lambda: asked_first and all(rig.fork(f).status == "WAIT" for f in group - set(asked_first))
    )
    assert set(rig.net.by_run) == {"p", "f1", *asked_first}
    first_byte.set()
    await rig.idle()
    sent = [at for run, at in rig.provider.sent_ms if run in group - set(asked_first)]
    assert max(sent) - min(sent) >= 50
