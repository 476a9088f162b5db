"""Files of the project and of the person that the engine may read by name; blocking.

Made by `compose`. A project's file counts as it was trusted; with a trust that holds for one run
only there is nothing to compare with, so it counts as it is.
"""

from __future__ import annotations

from pathlib import Path

from forkdeck.config.project_files import read
from forkdeck.config.trust import TrustStore


def grant(store: TrustStore, root: Path) -> str:
    """Trust the project's files as they are now, and say which; blocking."""
    files = store.grant(root)
    if not files:
        return "The project has no files that need trust."
    names = ", ".join(file.path for file in files)
    return f"Trusted as they are now: {names}. They are used from the next session on."


class TrustedFiles:
    """The project's agents, profiles and templates; implements `engine.parts.ProjectFiles`.

    Args:
        store: Knows what was trusted.
        root: The project's root.
    """

    def __init__(self, store: TrustStore, root: Path) -> None:
        self._store = store
        self._root = root

    def read(self, relative: str, limit: int) -> bytes | None:
        """Return at most `limit` bytes of a file as it was trusted, or None."""
        if self._store.state(self._root) != "trusted":
            data = read(self._root, relative, limit)
            return None if data is None else data[:limit]
        return self._store.read(self._root, relative, limit)

    def paths(self) -> tuple[str, ...]:
        """Return the paths of those files, sorted, relative to the root."""
        return tuple(file.path for file in self._store.files(self._root))


def user_file(directory: Path, relative: str, limit: int) -> bytes | None:
    """Return at most `limit` bytes of a file in the person's own directory, or None."""
    data = read(directory.resolve(), relative, limit)
    return None if data is None else data[:limit]
