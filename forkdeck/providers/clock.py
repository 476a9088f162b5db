"""The machine's clock, for a provider that was given none."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """Real time."""

    def monotonic_ms(self) -> int:
        """Return milliseconds of a clock that never goes back."""
        return time.monotonic_ns() // 1_000_000

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellation passes through."""
        await asyncio.sleep(seconds)
