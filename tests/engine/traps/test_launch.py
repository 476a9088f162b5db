"""Traps of launching: plans, leader first, the gate's window, budgets set aside, abort in time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from decimal import Decimal
from itertools import pairwise

import msgspec
import pytest

from forkdeck.config.settings import ForkSettings, SessionSettings, Settings
from forkdeck.engine.estimates import Habit
from forkdeck.engine.step_price import DIRECTIVE_TOKENS
from forkdeck.errors import RateLimited
from forkdeck.model.events.fork import (
    BatchAdmitted,
    BatchConfirmed,
    ForkDelayed,
    ForkEnded,
    ForkStarted,
    LimitNeared,
)
from forkdeck.model.events.step import PaceChanged, RequestDelayed, RequestSent
from forkdeck.model.intents import AbortFork, AnswerRequest, SendPrompt, StartFork
from forkdeck.model.launching import ForkPrice
from forkdeck.model.prefix import message_blocks
from forkdeck.model.stream import ModelRequest, StreamPart
from forkdeck.model.usage import Usage
from forkdeck.providers.gate import RateGate
from forkdeck.store.cache_view import cache_view
from forkdeck.store.plan_figures import launch_price, warmth_words
from tests.engine.conftest import MakeRig
from tests.engine.fakes import PRICE, Asked, Reply
from tests.engine.rig import REPORT, Rig, join, parent_then, tasks

EIGHT = [f"t{i}" for i in range(8)]


def placeholder(*names: str, **more: object) -> Reply:
    arguments = tasks(*names, **more)
    for task in arguments["tasks"]:
        task["seed"] = "placeholder"
    return Reply("I fork.", [("fork_join", arguments)])


# --- plans --------------------------------------------------------------------------------


async def test_a_plan_tells_all_and_a_yes_starts_it(make_rig: MakeRig) -> None:
    """The priced plan is data on the batch and on the question; PLAN until the person's yes."""
    rig = await make_rig(
        settings=Settings(forks=ForkSettings(plan="confirm", budget_usd=Decimal(2)))
    )
    rig.provider.script = parent_then(join("a", "b", max_concurrency=2), lambda _: Reply(REPORT))
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.asks)
    plan = rig.state.asks[0].event.plan
    assert plan is not None
    assert plan == rig.sink.of(BatchAdmitted)[0].plan
    assert [each.handle for each in plan.forks] == ["f1", "f2"]
    assert plan.prefix_tokens == rig.state.parent.prompt_tokens
    assert plan.warm is True
    assert plan.isolation == ("read-only",)
    assert plan.seeds == ("before_call",)
    assert plan.max_concurrency == 2
    assert plan.limits == ("each fork 200 turns, $2",)
    low, likely, high = (Decimal(x or 0) for x in (plan.low_usd, plan.likely_usd, plan.high_usd))
    assert 0 < low < likely < high <= 4
    assert {fork.status for fork in rig.state.forks.values()} == {"PLAN"}
    assert list(rig.net.by_run) == ["p"]
    await rig.do(AnswerRequest(request=rig.state.asks[0].event.request, answer="once"))
    await rig.idle()
    assert rig.sink.of(BatchConfirmed)
    assert {fork.outcome for fork in rig.state.forks.values()} == {"done"}
    assert all(fork.delivered for fork in rig.state.forks.values())


async def test_nobody_attached_confirms_nothing(make_rig: MakeRig) -> None:
    """forks.plan = confirm without a person: refused with the way out, and nothing starts."""
    rig = await make_rig(settings=Settings(forks=ForkSettings(plan="confirm")), attached=False)
    rig.provider.script = parent_then(join("a"), lambda _: Reply(REPORT))
    await rig.say()
    result = rig.results()[0]
    assert result["is_error"] is True
    assert "forks.plan is confirm" in str(result["content"])
    assert "uses the deck" in str(result["content"])
    assert rig.state.forks == {}


