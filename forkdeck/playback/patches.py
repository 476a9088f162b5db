"""A recorded fork's diff, from the patch file that was saved beside the log.

Called by the replay deck, off the event loop. The name of the file comes from the log, which may
be anybody's: only a plain name inside the session's own directory is opened, and no link.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from forkdeck.errors import WorktreeError
from forkdeck.model.ids import is_handle
from forkdeck.model.state import ForkState
from forkdeck.model.work import WorkDiff
from forkdeck.store.patch import parse_patch
from forkdeck.store.text import one_line

PATCH_LIMIT_BYTES = 8 * 1024 * 1024
"""How much of a patch is read."""

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,100}\.patch\Z")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def recorded_diff(directory: Path | None, fork: ForkState) -> WorkDiff:
    """Return the diff of a fork's saved work as far as the recording holds it.

    Args:
        directory: The session's directory; None when the recording has none.
        fork: The fork at the replay's position.

    Raises:
        WorktreeError: There is no patch beside the log, or it cannot be read.
    """
    work = fork.work
    if work is None:
        raise WorktreeError(
            f"{fork.handle} has no saved work at this point of the recording",
            "Go to a later point, or open the session live.",
        )
    if directory is None or work.patch is None:
        raise WorktreeError(
            f"the diff of {fork.handle} is not in this recording",
            "A replay shows a diff only when its patch lies beside the log.",
        )
    data = _read_beside(directory, fork.handle, work.patch)
    cut = len(data) > PATCH_LIMIT_BYTES
    text = data[:PATCH_LIMIT_BYTES].decode("utf-8", "replace")
    diff = parse_patch(text, base=work.base, commit=work.commit)
    if not cut:
        return diff
    return WorkDiff(
        base=diff.base, commit=diff.commit, files=diff.files, lines=diff.lines, truncated=True
    )


def _read_beside(directory: Path, handle: str, recorded: str) -> bytes:
    """Read a fork's patch by its plain name; the recorded directory is never used."""
    name = recorded.rpartition("/")[2]
    if _NAME.match(name) is None or not is_handle(handle):
        raise WorktreeError(
            f"the recording names {one_line(recorded, 80)!r} as its patch; it was not opened",
            "Only a *.patch file beside the log is read.",
        )
    for parts in (("forks", handle), ()):
        with suppress(FileNotFoundError, NotADirectoryError):
            try:
                return _read(directory, parts, name)
            except OSError as problem:
                if isinstance(problem, FileNotFoundError | NotADirectoryError):
                    raise
                raise WorktreeError(
                    f"the patch {name} beside the log cannot be read: {problem.strerror}",
                    "The diff is not available in this replay.",
                ) from problem
    raise WorktreeError(
        f"the patch {name} is not beside the log", "The diff is not available in this replay."
    )


def _read(directory: Path, parts: tuple[str, ...], name: str) -> bytes:
    """Read a regular file below `directory`, following no link on the way."""
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            below = os.open(part, _DIRECTORY, dir_fd=place)
            os.close(place)
            place = below
        descriptor = os.open(name, _FILE, dir_fd=place)
    finally:
        os.close(place)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise WorktreeError(f"{name} is no regular file; it was not read")
        return file.read(PATCH_LIMIT_BYTES + 1)
