"""Reads a log, as much of it as can be read, and repairs a torn tail.

Called by the command line (replay, resume), the catalogue and the export. Damage never stops
the reading: a line that cannot be read is named in `notes` and skipped. The file is not changed
but by `repair_tail`, under the session's lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from forkdeck.errors import LogFormatError, SessionError
from forkdeck.model.events import FORMAT_VERSION, Event, UnknownEvent
from forkdeck.model.events.session import SessionOpened
from forkdeck.sessionlog.codec import decode
from forkdeck.sessionlog.lock import take_lock
from forkdeck.sessionlog.paths import SessionPaths

NOTES_LIMIT = 50
"""How many damaged places are named; the rest is counted."""

_BOM = b"\xef\xbb\xbf"
_START = b'{"type":"'
_STARTS_TRIED = 64
_BLANKS = b" \t\r\n\0"
_TAIL_BLOCK = 64 * 1024


class LogContents(msgspec.Struct, frozen=True):
    """What a log held."""

    events: list[Event]
    """In file order; unknown ones too."""
    unknown: int
    """How many events are of a kind that this version does not know."""
    notes: tuple[str, ...]
    """What was damaged and where, in words."""
    torn_bytes: int
    """Length of an unfinished last line."""
    newer: bool
    """The log's major version is newer than this one: open it read-only."""


class _Reading:
    """The events and the marks of damage, as they are found."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.notes: list[str] = []
        self.torn_bytes = 0
        self._more = 0
        self._seq = 0

    def note(self, text: str) -> None:
        if len(self.notes) < NOTES_LIMIT:
            self.notes.append(text)
        else:
            self._more += 1

    def take(self, event: Event, number: int) -> None:
        seq = event.seq
        if seq and self._seq and seq != self._seq + 1:
            if seq > self._seq:
                self.note(f"line {number}: events {self._seq + 1} to {seq - 1} are missing")
            else:
                self.note(f"line {number}: event {seq} comes after event {self._seq}")
        self._seq = max(seq, self._seq)
        self.events.append(event)

    def all_notes(self) -> tuple[str, ...]:
        more = (f"and {self._more} more damaged places",) if self._more else ()
        return (*self.notes, *more)


def read_log(path: Path) -> LogContents:
    """Read a log, whatever state it is in.

    Raises:
        SessionError: The file cannot be opened.
        LogFormatError: It is empty or holds no header, so it is no log of ForkDeck.
    """
    reading = _Reading()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                _read_line(reading, number, line)
    except IsADirectoryError:
        raise LogFormatError(f"{path} is a directory, not a session log") from None
    except OSError as problem:
        raise SessionError(
            f"{path} cannot be read: {problem.strerror or problem}", "Check the path."
        ) from problem
    headers = [event for event in reading.events if isinstance(event, SessionOpened)]
    if not headers:
        raise LogFormatError(
            _no_header(path, reading), "`forkdeck sessions` lists the sessions that can be opened."
        )
    if reading.events[0] is not headers[0]:
        reading.note("the log does not begin with its header")
    return LogContents(
        events=reading.events,
        unknown=sum(isinstance(event, UnknownEvent) for event in reading.events),
        notes=reading.all_notes(),
        torn_bytes=reading.torn_bytes,
        newer=max(event.format_version for event in headers) > FORMAT_VERSION,
    )


def _no_header(path: Path, reading: _Reading) -> str:
    if not reading.events and not reading.notes and not reading.torn_bytes:
        return f"{path} is empty: nothing was ever logged to it"
    first = f" ({reading.notes[0]})" if reading.notes else ""
    return f"{path} is no ForkDeck session log: it has no session.opened line{first}"


def _read_line(reading: _Reading, number: int, line: bytes) -> None:
    body = line
    if number == 1 and body.startswith(_BOM):
        body = body[len(_BOM) :]
    stripped = body.strip(_BLANKS)
    if not stripped:
        if b"\0" in body:
            reading.note(f"line {number}: {body.count(0)} NUL bytes instead of an event")
        return
    try:
        reading.take(decode(stripped), number)
    except LogFormatError as problem:
        if not line.endswith(b"\n"):
            reading.torn_bytes = len(line)
            reading.note(f"line {number}: unfinished, {len(line)} bytes kept out")
            return
        found = list(_unglued(stripped))
        reading.note(f"line {number}: {problem.what}")
        for event in found:
            reading.take(event, number)
        return
    if len(stripped) != len(body.rstrip(b"\r\n")) and b"\0" in body:
        reading.note(f"line {number}: NUL bytes around the event")


def _unglued(line: bytes) -> Iterator[Event]:
    """Find whole events in a line that several records, or the rest of a torn one, share."""
    starts: list[int] = []
    position = line.find(_START)
    while position >= 0 and len(starts) < _STARTS_TRIED:
        starts.append(position)
        position = line.find(_START, position + 1)
    # From the end: the last record is whole, what stands before it may be torn.
    end = len(line)
    found: list[Event] = []
    for start in reversed(starts):
        try:
            event = decode(line[start:end])
        except LogFormatError:
            continue
        # A block inside a message looks like an event of unknown kind; it has no number.
        if isinstance(event, UnknownEvent) and not event.seq:
            continue
        found.append(event)
        end = start
    yield from reversed(found)


def repair_tail(paths: SessionPaths) -> int:
    """Make a log end with a whole line, under the session's lock.

    The bytes of a torn last line are kept aside in ``events.torn-<time>``. Opening a session for
    writing does this by itself.

    Returns:
        How many bytes were kept aside.

    Raises:
        SessionBusy: Some process has the session open; its log is not torn but being written.
        SessionError: The log cannot be read or written.
    """
    try:
        held = take_lock(paths)
        try:
            return repair_held_tail(paths)
        finally:
            os.close(held)
    except OSError as problem:
        raise SessionError(
            f"{paths.events} cannot be repaired: {problem.strerror or problem}",
            "Check the file's owner and free space.",
        ) from problem


def repair_held_tail(paths: SessionPaths) -> int:
    """Do what `repair_tail` does, for a caller that holds the session's lock.

    Raises:
        OSError: The file cannot be read or written.
    """
    descriptor = os.open(paths.events, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        size = os.fstat(descriptor).st_size
        start = _last_line_start(descriptor, size)
        if start == size:
            return 0
        tail = _pread_all(descriptor, start, size)
        if _is_event(tail):
            os.pwrite(descriptor, b"\n", size)
            os.fsync(descriptor)
            return 0
        _keep_aside(paths, tail)
        os.ftruncate(descriptor, start)
        os.fsync(descriptor)
        return len(tail)
    finally:
        os.close(descriptor)


def _is_event(tail: bytes) -> bool:
    try:
        decode(tail)
    except LogFormatError:
        return False
    return True


def _last_line_start(descriptor: int, size: int) -> int:
    """Return the position behind the last line end; `size` when the file ends with one."""
    end = size
    while end > 0:
        begin = max(end - _TAIL_BLOCK, 0)
        block = os.pread(descriptor, end - begin, begin)
        found = block.rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _pread_all(descriptor: int, start: int, end: int) -> bytes:
    parts: list[bytes] = []
    while start < end:
        part = os.pread(descriptor, min(end - start, 1 << 20), start)
        if not part:
            break
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _keep_aside(paths: SessionPaths, tail: bytes) -> None:
    aside = paths.directory / f"events.torn-{time.time_ns()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(aside, flags, 0o600)
    try:
        view = memoryview(tail)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
