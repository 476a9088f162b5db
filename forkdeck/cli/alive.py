"""Temporary directories that outlive no one: each is locked while its process lives.

Used for the demo's world. Whoever makes a new one first removes those whose process is gone, as
after a kill.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_LOCK = ".alive"
_YOUNG_S = 60.0
"""A directory without a lock file may be just about to get one."""


class Alive:
    """A temporary directory of this process; made by `make`, gone after `remove`."""

    def __init__(self, directory: Path, handle: int) -> None:
        self.directory = directory
        self._handle: int | None = handle

    @classmethod
    def make(cls, prefix: str) -> Alive:
        """Make a directory for this process alone, and remove what dead ones left.

        Raises:
            OSError: The temporary directory cannot be written.
        """
        _sweep(Path(tempfile.gettempdir()), prefix)
        directory = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        handle = os.open(directory / _LOCK, flags, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        return cls(directory, handle)

    def remove(self) -> None:
        """Remove the directory with all in it; safe to call twice."""
        shutil.rmtree(self.directory, ignore_errors=True)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _sweep(place: Path, prefix: str) -> None:
    for directory in place.glob(f"{prefix}*"):
        with suppress(OSError):
            if _is_left(directory):
                shutil.rmtree(directory, ignore_errors=True)


def _is_left(directory: Path) -> bool:
    """Tell whether a directory is ours and the process that made it is gone."""
    facts = directory.lstat()
    if directory.is_symlink() or not directory.is_dir() or facts.st_uid != os.geteuid():
        return False
    try:
        handle = os.open(directory / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return time.time() - facts.st_mtime > _YOUNG_S
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True
