"""The real SDK talks to the server: text, thinking, parallel tools, counting, models."""

from __future__ import annotations

import asyncio
import json

import pytest

from forkdeck.providers.rehearsal.scenario import load
from tests.clocks import ManualClock
from tests.rehearsal.helpers import (
    MODEL,
    assistant,
    body,
    raw,
    request_bytes,
    result,
    say,
    serving,
    text,
    tool,
    until,
    user,
)

TWO_ROUNDS = load(
    """
name = "two rounds"
[[answer]]
match = "look"
[[answer.round]]
thinking = "I need both files."
text = "I read two files."
[[answer.round.call]]
tool = "read"
as = "first"
input = { path = "a.py" }
[[answer.round.call]]
tool = "read"
as = "second"
input = { path = "b.py", limit = 3 }
[[answer.round]]
text = "a has {{first # line}} lines; b starts with {{second ~ ^(\\\\w+)}}; {{third}}."
"""
)
ADAPTIVE = {"type": "adaptive", "display": "summarized"}


async def test_a_plain_answer_without_streaming():
    async with serving(say()) as (server, client):
        message = await client.messages.create(**body(user(text("hi"))))
    assert [block.text for block in message.content] == ["Hello there."]
    assert message.stop_reason == "end_turn"
    assert message.usage.input_tokens == server.journal.entries[0].usage["input_tokens"] > 0
    assert message.usage.output_tokens == 3  # 12 characters
    assert message._request_id == "req_rehearsal_000001"


async def test_streaming_gives_the_same_message_and_usage_as_not_streaming():
    async with serving(say("One two three four five.")) as (_, client):
        whole = await client.messages.create(**body(user(text("hi"))))
        async with client.messages.stream(**body(user(text("hi")))) as stream:
            parts = [part async for part in stream.text_stream]
            streamed = await stream.get_final_message()
    assert "".join(parts) == whole.content[0].text == "One two three four five."
    assert len(parts) > 1
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    assert streamed.usage.input_tokens == whole.usage.input_tokens


async def test_thinking_parallel_calls_and_templates_over_two_rounds():
    tools = [tool("read")]
    async with serving(TWO_ROUNDS) as (server, client):
        first = user(text("have a look"))
        async with client.messages.stream(**body(first, tools=tools, thinking=ADAPTIVE)) as stream:
            message = await stream.get_final_message()
        kinds = [block.type for block in message.content]
        assert kinds == ["thinking", "text", "tool_use", "tool_use"]
        assert message.stop_reason == "tool_use"
        assert message.content[0].thinking == "I need both files."
        assert [block.input for block in message.content[2:]] == [
            {"path": "a.py"},
            {"path": "b.py", "limit": 3},
        ]
        reply = assistant(*[block.to_dict() for block in message.content])
        answers = user(
            result(message.content[2].id, "line 1\nline 2"), result(message.content[3].id, "import")
        )
        last = await client.messages.create(
            **body(first, reply, answers, tools=tools, thinking=ADAPTIVE)
        )
    assert last.content[0].text == "a has 2 lines; b starts with import; (not found)."
    assert [entry.source for entry in server.journal.entries] == [
        "answer 1, round 1",
        "answer 1, round 2",
    ]


async def test_thinking_is_omitted_unless_it_is_asked_for():
    async with serving(TWO_ROUNDS) as (_, client):
        message = await client.messages.create(
            **body(user(text("look")), thinking={"type": "adaptive"})
        )
        bare = await client.messages.create(**body(user(text("look"))))
    assert message.content[0].type == "thinking"
    assert message.content[0].thinking == ""
    assert message.content[0].signature
    assert bare.content[0].type == "text"


async def test_max_tokens_cuts_text_and_leaves_a_call_without_input():
    async with serving(TWO_ROUNDS) as (_, client):
        small = body(user(text("look")), tools=[tool("read")])
        cut = await client.messages.create(**{**small, "max_tokens": 2})
        half = await client.messages.create(**{**small, "max_tokens": 10})
    assert (cut.stop_reason, cut.content[0].text) == ("max_tokens", "I read t")
    assert cut.usage.output_tokens == 2
    assert half.stop_reason == "max_tokens"
    assert half.content[-1].type == "tool_use"
    assert half.content[-1].input == {}


