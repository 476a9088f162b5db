"""Limits that are shared: fair budgets, the clocks of batch and session, marks, and their words."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from forkdeck.config.settings import ForkSettings, SessionSettings, Settings
from forkdeck.engine.scopes import counted_tokens
from forkdeck.model.events.fork import ForkEnded, LimitNeared
from forkdeck.model.events.step import MessageFinished, RequestDelayed, RequestSent
from forkdeck.model.events.tool import ToolEnded
from forkdeck.model.intents import ResumeFork, SendPrompt, SetLimits
from forkdeck.model.ports import ModelFacts
from forkdeck.model.tooling import ToolResult
from tests.engine.conftest import MakeRig
from tests.engine.fakes import Asked, FakePrices, Reply
from tests.engine.rig import REPORT, Rig, join, parent_then, tasks

READ = ("read", {"path": "a.py"})
BASH = ("bash", {"command": "sleep 40"})


def settings(session: SessionSettings | None = None, **forks: Any) -> Settings:
    return Settings(forks=ForkSettings(plan="never", **forks), session=session or SessionSettings())


def reads(steps: int, delay_s: float = 1.0) -> Any:
    """Read in every step before the last one; a report whenever one is asked for."""

    def child(asked: Asked) -> Reply:
        if asked.number >= steps or "last step" in asked.text:
            return Reply(REPORT, delay_s=delay_s)
        return Reply("I look.", [READ], delay_s=delay_s)

    return child


def used(rig: Rig) -> int:
    return sum(counted_tokens(rig.state.runs[handle].usage) for handle in rig.state.forks)


def most_at_once(rig: Rig) -> int:
    """Return the most answer tokens that were out at one time."""
    out: dict[str, int] = {}
    most = 0
    for event in rig.sink.events:
        if isinstance(event, RequestSent) and event.run != "p":
            out[event.run] = event.max_tokens
        elif isinstance(event, MessageFinished):
            out.pop(event.run, None)
        most = max(most, sum(out.values()))
    return most


# --- budgets ------------------------------------------------------------------------------


@pytest.mark.parametrize(("where", "whole"), [("batch", 14_000), ("session", 20_000)])
async def test_a_budget_of_tokens_is_shared_fairly(
    make_rig: MakeRig, where: str, whole: int
) -> None:
    """It is far from used up, so no fork is ended by it, whatever the others could still write."""
    given = settings(
        SessionSettings(budget_tokens=whole if where == "session" else None),
        batch_budget_tokens=whole if where == "batch" else None,
    )
    rig = await make_rig(settings=given)
    rig.provider.script = parent_then(join("a", "b", "c", max_concurrency=3), reads(3))
    await rig.say()
    assert [fork.outcome for fork in rig.state.forks.values()] == ["done"] * 3
    assert most_at_once(rig) <= whole
    assert used(rig) < whole / 2


class Wordy(FakePrices):
    """Models that may answer at great length."""

    def facts(self, model: str) -> ModelFacts:
        return msgspec.structs.replace(super().facts(model), max_output_tokens=128_000)


async def test_a_big_budget_of_tokens_gives_each_its_part_at_once(make_rig: MakeRig) -> None:
    """Nobody waits: the first takes its part, not all of it."""
    rig = await make_rig(settings=settings(batch_budget_tokens=200_000), prices=Wordy())
    rig.provider.script = parent_then(join("a", "b", "c", max_concurrency=3), reads(2))
    await rig.say()
    bounds = [e.max_tokens for e in rig.sink.of(RequestSent) if e.run != "p"]
    assert min(bounds) > 60_000
    assert most_at_once(rig) <= 200_000
    assert rig.sink.of(RequestDelayed) == []
    assert [fork.outcome for fork in rig.state.forks.values()] == ["done"] * 3


async def test_a_used_up_budget_of_tokens_ends_all_with_their_reports(make_rig: MakeRig) -> None:
    """Each has its last step, and the sum stays within the budget."""
    rig = await make_rig(settings=settings(batch_budget_tokens=9_000))
    rig.provider.script = parent_then(join("a", "b", "c", max_concurrency=3), reads(999))
    await rig.say()
    forks = rig.state.forks.values()
    assert {(fork.outcome, fork.reason) for fork in forks} == {("partial", "batch tokens")}
    assert {fork.report for fork in forks} == {REPORT}
    assert used(rig) <= 9_000


@pytest.mark.parametrize("where", ["batch", "session"])
async def test_a_budget_of_money_is_shared_fairly(make_rig: MakeRig, where: str) -> None:
    """One long step holds what it may cost; the others wait for what it did not use."""
    whole = Decimal("0.40")
    given = settings(batch_budget_usd=whole if where == "batch" else None)
    rig = await make_rig(settings=given, budget_usd="0.40" if where == "session" else None)
    rig.provider.script = parent_then(join("a", "b", "c", max_concurrency=3), reads(4))
    await rig.say()
    assert [fork.outcome for fork in rig.state.forks.values()] == ["done"] * 3
    waits = [e for e in rig.sink.of(RequestDelayed) if e.reason == "budget"]
    assert waits
    assert sum(run.cost.usd for run in rig.state.runs.values()) < whole


async def test_a_batch_that_cannot_report_within_its_tokens_is_refused(make_rig: MakeRig) -> None:
    rig = await make_rig(settings=settings(batch_budget_tokens=5_000))
    rig.provider.script = parent_then(join("a", "b"), reads(1))
    await rig.say()
    assert rig.results()[0]["content"] == (
        "Nothing was started. tokens: 2 forks would need at least 5,200 tokens to begin and to "
        "report, and a batch has 5,000 (forks.batch_budget_tokens).\n"
        "Start fewer forks, or ask the person to raise forks.batch_budget_tokens."
    )


async def test_a_batch_that_cannot_be_paid_names_its_setting(make_rig: MakeRig) -> None:
    rig = await make_rig(settings=settings(batch_budget_usd=Decimal("0.05")))
    rig.provider.script = parent_then(join("a", "b"), reads(1))
    await rig.say()
    told = rig.results()[0]["content"]
    assert "to begin and to report, and a batch has $0.05 (forks.batch_budget_usd)." in told
    assert told.endswith("ask the person to raise forks.batch_budget_usd.")


# --- time ---------------------------------------------------------------------------------


def stuck(rig: Rig) -> None:
    never = asyncio.Event()

    async def wait(*_: Any) -> ToolResult:
        await never.wait()
        return ToolResult(content="")

    rig.tools["bash"].behaviour = wait


def shell(asked: Asked) -> Reply:
    return Reply(REPORT) if "last step" in asked.text else Reply("I wait.", [BASH, BASH])


@pytest.mark.parametrize("where", ["batch", "session"])
async def test_shared_time_ends_what_runs(make_rig: MakeRig, where: str) -> None:
    """At the limit the current tool is cancelled, none behind it begins, and the fork reports."""
    given = settings(
        SessionSettings(timeout_s=30 if where == "session" else None),
        timeout_s=100,
        batch_timeout_s=30 if where == "batch" else None,
    )
    rig = await make_rig(settings=given)
    stuck(rig)
    rig.provider.script = parent_then(join("a", "b", max_concurrency=2), shell)
    await rig.say()
    ends = [(e.reason, e.report, e.at_ms // 1000) for e in rig.sink.of(ForkEnded)]
    assert ends == [(f"{where} time", REPORT, 30)] * 2
    calls = [(e.status, e.content) for e in rig.sink.of(ToolEnded, "f1")]
    assert calls == [
        ("aborted", f"This call was cancelled: the {where}'s time limit is reached. The run goes "
         "on."),
        ("denied", f"Not run: the {where} time limit is reached."),
    ]  # fmt: skip
    turn = rig.state.parent.turn
    session = where == "session"
    assert (turn.outcome, turn.reason) == (
        ("failed", "session time") if session else ("completed", "end_turn")
    )
    marks = [(e.run, e.limit, e.at_ms, e.share) for e in rig.sink.of(LimitNeared)]
    assert marks == [("p" if session else "f1", f"{where} time", 24_000, 0.8)]


async def test_a_step_that_outlasts_the_grace_is_cut(make_rig: MakeRig) -> None:
    """A quarter of the batch's time is left to report; then the outcome names the limit."""
    rig = await make_rig(settings=settings(batch_timeout_s=20))
    rig.provider.script = parent_then(join("a"), lambda _: Reply("half", hold=asyncio.Event()))
    await rig.say()
    end = rig.sink.of(ForkEnded)[0]
    assert (end.reason, end.report, end.at_ms) == ("batch time", "half", 25_000)


