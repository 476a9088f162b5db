"""Locks between ForkDeck processes: one maker of worktrees at a time, and who is alive.

The kernel frees both when their process dies, however it dies, so a lock that can be taken tells
that its owner is gone; a pid could not. Called by `create`, `removal` callers and `sweep`.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from forkdeck.errors import WorktreeError
from forkdeck.model.ports import Clock
from forkdeck.sessionlog.logfile import make_private_directory

_POLL_S: Final = 0.03
_PATIENCE_MS: Final = 60_000


def take(path: Path) -> int | None:
    """Take a lock and return its descriptor, or None while another holds it; brief.

    Raises:
        WorktreeError: The file cannot be made, or the file system has no locks.
    """
    try:
        make_private_directory(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise WorktreeError(f"The lock {path} cannot be made: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        os.close(descriptor)
        raise WorktreeError(
            f"The file system of {path.parent} has no locks: {error.strerror}.",
            "Set FORKDECK_STATE_DIR to a local disk.",
        ) from error
    return descriptor


class RepoLock:
    """Serialises what git cannot do twice at once: adding, pruning and removing worktrees."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._own = asyncio.Lock()

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None, None]:
        """Hold the lock; waits on the loop, never on a thread.

        Raises:
            WorktreeError: Another process held it for a minute.
        """
        async with self._own:
            descriptor = await self._wait()
            try:
                yield
            finally:
                os.close(descriptor)

    async def _wait(self) -> int:
        until_ms = self._clock.monotonic_ms() + _PATIENCE_MS
        while (descriptor := take(self._path)) is None:
            if self._clock.monotonic_ms() > until_ms:
                raise WorktreeError(
                    "Another ForkDeck has been making worktrees of this repository for a minute.",
                    "Wait for it or end it, then try again.",
                )
            await self._clock.sleep(_POLL_S)
        return descriptor


class SessionLocks:
    """The locks of the sessions this process has worktrees of; held until `close`."""

    def __init__(self) -> None:
        self._held: dict[Path, int] = {}

    def hold(self, session: Path) -> bool:
        """Hold a session's lock from now on; False while another process does."""
        if session in self._held:
            return True
        descriptor = take(session / "lock")
        if descriptor is None:
            return False
        self._held[session] = descriptor
        return True

    def is_live(self, session: Path) -> bool:
        """Tell whether a process (this one too) has the session's worktrees in use."""
        if session in self._held:
            return True
        descriptor = take(session / "lock")
        if descriptor is None:
            return True
        os.close(descriptor)
        return False

    def close(self) -> None:
        """Let go of all."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()
