"""Clocks for tests: the machine's, and one that is moved by hand."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class ManualClock:
    """Time moves when someone sleeps: the sleeper is woken at once, later."""

    def __init__(self) -> None:
        self.ms = 0.0

    def monotonic_ms(self) -> int:
        return int(self.ms)

    def now(self) -> datetime:
        return datetime(2026, 11, 30, 20, 22, tzinfo=UTC) + timedelta(milliseconds=self.ms)

    async def sleep(self, seconds: float) -> None:
        self.ms += seconds * 1000
        await asyncio.sleep(0)
