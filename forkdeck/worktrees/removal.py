"""Removes directories that ForkDeck made, and nothing else.

The one place of this package where directories are deleted. A path is removed only when it really
stands below the worktrees' root with every link resolved, and never through a link. Callers have
saved what was in it, or it never held anything.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from forkdeck.errors import WorktreeError
from forkdeck.worktrees.layout import Layout


def remove_directory(layout: Layout, directory: Path) -> None:
    """Remove a directory below the worktrees' root; blocking. A missing one is fine.

    Raises:
        WorktreeError: It is a link, it stands elsewhere, or the system refused.
    """
    try:
        mode = directory.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise WorktreeError(f"{directory} cannot be looked at: {error.strerror}.") from error
    if not stat.S_ISDIR(mode):
        raise WorktreeError(f"{directory} is no directory; it was left alone.")
    if not layout.contains(directory):
        raise WorktreeError(f"{directory} is not ForkDeck's own; it was left alone.")
    unlock_directories(directory)
    try:
        shutil.rmtree(directory)
    except OSError as error:
        raise WorktreeError(
            f"{directory} could not be removed: {error.strerror}.", "Remove it by hand."
        ) from error


def unlock_directories(directory: Path) -> None:
    """Give the owner access to every directory below, since a run may have taken it away."""
    try:
        directory.chmod(0o700)
    except OSError:
        return
    for root, names, _ in os.walk(directory, followlinks=False):
        for name in names:
            path = Path(root, name)
            try:
                mode = path.lstat().st_mode
                if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
                    path.chmod(0o700)
            except OSError:
                # The removal that follows names what it could not do.
                continue
