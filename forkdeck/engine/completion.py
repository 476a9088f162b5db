"""Paths for ``@file`` completion, from the parent's view."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from forkdeck.errors import ToolError
from forkdeck.sandbox.files import in_thread

if TYPE_CHECKING:
    from forkdeck.model.ports import Workspace

MOST_ENTRIES = 5_000
"""Entries of one directory that are looked at."""


async def complete_path(workspace: Workspace, prefix: str, limit: int) -> Sequence[str]:
    """Return paths that begin like `prefix`; directories end in ``/``. Never an error.

    Args:
        workspace: The view that says what may be seen.
        prefix: What was typed behind the @.
        limit: How many to return at most.
    """
    folder, _, name = prefix.rpartition("/")
    try:
        start = workspace.resolve(folder or ("/" if prefix.startswith("/") else "."))
    except ToolError:
        return ()
    names = await in_thread(_names, start, name)
    found: list[str] = []
    for each, is_directory in names:
        path = f"{folder}/{each}" if folder or prefix.startswith("/") else each
        try:
            workspace.resolve(path)
        except ToolError:
            continue
        found.append(f"{path}/" if is_directory else path)
        if len(found) >= limit:
            break
    return tuple(found)


def _names(directory: Path, start: str) -> list[tuple[str, bool]]:
    """Return (name, is a directory) of the entries that begin like `start`, in order."""
    found: list[tuple[str, bool]] = []
    try:
        with os.scandir(directory) as entries:
            for count, entry in enumerate(entries):
                if count >= MOST_ENTRIES:
                    break
                hidden = entry.name.startswith(".") and not start.startswith(".")
                if entry.name.lower().startswith(start.lower()) and not hidden:
                    found.append((entry.name, entry.is_dir(follow_symlinks=False)))
    except OSError:
        return []
    return sorted(found)
