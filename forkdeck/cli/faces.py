"""Where headless commands write: lines or JSON, to streams that may break."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TextIO

from forkdeck.model.events import Event
from forkdeck.model.state import DeckState
from forkdeck.plain.json_lines import JsonFace
from forkdeck.plain.lines import LineFace

Listener = Callable[[Event, DeckState], None]


def writer(stream: TextIO) -> Callable[[str], None]:
    """Return a function that writes and flushes; characters the stream lacks are replaced."""
    encoding = stream.encoding or "utf-8"

    def write(text: str) -> None:
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()

    return write


def progress_lines(stream: TextIO) -> Listener:
    """Return a listener that writes progress as plain lines, coloured on a terminal."""
    color = stream.isatty() and "NO_COLOR" not in os.environ
    return LineFace(writer(stream), color).event


def json_lines() -> Listener:
    """Return a listener that writes every event as a line of JSON to standard output."""
    return JsonFace(writer(sys.stdout)).event
