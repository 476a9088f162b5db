"""The line face: a session's progress as plain lines, one for each thing that happened.

Fed by the command line from the hub, with every event and the state behind it. Every line begins
with the session's time and names its run; text from outside is made safe. Streamed pieces are
not shown: the finished message is.
"""

from __future__ import annotations

from collections.abc import Callable

from forkdeck.model.events import Event
from forkdeck.model.ids import PARENT
from forkdeck.model.state import DeckState
from forkdeck.plain.words import Line, lines_of
from forkdeck.store.text import one_line, plain_text

_STATE_CELLS = 5
_COLORS = {
    "ASK": "33", "WAIT": "33", "FAIL": "31", "ERROR": "31", "PART": "33", "INTR": "33",
    "DONE": "32", "RUN": "36", "ABRT": "35",
}  # fmt: skip


class LineFace:
    """Writes progress lines, such as ``0:12 [f2 tests] RUN   bash pytest -q``.

    Args:
        write: Takes each line, with its line end.
        color: Whether the state words may be coloured (a terminal without ``NO_COLOR``).
    """

    def __init__(self, write: Callable[[str], None], color: bool) -> None:
        self._write = write
        self._color = color

    def event(self, event: Event, state: DeckState) -> None:
        """Write what an event means to a reader; most deltas mean nothing yet."""
        for line in lines_of(event, state):
            self._write(self._drawn(event, state, line) + "\n")

    def _drawn(self, event: Event, state: DeckState, line: Line) -> str:
        start = f"{clock_text(event.at_ms)} [{run_label(state, line.run or event.run)}]"
        word = line.word.ljust(_STATE_CELLS)
        code = _COLORS.get(line.word)
        if self._color and code is not None:
            word = f"\x1b[{code}m{word}\x1b[0m"
        if not line.block:
            return f"{start} {word} {plain_text(line.text, newlines=False)}".rstrip()
        # Every row of a longer text begins with the time, so that a line says when by itself.
        rows = plain_text(line.text).rstrip("\n").split("\n")
        first = f"{start} {word} {rows[0]}".rstrip()
        empty = " " * _STATE_CELLS
        return "\n".join([first, *(f"{start} {empty} {row}".rstrip() for row in rows[1:])])


def clock_text(at_ms: int) -> str:
    """Return a session time as ``m:ss``, from an hour on ``h:mm:ss``."""
    seconds = max(at_ms, 0) // 1000
    minutes, hours = seconds // 60, seconds // 3600
    if hours:
        return f"{hours}:{minutes % 60:02}:{seconds % 60:02}"
    return f"{minutes}:{seconds % 60:02}"


def run_label(state: DeckState, run: str) -> str:
    """Return how a run is named in a line: ``parent``, or a fork's handle and name."""
    if run == PARENT:
        return "parent"
    fork = state.forks.get(run)
    handle = one_line(run, 12)
    if fork is None or fork.name == run:
        return handle
    return f"{handle} {one_line(fork.name, 32)}"
