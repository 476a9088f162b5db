"""Reading files of a project that may be hostile.

Used by `loading`, `trust` and `instructions`. A file counts only when it is a regular file whose
real place is inside the project's root; anything else is as good as absent.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

HASHED_BYTES = 4 * 1024 * 1024
"""Largest file that can be trusted; settings and agents are short."""

TOO_LARGE = "too large"
"""What stands in place of a larger file's hash."""

_MOST_LOOKED_AT = 20_000


def project_root(cwd: Path) -> Path:
    """Return the nearest directory around `cwd` that has a ``.git``, or `cwd` itself."""
    here = cwd.resolve()
    for directory in (here, *here.parents):
        if (directory / ".git").exists():
            return directory
    return here


@contextmanager
def opened(root: Path, relative: str) -> Generator[BufferedReader | None]:
    """Open a project file for reading; None when it is absent, special or outside the root."""
    handle = _open(root, relative)
    if handle is None:
        yield None
        return
    with os.fdopen(handle, "rb") as stream:
        yield stream


def read(root: Path, relative: str, limit: int) -> bytes | None:
    """Return at most `limit` + 1 bytes of a project file, or None when it does not count."""
    with opened(root, relative) as stream:
        if stream is None:
            return None
        try:
            return stream.read(limit + 1)
        except OSError:
            return None


def sha256(root: Path, relative: str) -> tuple[str, int] | None:
    """Return the hash (hex) and size in bytes of a project file, or None.

    A file over `HASHED_BYTES` is never read: it gets `TOO_LARGE`, which is no hash of anything.
    """
    with opened(root, relative) as stream:
        if stream is None:
            return None
        size = os.fstat(stream.fileno()).st_size
        data = stream.read(HASHED_BYTES + 1) if size <= HASHED_BYTES else b""
        if size > HASHED_BYTES or len(data) > HASHED_BYTES:
            return TOO_LARGE, size
        return hashlib.sha256(data).hexdigest(), len(data)


def below(root: Path, relative: str, suffix: str = "", most: int = 2_000) -> list[str]:
    """Return the regular files below a directory of the project, sorted, ``/`` separated.

    Directories that are links are not entered; files that are links out of the root are left
    out. At most `most` entries.
    """
    top = root / relative
    if top.is_symlink() or not top.is_dir():
        return []
    found: list[str] = []
    looked_at = 0
    for directory, names, files in os.walk(top):
        looked_at += 1 + len(files)
        if looked_at > _MOST_LOOKED_AT:
            return found
        names.sort()
        for name in sorted(files):
            path = Path(directory, name).relative_to(root).as_posix()
            if name.endswith(suffix) and _place(root, path) is not None:
                found.append(path)
                if len(found) >= most:
                    return found
    return found


def _place(root: Path, relative: str) -> Path | None:
    try:
        top = root.resolve()
        real = (top / relative).resolve(strict=True)
        if not real.is_relative_to(top) or not stat.S_ISREG(real.stat().st_mode):
            return None
    except (OSError, RuntimeError, ValueError):
        return None
    return real


def _open(root: Path, relative: str) -> int | None:
    real = _place(root, relative)
    if real is None:
        return None
    try:
        # The real path holds no link any more; one that appears meanwhile is refused.
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    return handle
