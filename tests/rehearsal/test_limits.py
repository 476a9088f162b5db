"""Rate limits, and faults of one run: by hand-made clock, with the SDK's own client."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import pytest

from forkdeck.errors import ConfigError, RateLimited
from forkdeck.model.stream import Completed, ModelRequest
from forkdeck.providers.client import AnthropicProvider
from forkdeck.providers.credentials import Credentials
from forkdeck.providers.gate import RateGate
from forkdeck.providers.rehearsal.faults import Fault, Frame, reshape
from forkdeck.providers.rehearsal.limits import Limits, RateLimits
from forkdeck.providers.rehearsal.scenario import load
from tests.clocks import ManualClock
from tests.rehearsal.helpers import MARK, body, say, serving, text, user

REQUEST = body(user(text("go")))


def headers_of(response: Any, name: str) -> dict[str, str]:
    stem = f"anthropic-ratelimit-{name}-"
    return {key.removeprefix(stem): v for key, v in response.headers.items() if stem in key}


def test_requests_refill_all_the_time():
    clock = ManualClock()
    limits = RateLimits(Limits(requests=6), clock)
    assert [limits.admit(1) for _ in range(6)] == [None] * 6
    refusal = limits.admit(1)
    assert refusal is not None
    assert (refusal.status, refusal.headers["retry-after"]) == (429, "10")
    clock.ms = 9_999
    again = limits.admit(1)
    assert again is not None
    assert again.headers["retry-after"] == "1"
    clock.ms = 10_000
    assert limits.admit(1) is None
    assert limits.admit(1) is not None
    clock.ms = 10_000_000
    assert [limits.admit(1) is None for _ in range(7)] == [True] * 6 + [False]


def test_a_refused_request_takes_nothing_from_either_bucket():
    clock = ManualClock()
    limits = RateLimits(Limits(requests=10, input_tokens=600), clock)
    assert limits.admit(500) is None
    refusal = limits.admit(200)
    assert refusal is not None
    assert "600 input tokens per minute" in refusal.message
    assert refusal.headers["retry-after"] == "10"
    assert refusal.headers["anthropic-ratelimit-requests-remaining"] == "9"
    assert refusal.headers["anthropic-ratelimit-input-tokens-remaining"] == "100"
    assert refusal.headers["anthropic-ratelimit-input-tokens-limit"] == "600"
    # 500 tokens at 10 a second: full again after 50 s.
    assert refusal.headers["anthropic-ratelimit-input-tokens-reset"] == "2026-11-30T20:22:50Z"
    clock.ms = 10_000
    assert limits.admit(200) is None


def test_a_request_larger_than_the_bucket_passes_when_it_is_full_and_leaves_a_debt():
    clock = ManualClock()
    limits = RateLimits(Limits(input_tokens=600), clock)
    assert limits.admit(1200) is None
    assert limits.headers()["anthropic-ratelimit-input-tokens-remaining"] == "0"
    refusal = limits.admit(1)
    assert refusal is not None
    assert refusal.headers["retry-after"] == "61"


def test_without_limits_nothing_is_counted_and_nothing_is_told():
    limits = RateLimits(Limits(), ManualClock())
    assert [limits.admit(10**9) for _ in range(50)] == [None] * 50
    assert limits.headers() == {}


async def test_reads_from_the_cache_are_free_on_the_wire():
    clock = ManualClock()
    long = text("word " * 4_000, cache_control=MARK)
    asked = body(user(long))
    async with serving(say(), clock=clock, limits=Limits(input_tokens=6_000)) as (server, client):
        first = await client.messages.with_raw_response.create(**asked)
        written = server.journal.entries[0].usage["cache_creation_input_tokens"]
        assert written > 4_500
        left = int(headers_of(first, "input-tokens")["remaining"])
        assert left == 6_000 - written - server.journal.entries[0].usage["input_tokens"]
        for _ in range(3):
            later = await client.messages.with_raw_response.create(**asked)
            fresh = server.journal.entries[-1].usage["input_tokens"]
            left -= fresh
            assert int(headers_of(later, "input-tokens")["remaining"]) == left
        other = body(user(text("other " * 4_000, cache_control=MARK)))
        with pytest.raises(anthropic.RateLimitError) as refused:
            await client.messages.create(**other)
        wait = int(refused.value.response.headers["retry-after"])
        assert server.journal.entries[-1].status == 429
        clock.ms += wait * 1000
        await client.messages.create(**other)
        assert headers_of(first, "requests") == {}


async def test_limits_from_a_scenario():
    script = load("[limits]\nrequests_per_minute = 1\n[[answer]]\n[[answer.round]]\ntext = 'A'\n")
    async with serving(script) as (_, client):
        await client.messages.create(**REQUEST)
        with pytest.raises(anthropic.RateLimitError, match="1 requests per minute"):
            await client.messages.create(**REQUEST)


async def test_the_gate_brings_a_burst_through_the_limits():
    """Eight runs at three requests a minute's worth: nobody fails, nobody comes too early."""
    clock = ManualClock()
    async with serving(say(), clock=clock, limits=Limits(requests=3)) as (server, _):
        provider = AnthropicProvider(Credentials.for_rehearsal(server.base_url, server.token))
        gate = RateGate(clock)

        async def run(name: str) -> str:
            asked = ModelRequest(run=name, body=body(user(text(f"go {name}"))))
            for attempt in range(1, 50):
                await gate.enter(name, lambda reason, wait_ms: None)
                try:
                    parts = [part async for part in provider.stream(asked)]
                except RateLimited as error:
                    told = gate.wait_after(error, attempt)
                    gate.leave(name)
                    if told is None or told[1] is not None:
                        raise
                    continue
                gate.succeeded()
                gate.leave(name)
                assert isinstance(parts[-1], Completed)
                return parts[-1].stop_reason
            raise AssertionError("never")

        ended = await asyncio.gather(*(run(f"f{n}") for n in range(8)))
        assert ended == ["end_turn"] * 8
        refused = [entry for entry in server.journal.entries if entry.status == 429]
        assert 1 <= len(refused) <= 8 * 3
        await provider.close()