async def test_a_fork_can_be_taken_out_of_a_plan(make_rig: MakeRig) -> None:
    """T58: what was taken out never starts; without any fork left the question goes away."""
    rig = await make_rig(settings=Settings(forks=ForkSettings(plan="confirm")))
    rig.provider.script = parent_then(join("a", "b"), lambda _: Reply(REPORT))
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.asks)
    assert (await rig.do(AbortFork(handle="f1"))).ok
    await rig.do(AnswerRequest(request=rig.state.asks[0].event.request, answer="once"))
    await rig.idle()
    assert [fork.outcome for fork in rig.state.forks.values()] == ["aborted", "done"]
    assert rig.bodies("f1") == []
    rig.provider.script = parent_then(Reply("x"), lambda _: Reply(REPORT))
    started = await rig.do(StartFork(task="side"))
    assert "waits for your answer" in started.text
    assert rig.fork("f3").status == "PLAN"
    await rig.until(lambda: rig.state.asks)
    await rig.do(AbortFork(handle="f3"))
    await rig.idle()
    assert rig.state.asks == ()
    assert rig.fork("f3").outcome == "aborted"
    await rig.say("next")
    assert "f3" not in rig.sent_text()


async def test_the_persons_fork_tells_its_price(rig: Rig) -> None:
    """`/fork` answers with the handle, the price range and whether the prefix is warm."""
    rig.provider.script = lambda asked: Reply(REPORT)
    await rig.say("hello")
    said = await rig.do(StartFork(task="look"))
    assert said.text.startswith("f1 · $0.0")
    assert "tokens, warm" in said.text
    await rig.idle()
    rig.clock.ms += 301_000
    said = await rig.do(StartFork(task="look"))
    assert "tokens, cold" in said.text
    await rig.idle()


def refusing(rig: Rig, **facts: bool) -> None:
    """Make the endpoint refuse parameters from now on."""
    rig.provider.endpoint = msgspec.structs.replace(rig.provider.endpoint, **facts)


async def test_without_cache_marks_nothing_is_expected_held_or_priced_as_cached(rig: Rig) -> None:
    """An endpoint that takes no marks caches nothing: COLD by its own fault, never a MISS."""
    why = "this endpoint takes no cache marks: nothing is cached"
    rig.provider.script = parent_then(join("a", "b"), lambda _: Reply(REPORT), last="Done.")
    forget = rig.provider.stream

    async def uncached(request: ModelRequest) -> AsyncIterator[StreamPart]:
        rig.provider.cached.clear()
        refusing(rig, cache_control=False)
        async for part in forget(request):
            yield part

    rig.provider.stream = uncached  # type: ignore[method-assign]
    await rig.say()
    for run in ("p", "f1", "f2"):
        assert (rig.cache(run).verdict, rig.cache(run).difference) == ("COLD", why)
    plan = rig.sink.of(BatchAdmitted)[0].plan
    assert (plan.warm, plan.cold_why) == (False, why)
    assert [fork.lead_price for fork in plan.forks] == [None, None]
    assert rig.sink.of(ForkDelayed) == []
    prefix = plan.prefix_tokens + DIRECTIVE_TOKENS
    low = 2 * (prefix * PRICE[0] + Habit().answer_tokens * PRICE[3])
    assert plan.low_usd == str(low.quantize(Decimal("0.01")))
    said = await rig.do(StartFork(task="look"))
    assert f"tokens, cold: {why}" in said.text
    await rig.idle()


async def test_without_cache_numbers_a_plan_says_who_does_not_tell(make_rig: MakeRig) -> None:
    """T43: seconds after a use nobody may say that it was five minutes ago."""
    rig = await make_rig(cache_fields=False)
    rig.provider.script = parent_then(join("a", "b"), lambda _: Reply(REPORT))
    await rig.say()
    plan = rig.sink.of(BatchAdmitted)[0].plan
    assert (plan.warm, plan.cold_why) == (None, "the endpoint does not say what it caches")
    assert plan.prefix_tokens > 0
    assert plan.forks[0].lead_price is None
    said = await rig.do(StartFork(task="look"))
    assert "tokens, the endpoint does not say what it caches" in said.text
    assert "minutes" not in said.text


