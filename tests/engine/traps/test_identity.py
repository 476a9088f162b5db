"""Traps of identity and counting: who is a fork, whose head it has, what is counted once."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from forkdeck.config.settings import ForkSettings, Settings
from forkdeck.engine.cache_verdict import Expectation, judge
from forkdeck.model.events.fork import ForkEnded
from forkdeck.model.events.session import ModeChanged
from forkdeck.model.events.step import UsageReported
from forkdeck.model.intents import AbortFork, SendPrompt, SetMode, StartFork
from forkdeck.model.tooling import ToolResult
from forkdeck.model.usage import Usage
from forkdeck.seeds.policies import policy
from forkdeck.store.cache_view import cache_view
from forkdeck.store.reducer import fold, reduce
from forkdeck.store.selectors import total_cost
from tests.engine.conftest import MakeRig
from tests.engine.fakes import Asked, FakePrices, Reply
from tests.engine.rig import REPORT, Rig, join, parent_then
from tests.seeds.test_policies import call, entry, result, text, whole


async def test_a_fork_between_labels_starts_at_the_messages(rig: Rig) -> None:
    """T19: a mode change or a title is no message: the seed is what was said before it."""
    rig.provider.script = lambda asked: Reply(REPORT if asked.run != "p" else "ok")
    await rig.say("one")
    await rig.do(SetMode(mode="auto"))
    assert rig.sink.of(ModeChanged)
    await rig.do(StartFork(task="look"))
    await rig.idle()
    rig.assert_shares("f1", rig.bodies("p")[0])
    assert rig.fork("f1").inherited_messages == 2
    assert rig.cache("f1").verdict == "HIT"


@pytest.mark.parametrize("seed", ["none", "turns:1"])
async def test_depth_is_stored_not_read_from_the_text(rig: Rig, seed: str) -> None:
    """T21: a fork whose history holds no word of forking is refused by its stored depth."""

    def child(asked: Asked) -> Reply:
        if asked.number == 1:
            return Reply("I try.", [("fork", {"task": "again"})])
        return Reply(REPORT)

    rig.provider.script = parent_then(Reply("", [("fork", {"task": "x", "seed": seed})]), child)
    await rig.say()
    assert "may not fork" in rig.results("f1")[-1]["content"]
    assert list(rig.state.forks) == ["f1"]
    assert rig.fork("f1").depth == 1


async def test_context_is_the_last_request_never_a_sum(rig: Rig) -> None:
    """T42: reads are billed, but what fills the context is one request, and budgets skip reads."""

    def child(asked: Asked) -> Reply:
        return Reply("x", [("read", {"path": "a.py"})]) if asked.number < 3 else Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    reports = [e.usage for e in rig.sink.of(UsageReported, "f1")]
    assert len(reports) == 3
    run = rig.state.runs["f1"]
    assert run.context_tokens == reports[-1].prompt_tokens + reports[-1].output_tokens
    assert run.usage.cache_read_input_tokens == sum(u.cache_read_input_tokens or 0 for u in reports)
    assert run.context_tokens is not None
    assert run.context_tokens < run.usage.prompt_tokens
    shared = min(reports[0].cache_read_input_tokens or 0, rig.cache("f1").expected_tokens or 0)
    saved = FakePrices().read_saving_usd("claude-opus-5-5", shared)
    assert rig.cache("f1").saved_usd == saved


async def test_two_sessions_never_share_a_head(make_rig: MakeRig) -> None:
    """T44: sessions that alternate keep their own bytes, also with other settings."""
    one = await make_rig()
    two = await make_rig(
        settings=Settings(model="claude-sonnet-5-5", forks=ForkSettings(plan="never"))
    )
    for each in (one, two):
        each.provider.script = lambda asked: Reply(REPORT if asked.run != "p" else "ok")
    await one.say("mine")
    await two.say("yours")
    await one.do(StartFork(task="look"))
    await two.do(StartFork(task="look"))
    await one.idle()
    await two.idle()
    for each, word, other in ((one, "mine", "yours"), (two, "yours", "mine")):
        each.assert_shares("f1", each.bodies("p")[0])
        assert word in str(each.bodies("f1")[0]["messages"])
        assert other not in str(each.bodies("f1")[0]["messages"])
    assert one.bodies("f1")[0]["model"] != two.bodies("f1")[0]["model"]


async def test_a_schema_adds_no_tool(rig: Rig) -> None:
    """T45: what a fork alone needs stands in its directive; tools and system stay the parent's."""
    schema = {"type": "object", "required": ["n"]}
    task = {"id": "a", "task": "Count.", "output_schema": schema}
    rig.provider.script = parent_then(
        Reply("", [("fork_join", {"tasks": [task]})]), lambda _: Reply('{"n": 3}')
    )
    await rig.say()
    assert rig.fork("f1").outcome == "done"
    child, parent = rig.bodies("f1")[0], rig.bodies("p")[0]
    assert child["tools"] == parent["tools"]
    assert child["system"] == parent["system"]
    assert rig.state.runs["f1"].head == rig.state.parent.head
    assert rig.fork("f1").output_schema == '{"type": "object", "required": ["n"]}'


