"""Waits for the disk: joined syncs, and the hold while the log has trouble.

Every module that starts something asks `Durable.ready` first; every point that must survive a
crash goes through `Durable.append`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forkdeck.model.events import Event
    from forkdeck.model.ports import Clock
    from forkdeck.store.hub import Hub

_LOOK_AGAIN_S = 0.25


class Durable:
    """The hub with joined syncs: forks that append at once wait for one sync together.

    Args:
        hub: Takes the events.
        clock: Paces the look at a troubled log.
    """

    def __init__(self, hub: Hub, clock: Clock) -> None:
        self._hub = hub
        self._clock = clock
        self._next: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def append(self, event: Event) -> Event:
        """Append an event and return when it is on the disk, or the trouble is known."""
        stamped = self._hub.append(event)
        await self.sync()
        return stamped

    async def sync(self) -> None:
        """Return when everything appended so far is on the disk."""
        if self._next is None:
            self._next = asyncio.create_task(self._sync(), name="sync")
        await asyncio.shield(self._next)

    async def ready(self) -> None:
        """Wait while lines are unsaved: nothing new starts meanwhile."""
        while self._hub.trouble is not None:
            await self._clock.sleep(_LOOK_AGAIN_S)

    async def flow(self) -> None:
        """Wait while so much is unsaved that streams must pause."""
        while self._hub.full:
            await self._clock.sleep(_LOOK_AGAIN_S)

    async def _sync(self) -> None:
        async with self._turn:
            self._next = None
            await self._hub.sync()
