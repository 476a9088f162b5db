"""The cache against the documented examples; time is a manual clock."""

from __future__ import annotations

import asyncio

import pytest

from forkdeck.providers.rehearsal.cache import PromptCache
from forkdeck.providers.rehearsal.errors import ApiRefused
from forkdeck.providers.rehearsal.positions import positions
from forkdeck.providers.rehearsal.scenario import load
from tests.clocks import ManualClock
from tests.rehearsal.helpers import (
    MARK,
    assistant,
    body,
    call,
    result,
    say,
    serving,
    text,
    tool,
    user,
)


def blocks(count, marks, ttl=None, size=400):
    mark = MARK if ttl is None else {**MARK, "ttl": ttl}
    made = []
    for number in range(count):
        more = {"cache_control": mark} if number in marks else {}
        made.append(text(f"block{number} " + "x" * size, **more))
    return body(user(*made))


class Bench:
    """A cache with its clock, without a server."""

    def __init__(self, minimum=512, **more):
        self.clock = ManualClock()
        self.cache = PromptCache(self.clock, **more)
        self.minimum = minimum

    def plan(self, request, **more):
        return self.cache.plan(positions(request, **more), self.minimum)

    def go(self, request, **more):
        plan = self.plan(request, **more)
        self.cache.commit(plan)
        return plan

    def at(self, seconds):
        self.clock.ms = round(seconds * 1000)


def test_lookback_example_of_10_15_and_35_blocks():
    bench = Bench()
    first = bench.go(blocks(10, {9}))
    second = bench.go(blocks(15, {14}))
    assert (first.read, second.read) == (0, first.total)
    assert bench.plan(blocks(35, {34})).read == 0
    assert bench.plan(blocks(35, {14, 34})).read == second.total


def test_the_20th_position_is_seen_and_the_21st_is_not():
    bench = Bench()
    bench.go(blocks(15, {14}))
    assert bench.plan(blocks(34, {33})).read > 0  # 33 - 14 + 1 = 20
    assert bench.plan(blocks(35, {34})).read == 0


def test_a_mark_on_a_changing_block_is_never_read():
    bench = Bench()
    for turn in range(3):
        request = blocks(10, set())
        request["messages"][0]["content"].append(text(f"now {turn}" * 99, cache_control=MARK))
        assert bench.go(request).read == 0


def test_usage_adds_up_and_counts_every_kind_once():
    bench = Bench()
    bench.go(blocks(10, {9}))
    plan = bench.plan(blocks(14, {9, 12}))
    assert plan.read + plan.write_5m + plan.write_1h + plan.fresh == plan.total
    assert min(plan.read, plan.write_5m, plan.fresh) > 0
    assert plan.write_1h == 0
    assert plan.usage(7)["cache_creation"]["ephemeral_5m_input_tokens"] == plan.write_5m
    again = Bench().plan(blocks(10, {9}))
    assert again.total == plan.read


def test_ttl_4_59_reads_and_refreshes_and_5_01_misses():
    bench = Bench()
    bench.go(blocks(10, {9}))
    bench.at(299)
    assert bench.go(blocks(10, {9})).read > 0
    bench.at(299 + 299)
    assert bench.plan(blocks(10, {9})).read > 0
    bench.at(299 + 301)
    assert bench.plan(blocks(10, {9})).read == 0


def test_an_hour_lives_an_hour():
    bench = Bench()
    wrote = bench.go(blocks(10, {9}, ttl="1h"))
    assert (wrote.write_1h, wrote.write_5m) == (wrote.total, 0)
    bench.at(3599)
    assert bench.plan(blocks(10, {9}, ttl="1h")).read > 0
    bench.at(3601)
    assert bench.plan(blocks(10, {9}, ttl="1h")).read == 0


def test_life_counts_from_the_start_of_the_request_not_from_its_first_byte():
    for probe, hit in ((299, True), (301, False)):
        bench = Bench()
        plan = bench.plan(blocks(10, {9}))
        bench.at(240)  # a four-minute wait leaves one minute
        bench.cache.commit(plan)
        bench.at(probe)
        assert (bench.plan(blocks(10, {9})).read > 0) is hit


def test_two_cold_requests_at_once_both_write():
    bench = Bench()
    one, two = bench.plan(blocks(10, {9})), bench.plan(blocks(10, {9}))
    assert one.read == two.read == 0
    assert one.write_5m == two.write_5m == one.total
    bench.at(2)
    assert bench.plan(blocks(10, {9})).read == 0
    bench.cache.commit(one)
    assert bench.plan(blocks(10, {9})).read == one.total