def fork_prompt(handle: str, name: str) -> dict[str, Any]:
    words = f'You are fork {handle} ("{name}") of a conversation.\n\nTask:\nLook.\n\nLimits: none'
    return body(user(text("go"), text(words)))


async def test_faults_of_one_run_by_the_number_of_its_own_request():
    script = load(
        """
[[fault]]
run = "perf"
request = 2
times = 2
kind = "overloaded"
[[fault]]
run = "f3"
request = 1
kind = "bad_request"
[[fault]]
run = "parent"
request = 2
kind = "server_error"
[[answer]]
[[answer.round]]
text = "Fine."
"""
    )
    async with serving(script) as (server, client):

        async def ask(request: dict[str, Any]) -> Any:
            try:
                return (await client.messages.create(**request)).content[0].text
            except anthropic.APIStatusError as error:
                return error.status_code

        perf, third = fork_prompt("f2", "perf"), fork_prompt("f3", "other")
        order = [REQUEST, perf, third, perf, REQUEST, perf, REQUEST, third, perf]
        told = [await ask(request) for request in order]
        assert told == ["Fine.", "Fine.", 400, 529, 500, 529, "Fine.", "Fine.", "Fine."]
        numbers = [entry.run_number for entry in server.journal.of("f2")]
        assert numbers == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("[[fault]]\nrun = 3\nrequest = 1\nkind = 'reset'\n", "run"),
        ("[[fault]]\nrun = 'f1'\nkind = 'reset'\n", "number"),
        ("[[fault]]\nrun = 'f1'\nrequest = true\nkind = 'reset'\n", "number"),
        ("[[fault]]\nrun = 'f1'\nrequest = 1\nkind = 'magic'\n", "of f1"),
        ("[limits]\nrequests_per_minute = 0\n", "requests_per_minute"),
        ("[limits]\ninput_tokens_per_minute = 1.5\n", "input_tokens_per_minute"),
        ("[limits]\nhours = 1\n", "hours"),
    ],
)
def test_wrong_limits_and_faults_are_named(wrong, named):
    with pytest.raises(ConfigError, match=named):
        load(wrong + "\n")


def test_slow_chunks_put_a_silence_before_every_later_event():
    frames = [Frame(0, {"type": str(number)}) for number in range(4)]
    slow = reshape(Fault("slow_chunks", after=2, seconds=0.5), frames)
    order = [frame.act or (frame.event or {})["type"] for frame in slow]
    assert order == ["0", "1", "stall", "2", "stall", "3"]
    assert {frame.seconds for frame in slow if frame.act} == {0.5}
    assert reshape(Fault("slow_chunks", after=0, seconds=1), frames[:1]) == frames[:1]