async def test_a_prompt_that_nobody_counted_is_not_zero_tokens_long(make_rig: MakeRig) -> None:
    rig = await make_rig(cache_fields=False)
    usage = Usage(output_tokens=1)
    rig.provider._usage = lambda found: usage  # type: ignore[method-assign]
    rig.provider.script = parent_then(join("a"), lambda _: Reply(REPORT))
    await rig.say()
    assert rig.sink.of(BatchAdmitted)[0].plan.prefix_tokens is None
    assert rig.cache("f1").expected_tokens is None
    assert rig.cache("p").expected_tokens is None


@pytest.mark.moves_cache_prefix(reason="one seed takes the messages, another one does not")
async def test_a_plan_of_mixed_seeds_says_how_many_are_warm(rig: Rig) -> None:
    """One cold fork does not make the others cold."""
    arguments = tasks("a", "b", "c", "d", "e")
    for task in arguments["tasks"][2:]:
        task["seed"] = "completed_turns"
    rig.provider.script = parent_then(
        Reply("I fork.", [("fork_join", arguments)]), lambda _: Reply(REPORT)
    )
    await rig.say()
    plan = rig.sink.of(BatchAdmitted)[0].plan
    assert [fork.warm for fork in plan.forks] == [True, True, False, False, False]
    why = "the seed completed_turns does not share the messages"
    assert warmth_words(plan, plan.forks) == f"2 of 5 warm: {why}"
    assert warmth_words(plan, plan.forks[:2]) == "warm"
    assert warmth_words(plan, plan.forks[2:]) == f"cold: {why}"
    assert [rig.cache(f"f{n}").verdict for n in (1, 2)] == ["HIT", "HIT"]


async def test_a_cold_plan_counts_its_writer_once_whoever_is_left_out(rig: Rig) -> None:
    """The first fork that is left writes the prefix, the others read it; sums follow that."""
    rig.provider.script = parent_then(Reply("ok"), lambda _: Reply(REPORT))
    await rig.say()
    rig.clock.ms += 301_000
    rig.provider.script = lambda asked: (
        join("a", "b", "c") if asked.run == "p" and not asked.results else Reply(REPORT)
    )
    await rig.say("now fork")
    plan = rig.sink.of(BatchAdmitted)[0].plan
    forks = plan.forks
    assert plan.warm is True, "the call itself has warmed it"
    cold = [msgspec.structs.replace(f, lead_price=ForkPrice(low_usd="1", likely_usd="2",
            high_usd="3")) for f in forks]  # fmt: skip
    one = Decimal(forks[0].price.likely_usd)
    both, rest = launch_price(cold), launch_price(cold[1:])
    assert both is not None
    assert rest is not None
    assert both.likely == 2 + 2 * one
    assert rest.likely == 2 + one
    assert launch_price(forks).likely == 3 * one  # type: ignore[union-attr]


@pytest.mark.moves_cache_prefix(reason="the effort is asked for, and left out")
async def test_an_effort_that_the_endpoint_leaves_out_shares_what_was_sent(rig: Rig) -> None:
    """What was not sent has no cache of its own: it is judged as the parent's request."""
    first = Reply("", [("fork", {"task": "Look.", "effort": "low"})])

    send = rig.provider.stream

    async def fitted(request: ModelRequest) -> AsyncIterator[StreamPart]:
        if request.body.pop("output_config", None):
            refusing(rig, effort=False)
        async for part in send(request):
            yield part

    rig.provider.stream = fitted  # type: ignore[method-assign]
    rig.provider.script = parent_then(first, lambda _: Reply(REPORT))
    await rig.say()
    assert rig.fork("f1").effort == "low"
    assert (rig.cache("f1").verdict, rig.cache("f1").difference) == ("HIT", "")


async def test_prices_learn_from_the_session(make_rig: MakeRig) -> None:
    """After three ended forks the usual price is what forks of this session did."""
    rig = await make_rig()
    rig.provider.script = parent_then(join("a", "b", "c"), lambda _: Reply(REPORT))
    await rig.say()
    assumed = rig.sink.of(BatchAdmitted)[0].plan
    await rig.do(StartFork(task="look"))
    await rig.idle()
    learnt = rig.sink.of(BatchAdmitted)[1].plan
    assert Decimal(learnt.likely_usd) < Decimal(assumed.likely_usd) / 3
    assert Decimal(learnt.high_usd) <= Decimal(assumed.high_usd)