async def test_the_parent_ends_at_the_sessions_time(make_rig: MakeRig) -> None:
    """Its tool is cancelled at the limit; an answer that streams is cut after the grace."""
    rig = await make_rig(settings=settings(SessionSettings(timeout_s=40)))
    stuck(rig)
    rig.provider.script = lambda _: Reply("I wait.", [BASH])
    await rig.say()
    assert rig.clock.ms == 40_000
    turn = rig.state.parent.turn
    assert (turn.outcome, turn.reason) == ("failed", "session time")
    assert turn.remedy == (
        "The session time limit is reached; no other step is started. "
        "Raise session.timeout_s in the settings."
    )
    assert len(rig.bodies("p")) == 1

    rig = await make_rig(settings=settings(SessionSettings(timeout_s=40)))
    rig.provider.script = lambda _: Reply("half", hold=asyncio.Event())
    await rig.say()
    assert rig.clock.ms == 50_000
    turn = rig.state.parent.turn
    assert (turn.outcome, turn.reason) == ("failed", "session time")
    assert turn.remedy == "Raise session.timeout_s in the settings."


async def test_time_is_marked_by_the_clock_and_told_at_the_next_boundary(
    make_rig: MakeRig,
) -> None:
    """One long step: the person hears of it inside, the fork behind it."""
    rig = await make_rig(settings=settings(timeout_s=50))

    def child(asked: Asked) -> Reply:
        if asked.number == 1:
            return Reply("Slow.", [READ], delay_s=45)
        return Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    marks = [(e.run, e.of, e.at_ms, e.share) for e in rig.sink.of(LimitNeared)]
    assert marks == [("f1", "50 seconds", 40_000, 0.8)]
    assert "More than 80 % of 50 seconds is used" in rig.sent_text("f1")
    assert rig.fork("f1").outcome == "done"


