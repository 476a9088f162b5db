"""Laws every seed policy keeps, and the traps of histories that are cut in the middle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forkdeck.errors import AdmissionRefused, SeedRefused
from forkdeck.model.prefix import message_positions
from forkdeck.model.raw import JsonDict, from_raw, to_raw
from forkdeck.model.state import HistoryEntry
from forkdeck.seeds.directive import PLACEHOLDER_RESULT
from forkdeck.seeds.policies import policy, with_directive, without_thinking
from forkdeck.seeds.request import block_count
from forkdeck.seeds.validity import check, merged, tool_use_ids
from tests.soak import laws

DIRECTIVE: JsonDict = {"type": "text", "text": "You are fork f1."}


def text(words: str) -> JsonDict:
    return {"type": "text", "text": words}


def call(name: str, tool: str = "bash") -> JsonDict:
    return {"type": "tool_use", "id": name, "name": tool, "input": {"z": 1, "a": 2}}


def result(name: str) -> JsonDict:
    return {"type": "tool_result", "tool_use_id": name, "content": f"result of {name}"}


def thinking(words: str = "hm") -> JsonDict:
    return {"type": "thinking", "thinking": words, "signature": "s" * 20}


def entry(role: Any, *blocks: JsonDict, kind: Any = None, stop: str = "") -> HistoryEntry:
    message = {"role": role, "content": list(blocks)}
    kind = kind or ("answer" if role == "assistant" else "prompt")
    return HistoryEntry(role=role, kind=kind, message=to_raw(message), stop_reason=stop)


def first_turn() -> list[HistoryEntry]:
    return [entry("user", text("do it")), entry("assistant", thinking(), call("t1", "fork"))]


def whole(seed: Any, history: list[HistoryEntry]) -> list[JsonDict]:
    inherited = [from_raw(each.message) for each in history[: seed.inherited_messages]]
    return merged([*inherited, *map(from_raw, with_directive(seed, DIRECTIVE))])


@pytest.mark.parametrize("mode", ["before_call", "placeholder", "completed_turns", "turns:1"])
def test_open_call_is_answered_or_absent(mode: str) -> None:
    """T1: no seed holds a call without a result."""
    history = first_turn()
    messages = whole(policy(mode).plan(history, "t1"), history)
    check(messages)
    assert messages[-1]["content"][-1] == DIRECTIVE


def test_parallel_calls() -> None:
    """T2, T3: three calls, one message; placeholder answers all alike, results first."""
    history = [
        entry("user", text("go")),
        entry("assistant", text("a"), call("b1"), call("f1", "fork"), call("f2", "fork")),
    ]
    before = whole(policy("before_call").plan(history, "f2"), history)
    assert [m["role"] for m in before] == ["user"]
    held = whole(policy("placeholder").plan(history, "f1"), history)
    blocks = held[-1]["content"]
    assert [b.get("tool_use_id") for b in blocks[:3]] == ["b1", "f1", "f2"]
    assert {b["content"] for b in blocks[:3]} == {PLACEHOLDER_RESULT}
    assert [b["type"] for b in blocks[3:]] == ["text", "text"]


def test_trailing_results_are_kept() -> None:
    """T4, T5: the trailing user message keeps its results; the directive is its last block."""
    history = [
        entry("user", text("go")),
        entry("assistant", call("t9")),
        entry("user", result("t9"), kind="tool_results"),
        entry("assistant", call("f1", "fork")),
    ]
    seed = policy("before_call").plan(history, "f1")
    messages = whole(seed, history)
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    assert messages[2]["content"][0] == result("t9")
    assert messages[0]["content"] == [text("go")]
    assert seed.inherited_messages == 2
    assert seed.inherited_blocks == 1
    assert seed.boundary == 3


def test_no_foreign_assistant_turn() -> None:
    """T6: every assistant message of a seed is the parent's own."""
    history = first_turn()
    mine = [from_raw(each.message) for each in history]
    for mode in ("before_call", "placeholder", "completed_turns", "turns:3", "none"):
        for message in whole(policy(mode).plan(history, "t1"), history):
            assert message["role"] == "user" or message in mine


def test_first_turn() -> None:
    """T7: a fork in the first turn inherits the person's prompt; an empty log is refused."""
    history = first_turn()
    assert whole(policy("before_call").plan(history, "t1"), history)[0]["content"][0] == text(
        "do it"
    )
    with pytest.raises(SeedRefused, match="no conversation to fork from") as caught:
        policy("before_call").plan([], None)
    assert "--seed none" in str(caught.value)


def test_call_must_be_found_once() -> None:
    """T8: a missing and a doubled call are two different errors."""
    history = first_turn()
    with pytest.raises(SeedRefused, match="is not in the conversation"):
        policy("before_call").plan(history, "t404")
    doubled = [*history, entry("user", result("t1")), entry("assistant", call("t1"))]
    with pytest.raises(SeedRefused, match="stands 2 times"):
        policy("before_call").plan(doubled, "t1")


