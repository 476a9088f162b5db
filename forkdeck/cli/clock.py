"""The real clock."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """Time of this machine; implements `forkdeck.model.ports.Clock`."""

    def monotonic_ms(self) -> int:
        """Return milliseconds of a clock that never goes back."""
        return time.monotonic_ns() // 1_000_000

    def now(self) -> datetime:
        """Return the wall time in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellation passes through."""
        await asyncio.sleep(seconds)
