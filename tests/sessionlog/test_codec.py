"""Lines of the log: every event goes there and back; the unknown is kept."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given

from forkdeck.errors import LogFormatError
from forkdeck.model.events import Event, UnknownEvent
from forkdeck.model.events.step import MessageFinished, TextStreamed
from forkdeck.sessionlog.codec import decode, encode
from tests.soak import laws
from tests.store.strategies import EVENT_TYPES, events_of


def test_the_union_holds_every_event_class() -> None:
    def below(kind: type) -> set[type]:
        return {kind} | {leaf for child in kind.__subclasses__() for leaf in below(child)}

    assert below(Event) - {Event, UnknownEvent} == set(EVENT_TYPES)


@pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
def test_every_event_comes_back_as_it_was(kind: type[Event]) -> None:
    @laws(25)
    @given(events_of(kind))
    def check(event: Event) -> None:
        line = encode(event)
        assert b"\n" not in line
        assert json.loads(line)["type"] == kind.__struct_config__.tag
        back = decode(line)
        assert type(back) is kind
        assert back == event

    check()


def test_an_unknown_type_keeps_its_line() -> None:
    line = b'{"type":"fork.cloned","seq":7,"at_ms":5,"run":"f2","extra":{"deep":[1]}}'
    event = decode(line)
    assert event == UnknownEvent(seq=7, at_ms=5, run="f2", name="fork.cloned", line=line.decode())
    assert encode(event) == line


def test_fields_of_a_later_version_are_ignored() -> None:
    line = b'{"type":"text.streamed","seq":7,"index":0,"text":"a","color":"red"}'
    assert decode(line) == TextStreamed(seq=7, index=0, text="a")


@pytest.mark.parametrize(
    "line",
    [
        b"[1]", b"7", b"null", b"", b"{", b"{}", b'{"type":7}', b'{"type":"text.streamed"}',
        b'{"type":"text.streamed","index":"x","text":"a"}', b'{"type":"text.streamed","index":0',
        b'{"type":"text.streamed","index":0,"text":"\xff"}',
        b'{"type":"x","v":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"type":"message.finished","stop_reason":"","message":' + b"[" * 50_000,
        b'{"type":"fork.ended","outcome":"perfect","reason":""}',
    ],
    ids=range(14),
)  # fmt: skip
def test_what_is_no_event_is_an_error_with_words(line: bytes) -> None:
    with pytest.raises(LogFormatError) as caught:
        decode(line)
    assert caught.value.what


def test_raw_json_with_line_ends_stays_on_one_line() -> None:
    raw = msgspec.Raw(b'{\n"role": "assistant",\r\n"content": "a\\nb"}')
    line = encode(MessageFinished(message=raw, stop_reason="end_turn"))
    assert b"\n" not in line
    assert b"\r" not in line
    back = decode(line)
    assert isinstance(back, MessageFinished)
    assert json.loads(bytes(back.message))["content"] == "a\nb"
