"""Says beforehand when a worktree is a lot: many files, many bytes, or little room for them.

Reads the project's index as data (no git runs) and asks the file system of the state directory.
Called by `forkdeck.worktrees.manager` before the first write fork of a session; blocking.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from forkdeck.worktrees.layout import Repo

MANY_FILES: Final = 20_000
MANY_BYTES: Final = 500_000_000
LEAST_FREE_BYTES: Final = 1_000_000_000

_LONGEST_INDEX: Final = 64 << 20
_HEADER: Final = 12
_SIZE_AT: Final = 36
_EXTENDED, _NAME_LENGTH = 0x4000, 0x0FFF


def burden(repo: Repo, state: Path) -> str:
    """Return why a worktree of `repo` below `state` takes long or much room, or nothing.

    Sizes are those of the files when git last looked at them.
    """
    try:
        index = repo.git_dir / "index"
        with index.open("rb") as file:
            data = file.read(_LONGEST_INDEX)
    except OSError:
        return ""
    if data[:4] != b"DIRC" or len(data) < _HEADER:
        return ""
    count = int.from_bytes(data[8:12], "big")
    if count > MANY_FILES:
        return f"This repository has {count:,} files, and each write fork gets its own copy."
    size = sum(_sizes(data, count, 32 if repo.object_format == "sha256" else 20))
    if size > MANY_BYTES:
        return f"This repository has {size / 1e6:,.0f} MB of files; each write fork gets a copy."
    free = _free_bytes(state)
    if free is not None and free < max(LEAST_FREE_BYTES, 2 * size):
        return f"Only {free / 1e6:,.0f} MB are free below {state}, where write forks have copies."
    return ""


def _sizes(data: bytes, count: int, hash_bytes: int) -> Iterator[int]:
    """Yield the size of every file in an index; ends early when the index is odd."""
    version = int.from_bytes(data[4:8], "big")
    flags_at = 40 + hash_bytes
    at = _HEADER
    try:
        for _ in range(count):
            yield struct.unpack_from(">I", data, at + _SIZE_AT)[0]
            flags = struct.unpack_from(">H", data, at + flags_at)[0]
            name = at + flags_at + (4 if flags & _EXTENDED else 2)
            if version >= 4:
                # Names are shortened: a number in 7-bit bytes, then the rest up to a zero.
                while data[name] & 0x80:
                    name += 1
                at = data.index(b"\0", name + 1) + 1
                continue
            length = flags & _NAME_LENGTH
            end = name + length if length < _NAME_LENGTH else data.index(b"\0", name)
            # At least one zero follows, up to a multiple of eight.
            at += (end - at + 8) // 8 * 8
    except (struct.error, IndexError, ValueError):
        return


def _free_bytes(state: Path) -> int | None:
    place = next((path for path in (state, *state.parents) if path.is_dir()), None)
    try:
        return None if place is None else shutil.disk_usage(place).free
    except OSError:
        return None
