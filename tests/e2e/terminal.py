"""The real program in a pseudo terminal, its screen read back with pyte.

Input, output and errors all lead to the terminal: Textual draws on the error stream. Nothing
here sleeps for a fixed time: every wait is for something on the screen, with a deadline.
"""

from __future__ import annotations

import contextlib
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
from types import TracebackType

import pyte

# pyte misreads these: private markers < = >, mode queries, device strings.
_DROP = re.compile(
    rb"\x1b\[[<=>][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p|\x1b\[[0-9;]*\$p|\x1bP.*?\x1b\\", re.DOTALL
)
_PARTIAL = re.compile(rb"\x1b(\[[0-9;?<=>$]*|P[^\x1b]*)?$")
_SYNC_QUERY, _SYNC_ANSWER = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
LEFT_ALTERNATE, CURSOR_SHOWN, MOUSE_OFF = b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l"

BASE = {
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "LC_ALL": "C.UTF-8",
    "TEXTUAL_ANIMATIONS": "none",
    "ESCDELAY": "25",
}


class Terminal:
    """A program in a terminal of its own; leave the ``with`` block and it is dead.

    Args:
        argv: The program and its arguments.
        size: Columns and rows.
        env: The whole environment, over `BASE`.
        cwd: Where it starts.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        size: tuple[int, int] = (120, 40),
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        self.screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = bytearray()
        self._held = b""
        self.closed = False
        """Whether a test closed this side of the terminal itself."""
        self.fd, inner = pty.openpty()
        self.mode_before = termios.tcgetattr(self.fd)
        self._set_size(*size)
        self.process = subprocess.Popen(
            argv, stdin=inner, stdout=inner, stderr=inner, env={**BASE, **env}, cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no threads
        )  # fmt: skip
        os.close(inner)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    @property
    def last_line(self) -> str:
        return self.screen.display[-1]

    def pump(self, seconds: float = 0.03) -> bool:
        """Read what comes for a moment; False when the other end is closed."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select([self.fd], [], [], left)
            if not ready:
                return True
            try:
                data = os.read(self.fd, 1 << 16)
            except OSError:
                return False
            if not data:
                return False
            self.raw += data
            if _SYNC_QUERY in data:
                self.send(_SYNC_ANSWER)
            data = self._held + data
            partial = _PARTIAL.search(data)
            self._held = data[partial.start() :] if partial else b""
            self._stream.feed(_DROP.sub(b"", data[: partial.start()] if partial else data))
        return True

    def wait(self, pattern: str, timeout: float = 25) -> str:
        """Return the screen once `pattern` is on it."""
        end = time.monotonic() + timeout
        while True:
            alive = self.pump()
            if re.search(pattern, self.text):
                return self.text
            if not alive or time.monotonic() > end:
                state = "the program ended" if not alive else f"not within {timeout} s"
                raise AssertionError(f"{pattern!r} is not on the screen ({state}):\n{self.text}")

    def wait_gone(self, pattern: str, timeout: float = 10) -> str:
        """Return the screen once `pattern` is no longer on it."""
        end = time.monotonic() + timeout
        while self.pump():
            if not re.search(pattern, self.text):
                return self.text
            if time.monotonic() > end:
                raise AssertionError(f"{pattern!r} is still on the screen:\n{self.text}")
        raise AssertionError(f"the program ended:\n{self.text}")

    def send(self, keys: str | bytes) -> None:
        """Type."""
        os.write(self.fd, keys.encode() if isinstance(keys, str) else keys)

    def press(self, keys: str, then: str, timeout: float = 25) -> str:
        """Type, then wait for a pattern."""
        self.send(keys)
        return self.wait(then, timeout)

    def resize(self, width: int, height: int) -> None:
        """Change the window's size, as a terminal does."""
        self.screen.resize(height, width)
        self._set_size(width, height)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGWINCH)

    def _set_size(self, width: int, height: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def signal(self, number: int) -> None:
        """Send a signal to the program alone."""
        os.kill(self.pid, number)

    def ended(self, timeout: float = 25) -> int:
        """Wait for the program's end and return its exit code."""
        end = time.monotonic() + timeout
        while self.process.poll() is None:
            self.pump()
            if time.monotonic() > end:
                raise AssertionError(f"it does not end:\n{self.text}")
        self.pump(0.1)
        return self.process.returncode

    @property
    def restored(self) -> bool:
        """Whether the screen, the cursor, the mouse and the line mode are as before."""
        tail = bytes(self.raw)
        entered = tail.rfind(b"\x1b[?1049h")
        after = tail[entered:] if entered >= 0 else tail
        written = entered < 0 or all(
            mark in after for mark in (LEFT_ALTERNATE, CURSOR_SHOWN, MOUSE_OFF)
        )
        return written and termios.tcgetattr(self.fd)[:4] == self.mode_before[:4]

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        if not self.closed:
            os.close(self.fd)
            self.closed = True
