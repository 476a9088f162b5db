"""Steps: cut streams, retries, invalid calls, usage, cache verdicts, prefix check."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from forkdeck.engine.cache_verdict import Expectation, verdict
from forkdeck.errors import BadRequest, ContextTooLong, Overloaded, ServerFault
from forkdeck.model.events.step import RequestDelayed, StepCut, UsageReported
from forkdeck.model.events.turn import TurnEnded
from forkdeck.model.intents import InterruptParent, ResendTurn, SendPrompt, SetModel
from forkdeck.model.ports import EndpointFacts
from tests.engine.conftest import MakeRig
from tests.engine.fakes import Asked, FakePrices, Reply
from tests.engine.rig import REPORT, Rig, join, parent_then


async def test_a_cut_stream_runs_no_tool_and_is_resent(rig: Rig) -> None:
    """T54: the broken attempt is counted, shown as cut, and sent again whole."""

    def script(asked: Asked) -> Reply:
        if asked.number <= 2:
            return Reply("I will", [("bash", {"command": "rm -rf /"})], cut=True)
        return Reply("fine")

    rig.provider.script = script
    await rig.say()
    assert rig.tool_log == []
    assert [e.resent for e in rig.sink.of(StepCut)] == [True, True]
    used = rig.sink.of(UsageReported)
    assert [e.at_least for e in used] == [True, True, False]
    assert rig.state.parent.counters.turns == 1
    assert rig.state.parent.turn.outcome == "completed"


async def test_a_stream_that_breaks_for_ever_fails_after_three_resends(rig: Rig) -> None:
    """The step is resent three times, then the fork fails with its partial text."""
    rig.provider.script = parent_then(join("a"), lambda _: Reply("Half of it", cut=True))
    await rig.say()
    assert rig.fork("f1").outcome == "failed"
    assert rig.fork("f1").report == "Half of it"
    assert len(rig.bodies("f1")) == 4
    assert [e.resent for e in rig.sink.of(StepCut, "f1")] == [True, True, True, False]


async def test_an_overload_in_mid_stream_is_resent(rig: Rig) -> None:
    """An error event after the first byte is a cut, not an answer."""
    rig.provider.script = lambda asked: (
        Reply("Hm", cut=True, error=Overloaded("busy", status=529))
        if asked.number == 1
        else Reply("ok")
    )
    await rig.say()
    assert rig.state.parent.turn.outcome == "completed"


async def test_busy_endpoints_are_asked_five_times(rig: Rig) -> None:
    """T54: exhausted retries fail the turn; r sends the very same request again."""
    broken = True

    def script(asked: Asked) -> Reply:
        return Reply(error=ServerFault("It fell over.", status=500)) if broken else Reply("ok")

    rig.provider.script = script
    await rig.say()
    assert rig.state.parent.turn.outcome == "failed"
    assert rig.state.parent.turn.reason == "It fell over."
    assert [e.reason for e in rig.sink.of(RequestDelayed)] == ["5xx"] * 4
    assert len(rig.bodies("p")) == 5
    broken = False
    assert (await rig.do(ResendTurn())).ok
    await rig.idle()
    assert rig.bodies("p")[-1] == rig.bodies("p")[0]
    assert rig.state.parent.turn.outcome == "completed"
    assert not (await rig.do(ResendTurn())).ok


async def test_a_bad_request_is_never_repeated(rig: Rig) -> None:
    """400 and its like are answers."""
    rig.provider.script = lambda _: Reply(error=BadRequest("No.", "Change it.", status=400))
    await rig.say()
    assert len(rig.bodies("p")) == 1
    assert rig.state.parent.turn.remedy == "Change it."


async def test_a_forks_context_error_is_partial(rig: Rig) -> None:
    """Token and context limits end PART, with what it had."""

    def child(asked: Asked) -> Reply:
        if asked.number == 1:
            return Reply("I read.", [("read", {"path": "a.py"})])
        return Reply(error=ContextTooLong("Too long.", "Start anew.", status=400))

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    assert (rig.fork("f1").status, rig.fork("f1").reason) == ("PART", "context")
    assert rig.fork("f1").report == "I read."


async def test_max_tokens_with_an_open_call_runs_nothing_and_stays_valid(rig: Rig) -> None:
    """T51: the call of a cut answer is answered, not executed; the next prompt is valid."""

    def script(asked: Asked) -> Reply:
        if asked.number == 1:
            return Reply("Long", [("bash", {"command": "x"})], stop="max_tokens")
        return Reply("ok")

    rig.provider.script = script
    await rig.say()
    assert rig.tool_log == []
    assert rig.state.parent.turn.reason == "max_tokens"
    await rig.say("go on")
    assert rig.results()[0]["is_error"] is True


async def test_a_call_whose_input_is_no_object_is_answered_with_an_error(rig: Rig) -> None:
    """A half call never runs."""
    broken = {"type": "tool_use", "id": "toolu_x", "name": "bash", "input": "rm"}
    rig.provider.script = lambda asked: (
        Reply("", raw_calls=[broken]) if asked.number == 1 else Reply("ok")
    )
    await rig.say()
    assert rig.tool_log == []
    assert "not a JSON object" in rig.results()[0]["content"]


async def test_a_refusal_fails_and_leaves_no_trace_in_the_history(rig: Rig) -> None:
    """T52: refusal is failed, whatever text came with it."""
    rig.provider.script = parent_then(join("a"), lambda _: Reply("Sorry", stop="refusal"))
    await rig.say()
    assert (rig.fork("f1").outcome, rig.fork("f1").reason) == ("failed", "refusal")
    rig.provider.script = lambda _: Reply("No.", stop="refusal")
    await rig.say("bad")
    assert rig.state.parent.turn.outcome == "failed"
    rig.provider.script = lambda _: Reply("Yes.")
    await rig.say("good")
    assert rig.state.parent.turn.outcome == "completed"


async def test_interrupt_closes_the_stream_and_the_next_prompt_extends_it(rig: Rig) -> None:
    """Two user turns in a row join into one message."""
    hold = asyncio.Event()
    rig.provider.script = lambda asked: Reply("Long talk", hold=hold if asked.number == 1 else None)
    await rig.do(SendPrompt(text="one"))
    await rig.until(lambda: rig.state.parent.stream)
    assert (await rig.do(InterruptParent())).text == "parent stopped"
    assert rig.provider.open == 0
    assert rig.sink.of(UsageReported)[-1].at_least
    await rig.say("two")
    assert len(rig.bodies("p")[-1]["messages"]) == 1
    assert not (await rig.do(InterruptParent())).ok


async def test_interrupt_during_a_tool_answers_its_call(rig: Rig) -> None:
    """Every tool_use gets a result, also when it was aborted."""
    stuck = asyncio.Event()

    async def wait(*_: object) -> None:
        await stuck.wait()

    rig.tools["read"].behaviour = wait
    calls = [("read", {"path": "a"}), ("read", {"path": "b"}), ("bash", {"command": "ls"})]
    rig.provider.script = lambda asked: Reply("", calls) if asked.number == 1 else Reply("ok")
    await rig.do(SendPrompt(text="one"))
    await rig.until(lambda: len(rig.state.parent.tools) == 2)
    await rig.do(InterruptParent())
    assert rig.state.parent.tools == ()
    await rig.say("two")
    assert [r["is_error"] for r in rig.results()] == [True] * 3


@pytest.mark.moves_cache_prefix(reason="another model")
async def test_unknown_prices_are_unknown_and_no_cache_fields_no_verdict(make_rig: MakeRig) -> None:
    """T104, T43: never $0.00, never a miss, for what was not told."""
    rig = await make_rig(cache_fields=False)
    rig.provider.script = parent_then(join("a"), lambda _: Reply(REPORT))
    await rig.say()
    assert rig.cache("f1").verdict == "UNKNOWN"
    assert rig.cache("f1").saved_usd is None
    assert (await rig.do(SetModel(model="unpriced"))).ok
    await rig.say("more")
    assert not rig.state.parent.cost.known


async def test_savings_count_only_the_inherited_tokens_of_the_first_step(rig: Rig) -> None:
    """T41: min(first read, boundary tokens); later reads are the fork's own."""

    def child(asked: Asked) -> Reply:
        return Reply("", [("read", {"path": "a.py"})]) if asked.number < 3 else Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    cache = rig.cache("f1")
    read = min(cache.read_tokens or 0, cache.expected_tokens or 0)
    assert cache.saved_usd == (Decimal("5e-6") - Decimal("0.5e-6")) * read
    context = rig.state.runs["f1"].context_tokens
    assert context is not None
    assert context < rig.state.runs["f1"].usage.prompt_tokens


