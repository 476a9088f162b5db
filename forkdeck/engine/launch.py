"""Leader-first launch: of children with one prefix, one warms the cache and the others wait.

A fork asks its group before its first request. A group whose prefix is warm holds nobody.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forkdeck.model.ports import Clock

SMALLEST_HOLD_S = 5.0
LONGEST_HOLD_S = 30.0
SPACING_S = (0.05, 0.1)


class LaunchGroup:
    """Children with an equal prefix, launched together.

    Args:
        clock: Paces holds and spacing.
        rng: Randomness of the spacing.
        warm: The prefix is in the cache: nothing is held.
        last_ttft_ms: The last time to first token seen, for the length of the hold.
    """

    def __init__(
        self, clock: Clock, rng: random.Random, *, warm: bool, last_ttft_ms: int | None = None
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._released = warm
        self._leader: str | None = None
        self._waiting: list[str] = []
        self._changed: dict[str, asyncio.Event] = {}
        self._places = 0
        ttft_s = (last_ttft_ms or 0) / 1000
        self._hold_s = min(LONGEST_HOLD_S, max(SMALLEST_HOLD_S, 1.5 * ttft_s))

    async def enter(self, fork: str, held: Callable[[str, int], None]) -> None:
        """Wait until `fork` may send its first request.

        Args:
            fork: Its handle.
            held: Called with ``cache`` and the longest wait in milliseconds when it must wait.
        """
        if self._released:
            return
        if self._leader is None:
            self._leader = fork
            return
        held("cache", round(self._hold_s * 1000))
        event = self._changed[fork] = asyncio.Event()
        self._waiting.append(fork)
        try:
            await self._hold(event)
        finally:
            self._waiting.remove(fork)
            self._changed.pop(fork, None)
        if self._leader == fork:
            return
        self._places += 1
        low, high = SPACING_S
        await self._clock.sleep((self._places - 1) * self._rng.uniform(low, high))

    def follow(self, run: str) -> None:
        """Let a run that was asked before these children lead them."""
        self._released = False
        self._leader = run

    def opened(self, fork: str) -> None:
        """Note the first byte of `fork`'s first answer: its prefix can be read now."""
        del fork
        self._release()

    def left(self, fork: str) -> None:
        """Note that `fork` ended or failed; a leader without a first byte is replaced."""
        if self._released or self._leader != fork:
            return
        self._leader = self._waiting[0] if self._waiting else None
        if self._leader is not None:
            self._changed[self._leader].set()

    def _release(self) -> None:
        self._released = True
        for event in self._changed.values():
            event.set()

    async def _hold(self, event: asyncio.Event) -> None:
        """Wait for the event, at most as long as a hold lasts; then everyone goes."""
        wait = asyncio.create_task(event.wait(), name="hold")
        limit = asyncio.create_task(self._clock.sleep(self._hold_s), name="hold limit")
        try:
            await asyncio.wait({wait, limit}, return_when=asyncio.FIRST_COMPLETED)
            if not event.is_set():
                self._release()
        finally:
            wait.cancel()
            limit.cancel()
            await asyncio.gather(wait, limit, return_exceptions=True)
