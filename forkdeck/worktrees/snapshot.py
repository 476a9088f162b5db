"""Commits of a whole working tree, made without touching its index, stash or branches.

A snapshot holds tracked, staged and untracked files (ignored ones and repositories nested in the
tree stay out). It is staged in a copy of the index inside the git sandbox and handed to the
project as a bundle, which git checks object by object. Called by `create`, `apply`, `undo` and
`forkdeck.worktrees.manager`.
"""

from __future__ import annotations

import re
from typing import Final

from forkdeck.errors import WorktreeError
from forkdeck.worktrees.git import HostGit
from forkdeck.worktrees.git_sandbox import GitSandbox
from forkdeck.worktrees.layout import Repo
from forkdeck.worktrees.scratch import ScratchRepo
from forkdeck.worktrees.scripts import SNAPSHOT

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")


def is_commit_id(text: str) -> bool:
    """Tell whether a text is a full object id."""
    return _COMMIT.match(text) is not None


async def receive(scratch: ScratchRepo, repo: Repo, ref: str, commit: str, git: HostGit) -> None:
    """Take a script's bundle into the project under a hidden ref.

    Raises:
        WorktreeError: git refused its objects, or it holds another commit than the script said.
    """
    if not is_commit_id(commit):
        raise WorktreeError("git gave no commit id; nothing was taken over.")
    bundle = await git.thread(lambda: scratch.result("bundle"))
    await git.read(
        repo.common,
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        "--no-auto-maintenance",
        "--end-of-options",
        str(bundle),
        f"+refs/out/work:{ref}",
    )
    if await git.commit_of(repo.common, ref) != commit:
        raise WorktreeError(f"{ref} does not hold the commit that was made; it was not used.")


async def keep_snapshot(
    repo: Repo, ref: str, message: str, *, sandbox: GitSandbox, git: HostGit
) -> str:
    """Keep the project's working tree as it is now under `ref`, and return the commit.

    Raises:
        WorktreeError: It could not be kept.
    """
    head = await git.commit_of(repo.git_dir, "HEAD")
    async with sandbox.scratch(repo, head=head, index=repo.git_dir / "index") as scratch:
        values = {
            "HEAD_AT": head or "",
            "BORDER": head or "",
            "MESSAGE": message,
            "NESTED": "skip",
            "STRICT": "0",
        }
        await sandbox.run(scratch, SNAPSHOT, repo=repo, tree=repo.top, values=values)
        commit = await git.thread(lambda: scratch.text("commit"))
        await receive(scratch, repo, ref, commit, git)
    return commit