def test_a_request_that_never_starts_refreshes_nothing():
    """A look-up for a request that then failed must not lengthen an entry's life."""
    bench = Bench()
    bench.go(blocks(10, {9}))
    bench.at(200)
    assert bench.plan(blocks(10, {9})).read > 0
    bench.at(400)
    assert bench.plan(blocks(10, {9})).read == 0


def test_a_slow_second_writer_never_shortens_a_life():
    """Its start is older than the last read; expiry and availability stay as they were."""
    bench = Bench()
    fast, slow = bench.plan(blocks(10, {9})), bench.plan(blocks(10, {9}))
    bench.at(1)
    bench.cache.commit(fast)
    bench.at(100)
    bench.go(blocks(10, {9}))  # lives until 400 now
    bench.at(101)
    bench.cache.commit(slow)
    assert bench.plan(blocks(10, {9})).read > 0
    bench.at(399)
    assert bench.plan(blocks(10, {9})).read > 0


@pytest.mark.parametrize(("minimum", "cached"), [(512, True), (1024, True), (4096, False)])
def test_below_the_minimum_nothing_is_cached_and_nothing_is_said(minimum, cached):
    bench = Bench(minimum)
    plan = bench.go(blocks(10, {9}))  # about 1,080 tokens
    assert 1024 < plan.total < 1200
    assert (plan.write_5m > 0) is cached
    assert (bench.plan(blocks(10, {9})).read > 0) is cached


def test_runs_of_calls_and_results_collapse():
    first = body(user(text("q" * 4000, cache_control=MARK)))
    calls = [call(f"c{n}") for n in range(15)]
    results = [result(f"c{n}") for n in range(14)] + [result("c14", cache_control=MARK)]
    long = body(user(text("q" * 4000)), assistant(*calls), user(*results))
    bench, strict = Bench(), Bench(runs_collapse=False)
    for each in (bench, strict):
        each.go(first)
    assert bench.plan(long).read > 0
    assert strict.plan(long).read == 0


def test_key_order_is_part_of_the_prefix_and_marks_are_not():
    one = body(user(text("x" * 4000, cache_control=MARK)))
    swapped = body({"role": "user", "content": [{"text": "x" * 4000, "type": "text"}]})
    swapped["messages"][0]["content"].append(text("more", cache_control=MARK))
    moved = body(user(text("x" * 4000), text("more", cache_control=MARK)))
    bench = Bench()
    bench.go(one)
    assert bench.plan(swapped).read == 0
    assert bench.plan(moved).read > 0


def test_a_string_counts_as_one_text_block():
    bench = Bench()
    bench.go(body(user(text("x" * 4000, cache_control=MARK))))
    as_text = body({"role": "user", "content": "x" * 4000}, assistant(text("ok")))
    as_text["messages"].append(user(text("go", cache_control=MARK)))
    assert bench.plan(as_text).read > 0


SYSTEM = [text("s" * 4000, cache_control=MARK)]


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"model": "claude-opus-5"}, False),
        ({"tools": [tool("read"), tool("more")]}, False),
        ({"thinking": {"type": "adaptive"}}, False),
        ({"output_config": {"effort": "low"}}, False),
        ({"tool_choice": {"type": "none"}}, True),
        ({"speed": "fast"}, False),
        ({"max_tokens": 7, "metadata": {"user_id": "me"}, "stop_sequences": ["x"]}, True),
    ],
)
def test_what_a_change_costs(change, kept):
    base = body(user(text("u" * 4000, cache_control=MARK)), system=SYSTEM, tools=[tool("read")])
    bench = Bench()
    whole = bench.go(base)
    read = bench.plan({**base, **change}).read
    assert (read > 0) is kept
    if "max_tokens" in change:
        assert read == whole.total
    elif kept:
        assert 0 < read < whole.total  # the system is kept, the messages are lost


def test_effort_parts_the_messages_only_where_the_model_renders_it_there():
    base = body(user(text("u" * 4000, cache_control=MARK)), system=SYSTEM)
    bench = Bench()
    whole = bench.go(base, effort_at_start=False)
    low = bench.plan({**base, "output_config": {"effort": "low"}}, effort_at_start=False)
    assert 0 < low.read < whole.total


def refused(request):
    with pytest.raises(ApiRefused) as caught:
        positions(request)
    assert caught.value.status == 400
    return caught.value.message


def automatic(count, marks, ttl=None, own=None):
    return {**blocks(count, marks, own), "cache_control": {**MARK, **({"ttl": ttl} if ttl else {})}}


