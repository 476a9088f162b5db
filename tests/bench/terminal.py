"""A program in a terminal of its own: keys go in, bytes with their times come out.

Frames are looked at as raw bytes, because parsing every one would cost as much as drawing it;
`screen_text` parses what came so far, for waiting until something is shown.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyte

# Sequences that pyte takes for text: private markers, mode queries, device control strings.
_UNKNOWN = re.compile(
    rb"\x1b\[[<=>][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p|\x1b\[[0-9;]*\$p|\x1bP.*?\x1b\\"
    rb"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)",
    re.DOTALL,
)
_OPEN = re.compile(rb"\x1b(\[[0-9;?<=>$]*)?$")


class Terminal:
    """A terminal of 120x40 with a program on it.

    Args:
        command: The program and its arguments.
        environment: The whole environment of the program.
        cwd: Where it runs.
        size: Columns and rows.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: Path,
        size: tuple[int, int] = (120, 40),
    ) -> None:
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self._unparsed = b""
        self.bytes_read = 0
        self.fd, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            list(command), stdin=slave, stdout=slave, stderr=slave, cwd=cwd,
            env=dict(environment), start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self.process.pid

    def read(self, timeout_s: float) -> bytes:
        """Return the bytes that come next, or nothing when none come in time.

        Raises:
            EOFError: The program closed the terminal.
        """
        ready, _, _ = select.select([self.fd], [], [], timeout_s)
        if not ready:
            return b""
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError as error:
            raise EOFError("the program left") from error
        if not data:
            raise EOFError("the program left")
        if b"\x1b[?2026$p" in data:
            os.write(self.fd, b"\x1b[?2026;2$y")
        self.bytes_read += len(data)
        self._unparsed += data
        return data

    def drain(self, seconds: float) -> None:
        """Read and keep whatever comes for a time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def send(self, keys: str) -> float:
        """Type keys; returns when, on the monotonic clock."""
        at = time.monotonic()
        os.write(self.fd, keys.encode())
        return at

    def until_bytes(self, pattern: bytes, timeout_s: float = 15) -> float:
        """Read until a pattern is in what comes from now on; returns when it came.

        Raises:
            TimeoutError: It did not come in time.
        """
        wanted = re.compile(pattern)
        seen = b""
        end = time.monotonic() + timeout_s
        while (left := end - time.monotonic()) > 0:
            data = self.read(left)
            at = time.monotonic()
            seen = (seen + data)[-(1 << 17) :]
            if wanted.search(seen):
                return at
        raise TimeoutError(f"{pattern!r} did not come\n{self.screen_text()}")

    def screen_text(self) -> str:
        """Return the screen as it is after everything read so far."""
        data = self._unparsed
        open_end = _OPEN.search(data)
        self._unparsed = data[open_end.start() :] if open_end else b""
        self._stream.feed(_UNKNOWN.sub(b"", data[: open_end.start()] if open_end else data))
        return "\n".join(self._screen.display)

    def kill(self) -> None:
        """Kill the program alone, not what it started."""
        self.process.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """End the program in good order, or kill it after 5 s."""
        if self.process.poll() is None:
            self.process.terminate()
        end = time.monotonic() + 5
        while self.process.poll() is None and time.monotonic() < end:
            try:
                self.read(0.05)
            except EOFError:
                break
        if self.process.poll() is None:
            try:
                self.process.wait(1)
            except subprocess.TimeoutExpired:
                self.process.kill()
        os.close(self.fd)
        self.process.wait()
