"""Server-sent events out of bytes, however they are cut.

Used by `client`. Our own, because the SDK's iterator drops records without an event name and raises
from the middle of its decoder. Takes LF, CRLF and CR, a byte order mark, comments, several data
lines, and broken UTF-8 (replaced).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_BYTES = 64 * 1024 * 1024
"""Bytes of one record; a longer one is no event of the Messages API."""

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class Record:
    """One event.

    Attributes:
        event: Its name; empty when it has none.
        data: Its data lines, joined by line breaks.
    """

    event: str
    data: str


class RecordTooLong(ValueError):
    """A record that never ends."""


class SseDecoder:
    """Turns chunks of bytes into records."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held = 0
        self._event = ""
        self._data: list[bytes] = []
        self._begun = False

    def feed(self, chunk: bytes) -> list[Record]:
        """Take a chunk and return the records that ended in it, in order.

        Raises:
            RecordTooLong: A record is longer than `LONGEST_BYTES`.
        """
        self._held += len(chunk)
        if self._held > LONGEST_BYTES:
            raise RecordTooLong
        if b"\n" not in chunk and b"\r" not in chunk and not self._ends_with_cr():
            self._pieces.append(chunk)
            return []
        text = b"".join((*self._pieces, chunk))
        # A CR at the very end may be half of a CRLF: it waits for the next chunk.
        kept = b"\r" if text.endswith(b"\r") else b""
        lines = _LINE_END.split(text[: len(text) - len(kept)])
        self._pieces = [lines.pop() + kept]
        records = [record for line in lines if (record := self._line(line)) is not None]
        if records or not self._data:
            self._held = len(self._pieces[0])
        return records

    def end(self) -> list[Record]:
        """Return the record that the end of the stream left open, if there is one."""
        rest = b"".join(self._pieces).removesuffix(b"\r")
        self._pieces = []
        records = [self._line(rest)] if rest else []
        records.append(self._line(b""))
        return [record for record in records if record is not None]

    def _ends_with_cr(self) -> bool:
        return bool(self._pieces) and self._pieces[-1].endswith(b"\r")

    def _line(self, line: bytes) -> Record | None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._record()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        return None

    def _record(self) -> Record | None:
        event, data = self._event, self._data
        self._event, self._data = "", []
        if not data:
            return None
        return Record(event, b"\n".join(data).decode("utf-8", "replace"))
