"""Where headless commands write: lines or JSON, to streams that may be closed, full or absent.

A stream that breaks never breaks the session that is being told: the rest is dropped, and whoever
asks is told why.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from forkdeck.model.events import Event
from forkdeck.model.state import DeckState
from forkdeck.plain.json_lines import JsonFace
from forkdeck.plain.lines import LineFace

Listener = Callable[[Event, DeckState], None]


class Writer:
    """Writes and flushes text; characters that the stream lacks are replaced.

    Args:
        stream: Where to; None when the process was started without it.
        broken: Called once, when the stream takes no more.
    """

    def __init__(self, stream: TextIO | None, broken: Callable[[], None] | None = None) -> None:
        self._stream = stream
        self._encoding = "utf-8" if stream is None else stream.encoding or "utf-8"
        self._broken = broken
        self.trouble = "it is closed" if stream is None else ""
        """Why nothing can be written any more, or an empty text."""

    def __call__(self, text: str) -> None:
        """Write, unless the stream is broken."""
        if self.trouble or self._stream is None:
            return
        try:
            self._stream.write(text.encode(self._encoding, "replace").decode(self._encoding))
            self._stream.flush()
        except (OSError, ValueError) as error:
            self.trouble = getattr(error, "strerror", None) or str(error)
            silence(self._stream)
            if self._broken is not None:
                self._broken()


def silence(stream: TextIO) -> None:
    """Point a broken stream at nothing, so that Python's last flush cannot fail on it again."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


def progress_lines(stream: TextIO | None) -> Listener:
    """Return a listener that writes progress as plain lines, coloured on a terminal."""
    color = stream is not None and stream.isatty() and "NO_COLOR" not in os.environ
    return LineFace(Writer(stream), color).event


def json_lines(broken: Callable[[], None]) -> Listener:
    """Return a listener that writes every event as a line of JSON to standard output."""
    return JsonFace(Writer(sys.stdout, broken)).event
