"""Makes a write fork's worktree: a hidden base ref, a linked worktree, its files, its own git.

``git worktree add`` fails when two run at once, so it is serialised and made without files; the
files are written outside the lock, in the git sandbox. A failure at any step takes back what was
made. Called by `forkdeck.worktrees.manager`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from forkdeck.errors import WorktreeError
from forkdeck.model.ports import Clock
from forkdeck.sessionlog.logfile import make_private_directory
from forkdeck.worktrees.git import HostGit, refusal
from forkdeck.worktrees.git_sandbox import GitSandbox
from forkdeck.worktrees.inspect import count_dirty
from forkdeck.worktrees.layout import (
    ForkPlace,
    ForkRecord,
    Layout,
    Repo,
    ref_name,
    write_private,
    write_record,
)
from forkdeck.worktrees.locks import RepoLock
from forkdeck.worktrees.private_git import make_private_git
from forkdeck.worktrees.removal import remove_directory
from forkdeck.worktrees.scratch import copy_plain
from forkdeck.worktrees.scripts import POPULATE
from forkdeck.worktrees.snapshot import keep_snapshot

_TRIES: Final = 6
_PASSING: Final = ("commondir", ".lock", "lock config", "locked'", "already registered")
"""Words of failures that another git process at the same time causes, and that pass."""


class Maker(msgspec.Struct, frozen=True):
    """What making a worktree needs."""

    git: HostGit
    sandbox: GitSandbox
    layout: Layout
    lock: RepoLock
    clock: Clock


async def make_worktree(
    maker: Maker, repo: Repo, place: ForkPlace, cwd: Path, *, dirty: bool
) -> ForkRecord:
    """Make a fork's worktree at the parent's HEAD, or at a snapshot of its tree.

    Args:
        maker: The parts.
        repo: The project.
        place: Where; nothing may stand there yet.
        cwd: The parent's directory, kept below the root.
        dirty: Whether uncommitted files come along.

    Raises:
        WorktreeError: It could not be made; nothing is left behind.
    """
    maker.sandbox.require()
    git, base_ref = maker.git, ref_name(place.session, place.handle, "base")
    head = await git.commit_of(repo.git_dir, "HEAD")
    if head is None:
        raise WorktreeError("This repository has no commit yet.", "Commit, then try again.")
    try:
        await git.thread(lambda: _make_directory(place.directory))
    except FileExistsError as error:
        raise WorktreeError(
            f"{place.handle} has a worktree already: {place.directory}.",
            "forkdeck worktrees lists it.",
        ) from error
    except OSError as error:
        raise WorktreeError(
            f"{place.directory} cannot be made: {error.strerror}.", "Check the free space."
        ) from error
    made = False
    try:
        record = await _make(maker, repo, place, cwd, head if not dirty else None)
        made = True
    finally:
        if not made:
            await asyncio.shield(asyncio.create_task(_take_back(maker, repo, place, base_ref)))
    return record


def _make_directory(directory: Path) -> None:
    """Make a fork's own directory, which must be new; blocking."""
    make_private_directory(directory.parent)
    directory.mkdir(mode=0o700)


async def _make(
    maker: Maker, repo: Repo, place: ForkPlace, cwd: Path, head: str | None
) -> ForkRecord:
    git, base_ref = maker.git, ref_name(place.session, place.handle, "base")
    if head is None:
        message = f"forkdeck: tree of the parent for {place.handle}"
        base = await keep_snapshot(repo, base_ref, message, sandbox=maker.sandbox, git=git)
    else:
        base = head
        await git.read(repo.common, "update-ref", base_ref, base)
    # Counting what the fork will not see takes as long as making its tree: side by side.
    counting = None
    if head is not None:
        counting = asyncio.create_task(count_dirty(repo, head, maker.sandbox, git))
    try:
        await _add(maker, repo, place, base)
        await make_private_git(place, repo, base, mapped=maker.sandbox.enforced, git=git)
        await _populate(maker, repo, place, base)
        not_visible = 0 if counting is None else await counting
    finally:
        if counting is not None:
            counting.cancel()
            await asyncio.gather(counting, return_exceptions=True)
    if not maker.sandbox.enforced:
        await git.thread(lambda: _lead_to_private(place))
    inside = await git.thread(lambda: _kept_cwd(repo, place, cwd))
    record = ForkRecord(
        session=place.session,
        handle=place.handle,
        top=str(repo.top),
        git_dir=str(repo.git_dir),
        common=str(repo.common),
        object_format=repo.object_format,
        base=base,
        inside_cwd=inside,
        dirty=head is None,
        not_visible=not_visible,
    )
    await git.thread(lambda: write_record(place, record))
    return record


async def _add(maker: Maker, repo: Repo, place: ForkPlace, base: str) -> None:
    words = ""
    async with maker.lock.held():
        for attempt in range(_TRIES):
            answer = await maker.git.call(
                repo.common,
                "worktree",
                "add",
                "--no-checkout",
                "--lock",
                "--reason",
                f"forkdeck {place.session}/{place.handle}",
                "--detach",
                str(place.tree),
                base,
            )
            if answer.code == 0:
                return
            words = answer.err.strip()
            # Other programs do not take our lock.
            if not any(word in words for word in _PASSING):
                break
            await maker.clock.sleep(0.03 * 2**attempt)
    raise refusal("git could not add a worktree", words, repo.common)


async def _populate(maker: Maker, repo: Repo, place: ForkPlace, base: str) -> None:
    async with maker.sandbox.scratch(repo, head=base) as scratch:
        await maker.sandbox.run(
            scratch,
            POPULATE,
            repo=repo,
            tree=place.tree,
            values={"BASE": base},
            writable=(place.tree,),
        )

        def hand_over() -> None:
            admin = repo.common / "worktrees" / place.tree.name
            copies = (place.git / "index", place.kept_index, admin / "index")
            if not all(copy_plain(scratch.index, copy) for copy in copies):
                raise WorktreeError("git left no index for the worktree.")

        await maker.git.thread(hand_over)


def _lead_to_private(place: ForkPlace) -> None:
    """Without mounts the tree itself must lead to the private git directory; blocking."""
    pointer = place.tree / ".git"
    write_private(place.linked, pointer.read_bytes())
    write_private(pointer, place.pointer.read_bytes())


def _kept_cwd(repo: Repo, place: ForkPlace, cwd: Path) -> str:
    """Return where the fork's commands start, on the path the fork sees; blocking."""
    root = repo.top
    try:
        relative = cwd.resolve().relative_to(repo.top)
    except ValueError:
        return str(root)
    path = place.tree
    for part in relative.parts:
        path = path / part
        # Links were committed by someone: never through one.
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            return str(root)
        path.mkdir(exist_ok=True)
    return str(root / relative)


async def _take_back(maker: Maker, repo: Repo, place: ForkPlace, base_ref: str) -> None:
    """Remove what a failed creation left; nothing in it was anyone's work."""
    async with maker.lock.held():
        await maker.git.call(repo.common, "worktree", "unlock", str(place.tree))
        await maker.git.call(repo.common, "worktree", "remove", "--force", str(place.tree))
        await maker.git.thread(lambda: remove_directory(maker.layout, place.directory))
        await maker.git.call(repo.common, "worktree", "prune")
    await maker.git.call(repo.common, "update-ref", "-d", base_ref)
