"""What the file tools share: keys of read marks, missing-file help, shown paths."""

from __future__ import annotations

import difflib
import hashlib
import os

from forkdeck.errors import ForkDeckError, ToolError
from forkdeck.model.ports import Workspace
from forkdeck.sandbox.files import in_thread

FILE_LIMIT_BYTES = 16 * 1024 * 1024
"""Largest file that `read`, `edit` and `write` take whole."""


def key(workspace: Workspace, path: str) -> str:
    """Return the inside path that names a file in `ReadMarks`."""
    return os.path.normpath(path if path.startswith("/") else f"{workspace.cwd}/{path}")


def shown(workspace: Workspace, path: str) -> str:
    """Return a path as a person reads it: relative to the root where it is below it."""
    absolute = key(workspace, path)
    root = workspace.root.rstrip("/")
    return absolute[len(root) + 1 :] if absolute.startswith(root + "/") else absolute


def sha256(data: bytes) -> str:
    """Return the hash that `ReadMarks` keeps."""
    return hashlib.sha256(data).hexdigest()


async def load(workspace: Workspace, path: str) -> bytes:
    """Return a whole file.

    Raises:
        ToolError: It is missing (with names that are close), too large, or may not be read.
    """
    try:
        data = await workspace.read_bytes(path, FILE_LIMIT_BYTES)
    except ToolError as error:
        near = await in_thread(_near, workspace, path)
        if near and "does not exist" in error.what:
            raise ToolError(error.what, f"Close names there: {', '.join(near)}.") from error
        raise
    if len(data) > FILE_LIMIT_BYTES:
        raise ToolError(
            f"{path} is larger than {FILE_LIMIT_BYTES // 1024 // 1024} MiB.",
            "Use grep, or bash with head, tail or sed -n 'FROM,TOp'.",
        )
    return data


def _near(workspace: Workspace, path: str) -> list[str]:
    directory, name = os.path.split(key(workspace, path))
    try:
        names = [entry.name for entry in workspace.resolve(directory).iterdir()]
    except (OSError, ForkDeckError):
        return []
    by_lower = {entry.lower(): entry for entry in names}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    return [by_lower[entry] for entry in close]