async def test_prewarming_writes_the_cache_and_says_nothing():
    warm = body(user(text("x" * 4000, cache_control={"type": "ephemeral"})))
    async with serving(say()) as (_, client):
        first = await client.messages.create(**{**warm, "max_tokens": 0})
        second = await client.messages.create(**warm)
    assert (first.content, first.stop_reason, first.usage.output_tokens) == ([], "max_tokens", 0)
    assert first.usage.cache_creation_input_tokens > 1000
    assert second.usage.cache_read_input_tokens == first.usage.cache_creation_input_tokens


async def test_counting_tokens_and_listing_models():
    async with serving(say()) as (server, client):
        counted = await client.messages.count_tokens(
            model=MODEL, messages=[user(text("x" * 400))], system="be brief"
        )
        message = await client.messages.create(**body(user(text("x" * 400)), system="be brief"))
        listed = await client.models.list()
        one = await client.models.retrieve(MODEL)
    assert counted.input_tokens == message.usage.input_tokens
    # {"type":"text","text":"xxx"} has 26 characters around the text; the system block 26 + 8.
    assert counted.input_tokens == -(-426 // 4) + -(-34 // 4)
    assert MODEL in [model.id for model in listed.data]
    assert (one.max_input_tokens, one.lifecycle) == (1_000_000, "active")
    assert len(server.journal.entries) == 1


async def test_the_rate_and_the_first_token_follow_the_script():
    clock = ManualClock()
    words = "word " * 40  # 200 characters, 50 tokens
    script = load(
        f'name="p"\n[pace]\nttft_ms = 500\nrate = 25\n[[answer]]\n[[answer.round]]\ntext="{words}"'
    )
    async with serving(script, clock=clock, speed=1) as (server, client):
        async with client.messages.stream(**body(user(text("go")))) as stream:
            await stream.get_final_message()
        entry = server.journal.entries[0]
    assert entry.first_byte_ms == 500
    assert entry.ended_ms == pytest.approx(500 + 50 / 25 * 1000, abs=60)


async def test_the_speed_scales_the_script():
    clock = ManualClock()
    script = load('name="p"\n[[answer]]\n[[answer.round]]\nttft_ms = 800\ntext="hi"')
    async with serving(script, clock=clock, speed=4) as (server, client):
        await client.messages.create(**body(user(text("go"))))
        assert server.journal.entries[0].first_byte_ms == pytest.approx(200, abs=20)


async def test_many_requests_at_once_on_kept_connections():
    async with serving(say()) as (server, client):
        made = [client.messages.create(**body(user(text(f"n {n}")))) for n in range(40)]
        answers = await asyncio.gather(*made)
        again = await client.messages.create(**body(user(text("once more"))))
    assert len({message.id for message in [*answers, again]}) == 41
    assert len(server.journal.entries) == 41


async def test_ids_of_calls_are_unique_and_the_same_when_a_request_is_resent():
    tools = [tool("read")]
    async with serving(TWO_ROUNDS) as (_, client):
        one = await client.messages.create(**body(user(text("look")), tools=tools))
        same = await client.messages.create(**body(user(text("look")), tools=tools))
        other = await client.messages.create(**body(user(text("look there")), tools=tools))
    ids = [[b.id for b in m.content if b.type == "tool_use"] for m in (one, same, other)]
    assert ids[0] == ids[1]
    assert len({*ids[0], *ids[2]}) == 4


async def test_the_journal_is_served_with_the_token_and_holds_no_token():
    async with serving(say()) as (server, client):
        await client.messages.create(**body(user(text("hi"))))
        answer = await raw(
            server, request_bytes(server, b"", path="/__forkdeck/journal", method="GET")
        )
    head, _, payload = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    entry = json.loads(payload)["requests"][0]
    assert entry["body"]["messages"][0]["content"][0]["text"] == "hi"
    assert entry["usage"]["input_tokens"] > 0
    assert entry["levels"]["messages"]
    assert server.token.encode() not in payload


async def test_a_client_that_leaves_is_noted_and_writes_no_cache():
    script = load('name="slow"\n[[answer]]\n[[answer.round]]\nttft_ms = 60000\ntext="hi"')
    marked = body(user(text("x" * 4000, cache_control={"type": "ephemeral"})))
    async with serving(script, speed=1) as (server, client):
        task = asyncio.create_task(client.messages.create(**marked, stream=True))
        await until(lambda: server.journal.entries)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: server.journal.entries[0].aborted)
        server._house.speed = 0
        again = await client.messages.create(**marked)
    assert again.usage.cache_read_input_tokens == 0
