"""The decoder and the accumulator over captures and hostile events; no SDK, no network."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import pytest

from forkdeck.errors import StreamCut
from forkdeck.model.raw import from_raw
from forkdeck.model.stream import CallPart, Completed, Opened, TextPart, ThinkingPart
from forkdeck.model.usage import Usage
from forkdeck.providers.accumulate import UNREADABLE, Accumulator
from forkdeck.providers.sse import RecordTooLong, SseDecoder
from tests.providers.support import HERE, block, delta, event, events_of, finish, start, stop

SAMPLES = sorted((HERE / "sse").glob("*.txt"))
EXTRA = HERE.parents[2] / "shared" / "sessions" / "sse"
# Further captures, where somebody keeps some beside the repository.


def run(events) -> tuple[Completed, list]:
    answer = Accumulator()
    parts = [part for one in events for part in answer.feed(one)]
    return answer.completed(), parts


def sample(name: str, chunk: int = 10**9):
    return events_of((HERE / "sse" / f"{name}.txt").read_bytes(), chunk)


def test_thinking_text_and_calls_keep_order_signature_and_input():
    done, parts = run(sample("thinking-text-calls"))
    assert from_raw(done.message) == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Let me look.", "signature": "c2ln"},
            {"type": "text", "text": "Two reads."},
            {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "read",
                "input": {"path": "b.py", "offset": 2},
            },
            {"type": "tool_use", "id": "toolu_2", "name": "ls", "input": {}},
        ],
    }
    assert list(from_raw(done.message)["content"][2]["input"]) == ["path", "offset"]
    assert done.stop_reason == "tool_use"
    assert done.unreadable_calls == ()
    assert done.usage == Usage(
        input_tokens=12,
        output_tokens=61,
        cache_read_input_tokens=9000,
        cache_creation_input_tokens=300,
        cache_creation_5m_tokens=200,
        cache_creation_1h_tokens=100,
    )
    assert isinstance(parts[0], Opened)
    assert parts[1:] == [
        ThinkingPart(0, "Let me "),
        ThinkingPart(0, "look."),
        TextPart(1, "Two reads."),
        CallPart(2, "read", '{"path":"b.py",'),
        CallPart(2, "read", '"offset":2}'),
    ]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("chunk", [1, 2, 7, 64])
def test_chunks_do_not_matter(path, chunk):
    data = path.read_bytes()
    assert events_of(data, chunk) == events_of(data)


def test_limit_in_a_call_marks_it_and_no_tool_takes_its_input():
    done, _ = run(sample("limit-in-call"))
    call = from_raw(done.message)["content"][1]
    assert done.stop_reason == "max_tokens"
    assert done.unreadable_calls == ("toolu_9",)
    assert call["input"] == {UNREADABLE: True}
    assert call["id"] == "toolu_9"


def test_a_call_that_never_stopped_is_unreadable_even_when_its_json_is_whole():
    events = [start(), block(0, type="tool_use", id="t", name="bash", input={})]
    events += [delta(0, "input_json_delta", partial_json='{"command":"rm -rf /"}')]
    done, _ = run([*events, *finish("max_tokens")])
    assert done.unreadable_calls == ("t",)
    assert "rm" not in bytes(done.message).decode()


@pytest.mark.parametrize("reason", ["tool_use", "end_turn", "stop_sequence", "new_reason"])
@pytest.mark.parametrize(
    "text", ['{"path": "a', "[1]", '"x"', "{" * 5000, '{"n": ' + "9" * 5000 + "}"]
)
def test_half_json_without_a_limit_is_a_cut_stream(reason, text):
    events = [start(), block(0, type="tool_use", id="t", name="ls", input={})]
    events += [delta(0, "input_json_delta", partial_json=text), stop(0), *finish(reason)]
    with pytest.raises(StreamCut):
        run(events)


@pytest.mark.parametrize("name", ["cut-in-call", "other-answer-spliced"])
def test_cut_streams_are_never_answers(name):
    with pytest.raises(StreamCut):
        run(sample(name))


def test_strange_events_blocks_and_reasons_pass():
    done, parts = run(sample("strange-but-whole"))
    assert from_raw(done.message)["content"] == [
        {"type": "hologram", "data": {"z": 1, "a": 2}},
        {"type": "text", "text": "fine"},
    ]
    assert done.stop_reason == "some_new_reason"
    assert parts[-1] == TextPart(1, "fine")


def test_usage_that_comes_late_or_never():
    done, parts = run(sample("late-usage"))
    assert parts[0].usage is None
    assert done.usage == Usage(input_tokens=345, output_tokens=12, cache_read_input_tokens=6789)
    never, _ = run([start("none"), *finish("end_turn", {"output_tokens": 7})])
    assert never.usage is None


def test_null_cache_fields_are_unknown_and_zero_is_zero():
    told = {"input_tokens": 1, "output_tokens": 1, "cache_read_input_tokens": None}
    done, _ = run([start(told), *finish()])
    assert done.usage is not None
    assert done.usage.cache_read_input_tokens is None
    assert done.usage.cache_share is None
    zero, _ = run([start({**told, "cache_read_input_tokens": 0}), *finish()])
    assert zero.usage is not None
    assert zero.usage.cache_share == 0


@pytest.mark.parametrize("bad", [-1, True, "9", 1.5, None, [], {}])
def test_nonsense_counts_are_not_counts(bad):
    done, _ = run([start({"input_tokens": bad, "output_tokens": 1}), *finish()])
    assert done.usage is None


def test_split_is_dropped_when_the_sum_was_corrected():
    told: dict[str, Any] = {"input_tokens": 1, "cache_creation_input_tokens": 5}
    told["cache_creation"] = {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 0}
    same, _ = run([start(told), *finish("end_turn", {"output_tokens": 2})])
    assert same.usage is not None
    assert (same.usage.cache_creation_5m_tokens, same.usage.cache_creation_1h_tokens) == (5, 0)
    other, _ = run([start(told), *finish("end_turn", {"cache_creation_input_tokens": 9})])
    assert other.usage is not None
    assert other.usage.cache_creation_5m_tokens is None
    assert other.usage.cache_creation_input_tokens == 9


def test_refusal_says_why_and_empty_texts_are_not_kept():
    done, _ = run(sample("refused"))
    assert done.refusal == "cyber: no"
    assert from_raw(done.message)["content"] == []


def test_cache_miss_reason():
    events = [start(diagnostics={"cache_miss_reason": {"type": "tools_changed"}}), *finish()]
    _, parts = run(events)
    assert parts[0].cache_miss_reason == "tools_changed"


def test_same_start_twice_is_one_and_what_follows_the_stop_is_ignored():
    done, parts = run([start(), start(), *finish(), start(id="other"), event("error")])
    assert len(parts) == 1
    assert done.message_id == "msg_1"


def test_text_without_a_start_of_its_block_is_kept_but_a_call_is_not():
    done, _ = run([start(), delta(3, "text_delta", text="x"), *finish()])
    assert from_raw(done.message)["content"] == [{"type": "text", "text": "x"}]
    with pytest.raises(StreamCut):
        run([start(), delta(0, "input_json_delta", partial_json="{}"), *finish("tool_use")])


@pytest.mark.parametrize(
    "fields",
    [{"id": "", "name": "x"}, {"id": "t", "name": ""}, {"id": 3, "name": "x"}, {"name": "x"}],
)
def test_calls_without_name_or_id_are_cut(fields):
    with pytest.raises(StreamCut):
        run([start(), block(0, type="tool_use", input={}, **fields), stop(0), *finish("tool_use")])


def test_two_calls_with_one_id_are_cut():
    calls = [block(n, type="tool_use", id="t", name="ls", input={}) for n in (0, 1)]
    with pytest.raises(StreamCut):
        run([start(), *calls, *finish("tool_use")])


def test_compaction_and_citations_are_kept():
    events = [start(), block(0, type="compaction", content=None, encrypted_content=None)]
    events += [delta(0, "compaction_delta", content="sum", encrypted_content="e"), stop(0)]
    events += [block(1, type="text", text=""), delta(1, "citations_delta", citation={"c": 1})]
    done, _ = run([*events, stop(1), *finish()])
    content = from_raw(done.message)["content"]
    assert content[0] == {"type": "compaction", "content": "sum", "encrypted_content": "e"}
    assert content[1]["citations"] == [{"c": 1}]


def test_lone_surrogates_and_non_finite_numbers_never_enter_history():
    events = [start(), block(0, type="text", text=""), delta(0, "text_delta", text="a\ud800b")]
    events += [stop(0), block(1, type="tool_use", id="t", name="ls", input={})]
    events += [delta(1, "input_json_delta", partial_json='{"a": NaN, "b": "\\ud83d\\ude00"}')]
    done, _ = run([*events, stop(1), *finish("tool_use")])
    content = from_raw(done.message)["content"]
    assert content[0]["text"] == "a\ufffdb"
    assert content[1]["input"] == {"a": None, "b": "😀"}


def test_noise_never_raises_anything_but_a_cut_stream():
    rng = random.Random(7)
    values = [None, 1, -1, "x", [], {}, {"type": 1}, True, "text", "tool_use", "\ud800"]
    kinds = ["message_start", "content_block_start", "content_block_delta", "content_block_stop"]
    kinds += ["message_delta", "message_stop", "ping", "?"]
    keys = ["message", "index", "content_block", "delta", "usage", "error"]
    inner = ["type", "id", "name", "input", "text", "thinking", "partial_json", "stop_reason"]
    for _ in range(3_000):
        answer = Accumulator()
        try:
            for _ in range(rng.randrange(1, 12)):
                one: dict[str, Any] = {"type": rng.choice(kinds)}
                for key in rng.sample(keys, 3):
                    nested = {name: rng.choice(values) for name in rng.sample(inner, 4)}
                    one[key] = rng.choice([*values, nested, nested, nested])
                answer.feed(one)
            answer.completed()
        except StreamCut:
            pass


def test_a_record_that_never_ends_is_refused(monkeypatch):
    monkeypatch.setattr("forkdeck.providers.sse.LONGEST_BYTES", 1000)
    decoder = SseDecoder()
    line = b"data: " + b"x" * 50 + b"\n"
    with pytest.raises(RecordTooLong):
        [decoder.feed(line) for _ in range(200)]
    fresh = SseDecoder()
    for _ in range(200):
        assert len(fresh.feed(b"data: " + b"x" * 50 + b"\n\n")) == 1


def test_bare_cr_comments_and_missing_last_blank_line():
    data = b': c\rdata: {"a":1}\r\rdata\rdata: \r\rdata:{"b":2}'
    decoder = SseDecoder()
    records = decoder.feed(data) + decoder.end()
    assert [record.data for record in records] == ['{"a":1}', "\n", '{"b":2}']


def test_it_needs_no_sdk():
    code = (
        "import sys, forkdeck.providers.accumulate, forkdeck.providers.client,"
        " forkdeck.providers.prices, forkdeck.providers.gate, forkdeck.config.loading;"
        " assert not {'anthropic', 'httpx2', 'genai_prices', 'textual', 'git', 'watchfiles'}"
        " & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=HERE.parents[1])


EXPECTED = (
    json.loads((EXTRA / "expected.json").read_text()) if (EXTRA / "expected.json").is_file() else {}
)


@pytest.mark.parametrize("name", sorted(EXPECTED) or ["absent"])
def test_further_samples(name):
    if name == "absent":
        pytest.skip("no further samples here")
    expected = EXPECTED[name]
    events = events_of((EXTRA / name).read_bytes())
    whole = [one for one in events if one is not None]
    answer = Accumulator()
    error = None
    for one in whole:
        if one.get("type") == "error":
            error = one["error"]["type"]
        answer.feed(one)
    assert error == expected["error"]
    if expected["end"] != "complete":
        assert error or not answer.stopped
        return
    unfit = [b for b in expected["blocks"] if "json_ok" in b and not b["json_ok"]]
    done = answer.completed()
    assert done.stop_reason == expected["stop_reason"]
    assert done.message_id == expected["id"]
    assert len(done.unreadable_calls) == len(unfit)
    content = from_raw(done.message)["content"]
    wanted = [b for b in expected["blocks"] if not (b["type"] == "text" and not b["chars"])]
    assert [b["type"] for b in content] == [b["type"] for b in wanted]
    for got, want in zip(content, wanted, strict=True):
        if want["type"] == "text":
            assert len(got["text"]) == want["chars"]
        if want.get("json_ok"):
            assert sorted(got["input"]) == want["input_keys"]
    usage = done.usage
    assert usage is not None
    for field, count in expected["usage"].items():
        assert getattr(usage, field) == count
