"""What is kept of a command's output: the head, the tail, a count, and a spill file.

Owned by one `sandbox.process.run_process` call; bytes come from the pipe and go to memory
(at most 48 KiB) and, once they do not fit, to the spill file (at most 256 MiB).
"""

from __future__ import annotations

import os
from pathlib import Path

HEAD_BYTES = 16 * 1024
TAIL_BYTES = 32 * 1024
SPILL_BYTES = 256 * 1024 * 1024


class Output:
    """Keeps bounded output of one command.

    Args:
        spill: File for output that does not fit, or None to drop it.
        limit_bytes: How much may be written in all.
    """

    def __init__(self, spill: Path | None, limit_bytes: int = SPILL_BYTES) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._path = spill
        self._fd: int | None = None
        self._limit = limit_bytes
        self._spilled = 0
        self.total_bytes = 0
        self.trouble = ""
        """Why the spill file could not be written, or empty."""

    @property
    def over_limit(self) -> bool:
        """Whether the command wrote more than may be kept."""
        return self.total_bytes > self._limit

    @property
    def spill(self) -> Path | None:
        """The spill file, once there is one."""
        return self._path if self._spilled else None

    def feed(self, data: bytes) -> bytes:
        """Take output; return the bytes that must go to the spill file now (maybe none)."""
        before = self.total_bytes
        kept = bytes(self._head) + bytes(self._tail) if self._starts(before, len(data)) else b""
        self.total_bytes += len(data)
        room = HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
        rest = data[max(room, 0) :]
        if rest:
            self._tail += rest
            if len(self._tail) > 2 * TAIL_BYTES:
                del self._tail[:-TAIL_BYTES]
        if self._path is None or self.trouble or self.total_bytes <= HEAD_BYTES + TAIL_BYTES:
            return b""
        return (kept + data)[: max(self._limit - self._spilled, 0)]

    def _starts(self, before: int, more: int) -> bool:
        capacity = HEAD_BYTES + TAIL_BYTES
        return self._path is not None and before <= capacity < before + more

    def write(self, data: bytes) -> None:
        """Append to the spill file; blocking, so called off the loop. Never raises OSError."""
        if self._path is None or not data:
            return
        try:
            if self._fd is None:
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
                self._fd = os.open(self._path, flags, 0o600)
            view = memoryview(data)
            while view:
                count = os.write(self._fd, view)
                self._spilled += count
                view = view[count:]
        except OSError as error:
            self.trouble = error.strerror or str(error)

    def close(self) -> None:
        """Close the spill file; safe to call twice."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def head(self) -> str:
        """Return the first bytes as text; a character that the cut splits goes to the tail."""
        return _decode(bytes(self._head[: self._head_end()]))

    def tail(self) -> str:
        """Return the last bytes as text, or an empty text when the head holds everything."""
        tail = bytes(self._tail[-TAIL_BYTES:])
        if not tail:
            return ""
        if self.total_bytes <= HEAD_BYTES + TAIL_BYTES:
            return _decode(bytes(self._head[self._head_end() :]) + tail)
        start = 0
        while start < min(3, len(tail)) and tail[start] & 0xC0 == 0x80:
            start += 1
        return _decode(tail[start:])

    def _head_end(self) -> int:
        """Return where the head ends without splitting a UTF-8 character."""
        head = self._head
        if not self._tail:
            return len(head)
        for back in range(1, min(4, len(head)) + 1):
            byte = head[-back]
            if byte & 0xC0 == 0x80:
                continue
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return len(head) - back if length > back else len(head)
        return len(head)

    def last_lines(self, limit: int = 2000) -> str:
        """Return the last lines so far, at most `limit` bytes, for the progress display."""
        whole = bytes(self._tail[-limit:])
        if len(whole) < limit:
            whole = (bytes(self._head) + whole)[-limit:]
        return _decode(whole)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")