# --- leader first -------------------------------------------------------------------------


async def test_placeholder_children_wait_for_their_leader(rig: Rig) -> None:
    """T38, T2: one write of the shared tail, the others read it: all ids answered alike."""
    rig.provider.script = parent_then(
        placeholder("a", "b", "c", "d"), lambda asked: Reply(REPORT, delay_s=1.0)
    )
    await rig.say()
    sent = {run: at for run, at in rig.provider.sent_ms if run != "p"}
    first = min(sent.values())
    later = sorted(at for at in sent.values() if at != first)
    assert len(later) == 3
    assert first + 1_000 <= later[0] <= first + 1_100
    assert all(b - a <= 300 for a, b in pairwise(later))
    assert {e.reason for e in rig.sink.of(ForkDelayed)} == {"cache"}
    for handle in ("f1", "f2", "f3", "f4"):
        rig.assert_shares(handle, rig.bodies("p")[0])
        tail = rig.bodies(handle)[0]["messages"][-1]["content"]
        assert [block["type"] for block in tail] == ["tool_result", "text", "text"]
        assert tail[:2] == rig.bodies("f1")[0]["messages"][-1]["content"][:2]


async def test_a_leader_that_dies_is_replaced(rig: Rig) -> None:
    """T38: the next follower leads when the leader is stopped before its first byte."""
    never = asyncio.Event()

    def child(asked: Asked) -> Reply:
        return Reply(REPORT, gate=never) if asked.run == "f1" else Reply(REPORT)

    rig.provider.script = parent_then(placeholder("a", "b", "c"), child)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: "f1" in rig.net.by_run)
    assert set(rig.net.by_run) == {"p", "f1"}
    await rig.do(AbortFork(handle="f1"))
    await rig.idle()
    assert [f.outcome for f in rig.state.forks.values()] == ["aborted", "done", "done"]


async def test_a_queued_child_knows_how_old_the_prefix_is(make_rig: MakeRig) -> None:
    """T39: behind a long sibling the prefix is cold, said so, and never claimed as a hit."""
    rig = await make_rig()

    def child(asked: Asked) -> Reply:
        if asked.run == "f2":
            rig.provider.cached.clear()
        return Reply(REPORT, delay_s=360.0 if asked.run == "f1" else 0)

    rig.provider.script = parent_then(join("a", "b", max_concurrency=1), child)
    await rig.say()
    assert rig.cache("f1").verdict == "HIT"
    assert rig.cache("f2").verdict == "COLD"
    assert "last used 6 minutes ago" in rig.cache("f2").difference


async def test_a_sibling_keeps_the_prefix_warm(make_rig: MakeRig) -> None:
    """T39: the life counts from the last use by anyone: a miss after it is a MISS, not COLD."""
    rig = await make_rig()

    def child(asked: Asked) -> Reply:
        if asked.run == "f3":
            rig.provider.cached.clear()
        return Reply(REPORT, delay_s=200.0)

    rig.provider.script = parent_then(join("a", "b", "c", max_concurrency=1), child)
    await rig.say()
    assert [rig.cache(f"f{n}").verdict for n in (1, 2)] == ["HIT", "HIT"]
    assert rig.cache("f3").verdict == "MISS"
    rows = {row.run: row for row in cache_view(rig.state).rows}
    assert rows["f3"].read == 0
    assert rows["f3"].written is not None
    assert rows["f3"].expected is not None
    assert rows["f3"].written > rows["f3"].expected
    assert rows["f1"].saved_usd is not None
    assert rows["f1"].head == rows["p"].head != ""


# --- the gate -----------------------------------------------------------------------------


