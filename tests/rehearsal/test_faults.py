"""Every fault, and what the SDK's client sees of it."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import anthropic
import httpx2
import pytest

from forkdeck.errors import ConfigError
from forkdeck.model.raw import from_raw
from forkdeck.providers.accumulate import Accumulator
from forkdeck.providers.rehearsal.faults import KINDS, Fault
from forkdeck.providers.rehearsal.scenario import load
from tests.clocks import ManualClock
from tests.rehearsal.helpers import (
    body,
    raw,
    request_bytes,
    say,
    serving,
    text,
    tool,
    until,
    user,
)

REQUEST = body(user(text("go")))
TALKS = load(
    """
name = "talks"
[[answer]]
[[answer.round]]
thinking = "A thought."
text = "One two three four five six seven eight nine ten eleven twelve."
[[answer.round.call]]
tool = "read"
input = { path = "a/long/path/to/a/file/that/is/streamed/in/pieces.py" }
"""
)


async def events(client, request=REQUEST):
    """Return the raw events of a stream, as far as it comes, and what ended it."""
    seen = []
    try:
        async with await client.messages.create(**request, stream=True) as stream:
            async for event in stream:
                seen.append(event)
    except Exception as error:  # noqa: BLE001 - what the SDK lets out bare is the subject
        return seen, error
    return seen, None


@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [
        ("rate_limited", 429, anthropic.RateLimitError),
        ("spend_limit", 429, anthropic.RateLimitError),
        ("overloaded", 529, anthropic.InternalServerError),
        ("server_error", 500, anthropic.InternalServerError),
        ("html_502", 502, anthropic.InternalServerError),
        ("unauthorized", 401, anthropic.AuthenticationError),
        ("forbidden", 403, anthropic.PermissionDeniedError),
        ("bad_request", 400, anthropic.BadRequestError),
        ("too_large", 413, anthropic.APIStatusError),
        ("context_exceeded", 400, anthropic.BadRequestError),
    ],
)
async def test_refusals(kind, status, error):
    async with serving(say()) as (server, client):
        server.inject(kind)
        with pytest.raises(error) as caught:
            await client.messages.create(**REQUEST)
        assert caught.value.status_code == status
        assert (await client.messages.create(**REQUEST)).content[0].text == "Hello there."
        assert [entry.fault for entry in server.journal.entries] == [kind, ""]
    if kind == "html_502":
        assert caught.value.type is None
        assert "<html>" in str(caught.value.body)
    if kind == "context_exceeded":
        assert "prompt is too long" in str(caught.value)


async def test_retry_after_is_there_only_when_it_is_set():
    async with serving(say()) as (server, client):
        for fault, header in (
            (Fault("rate_limited", retry_after_s=18), "18"),
            ("spend_limit", None),
        ):
            server.inject(fault)
            with pytest.raises(anthropic.RateLimitError) as caught:
                await client.messages.create(**REQUEST)
            assert caught.value.response.headers.get("retry-after") == header


async def test_a_reset_before_the_answer():
    async with serving(say()) as (server, client):
        server.inject("reset_before")
        with pytest.raises(anthropic.APIConnectionError):
            await client.messages.create(**REQUEST)


async def test_an_error_event_in_mid_stream():
    async with serving(TALKS) as (server, client):
        server.inject("error_event")
        seen, error = await events(client)
    assert isinstance(error, anthropic.APIStatusError)
    assert (error.status_code, error.type) == (200, "overloaded_error")
    assert seen[0].type == "message_start"


async def test_a_reset_in_mid_stream():
    async with serving(TALKS) as (server, client):
        server.inject("reset")
        seen, error = await events(client)
    assert isinstance(error, httpx2.TransportError)
    assert seen[0].type == "message_start"


async def test_a_clean_end_raises_nothing_and_has_no_stop():
    async with serving(TALKS) as (server, client):
        server.inject(Fault("clean_end", after=6))
        seen, error = await events(client)
    assert error is None
    assert "message_stop" not in [event.type for event in seen]


@pytest.mark.parametrize(("kind", "whole"), [("half_json", False), ("half_json_stop", True)])
async def test_half_a_tool_call(kind, whole):
    request = body(user(text("go")), tools=[tool("read")])
    async with serving(TALKS) as (server, client):
        server.inject(kind)
        seen, error = await events(client, request)
    parts = [
        e.delta.partial_json
        for e in seen
        if getattr(e, "delta", None) is not None
        and getattr(e.delta, "type", "") == "input_json_delta"
    ]
    with pytest.raises(json.JSONDecodeError):
        json.loads("".join(parts))
    assert "".join(parts).startswith('{"pa')
    assert error is None
    assert (seen[-1].type == "message_stop") is whole


async def test_a_stall_lasts_until_the_client_gives_up():
    async with serving(TALKS) as (server, client):
        server.inject(Fault("stall", after=5, seconds=600))
        began = time.monotonic()
        seen, error = await events(client, {**REQUEST, "timeout": 0.3})
        await until(lambda: server.journal.entries[0].aborted)
    assert isinstance(error, httpx2.ReadTimeout)
    assert len(seen) == 4  # five events, but the SDK drops the ping
    assert time.monotonic() - began < 5


async def test_a_stall_that_ends_goes_on():
    async with serving(TALKS) as (server, client):
        server.inject(Fault("stall", after=5, seconds=0.05))
        seen, error = await events(client)
    assert error is None
    assert seen[-1].type == "message_stop"


async def test_slow_chunks_arrive_all_the_same():
    clock = ManualClock()
    async with serving(TALKS, clock=clock) as (server, client):
        server.inject(Fault("slow_chunks", after=3, seconds=30))
        seen, error = await events(client)
        slept = [seconds for seconds in clock.slept if seconds == 30]
    assert error is None
    assert seen[-1].type == "message_stop"
    # The SDK drops the ping: one event more was written than it shows.
    assert len(slept) == len(seen) + 1 - 3


async def test_a_slow_first_byte():
    async with serving(say()) as (server, client):
        server.inject(Fault("slow_first_byte", seconds=600))
        with pytest.raises(anthropic.APITimeoutError):
            await client.messages.create(**REQUEST, timeout=0.2)


async def test_a_malformed_data_line():
    async with serving(TALKS) as (server, client):
        server.inject("malformed_line")
        _, error = await events(client)
    assert isinstance(error, json.JSONDecodeError)


async def test_missing_usage_and_null_cache_fields():
    async with serving(TALKS) as (server, client):
        server.inject("missing_usage")
        bare, _ = await events(client)
        server.inject("null_cache")
        null, _ = await events(client)
    assert getattr(bare[0].message, "usage", None) is None
    assert null[0].message.usage.cache_read_input_tokens is None
    assert null[0].message.usage.input_tokens > 0


async def test_who_counts_no_cache_counts_the_whole_prompt_as_input():
    long = {**text("word " * 20_000), "cache_control": {"type": "ephemeral"}}
    request = body(user(long))
    async with serving(TALKS) as (server, client):
        whole, _ = await events(client, request)
        server.inject("null_cache")
        null, _ = await events(client, request)
    usage = whole[0].message.usage
    parts = (usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
    assert null[0].message.usage.input_tokens == usage.input_tokens + sum(parts) > 0
    assert parts != (0, 0)


async def test_unknown_events_keep_the_known_ones_whole():
    async with serving(TALKS) as (server, client):
        server.inject("unknown_events")
        seen, error = await events(client)
    assert error is None
    kinds = [event.type for event in seen]
    assert "content_block_start" in kinds
    assert kinds[-1] == "message_stop"
    starts = [event.index for event in seen if event.type == "content_block_start"]
    assert starts == sorted(set(starts))


async def test_a_block_of_an_unknown_kind_is_taken_back_as_it_was_sent():
    """Its own history goes on, signed thinking behind that block too; any other is refused."""
    asked = body(user(text("go")), thinking={"type": "adaptive", "display": "summarized"})
    async with serving(TALKS) as (server, client):
        server.inject("unknown_events")
        sent = await raw(
            server, request_bytes(server, json.dumps({**asked, "stream": True}).encode())
        )
        answer = Accumulator()
        for line in re.findall(rb"^data: (.*)$", sent, re.MULTILINE):
            answer.feed(json.loads(line))
        history = from_raw(answer.completed().message)
        kinds = [block["type"] for block in history["content"]]
        assert kinds == ["hologram", "thinking", "text", "tool_use"]
        result = {"type": "tool_result", "tool_use_id": history["content"][-1]["id"]}
        again = {**asked, "messages": [*asked["messages"], history, user(result)]}
        assert (await client.messages.create(**again)).content
        changed = {**history["content"][0], "scene": "other"}
        history["content"][0] = changed
        with pytest.raises(anthropic.BadRequestError, match="cannot stand in an assistant message"):
            await client.messages.create(**again)


async def test_unnamed_records_are_no_stream_to_the_sdk():
    async with serving(TALKS) as (server, client):
        server.inject("unnamed_events")
        seen, error = await events(client)
    assert (seen, error) == ([], None)


async def test_thinking_without_a_signature():
    asked = body(user(text("go")), thinking={"type": "adaptive", "display": "summarized"})
    async with serving(TALKS) as (server, client):
        server.inject("unsigned_thinking")
        async with client.messages.stream(**asked) as stream:
            message = await stream.get_final_message()
    assert (message.content[0].thinking, message.content[0].signature) == ("A thought.", "")


async def test_a_stream_without_its_start():
    async with serving(TALKS) as (server, client):
        server.inject("no_message_start")
        seen, _ = await events(client)
    assert "message_start" not in [event.type for event in seen]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("unknown_stop_reason", "something_new"),
        ("refusal", "refusal"),
        ("context_stop", "model_context_window_exceeded"),
        ("pause_turn", "pause_turn"),
    ],
)
async def test_stop_reasons(kind, reason):
    async with serving(TALKS) as (server, client):
        server.inject(kind)
        async with client.messages.stream(**REQUEST) as stream:
            message = await stream.get_final_message()
    assert message.stop_reason == reason
    if kind == "refusal":
        assert message.stop_details.type == "refusal"
        assert len(message.content[0].text) < 30


def test_every_kind_is_tried_here():
    source = Path(__file__).read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f'"{kind}"' not in source] == []


async def test_faults_by_request_number_and_by_scenario():
    script = load(
        """
