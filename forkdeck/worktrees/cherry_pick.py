"""Applies saved work as commits on the parent's branch, and moves the branch back on undo.

Each commit of the fork is merged onto HEAD as trees, so nothing is checked out; then the files
are changed as by any apply, and last the branch and the index move together under git's own
index lock. Staged changes of the person stay staged; where they touch the same files the whole
is refused before anything was written. Called by `forkdeck.worktrees.manager` and `undo`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from forkdeck.errors import ApplyRefused, WorktreeError
from forkdeck.model.work import AppliedWork, SavedWork
from forkdeck.worktrees.apply import can_merge, change_tree, next_ref, owner_of
from forkdeck.worktrees.diff import visible
from forkdeck.worktrees.git import HostGit
from forkdeck.worktrees.git_sandbox import GitSandbox
from forkdeck.worktrees.layout import Repo, ref_name
from forkdeck.worktrees.scripts import MOVE_INDEX, PICK
from forkdeck.worktrees.snapshot import is_commit_id, receive


async def pick_work(
    repo: Repo, work: SavedWork, *, sandbox: GitSandbox, git: HostGit
) -> AppliedWork:
    """Put the commits of saved work on the parent's branch and into its tree.

    Raises:
        ApplyRefused: A conflict, overlapping staged changes or a file in the way; nothing was
            written.
        WorktreeError: git failed.
    """
    session, handle = owner_of(work.ref)
    head = await git.commit_of(repo.git_dir, "HEAD")
    for commit in (work.base, work.commit):
        if not is_commit_id(commit) or await git.commit_of(repo.common, commit) != commit:
            raise ApplyRefused(f"The work of {handle} is not in this repository.")
    if head is None or not await can_merge(git, repo.common):
        raise ApplyRefused(
            "Commits cannot be picked here: this needs a commit to stand on and git 2.38.",
            "Use the patch.",
        )
    tip = await _picked(repo, work, head, session, handle, sandbox=sandbox, git=git)
    values = {"BASE": head, "WORK": tip, "TARGET": ""}
    what = f"the apply of {handle}\n\nhead {head} {tip}"
    root = ref_name(session, handle, "undo")
    async with moved_head(repo, head, tip, sandbox=sandbox, git=git):
        return await change_tree(repo, values, root, what, sandbox=sandbox, git=git)


async def _picked(
    repo: Repo,
    work: SavedWork,
    head: str,
    session: str,
    handle: str,
    *,
    sandbox: GitSandbox,
    git: HostGit,
) -> str:
    ref = await next_ref(git, repo.common, ref_name(session, handle, "picked"))
    async with sandbox.scratch(repo, head=head) as scratch:
        values = {"BASE": work.base, "WORK": work.commit, "HEAD_AT": head, "BORDER": head}
        await sandbox.run(scratch, PICK, repo=repo, values=values)
        conflicts = await git.thread(lambda: scratch.read("conflicts"))
        if conflicts:
            names = sorted({visible(name) for name in conflicts.split(b"\0") if name})
            raise ApplyRefused(
                f"{', '.join(names[:3])} changed on both sides; nothing was written.",
                "Apply the patch instead, or ask the fork to start again from your tree.",
                names,
            )
        tip = await git.thread(lambda: scratch.text("commit"))
        if not tip:
            raise ApplyRefused("Your branch already has all of this; nothing was written.")
        await receive(scratch, repo, ref, tip, git)
    return tip


@asynccontextmanager
async def moved_head(
    repo: Repo, old: str, new: str, *, sandbox: GitSandbox, git: HostGit
) -> AsyncGenerator[None, None]:
    """Move branch and index from one commit to another once the body has succeeded.

    Raises:
        ApplyRefused: Staged changes overlap, HEAD is elsewhere, or git is at work here.
        WorktreeError: git failed.
    """
    index, lock = repo.git_dir / "index", repo.git_dir / "index.lock"
    if await git.commit_of(repo.git_dir, "HEAD") != old:
        raise ApplyRefused(
            "HEAD moved since; nothing was written.", "Use git to move it where you want it."
        )
    await git.thread(lambda: _take(lock))
    try:
        async with sandbox.scratch(repo, head=old, index=index) as scratch:
            await sandbox.run(scratch, MOVE_INDEX, repo=repo, values={"FROM": old, "TO": new})
            if await git.thread(lambda: scratch.read("refused")):
                raise ApplyRefused(
                    "Staged changes touch the same files; nothing was written.",
                    "Commit or unstage them, or apply the patch instead.",
                )
            yield
            moved = await git.call(
                repo.git_dir, "update-ref", "-m", "forkdeck: apply", "HEAD", new, old
            )
            if moved.code:
                raise WorktreeError(
                    f"The files are changed, but the branch could not be moved: {moved.err}",
                    "Undo, then try again.",
                )
            await git.thread(lambda: _install(scratch.result("index"), lock, index))
    finally:
        await git.thread(lambda: lock.unlink(missing_ok=True))


def _take(lock: Path) -> None:
    try:
        os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    except FileExistsError as error:
        raise ApplyRefused(
            "Another git is at work in this repository; nothing was written.",
            f"Try again; if none runs, remove {lock}.",
        ) from error
    except OSError as error:
        raise ApplyRefused(f"{lock} cannot be made: {error.strerror}.") from error


def _install(made: Path, lock: Path, index: Path) -> None:
    shutil.copyfile(made, lock)
    with contextlib.suppress(OSError):
        lock.chmod(index.stat().st_mode & 0o777)
    lock.replace(index)
