"""A clock for tests that is moved by hand, and by whoever sleeps."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class ManualClock:
    """Time moves when a test says so; a sleep moves it too, and its sleeper is woken at once."""

    def __init__(self) -> None:
        self.ms = 0.0
        self.slept: list[float] = []

    def monotonic_ms(self) -> int:
        return int(self.ms)

    def now(self) -> datetime:
        return datetime(2026, 11, 30, 20, 22, tzinfo=UTC) + timedelta(milliseconds=self.ms)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.ms += seconds * 1000
        await asyncio.sleep(0)
