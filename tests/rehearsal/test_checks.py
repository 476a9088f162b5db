"""What the API refuses, in its own words, and what it must let pass."""

from __future__ import annotations

import copy

import anthropic
import pytest

from forkdeck.providers.rehearsal.checks import check_body
from forkdeck.providers.rehearsal.errors import ApiRefused
from forkdeck.providers.rehearsal.scenario import load
from tests.rehearsal.helpers import (
    assistant,
    body,
    call,
    raw,
    request_bytes,
    result,
    say,
    serving,
    text,
    tool,
    user,
)

Q = user(text("q"))
BAD = {
    "no object": ([], "not a JSON object"),
    "no model": ({"max_tokens": 1, "messages": [Q]}, "model: Field required"),
    "foreign parameter": (body(Q, fork=True), "fork: Extra inputs"),
    "sampling": (body(Q, temperature=1.0), "temperature"),
    "no max_tokens": ({**body(Q), "max_tokens": None}, "max_tokens: Field required"),
    "huge max_tokens": ({**body(Q), "max_tokens": 10**9}, "max_tokens"),
    "warming with stream": ({**body(Q, stream=True), "max_tokens": 0}, "max_tokens: 0"),
    "effort": (body(Q, output_config={"effort": "extreme"}), "output_config.effort"),
    "effort is no object": (body(Q, output_config="low"), "output_config: Input"),
    "old thinking": (body(Q, thinking={"type": "enabled", "budget_tokens": 2000}), "enabled"),
    "thinking off": (body(Q, thinking={"type": "disabled"}), "disabled"),
    "thinking is no object": (body(Q, thinking="adaptive"), "thinking: Input"),
    "tool twice": (body(Q, tools=[tool("a"), tool("a")]), "unique"),
    "tool name": (body(Q, tools=[tool("a b")]), "tools.0.name"),
    "tool schema": (body(Q, tools=[{"name": "a", "input_schema": {}}]), "input_schema"),
    "forced tool": (
        {**body(Q, tools=[tool("a")], tool_choice={"type": "any"}), "model": "claude-fable-5-2"},
        "not supported",
    ),
    "no messages": (body(), "at least one"),
    "assistant first": (body(assistant(text("a")), Q), "first message"),
    "prefill": (body(Q, assistant(text("a"))), "prefill"),
    "role": (body({"role": "tool", "content": "x"}), "Unexpected role"),
    "empty text": (body(user(text("  "))), "non-empty"),
    "empty content": (body(Q, assistant(), Q), "must not be empty"),
    "content is a number": (body({"role": "user", "content": 3}), "string or a list"),
    "block is a text": (body(user("hi")), "Input should be an object"),
    "call by the user": (body(user(call("c"))), "cannot stand in a user message"),
    "result by the assistant": (body(Q, assistant(result("c")), Q), "cannot stand"),
    "input is a text": (
        body(Q, assistant({**call("c"), "input": "{}"}), user(result("c"))),
        "valid dictionary",
    ),
    "orphan call": (body(Q, assistant(call("c")), Q), "without `tool_result`"),
    "one of two answered": (
        body(Q, assistant(call("c"), call("d")), user(result("c"))),
        "immediately after: d",
    ),
    "unknown result": (body(user(result("c"))), "unexpected `tool_use_id`"),
    "late result": (
        body(Q, assistant(call("c")), user(result("c")), assistant(text("a")), user(result("c"))),
        "unexpected `tool_use_id`",
    ),
    "two results": (body(Q, assistant(call("c")), user(result("c"), result("c"))), "single"),
    "text before result": (
        body(Q, assistant(call("c")), user(text("wait"), result("c"))),
        "first",
    ),
    "same id twice": (
        body(Q, assistant(call("c")), user(result("c")), assistant(call("c")), user(result("c"))),
        "unique",
    ),
    "empty error": (body(Q, assistant(call("c")), user(result("c", "", is_error=True))), "empty"),
    "system first": (body({"role": "system", "content": "x"}, Q), "first message"),
    "system misplaced": (body(Q, {"role": "system", "content": "x"}, Q), "system message"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name):
    request, words = BAD[name]
    before = copy.deepcopy(request)
    with pytest.raises(ApiRefused) as caught:
        check_body(request)
    assert caught.value.status == 400
    assert caught.value.kind == "invalid_request_error"
    assert words in caught.value.message
    assert request == before


def test_what_must_pass():
    check_body(body(Q, assistant(call("c")), user(result("c"), text("steer"))))
    check_body(body(Q, assistant(call("c"), call("d")), user(result("c")), user(result("d"))))
    check_body(body(Q, assistant(text("a")), Q, {"role": "system", "content": "note"}))
    check_body({**body(Q, assistant(text("a"))), "model": "claude-haiku-4-5-20251001"})
    check_body(body(Q, tool_choice={"type": "auto", "disable_parallel_tool_use": True}))
    check_body(body(Q, assistant(call("c")), user(result("c", ""))))


async def test_a_body_that_is_no_json_has_a_number_and_stands_in_the_journal():
    async with serving(say()) as (server, client):
        answer = await raw(server, request_bytes(server, b"{no json"))
        assert b"The request body is not valid JSON" in answer
        assert b"req_rehearsal_000001" in answer
        await client.messages.create(**body(Q))
    first, second = server.journal.entries
    assert (first.number, first.status, first.body) == (1, 400, {})
    assert first.error == "The request body is not valid JSON"
    assert (second.number, second.status) == (2, 200)


async def test_the_sdk_sees_errors_in_the_api_s_shape():
    async with serving(say()) as (server, client):
        with pytest.raises(anthropic.BadRequestError) as orphan:
            await client.messages.create(**body(Q, assistant(call("c")), Q))
        with pytest.raises(anthropic.NotFoundError) as model:
            await client.messages.create(**{**body(Q), "model": "gpt-9"})
        with pytest.raises(anthropic.BadRequestError) as long:
            await client.messages.create(
                **{**body(user(text("x" * 900_000))), "model": "claude-haiku-4-5"}
            )
        marked = [text(f"{n}", cache_control={"type": "ephemeral"}) for n in range(5)]
        with pytest.raises(anthropic.BadRequestError) as marks:
            await client.messages.create(**body(user(*marked)))
    assert orphan.value.type == "invalid_request_error"
    assert orphan.value.request_id == "req_rehearsal_000001"
    assert model.value.message.startswith("Error code: 404")
    assert "prompt is too long" in str(long.value)
    assert "maximum of 4" in str(marks.value)
    assert [entry.status for entry in server.journal.entries] == [400, 404, 400, 400]


# --- thinking -----------------------------------------------------------------------------------

THINKS = load(
    """
name = "thinks"
[[answer]]
[[answer.round]]
thinking = "First thought."
text = "One."
[[answer.round.call]]
tool = "read"
input = { path = "a" }
[[answer.round]]
thinking = "Second thought."
text = "Two."
"""
)
MORE = {
    "tools": [tool("read"), tool("edit")],
    "system": [text("be brief")],
    "thinking": {"type": "adaptive", "display": "summarized"},
}


async def history(client, turns=2):
    """Return a conversation with thinking in every turn, as the client would resend it."""
    messages = [user(text("go"))]
    for words in ("results", "and now?", "and then?")[:turns]:
        message = await client.messages.create(**body(*messages, **MORE))
        messages.append(assistant(*[block.to_dict() for block in message.content]))
        calls = [block.id for block in message.content if block.type == "tool_use"]
        messages.append(user(*[result(ident) for ident in calls], text(words)))
    return messages


def edited(messages, change):
    copied = copy.deepcopy(messages)
    change(copied)
    return copied


def _drop_thinking(messages, number):
    kept = [block for block in messages[number]["content"] if block["type"] != "thinking"]
    messages[number]["content"] = kept


async def test_thinking_replayed_as_it_was_passes():
    async with serving(THINKS) as (server, client):
        messages = await history(client)
        await client.messages.create(**body(*messages, **MORE))
        marked = edited(
            messages,
            lambda m: m[-1]["content"][-1].update(cache_control={"type": "ephemeral"}),
        )
        await client.messages.create(**body(*marked, **MORE))
        lead = edited(messages, lambda m: _drop_thinking(m, 1))
        await client.messages.create(**body(*lead, **MORE))
        none = edited(lead, lambda m: _drop_thinking(m, 3))
        await client.messages.create(**body(*none, **MORE))
        shuffled = {**MORE, "tools": list(reversed(MORE["tools"]))}
        await client.messages.create(**body(*messages, **shuffled))
        await client.messages.create(**body(*messages, **MORE, output_config={"effort": "low"}))
    assert all(entry.status == 200 for entry in server.journal.entries)


CHANGES = {
    "its text": lambda m: m[1]["content"][0].update(thinking="Another thought."),
    "its signature": lambda m: m[1]["content"][0].update(signature="AAAA"),
    "the prompt before it": lambda m: m[0]["content"][0].update(text="come"),
    "a result before it": lambda m: m[2]["content"][0].update(content="other"),
    "a copy of it at another place": lambda m: m.extend([copy.deepcopy(m[3]), user(text("x"))]),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_modified_thinking_is_refused(name):
    async with serving(THINKS) as (_, client):
        messages = edited(await history(client), CHANGES[name])
        with pytest.raises(anthropic.BadRequestError) as caught:
            await client.messages.create(**body(*messages, **MORE))
    assert "messages." in str(caught.value)


async def test_removing_thinking_in_the_middle_is_refused():
    async with serving(THINKS) as (_, client):
        messages = await history(client, 3)
        await client.messages.create(**body(*messages, **MORE))
        cut = edited(messages, lambda m: _drop_thinking(m, 3))
        with pytest.raises(anthropic.BadRequestError, match="removed"):
            await client.messages.create(**body(*cut, **MORE))


@pytest.mark.parametrize("change", [{"system": [text("be long")]}, {"tools": [tool("read")]}])
async def test_a_changed_head_breaks_thinking_too(change):
    async with serving(THINKS) as (_, client):
        messages = await history(client)
        with pytest.raises(anthropic.BadRequestError):
            await client.messages.create(**body(*messages, **{**MORE, **change}))


async def test_the_other_modes_record_or_drop():
    for mode in ("recorded", "drop_block"):
        async with serving(THINKS, prefix_check=mode) as (server, client):
            whole = await history(client)
            broken = edited(whole, CHANGES["its text"])
            good = await client.messages.count_tokens(
                model="claude-opus-5-5", messages=whole, **MORE
            )
            told = await client.messages.create(**body(*broken, **MORE))
            assert server.journal.entries[-1].notes
        total = told.usage.input_tokens
        assert (total < good.input_tokens - 20) is (mode == "drop_block")


async def test_another_model_s_thinking_is_left_out_in_silence():
    async with serving(THINKS) as (server, client):
        messages = await history(client)
        other = {**body(*messages, **MORE), "model": "claude-sonnet-5-5"}
        await client.messages.create(**other)
        assert len(server.journal.entries[-1].notes) == 2


async def test_a_saved_session_stays_valid_on_a_new_server():
    async with serving(THINKS) as (_, client):
        messages = await history(client)
    async with serving(THINKS) as (server, client):
        await client.messages.create(**body(*messages, **MORE))
        assert server.journal.entries[0].notes == []
