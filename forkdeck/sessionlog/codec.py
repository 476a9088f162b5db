"""Events as lines of JSON, and back. Used by the writer, the reader and the JSON face.

A line is read in two steps: a known ``type`` becomes its event; one that this version does not
know becomes an `UnknownEvent` that keeps the line. Only a known type whose fields do not fit is
an error.
"""

from __future__ import annotations

import msgspec

from forkdeck.errors import LogFormatError
from forkdeck.model.events import AnyEvent, Event, UnknownEvent
from forkdeck.model.ids import PARENT

_ENCODER = msgspec.json.Encoder(decimal_format="string")
_DECODER: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


class _Envelope(msgspec.Struct):
    type: str
    seq: int = 0
    at_ms: int = 0
    run: str = PARENT


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_KNOWN = frozenset(
    str(kind.__struct_config__.tag) for kind in AnyEvent.__args__  # the union's classes
)  # fmt: skip


def encode(event: Event) -> bytes:
    """Return an event's line, without its line end.

    Raises:
        UnicodeEncodeError: A text in it holds a lone surrogate.
    """
    if isinstance(event, UnknownEvent) and event.line:
        return event.line.encode()
    line = _ENCODER.encode(event)
    # Only raw JSON can bring a line end along, and there it is white space between tokens.
    return line.replace(b"\n", b" ").replace(b"\r", b" ") if b"\n" in line else line


def decode(line: bytes) -> Event:
    """Read one line.

    Raises:
        LogFormatError: It is no event: no JSON object, no type, or fields that do not fit it.
    """
    try:
        return _DECODER.decode(line)
    except RecursionError:
        raise LogFormatError("nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        return _unknown(line, problem)


def _unknown(line: bytes, problem: Exception) -> UnknownEvent:
    try:
        envelope = _ENVELOPE.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise LogFormatError(_words(problem)) from None
    if envelope.type in _KNOWN:
        raise LogFormatError(f"{envelope.type}: {_words(problem)}")
    return UnknownEvent(
        seq=envelope.seq,
        at_ms=envelope.at_ms,
        run=envelope.run,
        name=envelope.type,
        line=line.decode("utf-8", "replace"),
    )


def _words(problem: Exception) -> str:
    return str(problem)[:160] or type(problem).__name__