@pytest.mark.parametrize(
    ("tokens", "cold", "read", "word"),
    [
        (5000, "", 5000, "HIT"),
        (5000, "", 4800, "HIT"),
        (5000, "", 2000, "PARTIAL"),
        (5000, "", 0, "MISS"),
        (300, "", 0, "BELOW MINIMUM"),
        (None, "", 0, "BELOW MINIMUM"),
        (5000, "old", 0, "COLD"),
        (5000, "old", 5000, "HIT"),
        (None, "new", 900, "COLD"),
        (5000, "", None, "UNKNOWN"),
        (300, "", None, "UNKNOWN"),
    ],
)
def test_verdicts(tokens: int | None, cold: str, read: int | None, word: str) -> None:
    """T37, T39, T43: each word means one thing."""
    assert verdict(Expectation(tokens, 1024, cold), read) == word


@pytest.mark.parametrize(
    ("able", "read", "word"),
    [
        ({}, 2_000, "COLD"),
        ({"effort": False}, 0, "MISS"),
        ({"effort": False}, 5_000, "HIT"),
        ({"thinking": False}, 0, "COLD"),
        ({"cache_control": False}, 0, "COLD"),
        ({"cache_control": False}, None, "UNKNOWN"),
    ],
)
def test_a_verdict_is_of_what_was_really_sent(
    able: dict[str, bool], read: int | None, word: str
) -> None:
    """An override that the endpoint does not take makes nothing cold; a refused mark does."""
    asked = Expectation(5000, 1024, "another effort", overrides=frozenset(("effort",)))
    endpoint = EndpointFacts(base_url="", name="", **able)  # type: ignore[arg-type]
    assert verdict(asked.as_sent(endpoint), read) == word