def test_bytes_of_thinking_survive() -> None:
    """T12: inherited blocks keep their bytes, signature and key order."""
    history = [
        entry("user", text("go")),
        entry("assistant", thinking("é \ud83d\ude00"), call("t1", "fork")),
    ]
    seed = policy("placeholder").plan(history, "t1")
    assert message_positions(whole(seed, history))[:3] == message_positions(
        [from_raw(each.message) for each in history]
    )


def test_thinking_is_left_out_whole_for_another_model() -> None:
    """T13, T14: all of it goes, empty messages go with it, alternation holds."""
    history = [
        entry("user", text("one")),
        entry("assistant", thinking()),
        entry("user", text("two")),
        entry("assistant", thinking(), text("ok")),
    ]
    seed = without_thinking(policy("before_call").plan(history, None), history)
    messages = whole(seed, history)
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    assert messages[0]["content"] == [text("one"), text("two")]
    assert "thinking" not in str(messages)
    with pytest.raises(SeedRefused, match="placeholder"):
        without_thinking(policy("placeholder").plan(first_turn(), "t1"), first_turn())


def test_turns_counts_real_turns_only() -> None:
    """T17, T18: tool results are no turns; more than there are means all."""
    history = [
        entry("user", text("one")),
        entry("assistant", text("1")),
        entry("user", text("two")),
        entry("assistant", call("a")),
        entry("user", result("a"), kind="tool_results"),
        entry("assistant", text("2")),
    ]
    assert whole(policy("turns:1").plan(history, None), history)[0]["content"][0] == text("two")
    assert whole(policy("turns:99").plan(history, None), history)[0]["content"][0] == text("one")


def test_completed_turns_ends_at_an_answer() -> None:
    history = [
        entry("user", text("one")),
        entry("assistant", text("1")),
        entry("user", text("two")),
        entry("assistant", call("a")),
        entry("user", result("a"), kind="tool_results"),
        entry("assistant", call("f", "fork")),
    ]
    seed = policy("completed_turns").plan(history, "f")
    assert seed.inherited_messages == 2
    assert policy("completed_turns").plan(history[2:], "f").inherited_messages == 0


@pytest.mark.parametrize("mode", ["", "turns:0", "turns:-1", "turns:x", "before", "turns:99999"])
def test_unknown_mode_names_the_modes(mode: str) -> None:
    with pytest.raises(AdmissionRefused, match="before_call"):
        policy(mode)


@st.composite
def histories(draw: st.DrawFn) -> list[HistoryEntry]:
    """A valid history that ends in an assistant message with an open fork call ``f``."""
    found: list[HistoryEntry] = []
    number = 0
    for turn in range(draw(st.integers(1, 4))):
        found.append(entry("user", text(f"prompt {turn}")))
        for _ in range(draw(st.integers(0, 3))):
            calls = [call(f"c{number + i}") for i in range(draw(st.integers(1, 3)))]
            number += len(calls)
            lead = draw(st.sampled_from([[], [thinking()], [text("so")], [thinking(), text("x")]]))
            found.append(entry("assistant", *lead, *calls))
            answers = [result(str(each["id"])) for each in calls]
            extra = draw(st.sampled_from([[], [text("steer")]]))
            found.append(entry("user", *answers, *extra, kind="tool_results"))
        found.append(entry("assistant", text(f"done {turn}")))
    found.append(entry("user", text("and now")))
    others = [call(f"o{i}") for i in range(draw(st.integers(0, 3)))]
    found.append(entry("assistant", *draw(st.sampled_from([[], [thinking()]])), *others, call("f")))
    return found


MODES = st.sampled_from(["before_call", "placeholder", "completed_turns", "turns:2", "none"])


@laws(200)
@given(histories(), MODES)
def test_laws(history: list[HistoryEntry], mode: str) -> None:
    before = [bytes(each.message) for each in history]
    seed = policy(mode).plan(history, "f")
    messages = whole(seed, history)
    check(messages)
    assert messages[-1]["content"][-1] == DIRECTIVE
    assert [bytes(each.message) for each in history] == before
    assert policy(mode).plan(history, "f") == seed
    mine = message_positions([from_raw(each.message) for each in history])
    found = message_positions(messages)
    if mode in ("before_call", "placeholder", "completed_turns"):
        assert found[: seed.boundary] == mine[: seed.boundary]
        assert len(found) > seed.boundary
    answered = [b for m in messages for b in m["content"] if b["type"] == "tool_result"]
    assert len(answered) == sum(len(tool_use_ids(m)) for m in messages)
    assert block_count(messages) == len(found)
