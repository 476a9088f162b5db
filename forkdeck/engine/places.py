"""Concurrency places of a working directory, shared by all ForkDeck processes.

Each place is a file with an advisory lock: a dead process gives its places back by itself, so
there is nothing to reap. The supervisor takes one per running fork.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path


def leases(directory: Path, cwd: str) -> Path:
    """Return the folder of one working directory's leases."""
    digest = hashlib.sha256(cwd.encode("utf-8", "surrogateescape")).hexdigest()
    return directory / digest[:16]


class Places:
    """At most `limit` forks run at once in one working directory.

    Args:
        directory: Holds the lock files; None counts this process alone.
        limit: Number of places, at least 1.
    """

    def __init__(self, directory: Path | None, limit: int) -> None:
        self._directory = directory
        self._limit = max(1, limit)
        self._held: dict[int, int | None] = {}

    @property
    def full(self) -> bool:
        """Whether this process alone holds every place."""
        return len(self._held) >= self._limit

    def take(self) -> int | None:
        """Take a free place (0-based), or return None; never waits.

        The calls are two system calls per place and do not block.
        """
        for place in range(self._limit):
            if place in self._held:
                continue
            if self._directory is None:
                self._held[place] = None
                return place
            descriptor = self._lock(self._directory, place)
            if descriptor is not None:
                self._held[place] = descriptor
                return place
        return None

    def give(self, place: int) -> None:
        """Give a place back; giving one twice does nothing."""
        descriptor = self._held.pop(place, None)
        if descriptor is not None:
            os.close(descriptor)

    @staticmethod
    def _lock(directory: Path, place: int) -> int | None:
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(directory / f"place-{place}.lock", flags, 0o600)
        except OSError:
            # Without a state directory the limit holds within this process.
            return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        return descriptor
