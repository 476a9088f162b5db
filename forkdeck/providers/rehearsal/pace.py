"""The speed at which answers are written, by the server's clock.

Used by an exchange for every frame; waits are scaled by the speed. A test injects a
manual clock, or speed 0, and waits for nothing.
"""

from __future__ import annotations

import asyncio

from forkdeck.model.ports import Clock


class Pace:
    """Waits of one answer, against due times, so that small delays do not add up.

    Args:
        clock: Where time comes from.
        speed: 2 is twice as fast; 0 means no waits at all.
        gone: Set when the client left: every wait ends then.
    """

    def __init__(self, clock: Clock, speed: float, gone: asyncio.Event) -> None:
        self._clock = clock
        self._speed = speed
        self._gone = gone
        self._start_ms = clock.monotonic_ms()

    async def until(self, due_ms: float) -> None:
        """Wait until `due_ms` of the script have passed since the answer began.

        Raises:
            ClientGone: The client left meanwhile.
        """
        if self._speed > 0:
            passed = self._clock.monotonic_ms() - self._start_ms
            await self.hold((due_ms / self._speed - passed) / 1000)
        elif self._gone.is_set():
            raise ClientGone

    async def hold(self, seconds: float) -> None:
        """Wait `seconds` as they are, not scaled.

        Raises:
            ClientGone: The client left meanwhile.
        """
        if seconds > 0 and not self._gone.is_set():
            timer = asyncio.ensure_future(self._clock.sleep(seconds))
            leaving = asyncio.ensure_future(self._gone.wait())
            try:
                await asyncio.wait((timer, leaving), return_when=asyncio.FIRST_COMPLETED)
            finally:
                timer.cancel()
                leaving.cancel()
        if self._gone.is_set():
            raise ClientGone


class ClientGone(Exception):
    """The client closed its connection before the answer was whole."""
