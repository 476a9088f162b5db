"""Concurrency places of a working directory, shared by all ForkDeck processes.

Each place is a file with an advisory lock, which the kernel frees when its process dies: the dead
never block the limit. The file says whose fork holds the place; a free place that still says so
was left by a dead process, and what that had running must be closed as interrupted.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

_LONGEST_BYTES = 8_192


class Holder(msgspec.Struct, frozen=True):
    """Whose fork holds a place: the session's directory and the fork's handle."""

    session: str
    handle: str


@dataclass(frozen=True)
class _Held:
    descriptor: int | None


def leases(directory: Path, cwd: str) -> Path:
    """Return the folder of one working directory's leases."""
    digest = hashlib.sha256(cwd.encode("utf-8", "surrogateescape")).hexdigest()
    return directory / digest[:16]


class Places:
    """At most `limit` forks run at once in one working directory.

    Args:
        directory: Holds the lock files; None counts this process alone.
        limit: Number of places, at least 1.
        session: This session's directory, written into the places it holds.
    """

    def __init__(self, directory: Path | None, limit: int, session: Path | None = None) -> None:
        self._directory = directory
        self._limit = max(1, limit)
        self._session = "" if session is None else str(session)
        self._held: dict[int, _Held] = {}
        self._dead: list[Holder] = []

    @property
    def full(self) -> bool:
        """Whether this process alone holds every place."""
        return len(self._held) >= self._limit

    @property
    def count(self) -> int:
        """How many places there are."""
        return self._limit

    @property
    def elsewhere(self) -> int:
        """How many places others hold, when none is free."""
        return self._limit - len(self._held)

    def take(self, handle: str = "") -> int | None:
        """Take a free place (0-based) for a fork, or return None; never waits.

        The calls are a few system calls per place and do not block.
        """
        for place in range(self._limit):
            if place in self._held:
                continue
            if self._directory is None:
                self._held[place] = _Held(None)
                return place
            descriptor = self._lock(self._directory, place)
            if descriptor is not None:
                self._write(descriptor, Holder(self._session, handle))
                self._held[place] = _Held(descriptor)
                return place
        return None

    def give(self, place: int) -> None:
        """Give a place back; giving one twice does nothing."""
        held = self._held.pop(place, None)
        if held is not None and held.descriptor is not None:
            with suppress(OSError):
                os.ftruncate(held.descriptor, 0)
            os.close(held.descriptor)

    def take_dead(self) -> tuple[Holder, ...]:
        """Return, once, whose places were found free though nobody gave them back."""
        dead, self._dead = tuple(self._dead), []
        return dead

    def look(self) -> tuple[Holder, ...]:
        """Look at every place file for what dead processes left; blocks for a few system calls."""
        if self._directory is None or not self._directory.is_dir():
            return ()
        with suppress(OSError):
            for path in sorted(self._directory.glob("place-*.lock")):
                number = path.stem.removeprefix("place-")
                if number.isascii() and number.isdigit() and int(number) not in self._held:
                    descriptor = self._lock(self._directory, int(number))
                    if descriptor is not None:
                        os.close(descriptor)
        return self.take_dead()

    def _lock(self, directory: Path, place: int) -> int | None:
        """Lock a place and empty it; notes who was in it and died. None when it is taken."""
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
        with suppress(OSError):
            left = os.pread(descriptor, _LONGEST_BYTES, 0)
            os.ftruncate(descriptor, 0)
            self._note(left)
        return descriptor

    def _note(self, left: bytes) -> None:
        with suppress(msgspec.MsgspecError, UnicodeError):
            if left.strip():
                self._dead.append(msgspec.json.decode(left, type=Holder))

    @staticmethod
    def _write(descriptor: int, holder: Holder) -> None:
        with suppress(OSError):
            os.pwrite(descriptor, msgspec.json.encode(holder), 0)


def sessions_of(holders: Iterable[Holder]) -> tuple[Path, ...]:
    """Return the session directories of holders, each once."""
    return tuple(dict.fromkeys(Path(each.session) for each in holders if each.session))
