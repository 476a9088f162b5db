"""Ports of time and of the log."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from forkdeck.model.events import Event


class Clock(Protocol):
    """Time, injected; tests use a manual one."""

    def monotonic_ms(self) -> int:
        """Return milliseconds of a clock that never goes back."""
        ...

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellation passes through."""
        ...


class LogSink(Protocol):
    """Where the hub hands every event, first of all."""

    @property
    def trouble(self) -> str | None:
        """Why lines are unsaved at the moment, or None. Nothing new may start meanwhile."""
        ...

    @property
    def full(self) -> bool:
        """Whether so much is unsaved that running streams should pause."""
        ...

    def put(self, event: Event) -> None:
        """Take an event in order; never blocks, never loses it."""
        ...

    async def sync(self) -> None:
        """Return when everything put so far is on the disk (or the trouble is known)."""
        ...

    async def close(self) -> None:
        """Write what is left, sync, release the lock."""
        ...