# --- marks --------------------------------------------------------------------------------


async def test_turns_of_a_batch_are_marked_when_80_percent_begin(make_rig: MakeRig) -> None:
    """Once, at the seventh of eight; each fork hears of it."""
    rig = await make_rig(settings=settings(batch_max_turns=8))
    rig.provider.script = parent_then(join("a", "b", max_concurrency=2), reads(99))
    await rig.say()
    marks = [(e.limit, e.of, e.share) for e in rig.sink.of(LimitNeared)]
    assert marks == [("batch turns", "8 turns of the batch", 0.875)]
    for handle in ("f1", "f2"):
        assert rig.sent_text(handle).count("More than 80 % of 8 turns of the batch") == 1


@pytest.mark.parametrize("where", ["run", "batch", "session"])
async def test_a_small_budget_is_marked_before_its_last_step(make_rig: MakeRig, where: str) -> None:
    """What a report needs is kept back, so 80 % is never spent; the true share is told."""
    given = settings(
        budget_usd=Decimal("0.12") if where == "run" else None,
        batch_budget_usd=Decimal("0.12") if where == "batch" else None,
    )
    rig = await make_rig(settings=given, budget_usd="0.12" if where == "session" else None)
    rig.provider.script = parent_then(join("a"), reads(999))
    await rig.say()
    limit = "budget" if where == "run" else f"{where} budget"
    assert rig.fork("f1").reason == limit
    mark = rig.sink.of(LimitNeared)[0]
    assert (mark.run, mark.limit) == ("p" if where == "session" else "f1", limit)
    assert 0.3 < mark.share < 0.8
    last = rig.sink.of(RequestSent, "f1")[-1]
    assert mark.seq < last.seq


# --- words --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attached", "remedy"),
    [
        (True, "Raise it with b on the parent, then resend with r."),
        (False, "Raise it with --budget-usd."),
    ],
)
async def test_a_remedy_can_be_done_where_it_is_read(
    make_rig: MakeRig, attached: bool, remedy: str
) -> None:
    rig = await make_rig(budget_usd="0.001", attached=attached)
    await rig.say()
    assert rig.state.parent.turn.remedy == (
        f"The session's budget of $0.001 cannot pay another step. {remedy}"
    )


async def test_calls_that_do_not_run_say_which_limit(make_rig: MakeRig) -> None:
    rig = await make_rig(settings=settings(max_turns=1))
    rig.provider.script = parent_then(
        Reply("", [("fork_join", tasks("a", "b"))]),
        lambda asked: Reply("cut", [READ], stop="max_tokens" if asked.run == "f2" else "tool_use"),
    )
    await rig.say()
    said = {h: rig.sink.of(ToolEnded, h)[-1].content for h in ("f1", "f2")}
    assert said == {
        "f1": "Not run: the turns limit is reached, and this was the last step.",
        "f2": "Not run: the answer was cut (max_tokens).",
    }


# --- limits that the person sets ----------------------------------------------------------


