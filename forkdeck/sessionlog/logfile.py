"""The open log file: locked, appended to in whole batches, never left torn by an error.

Owned by the writer's thread; every call blocks. A batch is one write; when it fails the file
goes back to its length before, so that the batch can be written again. A file that was deleted
while open is made anew with everything it held.
"""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from forkdeck.errors import SessionError
from forkdeck.sessionlog.lock import take_lock
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.sessionlog.reader import repair_held_tail

_LOG_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_COPY_BLOCK = 1 << 20
_LEVELS = 3
# A session's directory stands at <state>/sessions/<project>/<session>.
# macOS has no fdatasync; fsync is the stronger call.
_sync_data = getattr(os, "fdatasync", os.fsync)


def make_private_directory(directory: Path) -> None:
    """Make a directory, and what is missing above it, readable by the user alone.

    Raises:
        OSError: It cannot be made.
    """
    missing: list[Path] = []
    step = directory
    while not step.exists():
        missing.append(step)
        step = step.parent
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    if not directory.is_dir():
        raise NotADirectoryError(20, "Not a directory", str(directory))


def check_private(directory: Path) -> None:
    """Refuse a session's directory that somebody else could change.

    Looks at the directory and at what stands above it up to the state directory.

    Raises:
        SessionError: One of them is another user's, or others may write to it.
        OSError: It cannot be looked at.
    """
    for path in (directory, *directory.parents[:_LEVELS]):
        facts = path.stat()
        if facts.st_uid not in (os.geteuid(), 0):
            raise SessionError(
                f"{path} belongs to another user (id {facts.st_uid}), who could change what is"
                " logged and done here.",
                "Take it over with chown, or set FORKDECK_STATE_DIR to a directory of your own.",
            )
        # In a sticky directory (/tmp) others can add names and change none.
        if facts.st_mode & 0o022 and not facts.st_mode & stat.S_ISVTX:
            raise SessionError(
                f"Others may write to {path}, and could change what is logged and done here.",
                f"Use: chmod go-w {shlex.quote(str(path))}",
            )


class LogFile:
    """A session's log, locked for this process until `close`.

    Raises:
        SessionBusy: Another process (or another part of this one) holds the session.
        SessionError: The directory or a file in it cannot be made or opened, or is not private.
    """

    def __init__(self, paths: SessionPaths) -> None:
        self._paths = paths
        self._torn_at: int | None = None
        self._lock = -1
        self._log = -1
        try:
            make_private_directory(paths.directory)
            check_private(paths.directory)
            self._lock = take_lock(paths)
            existed = paths.events.exists()
            self.kept_aside_bytes = repair_held_tail(paths) if existed else 0
            self._log = os.open(paths.events, _LOG_FLAGS, 0o600)
            _sync_directory(paths.directory)
        except OSError as problem:
            self.close()
            raise SessionError(
                f"the session log in {paths.directory} cannot be opened:"
                f" {problem.strerror or problem}",
                "Check the directory's owner and free space, or set FORKDECK_STATE_DIR.",
            ) from problem
        except SessionError:
            self.close()
            raise

    def append(self, batch: bytes) -> None:
        """Write whole lines at the end of the file.

        Raises:
            OSError: Nothing of the batch is in the file.
        """
        self._ensure_there()
        if self._torn_at is not None:
            os.ftruncate(self._log, self._torn_at)
            self._torn_at = None
        start = os.fstat(self._log).st_size
        try:
            view = memoryview(batch)
            while view:
                view = view[os.write(self._log, view) :]
        except OSError:
            # If even this fails, the next append begins with it.
            self._torn_at = start
            os.ftruncate(self._log, start)
            self._torn_at = None
            raise

    def sync(self) -> None:
        """Wait until everything written is on the disk.

        Raises:
            OSError: The disk refused.
        """
        self._ensure_there()
        _sync_data(self._log)

    def close(self) -> None:
        """Close the log and release the lock; safe to call twice."""
        for descriptor in (self._log, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._log = self._lock = -1

    def _ensure_there(self) -> None:
        """Make a deleted log anew: the open descriptor still has all of it."""
        if os.fstat(self._log).st_nlink > 0:
            return
        make_private_directory(self._paths.directory)
        lock = take_lock(self._paths)
        fresh = -1
        try:
            fresh = os.open(self._paths.events, _LOG_FLAGS | os.O_EXCL, 0o600)
            end = os.fstat(self._log).st_size if self._torn_at is None else self._torn_at
            _copy(self._log, fresh, end)
            os.fsync(fresh)
            _sync_directory(self._paths.directory)
        except OSError:
            os.close(lock)
            if fresh >= 0:
                os.close(fresh)
                self._paths.events.unlink(missing_ok=True)
            raise
        old_log, old_lock = self._log, self._lock
        self._log, self._lock, self._torn_at = fresh, lock, None
        os.close(old_log)
        os.close(old_lock)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy(source: int, target: int, end: int) -> None:
    position = 0
    while position < end:
        part = os.pread(source, min(_COPY_BLOCK, end - position), position)
        if not part:
            return
        position += len(part)
        view = memoryview(part)
        while view:
            view = view[os.write(target, view) :]