async def test_a_429_on_the_third_of_eight_fails_nobody(make_rig: MakeRig) -> None:
    """T54: no request inside the window, half the width, back up, and all of it visible."""
    rig = await make_rig(gate=lambda clock: RateGate(clock, width=8, rng=random.Random(3)))
    refused = iter([False, False, True])

    def child(asked: Asked) -> Reply:
        if next(refused, False):
            return Reply(error=RateLimited("Too many.", status=429, retry_after_s=18.0))
        return Reply(REPORT, [] if asked.number > 4 else [("read", {"path": "a.py"})])

    rig.provider.script = parent_then(join(*EIGHT, max_concurrency=8), child)
    await rig.say()
    assert {fork.outcome for fork in rig.state.forks.values()} == {"done"}
    told = next(e for e in rig.sink.of(RequestDelayed) if e.reason == "429")
    inside = [e for e in rig.sink.of(RequestSent) if told.at_ms < e.at_ms < told.at_ms + 18_000]
    assert inside == []
    paces = [(e.width, e.reason) for e in rig.sink.of(PaceChanged)]
    assert paces[0] == (4, "429")
    assert [width for width, _ in paces[1:]] == [5, 6, 7, 8]
    assert rig.state.pace is not None
    assert rig.state.pace.width == rig.state.pace.most == 8


# --- limits -------------------------------------------------------------------------------


def settings(**forks: object) -> Settings:
    return Settings(forks=ForkSettings(plan="never", **forks))  # type: ignore[arg-type]


def busy(asked: Asked) -> Reply:
    """Read for ever, until the last step asks for the report."""
    if "last step" in asked.text:
        return Reply(REPORT)
    return Reply("I look.", [("read", {"path": "a.py"})])


async def test_turns_of_a_fork_are_marked_and_end_in_a_report(make_rig: MakeRig) -> None:
    """T51: 80 % is told once, the last step only reports, the outcome is PART with its name."""
    rig = await make_rig(settings=settings(max_turns=5))
    rig.provider.script = parent_then(join("a"), busy)
    await rig.say()
    assert rig.fork("f1").outcome == "partial"
    assert rig.fork("f1").reason == "turns"
    assert rig.fork("f1").report == REPORT
    neared = rig.sink.of(LimitNeared)
    assert [(e.run, e.limit, e.of, e.share) for e in neared] == [("f1", "turns", "5 turns", 0.8)]
    assert rig.fork("f1").near_limit == "5 turns"
    assert rig.sent_text("f1").count("More than 80 %") == 1


async def test_tokens_of_a_fork_are_a_limit(make_rig: MakeRig) -> None:
    """Cache reads do not count; the answer's bound shrinks to what is left; then it reports."""
    rig = await make_rig(settings=settings(budget_tokens=6_000))
    rig.provider.script = parent_then(join("a"), busy)
    await rig.say()
    assert (rig.fork("f1").outcome, rig.fork("f1").reason) == ("partial", "tokens")
    bounds = [e.max_tokens for e in rig.sink.of(RequestSent, "f1")]
    assert all(bound <= 6_000 for bound in bounds)
    assert bounds[0] > bounds[-2]


async def test_a_batch_has_turns_of_its_own(make_rig: MakeRig) -> None:
    """Forks of one batch share its limit; those that never began are not started any more."""
    rig = await make_rig(settings=settings(batch_max_turns=6))
    rig.provider.script = parent_then(join("a", "b", "c", max_concurrency=1), busy)
    await rig.say()
    ends = {e.run: (e.outcome, e.reason) for e in rig.sink.of(ForkEnded)}
    assert ends["f1"] == ("partial", "batch turns")
    assert ends["f2"] == ends["f3"] == ("partial", "batch turns")
    assert rig.bodies("f2") == rig.bodies("f3") == []


async def test_a_launch_that_cannot_be_paid_is_not_started(make_rig: MakeRig) -> None:
    """Reserved before launch: eight forks need more than is left, so none of them begins."""
    rig = await make_rig(settings=settings(), budget_usd="0.30")
    rig.provider.script = parent_then(join(*EIGHT), lambda _: Reply(REPORT))
    await rig.say()
    assert rig.state.forks == {}
    told = str(rig.results()[0]["content"])
    assert "Nothing was started" in told
    assert "8 forks would need at least $0" in told
    assert rig.state.parent.turn.outcome == "completed"


