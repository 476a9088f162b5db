"""Removes a worktree whose work is saved, and verifies that first.

The tree is collected once more and compared with its newest ref before anything goes. git's own
removal is forced because a plain one runs ``git status`` in the tree, and so the programs a run
may have configured there. Called by `forkdeck.worktrees.manager` and `sweep`.
"""

from __future__ import annotations

from forkdeck.errors import WorktreeError
from forkdeck.worktrees.create import Maker
from forkdeck.worktrees.layout import ForkPlace, ForkRecord, write_private
from forkdeck.worktrees.removal import remove_directory, unlock_directories
from forkdeck.worktrees.save import is_saved


async def remove_worktree(maker: Maker, place: ForkPlace, record: ForkRecord) -> None:
    """Remove a worktree, its registration and its private git directory.

    Raises:
        WorktreeError: Its work is not saved, or the system refused; the directory stays.
    """
    if not await is_saved(place, record, sandbox=maker.sandbox, git=maker.git):
        raise WorktreeError(
            f"{record.handle} holds work that is not saved, so its directory stays: {place.tree}.",
            "Save it, then remove it.",
        )
    common, git = record.repo.common, maker.git
    async with maker.lock.held():
        if place.tree.is_dir() and not place.tree.is_symlink():
            await git.thread(lambda: unlock_directories(place.tree))
            await git.thread(lambda: _restore_pointer(place))
            await git.call(common, "worktree", "unlock", str(place.tree))
            await git.call(common, "worktree", "remove", "--force", str(place.tree))
        else:
            await git.call(common, "worktree", "unlock", str(place.tree))
        await git.thread(lambda: remove_directory(maker.layout, place.directory))
        await git.call(common, "worktree", "prune")


def _restore_pointer(place: ForkPlace) -> None:
    """Give the tree its own ``.git`` file back, so that git knows it as its worktree."""
    try:
        original = place.linked.read_bytes()
    except FileNotFoundError:
        return
    pointer = place.tree / ".git"
    if not pointer.is_symlink() and not pointer.is_dir():
        write_private(pointer, original)
