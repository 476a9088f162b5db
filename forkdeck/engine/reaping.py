"""Closing what dead processes left running: their forks end interrupted in their own log.

The supervisor hands over whose places were found abandoned. A session that some process holds is
never touched: its lock says so. Nothing but the closing events is added, and nothing is resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from forkdeck.engine.places import Holder, sessions_of
from forkdeck.errors import ForkDeckError, SessionBusy
from forkdeck.model.events.fork import ForkEnded
from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.ids import is_session_id
from forkdeck.sandbox.files import in_thread
from forkdeck.sessionlog.catalogue import write_summary
from forkdeck.sessionlog.interrupted import closing_events
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.sessionlog.reader import read_log
from forkdeck.sessionlog.writer import JsonlSink
from forkdeck.store.reducer import fold

if TYPE_CHECKING:
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.places import Places


class Reaper:
    """Reaps sessions of dead processes, one at a time, in the background.

    Args:
        parts: The deck's parts.
    """

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._tasks: set[asyncio.Task[None]] = set()
        self._seen: set[Path] = set()

    def look_around(self, places: Places) -> None:
        """Look once, in the background, for what was left in this directory's places."""

        async def look() -> None:
            self.look(await in_thread(places.look))

        self._keep(asyncio.create_task(look(), name="places left"))

    def look(self, dead: Iterable[Holder]) -> None:
        """Reap the sessions of `dead` in the background."""
        for directory in sessions_of(dead):
            if directory not in self._seen and directory != self._parts.paths.directory:
                self._seen.add(directory)
                self._keep(asyncio.create_task(self._reap(directory), name="reap"))

    async def close(self) -> None:
        """Wait for what was begun: a log is never left half closed."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reap(self, directory: Path) -> None:
        if not self._ours(directory):
            return
        try:
            handles = await reap(directory)
        except (ForkDeckError, OSError) as error:
            self._parts.hub.append(
                NoticeRaised(
                    severity="warning",
                    what=f"A dead session's forks could not be closed: {error}",
                    kept=f"Its log stays at {directory}.",
                )
            )
            return
        if handles:
            left, they = ("was", "it is") if len(handles) == 1 else ("were", "they are")
            self._parts.hub.append(
                NoticeRaised(
                    severity="info",
                    what=f"{', '.join(handles)} of session {directory.name} {left} left running "
                    f"by a process that died; {they} marked INTR there.",
                    remedy=f"forkdeck --resume {directory.name} goes on with them.",
                )
            )

    def _ours(self, directory: Path) -> bool:
        """Tell whether a directory is a session beside this one: what a place says is data."""
        sessions = self._parts.paths.directory.parent.parent
        inside = directory.is_absolute() and directory.parent.parent == sessions
        return inside and is_session_id(directory.name)


async def reap(directory: Path) -> tuple[str, ...]:
    """End what a dead process left running in a session; returns the forks that end now.

    Raises:
        SessionError: The log cannot be read or opened.
    """
    paths = SessionPaths(directory)
    if not await in_thread(paths.events.is_file):
        return ()
    try:
        sink = await in_thread(JsonlSink.open, paths)
    except SessionBusy:
        return ()
    try:
        log = await in_thread(read_log, paths.events)
        state = fold(log.events)
        if log.newer or state.session.closed:
            return ()
        ended: list[str] = []
        for number, event in enumerate(closing_events(state), 1):
            stamped = replace(event, seq=state.seq + number, at_ms=state.at_ms)
            sink.put(stamped)
            if isinstance(event, ForkEnded):
                ended.append(event.run)
        await sink.sync()
        log = await in_thread(read_log, paths.events)
        await in_thread(write_summary, paths, fold(log.events))
        return tuple(ended)
    finally:
        await sink.close()