name = "faulty"
[[fault]]
request = 2
kind = "overloaded"
[[answer]]
match = "limited"
[[answer.round]]
text = "At last."
fault = { kind = "rate_limited", retry_after_s = 2, times = 2 }
[[answer]]
[[answer.round]]
text = "Fine."
"""
    )
    limited, other = body(user(text("limited"))), body(user(text("limited too")))
    async with serving(script) as (_, client):

        async def ask(request):
            try:
                return (await client.messages.create(**request)).content[0].text
            except anthropic.APIStatusError as error:
                return error.status_code

        told = [await ask(request) for request in (REQUEST, REQUEST, limited, other, limited)]
        told += [await ask(limited), await ask(other), await ask(other)]
    # Equal requests are counted together, different ones apart.
    assert told == ["Fine.", 529, 429, 429, 429, "At last.", 429, "At last."]


def test_a_wrong_fault_is_named():
    for wrong in ("magic", {"kind": "reset", "x": 1}, {"kind": "reset", "after": "no"}, {}):
        with pytest.raises(ConfigError, match="here"):
            Fault.parse(wrong, "here")


async def test_a_fault_s_bytes_on_the_wire():
    """The raw stream: a clean end closes the chunks in good order."""
    async with serving(say()) as (server, _):
        server.inject(Fault("clean_end", after=3))
        payload = json.dumps({**REQUEST, "stream": True}).encode()
        answer = await raw(server, request_bytes(server, payload))
    assert answer.endswith(b"0\r\n\r\n")
    assert b"message_stop" not in answer
    assert answer.count(b"event: ") == 3
