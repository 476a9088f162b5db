"""The one flush timer: it hands the newest state to the deck screen, and no faster than needed.

The hub wakes it; the screen draws. An urgent wake and a key flush at once, on the loop's next
turn; streaming text waits for the next tick of 15 a second. While nothing is dirty the timer is
paused. It is also the only clock of spinners and ages, which tick four times a second and only
while something runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

FLUSH_HZ = 15
"""Flushes a second while something changes."""

BOARD_EVERY = 2
"""The board is drawn every second flush of streaming text."""

SPIN_HZ = 4
"""Frames of spinners a second."""

SLOW_FLUSH_S = 0.008
"""A flush that took longer makes the next tick a pause, so that keys keep their time."""


@dataclass(frozen=True, slots=True)
class Flush:
    """What one flush is for."""

    urgent: bool = False
    """Something came or went; draw everything."""
    board: bool = True
    """Whether the board is due."""
    spin: bool = False
    """Only time has passed."""


class Ticker(Protocol):
    """A timer that can be paused; Textual's `Timer` is one."""

    def pause(self) -> None:
        """Stop ticking."""
        ...

    def resume(self) -> None:
        """Go on ticking."""
        ...

    def stop(self) -> None:
        """Stop for good."""
        ...


class Flusher:
    """Joins wakes into flushes.

    Args:
        draw: Draws; called on the loop, never while it runs already.
        set_interval: Makes the two timers, paused.
        call_soon: Calls back on the loop's next turn.
        seconds: Monotonic seconds, to measure a flush.
    """

    def __init__(
        self,
        draw: Callable[[Flush], None],
        *,
        set_interval: Callable[[float, Callable[[], None]], Ticker],
        call_soon: Callable[[Callable[[], None]], object],
        seconds: Callable[[], float],
    ) -> None:
        self._draw = draw
        self._call_soon = call_soon
        self._seconds = seconds
        self._dirty = False
        self._urgent = False
        self._soon = False
        self._skip = False
        self._board_due = False
        self._count = 0
        self._running = False
        self._ticking = False
        self._closed = False
        self.flushes = 0
        """How many flushes were drawn."""
        self._timer = set_interval(1 / FLUSH_HZ, self._tick)
        self._spinner = set_interval(1 / SPIN_HZ, self._spin)

    def wake(self, urgent: bool) -> None:
        """Note a change; an urgent one is drawn on the loop's next turn."""
        if self._closed:
            return
        self._dirty = True
        if urgent:
            self._urgent = True
            if not self._soon:
                self._soon = True
                self._call_soon(self._now)
        elif not self._ticking:
            self._ticking = True
            self._timer.resume()

    def key(self) -> None:
        """Draw what is pending now, because a key was pressed."""
        if self._dirty:
            self.wake(True)

    def running(self, running: bool) -> None:
        """Say whether anything runs: spinners and ages turn only then."""
        if running == self._running or self._closed:
            return
        self._running = running
        if running:
            self._spinner.resume()
        else:
            self._spinner.pause()

    def flush(self) -> None:
        """Draw at once, dirty or not."""
        self._urgent = True
        self._dirty = True
        self._now()

    def close(self) -> None:
        """Stop both timers."""
        self._closed = True
        self._timer.stop()
        self._spinner.stop()

    def _now(self) -> None:
        self._soon = False
        if self._dirty and not self._closed:
            self._flush()

    def _tick(self) -> None:
        if self._closed:
            return
        if self._skip:
            self._skip = False
            return
        if self._dirty:
            self._flush()
        elif self._board_due:
            self._board_due = False
            self._draw(Flush(board=True))
        else:
            self._ticking = False
            self._timer.pause()

    def _flush(self) -> None:
        urgent, self._urgent, self._dirty = self._urgent, False, False
        self._count += 1
        board = urgent or self._count % BOARD_EVERY == 0
        self._board_due = not board
        started = self._seconds()
        self.flushes += 1
        self._draw(Flush(urgent=urgent, board=board))
        self._skip = self._seconds() - started > SLOW_FLUSH_S
        if self._board_due and not self._ticking:
            self._ticking = True
            self._timer.resume()

    def _spin(self) -> None:
        if self._running and not self._closed:
            self._draw(Flush(spin=True))