@pytest.mark.parametrize(("marks", "started"), [(True, 2), (False, 0)])
async def test_a_budget_counts_on_no_cache_where_there_is_none(
    make_rig: MakeRig, marks: bool, started: int
) -> None:
    """20,000 tokens twice cost $0.02 from a cache and $0.20 without one."""
    rig = await make_rig(settings=settings(), budget_usd="0.40")
    refusing(rig, cache_control=marks)
    rig.provider.script = parent_then(join("a", "b"), lambda _: Reply(REPORT))
    await rig.say("word " * 16_000)
    assert len(rig.state.forks) == started
    assert ("2 forks would need at least $0.3" in str(rig.results()[0]["content"])) is not marks


async def test_what_siblings_need_to_report_is_set_aside(make_rig: MakeRig) -> None:
    """Every fork of a budget that is used up still had its last step: none of them fails."""
    rig = await make_rig(settings=settings(batch_budget_usd=Decimal("0.60")))
    rig.provider.script = parent_then(join("a", "b", "c", "d", max_concurrency=4), busy)
    await rig.say()
    reasons = {fork.reason for fork in rig.state.forks.values()}
    assert reasons == {"batch budget"}
    assert {fork.report for fork in rig.state.forks.values()} == {REPORT}
    spent = sum(rig.state.runs[h].cost.usd for h in rig.state.forks)
    assert spent <= Decimal("0.60")
    neared = [e for e in rig.sink.of(LimitNeared) if e.limit == "batch budget"]
    assert {e.run for e in neared} <= set(rig.state.forks)


async def test_a_sessions_turns_stop_the_parent_with_a_way_on(make_rig: MakeRig) -> None:
    """The session's own limits: told at 80 %, then no step is started, and nothing is lost."""
    rig = await make_rig(
        settings=Settings(forks=ForkSettings(plan="never"), session=SessionSettings(max_turns=5))
    )
    rig.provider.script = lambda asked: Reply("ok")
    for number in range(5):
        await rig.say(f"prompt {number}")
    assert rig.state.near_limit == "5 turns of the session"
    await rig.say("one too many")
    assert rig.state.parent.turn.outcome == "failed"
    assert rig.state.parent.turn.reason == "session turns"
    assert len(rig.bodies("p")) == 5


async def test_nothing_is_started_after_an_abort(rig: Rig) -> None:
    """T58: queued forks of an aborted launch make no request and no worktree, in no time."""
    never = asyncio.Event()
    rig.provider.script = parent_then(
        Reply("", [("fork_join", tasks(*EIGHT[:6], max_concurrency=2, write=True))]),
        lambda _: Reply("half", hold=never),
    )
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.provider.open == 2)
    for handle in ("f3", "f4", "f5", "f6", "f1", "f2"):
        await rig.do(AbortFork(handle=handle))
    await rig.idle()
    assert [e.run for e in rig.sink.of(ForkStarted)] == ["f1", "f2"]
    assert [line for line in rig.worktrees.log if line.startswith("create")] == [
        "create f1", "create f2",
    ]  # fmt: skip
    assert [f.outcome for f in rig.state.forks.values()] == ["aborted"] * 6


async def test_marks_are_four_and_repeat_the_parents(rig: Rig) -> None:
    """T35, T36: S, P, T, R on the first request; S, T, R previous, R new from the second on."""

    def child(asked: Asked) -> Reply:
        calls = [("read", {"path": "a.py"})] * 25
        return Reply("I look.", calls) if asked.number == 1 else Reply(REPORT)

    rig.provider.script = parent_then(placeholder("a"), child)
    await rig.say()

    def marked(run: str, number: int) -> list[int]:
        body = rig.bodies(run)[number]
        assert "cache_control" in body["system"][-1]
        blocks = [b for m in body["messages"] for b in message_blocks(m)]
        return [i for i, block in enumerate(blocks) if "cache_control" in block]

    parent = marked("p", 0)[-1]
    first = marked("f1", 0)
    blocks = [b for m in rig.bodies("f1")[0]["messages"] for b in message_blocks(m)]
    end = len(blocks) - 1
    assert first == [parent, end - 1, end]
    assert marked("f1", 1)[:2] == [end - 1, end]
    assert len(marked("f1", 1)) == 3
