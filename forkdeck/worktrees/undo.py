"""Takes a change of the parent's tree back, byte for byte, or restores a turn's snapshot.

An undo commit holds the touched files before the change (its tree) and after it (its second
parent). When the files still are as the change left them they are put back; otherwise nothing is
written. Called by `forkdeck.worktrees.manager`.
"""

from __future__ import annotations

import re
from typing import Final

from forkdeck.errors import ApplyRefused
from forkdeck.model.work import AppliedWork
from forkdeck.worktrees.apply import UNDO_MARK, in_the_way, next_ref, owner_of, restore_snapshot
from forkdeck.worktrees.cherry_pick import moved_head
from forkdeck.worktrees.diff import file_changes, parse_raw, visible
from forkdeck.worktrees.git import HostGit
from forkdeck.worktrees.git_sandbox import GitSandbox
from forkdeck.worktrees.layout import Repo, parent_ref, ref_name
from forkdeck.worktrees.scripts import CHECK_BACK, TAKE_BACK
from forkdeck.worktrees.snapshot import receive

_HEAD: Final = re.compile(r"^head ([0-9a-f]{40,64}) ([0-9a-f]{40,64})$", re.MULTILINE)
"""In the message of an undo commit: where the branch was, and where it was moved to."""


async def undo_change(repo: Repo, ref: str, *, sandbox: GitSandbox, git: HostGit) -> AppliedWork:
    """Undo the change (or restore the snapshot) that a hidden ref holds.

    Raises:
        ApplyRefused: The files moved since, or there is nothing to undo; nothing was written.
        WorktreeError: The ref is none of ForkDeck's, or git failed.
    """
    session, handle = owner_of(ref)
    commit = await git.commit_of(repo.common, ref)
    if commit is None:
        raise ApplyRefused(f"{ref} does not exist in this repository; nothing was written.")
    is_parent = handle == "parent"
    root = parent_ref(session, "undo") if is_parent else ref_name(session, handle, "undo")
    message = await git.read(repo.common, "cat-file", "commit", commit)
    header, _, body = message.partition("\n\n")
    parents = [line[7:] for line in header.splitlines() if line.startswith("parent ")]
    if not body.startswith(UNDO_MARK):
        return await restore_snapshot(repo, commit, root, sandbox=sandbox, git=git)
    if len(parents) < 2:
        # ForkDeck died while it wrote: the whole tree before the change is the first parent.
        return await restore_snapshot(repo, parents[0], root, sandbox=sandbox, git=git)
    head = _HEAD.search(body)
    if head is None:
        return await _take_back(repo, commit, root, "", sandbox=sandbox, git=git)
    old, new = head[1], head[2]
    async with moved_head(repo, new, old, sandbox=sandbox, git=git):
        extra = f"\n\nhead {new} {old}"
        return await _take_back(repo, commit, root, extra, sandbox=sandbox, git=git)


async def _take_back(
    repo: Repo, commit: str, root: str, extra: str, *, sandbox: GitSandbox, git: HostGit
) -> AppliedWork:
    ref = await next_ref(git, repo.common, root)
    async with sandbox.scratch(repo, head=commit) as scratch:
        values = {"UNDO": commit, "BORDER": commit, "MESSAGE": f"{UNDO_MARK}an undo{extra}"}
        await sandbox.run(scratch, CHECK_BACK, repo=repo, tree=repo.top, values=values)
        raw = await git.thread(lambda: scratch.read("raw"))
        moved = await git.thread(lambda: scratch.read("moved"))
        names = [visible(name) for name in moved.split(b"\0") if name]
        names += await git.thread(lambda: in_the_way(repo.top, parse_raw(raw)))
        if names:
            raise ApplyRefused(
                f"{', '.join(names[:3])} changed since; nothing was written.",
                f"The files as they were stand in {root}.",
                names,
            )
        await sandbox.run(
            scratch, TAKE_BACK, repo=repo, tree=repo.top, values=values, writable=(repo.top,)
        )
        files = await git.thread(lambda: file_changes(raw, scratch.read("numstat")))
        redo = await git.thread(lambda: scratch.text("commit"))
        await receive(scratch, repo, ref, redo, git)
    return AppliedWork(undo_ref=ref, files=files)
