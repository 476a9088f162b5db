"""Laws of all seeds over random histories: images, redacted thinking, summaries, steering."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from forkdeck.model.prefix import message_positions
from forkdeck.model.raw import JsonDict, from_raw
from forkdeck.model.state import HistoryEntry
from forkdeck.model.thinking import as_sent, sent_messages
from forkdeck.seeds.policies import policy, with_directive, without_thinking
from forkdeck.seeds.request import block_count, request_ends
from forkdeck.seeds.validity import check, merged, tool_use_ids
from tests.seeds.test_policies import DIRECTIVE, call, entry, result, text, thinking, whole
from tests.soak import laws

MODES = ("before_call", "placeholder", "completed_turns", "turns:1", "turns:3", "none")
KEEPS = ("before_call", "placeholder", "completed_turns")


def redacted() -> JsonDict:
    return {"type": "redacted_thinking", "data": "q1w2"}


def picture() -> JsonDict:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    return {"type": "image", "source": source}


@st.composite
def histories(draw: st.DrawFn) -> list[HistoryEntry]:
    """A valid history; it ends idle, in a user's message, or with an open call ``f``."""
    found: list[HistoryEntry] = []
    number = 0
    if draw(st.booleans()):
        found.append(entry("user", text("summary of before"), kind="summary"))
        if draw(st.booleans()):
            found.append(entry("assistant", text("kept answer")))
    for turn in range(draw(st.integers(1, 4))):
        lead = draw(st.sampled_from([[], [picture()], [text("a note about a fork")]]))
        found.append(entry("user", *lead, text(f"prompt {turn}")))
        for _ in range(draw(st.integers(0, 2))):
            head = draw(
                st.sampled_from(
                    [[], [thinking()], [redacted()], [thinking(), redacted(), text("x")]]
                )
            )
            calls = [call(f"c{number + i}") for i in range(draw(st.integers(1, 3)))]
            number += len(calls)
            found.append(entry("assistant", *head, *calls))
            answers = [result(str(each["id"])) for each in calls]
            answers[0] = (
                {**answers[0], "content": [picture()]} if draw(st.booleans()) else answers[0]
            )
            if draw(st.integers(0, 5)) == 0:
                # An interrupted turn: its results stand before the next prompt.
                found.append(entry("user", *answers, text("next prompt"), kind="prompt"))
                continue
            extra = draw(st.sampled_from([[], [text("steered")], [text("[limit] 80 %")]]))
            found.append(entry("user", *answers, *extra, kind="tool_results"))
        if draw(st.integers(0, 4)) == 0:
            found.append(entry("user", text("[message from the person]"), kind="notification"))
        # An answer of thinking alone is what a cut at the token limit can leave.
        tail = draw(st.sampled_from([[text("done")], [thinking(), text("done")], [thinking()]]))
        found.append(entry("assistant", *tail))
    end = draw(st.sampled_from(["idle", "asked", "call"]))
    if end != "idle":
        found.append(entry("user", text("and now")))
    if end == "call":
        found.append(entry("assistant", *draw(st.sampled_from([[], [thinking()]])), call("f")))
    return found


def source_call(history: list[HistoryEntry]) -> str | None:
    return "f" if "f" in tool_use_ids(from_raw(history[-1].message)) else None


@laws(300)
@given(histories(), st.sampled_from(MODES))
def test_every_seed_is_valid_and_changes_nothing(history: list[HistoryEntry], mode: str) -> None:
    """T1, T4, T5, T6, T9, T12, T15, T17: valid, whole, the parent's bytes to the boundary."""
    before = [bytes(each.message) for each in history]
    seed = policy(mode).plan(history, source_call(history))
    messages = whole(seed, history)
    check(messages)
    assert messages[-1]["content"][-1] == DIRECTIVE
    assert [bytes(each.message) for each in history] == before
    mine = message_positions([from_raw(each.message) for each in history])
    found = message_positions(messages)
    own = [from_raw(each.message) for each in history if each.role == "assistant"]
    if mode in KEEPS:
        assert found[: seed.boundary] == mine[: seed.boundary]
        for message in messages:
            assert message["role"] == "user" or message in own
        if mode == "before_call":
            cut = len(history) - (source_call(history) is not None)
            assert seed.boundary == block_count([from_raw(e.message) for e in history[:cut]])
    else:
        assert "thinking" not in json.dumps(
            [m["content"] for m in messages if m["role"] == "assistant"]
        )
        assert "summary of before" not in json.dumps(messages)
    assert len(found) == block_count(messages)


@laws(150)
@given(histories(), st.sampled_from(["before_call", "completed_turns"]))
def test_thinking_goes_whole_for_another_model(history: list[HistoryEntry], mode: str) -> None:
    """T13, T14: none of it stays, redacted too; alternation and pairs hold."""
    seed = without_thinking(policy(mode).plan(history, source_call(history)), history)
    messages = whole(seed, history)
    check(messages)
    kinds = {block["type"] for message in messages for block in message["content"]}
    assert kinds.isdisjoint({"thinking", "redacted_thinking"})


@laws(150)
@given(histories(), st.data(), st.sampled_from(MODES))
def test_seeds_copy_what_is_sent(history: list[HistoryEntry], data: Any, mode: str) -> None:
    """T9, T11: behind a change of model forks get the parent's messages as they are sent now."""
    start = data.draw(st.integers(0, len(history) - (source_call(history) is not None)))
    sent = as_sent(history, start)
    parent = sent_messages(history, start)
    assert [from_raw(each.message) for each in sent] == parent
    seed = policy(mode).plan(sent, source_call(history))
    inherited = parent[: seed.inherited_messages]
    messages = merged([*inherited, *map(from_raw, with_directive(seed, DIRECTIVE))])
    check(messages)
    if mode in KEEPS:
        assert (
            message_positions(messages)[: seed.boundary]
            == message_positions(parent)[: seed.boundary]
        )


@laws(100)
@given(histories())
def test_request_ends_are_what_the_parent_marked(history: list[HistoryEntry]) -> None:
    """T35: each answer was asked for by a request that ended, and was marked, right before it."""
    messages = [from_raw(each.message) for each in history]
    ends = request_ends(messages)
    flat = [(m["role"], i) for i, m in enumerate(messages) for _ in m["content"]]
    for end in ends:
        assert flat[end + 1][0] == "assistant"
        assert flat[end + 1][1] != flat[end][1]