def test_marks_that_the_api_refuses():
    assert "Found 5" in refused(blocks(6, {0, 1, 2, 3, 4}))
    assert "no breakpoint" in refused(automatic(5, {0, 1, 2, 3}))
    assert "differ in ttl" in refused(automatic(4, {3}, "1h"))
    late = blocks(3, {0, 1})
    late["messages"][0]["content"][1]["cache_control"] = {**MARK, "ttl": "1h"}
    assert "must not come after" in refused(late)
    for bad in ("ephemeral", {"type": "forever"}, {**MARK, "ttl": "2h"}, {**MARK, "x": 1}):
        assert "cache_control" in refused(body(user(text("x", cache_control=bad))))
    thinking = {"type": "thinking", "thinking": "", "signature": "", "cache_control": MARK}
    assert "thinking" in refused(body(user(text("q")), assistant(thinking), user(text("x"))))


def test_automatic_marks_that_pass():
    positions(automatic(4, {0, 1, 2, 3}))  # the last block is marked already
    assert positions(automatic(5, {0, 1, 2}))[-1].ttl == "5m"


async def test_the_sdk_sees_a_write_and_then_a_read():
    async with serving(say()) as (server, client):
        request = blocks(10, {9})
        first = await client.messages.create(**request)
        async with client.messages.stream(**request) as stream:
            second = await stream.get_final_message()
        haiku = await client.messages.create(**{**request, "model": "claude-haiku-4-5"})
    assert first.usage.cache_creation_input_tokens == second.usage.cache_read_input_tokens > 1000
    assert first.usage.cache_creation.ephemeral_5m_input_tokens > 1000
    assert second.usage.cache_creation_input_tokens == second.usage.input_tokens == 0
    assert haiku.usage.cache_creation_input_tokens == haiku.usage.cache_read_input_tokens == 0
    one, two, three = server.journal.entries
    assert one.levels == two.levels
    assert one.shared_positions(two) == 10
    assert one.shared_positions(three) == 0


async def test_a_reader_before_the_first_byte_misses_and_after_it_hits():
    script = load('name="slow"\n[[answer]]\n[[answer.round]]\nttft_ms = 300\ntext="a b c"')
    async with serving(script, speed=1) as (_, client):
        request = blocks(10, {9})
        stream = client.messages.stream(**request)
        opening = asyncio.create_task(stream.__aenter__())
        await asyncio.sleep(0.1)
        early = asyncio.create_task(client.messages.create(**request))
        opened = await opening
        late = await client.messages.create(**request)
        await opened.get_final_message()
        await stream.__aexit__(None, None, None)
        missed = await early
    assert missed.usage.cache_read_input_tokens == 0
    assert missed.usage.cache_creation_input_tokens > 1000
    assert late.usage.cache_read_input_tokens > 1000


async def test_a_429_writes_and_refreshes_nothing():
    import anthropic

    clock = ManualClock()
    async with serving(say(), clock=clock) as (server, client):
        await client.messages.create(**blocks(10, {9}))
        clock.ms = 200_000
        server.inject("rate_limited")
        with pytest.raises(anthropic.RateLimitError):
            await client.messages.create(**blocks(10, {9}))
        clock.ms = 400_000
        late = await client.messages.create(**blocks(10, {9}))
    assert late.usage.cache_read_input_tokens == 0


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"model": "claude-opus-5"}, "model_changed"),
        ({"tools": [tool("other")]}, "tools_changed"),
        ({"system": [text("other" * 400, cache_control=MARK)]}, "system_changed"),
        ({"messages": [user(text("other"))]}, "messages_changed"),
        ({}, None),
    ],
)
async def test_the_endpoint_says_why_a_prefix_was_missed(change, kind):
    base = body(user(text("u" * 4000, cache_control=MARK)), system=SYSTEM, tools=[tool("read")])
    async with serving(say()) as (_, client):
        first = await client.messages.create(**base)
        asked = {**base, **change, "diagnostics": {"previous_message_id": first.id}}
        second = await client.messages.create(**asked)
        lost = await client.messages.create(
            **{**base, "diagnostics": {"previous_message_id": "msg_unknown"}}
        )
    if kind is None:
        assert second.diagnostics is None
    else:
        assert second.diagnostics.cache_miss_reason.type == kind
        assert second.diagnostics.cache_miss_reason.cache_missed_input_tokens > 0
    assert lost.diagnostics.cache_miss_reason.type == "previous_message_not_found"