async def test_the_same_event_counts_once(rig: Rig) -> None:
    """T57: replaying the log gives the same sums, and a late end changes nothing."""
    rig.provider.script = parent_then(join("a", "b"), lambda _: Reply(REPORT))
    await rig.say()
    folded = fold(rig.sink.events)
    assert total_cost(folded) == total_cost(rig.state)
    assert total_cost(folded).usd == sum(
        (e.cost_usd for e in rig.sink.of(UsageReported)), Decimal(0)
    )
    late = reduce(folded, ForkEnded(run="f1", outcome="failed", reason="late", seq=9999))
    assert late.forks["f1"].outcome == "done"
    assert total_cost(late) == total_cost(folded)


async def test_a_tool_that_will_not_stop_holds_nobody(rig: Rig) -> None:
    """T60: a tool swallows its cancellation; SAFETY ends real processes, here the fork ends."""
    began = asyncio.Event()

    async def stubborn(*_: object) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return ToolResult(content="I went on.")

    def child(asked: Asked) -> Reply:
        return Reply("x", [("read", {"path": "a.py"})]) if asked.run == "f1" else Reply(REPORT)

    rig.tools["read"].behaviour = stubborn
    rig.provider.script = parent_then(join("a", "b"), child)
    await rig.do(SendPrompt(text="go"))
    await rig.until(began.is_set)
    await rig.do(AbortFork(handle="f1"))
    await rig.idle()
    assert [f.outcome for f in rig.state.forks.values()] == ["aborted", "done"]
    assert len(rig.bodies("f1")) == 1


@pytest.mark.parametrize(
    ("blocks", "turns"),
    [
        ([("user", [text("a")], "prompt")], 1),
        ([("user", [text("a")], "prompt"), ("assistant", [text("x")], None)], 1),
        ([("user", [text("s")], "summary"), ("assistant", [text("x")], None)], 0),
        ([("user", [text("n")], "notification")], 0),
        (
            [
                ("user", [text("a")], "prompt"),
                ("assistant", [call("c")], None),
                ("user", [result("c"), text("[limit] 80 %")], "tool_results"),
            ],
            1,
        ),
        (
            [
                ("user", [text("a")], "prompt"),
                ("assistant", [call("c")], None),
                ("user", [result("c"), text("b")], "prompt"),
            ],
            2,
        ),
    ],
)
def test_only_what_the_person_said_is_a_turn(blocks: Any, turns: int) -> None:
    """T18: results, notes, reports and summaries are no turns; none gives a fresh start."""
    history = [entry(role, *content, kind=kind) for role, content, kind in blocks]
    seed = policy("turns:9").plan(history, None)
    if not turns:
        assert seed.notes == ("there is no user turn yet: the fork starts fresh",)
        return
    messages = whole(seed, history)
    assert messages[0]["content"][0] == text("a")
    last = whole(policy("turns:1").plan(history, None), history)
    assert ("'a'" in str(last)) is (turns == 1)


async def test_an_endpoint_without_cache_fields_is_unknown(make_rig: MakeRig) -> None:
    """T43: not told is UNKNOWN with dashes, never a miss, never nought; nobody is held for it."""
    rig = await make_rig(cache_fields=False)
    rig.provider.script = parent_then(join("a", "b"), lambda _: Reply(REPORT))
    await rig.say()
    view = cache_view(rig.state)
    assert not view.told
    assert view.share is None
    assert view.saved_usd is None
    assert {row.verdict for row in view.rows} == {"UNKNOWN"}
    assert {row.read for row in view.rows} == {None}


def test_the_endpoints_reason_is_shown_beside_ours() -> None:
    """T43: a named reason is told; without one the first differing block of our own compare."""
    expected = Expectation(10_000, 1_000, "", first=True, shared_tokens=10_000, differs="tools[2]")
    usage = Usage(cache_read_input_tokens=0, cache_creation_input_tokens=10_200, input_tokens=3)

    run: Any = SimpleNamespace(run="f1", head=SimpleNamespace(model="m"))
    event = judge(run, usage, expected, FakePrices(), "tools_changed")
    assert event.verdict == "MISS"
    assert event.difference == (
        "tools[2] differs from the parent's request; the endpoint says: tools_changed"
    )
    assert (event.written_tokens, event.fresh_tokens, event.saved_usd) == (10_200, 3, 0)


async def test_a_report_without_a_look_is_not_taken_on_trust(rig: Rig) -> None:
    """T27: a fork that called no tool is done, but what it claims of files is told as such."""
    report = (
        "Scope: parser. Result: `src/lost.py:12` is wrong; I ran `pytest -q` and it passed.\n"
        "Key files: src/lost.py\nFiles changed: src/lost.py"
    )
    rig.provider.script = parent_then(join("a"), lambda _: Reply(report))
    await rig.say()
    fork = rig.fork("f1")
    assert fork.outcome == "done"
    assert rig.state.runs["f1"].counters.tool_calls == 0
    told = str(rig.results()[0]["content"])
    assert 'tool_calls="0"' in told
    assert fork.claims is not None
    assert fork.claims.verified < fork.claims.checked
    assert "src/lost.py" in str(fork.claims.unverified)
