"""The one gate of an endpoint and key: who may send now, and how long to wait after a failure.

The engine enters before every request and leaves when it ended. First come, first served. A 429
halves how many may be inside and, when it says how long, closes the gate for everyone; first bytes
let the width climb back, one place per full width of them.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from forkdeck.errors import (
    ProviderError,
    RateLimited,
    StreamCut,
)
from forkdeck.model.ports import Clock

ATTEMPTS = 5
"""How often a request is tried when the endpoint does not say when to come back."""
RESENT = 3
"""How often a step whose stream broke is sent again."""
SHORTEST_S, LONGEST_S = 1.0, 30.0
SPACING_MS = (50, 100)
"""Least and most time between two entries after a 429."""
_SAME_BURST_MS = 1_000

Reason: TypeAlias = Literal["429", "place"]


@dataclass(eq=False)
class _Ticket:
    run: str
    waiting: Callable[[str, int], None]
    turn: asyncio.Future[None]
    told: tuple[Reason, int] | None = None


class RateGate:
    """Lets runs through to the endpoint.

    Args:
        clock: Time of waits.
        width: How many may be inside at once when all is well.
        rng: Source of jitter; injected so that tests can repeat it.
    """

    def __init__(self, clock: Clock, *, width: int = 8, rng: random.Random | None = None) -> None:
        self._clock = clock
        self._most = max(1, width)
        self._width = self._most
        self._rng = rng or random.Random()
        self._inside: Counter[str] = Counter()
        self._queue: deque[_Ticket] = deque()
        self._opens_at_ms = 0
        self._next_at_ms = 0
        self._spaced = False
        self._successes = 0
        self._halved_at_ms: int | None = None
        self._timer: asyncio.Task[None] | None = None

    @property
    def width(self) -> int:
        """How many may be inside at once now."""
        return self._width

    @property
    def most(self) -> int:
        """How many may be inside at once when all is well."""
        return self._most

    @property
    def inside(self) -> int:
        """How many are inside now."""
        return self._inside.total()

    def closed_ms(self) -> int:
        """Return for how many milliseconds the gate stays closed to all; 0 when it is open."""
        return max(0, self._opens_at_ms - self._clock.monotonic_ms())

    async def enter(self, run: str, waiting: Callable[[str, int], None]) -> None:
        """Wait for the turn to send.

        Args:
            run: The run that asks.
            waiting: Called with ``429`` or ``place`` and the milliseconds, as far as known, when
                it has to wait; again when that changes.
        """
        ticket = _Ticket(run, waiting, asyncio.get_running_loop().create_future())
        self._queue.append(ticket)
        self._admit()
        if ticket.turn.done():
            return
        try:
            await ticket.turn
        except asyncio.CancelledError:
            if ticket.turn.done() and not ticket.turn.cancelled():
                # It was let in at the moment it gave up: the place goes to the next one.
                self.leave(run)
            else:
                if ticket in self._queue:
                    self._queue.remove(ticket)
                self._admit()
            raise

    def leave(self, run: str) -> None:
        """Give a place back; harmless for a run that is not inside."""
        if self._inside[run] > 0:
            self._inside[run] -= 1
        if self._inside[run] <= 0:
            del self._inside[run]
        self._admit()

    def succeeded(self) -> None:
        """Note a first byte: after a full width of them one more may be inside."""
        if self._width >= self._most:
            return
        self._successes += 1
        if self._successes >= self._width:
            self._successes = 0
            self._width += 1
            self._admit()

    def wait_after(self, error: ProviderError, attempt: int) -> tuple[float, int | None] | None:
        """Say how long to wait in seconds and how many attempts there are; None: give up.

        Args:
            error: Why the attempt failed.
            attempt: Its number, from 1. For a stream that broke: how often it has broken.
        """
        if isinstance(error, RateLimited):
            self._slow_down()
            if error.retry_after_s is not None:
                until = self._clock.monotonic_ms() + round(error.retry_after_s * 1000)
                self._opens_at_ms = max(self._opens_at_ms, until)
                self._admit()
                return error.retry_after_s, None
        elif isinstance(error, StreamCut):
            return (self._jitter(attempt), RESENT + 1) if attempt <= RESENT else None
        elif not error.retryable:
            return None
        if attempt >= ATTEMPTS:
            return None
        # An overloaded endpoint may also say how long; it is never asked earlier than that.
        return max(self._jitter(attempt), error.retry_after_s or 0.0), ATTEMPTS

    def _jitter(self, attempt: int) -> float:
        """Return full jitter between 1 s and a bound that doubles up to 30 s."""
        return self._rng.uniform(SHORTEST_S, min(LONGEST_S, 2.0 ** min(max(1, attempt), 6)))

    def _slow_down(self) -> None:
        now = self._clock.monotonic_ms()
        self._spaced = True
        self._successes = 0
        # The refusals of one burst say one thing, so they halve once.
        if self._halved_at_ms is None or now - self._halved_at_ms >= _SAME_BURST_MS:
            self._halved_at_ms = now
            self._width = max(1, self._width // 2)

    def _admit(self) -> None:
        """Let in whoever may come, in order, and set the timer for the next one."""
        while self._queue and self._inside.total() < self._width:
            now = self._clock.monotonic_ms()
            if max(self._opens_at_ms, self._next_at_ms) > now:
                break
            ticket = self._queue.popleft()
            if ticket.turn.done():
                continue
            self._inside[ticket.run] += 1
            ticket.turn.set_result(None)
            if self._spaced:
                self._next_at_ms = now + self._rng.randint(*SPACING_MS)
        if not self._queue:
            self._spaced = self._spaced and self._width < self._most
        self._tell()
        self._set_timer()

    def _tell(self) -> None:
        closed = self.closed_ms()
        reason: Reason = "429" if closed else "place"
        news = (reason, self._opens_at_ms if closed else 0)
        for ticket in tuple(self._queue):
            if ticket.told != news and not ticket.turn.done():
                ticket.told = news
                ticket.waiting(reason, closed)

    def _set_timer(self) -> None:
        """Wake up when the gate opens; only while someone waits for that.

        The clock is not asked again: it may have passed that moment since `_admit` looked, and
        then nobody else would let the waiting one in.
        """
        wanted = bool(self._queue) and self._inside.total() < self._width
        if self._timer is not None and not wanted:
            self._timer.cancel()
            self._timer = None
        if wanted and self._timer is None:
            self._timer = asyncio.get_running_loop().create_task(self._open_later())

    async def _open_later(self) -> None:
        while True:
            left = max(self._opens_at_ms, self._next_at_ms) - self._clock.monotonic_ms()
            if left <= 0:
                break
            await self._clock.sleep(left / 1000)
        self._timer = None
        self._admit()