async def test_a_prefix_older_than_five_minutes_is_cold_not_missed(rig: Rig) -> None:
    """T39: no false claim after the entry's life."""
    rig.provider.script = lambda _: Reply("ok")
    await rig.say("one")
    rig.clock.ms += 301_000
    rig.provider.cached.clear()
    await rig.say("two")
    assert rig.cache("p").verdict == "COLD"
    assert "five minutes" in rig.cache("p").difference


async def test_a_request_that_lost_its_prefix_is_not_sent(rig: Rig) -> None:
    """T16, T34: a changed shared block fails the fork, not the parent, and nothing leaves."""
    rig.provider.script = lambda _: Reply("ok")
    await rig.say("one")
    await rig.say("two")
    run = rig.deck._conversation.run
    run.messages[0]["content"][0]["text"] += "!"
    rig.provider.script = parent_then(Reply("x"), lambda _: Reply(REPORT))
    from forkdeck.model.intents import StartFork

    assert (await rig.do(StartFork(task="look", seed="placeholder"))).ok
    await rig.idle()
    assert rig.fork("f1").outcome == "failed"
    assert "messages[0] block 0" in rig.fork("f1").reason
    assert rig.bodies("f1") == []


@pytest.mark.moves_cache_prefix(reason="a new model has a cache of its own")
async def test_a_new_model_makes_a_new_head_and_says_what_it_costs(rig: Rig) -> None:
    """T13: thinking of the old model is left out whole."""
    rig.provider.script = lambda _: Reply("ok", thinking="hm")
    await rig.say("one")
    said = await rig.do(SetModel(model="claude-sonnet-5-5"))
    assert "cache starts anew" in said.text
    await rig.say("two")
    body = rig.bodies("p")[-1]
    assert body["model"] == "claude-sonnet-5-5"
    assert "thinking" not in str([m["content"] for m in body["messages"]])
    assert rig.state.session.model == "claude-sonnet-5-5"


async def test_inherited_thinking_is_kept_byte_for_byte(rig: Rig) -> None:
    """T12: placeholder seed of a message with signed thinking."""

    def script(asked: Asked) -> Reply:
        if asked.run != "p":
            return Reply(REPORT)
        return (
            Reply("", [("agent", {"prompt": "Look.", "description": "look"})], thinking="deep")
            if asked.number == 1
            else Reply("ok")
        )

    rig.provider.script = script
    await rig.say()
    message = rig.bodies("f1")[0]["messages"][1]
    assert message["content"][0] == {"type": "thinking", "thinking": "deep", "signature": "s" * 8}
    assert message == rig.bodies("p")[-1]["messages"][1]


async def test_the_context_banner_is_shown_once(make_rig: MakeRig) -> None:
    """At 95 % of the window the person is told, once."""
    rig = await make_rig(prices=FakePrices(context=2_000))
    rig.provider.script = lambda _: Reply("ok")
    await rig.say("one")
    await rig.say("two")
    told = [n for n in rig.state.notices if "context" in n.what]
    assert len(told) == 1


async def test_a_turn_ends_exactly_once(rig: Rig) -> None:
    """One turn.ended per turn.started."""
    rig.provider.script = lambda _: Reply("ok")
    for word in ("a", "b", "c"):
        await rig.say(word)
    assert [e.turn for e in rig.sink.of(TurnEnded)] == [1, 2, 3]