async def test_a_running_fork_has_new_limits_at_once(make_rig: MakeRig) -> None:
    """Its clock starts anew from its start, its next step counts them, and it is told."""
    rig = await make_rig(settings=settings(timeout_s=100))
    stuck(rig)
    rig.provider.script = parent_then(join("a"), shell)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: "f1" in rig.state.runs and rig.state.runs["f1"].tools)
    said = await rig.do(
        SetLimits(handle="f1", max_turns=40, timeout_s=12, budget_usd="1", budget_tokens=200_000)
    )
    assert (said.ok, said.text) == (True, "limits of f1: 40 turns, $1, 12s, 200,000 tokens")
    await rig.idle()
    fork = rig.fork("f1")
    assert (fork.max_turns, fork.timeout_s, fork.budget_usd, fork.budget_tokens) == (
        40, 12, "1", 200_000,
    )  # fmt: skip
    assert (fork.reason, fork.ended_at_ms) == ("time", 12_000)
    told = "The person has changed your own limits; they are now: 40 turns, $1, 12s, 200,000 tokens"
    assert told in rig.sent_text("f1")


async def test_a_raised_time_goes_on_and_lifted_limits_hold_nothing(make_rig: MakeRig) -> None:
    rig = await make_rig(settings=settings(timeout_s=10, max_turns=2))
    asked: list[bool] = []

    async def slow(*_: Any) -> ToolResult:
        await rig.clock.sleep(9)
        if not asked:
            asked.append((await rig.do(SetLimits(handle="f1"))).ok)
        return ToolResult(content="x")

    rig.tools["bash"].behaviour = slow

    def child(asked: Asked) -> Reply:
        return Reply(REPORT) if asked.number == 5 else Reply("on", [("bash", {"command": "x"})])

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    assert asked == [True]
    assert rig.fork("f1").outcome == "done"
    assert rig.fork("f1").ended_at_ms == 36_000


async def test_queued_and_settled_forks_have_them_when_they_run(make_rig: MakeRig) -> None:
    rig = await make_rig(settings=settings(max_turns=2))
    rig.provider.script = parent_then(join("a", "b", max_concurrency=1), reads(99, delay_s=5))
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: "f2" in rig.state.forks and rig.fork("f1").status == "RUN")
    assert rig.fork("f2").status == "QUE"
    assert (await rig.do(SetLimits(handle="f2", max_turns=1))).ok
    await rig.idle()
    assert [len(rig.bodies(handle)) for handle in ("f1", "f2")] == [3, 2]
    assert "1 turns" in rig.sent_text("f2")
    assert (await rig.do(SetLimits(handle="f1", max_turns=4))).ok
    assert (await rig.do(ResumeFork(handle="f1", text=""))).ok
    await rig.idle()
    assert len(rig.bodies("f1")) == 3 + 5


async def test_limits_that_cannot_be_are_refused(make_rig: MakeRig) -> None:
    rig = await make_rig(settings=settings())
    rig.provider.script = parent_then(join("a"), reads(1))
    await rig.say()
    before = rig.fork("f1")
    for wrong, why in (
        (SetLimits(handle="f9"), "There is no fork f9."),
        (SetLimits(handle="f1", max_turns=0), "A limit must be more than 0."),
        (SetLimits(handle="f1", timeout_s=-1), "A limit must be more than 0."),
        (SetLimits(handle="f1", budget_usd="0"), "A limit must be more than 0."),
        (SetLimits(handle="f1", budget_usd="x"), "'x' is no amount in US dollars."),
    ):
        said = await rig.do(wrong)
        assert (said.ok, said.text) == (False, why)
    rig.prices.priced = False
    said = await rig.do(SetLimits(handle="f1", budget_usd="1"))
    assert said.text.startswith("A budget of $1 cannot be kept: no price of claude-opus-5-5")
    assert rig.fork("f1") == before


async def test_a_fork_that_waits_for_the_cache_has_new_limits_too(rig: Rig) -> None:
    """It was started, but no clock runs yet."""
    first = asyncio.Event()
    arguments = tasks("a", "b", max_concurrency=2)
    for task in arguments["tasks"]:
        task["seed"] = "placeholder"

    def child(asked: Asked) -> Reply:
        if asked.run == "f1":
            return Reply(REPORT, gate=first)
        return Reply(REPORT if "last step" in asked.text else "I look.", [READ])

    rig.provider.script = parent_then(Reply("I fork.", [("fork_join", arguments)]), child)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: "f2" in rig.state.forks and rig.fork("f2").status == "WAIT")
    assert rig.bodies("f2") == []
    assert (await rig.do(SetLimits(handle="f2", max_turns=1))).ok
    first.set()
    await rig.idle()
    assert (rig.fork("f2").reason, len(rig.bodies("f2"))) == ("turns", 2)
