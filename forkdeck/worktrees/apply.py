"""Changes the parent's tree: merges saved work into it, or brings a snapshot back.

Three steps: plan in the git sandbox (a 3-way merge of trees, nothing written), look on the host
for ignored files in the way, then write from a temporary index that git compares with the disk
first. Before the last step an undo ref holds every file that will change, byte for byte. The
person's index, stash and branches stay as they are. Called by `forkdeck.worktrees.manager`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from forkdeck.errors import ApplyRefused, WorktreeError
from forkdeck.model.work import AppliedWork, SavedWork
from forkdeck.worktrees.diff import Entry, file_changes, parse_raw, visible
from forkdeck.worktrees.git import HostGit
from forkdeck.worktrees.git_sandbox import GitSandbox
from forkdeck.worktrees.layout import REFS, Repo, parent_ref, ref_name
from forkdeck.worktrees.scratch import ScratchRepo
from forkdeck.worktrees.scripts import CHANGE, PLAN
from forkdeck.worktrees.snapshot import is_commit_id, receive

MERGES_SINCE: Final = (2, 38)
"""First version of git that merges trees without a working tree."""

UNDO_MARK: Final = "forkdeck: undo of "
"""How the message of an undo commit begins."""

_GITLINK: Final = "160000"


async def can_merge(git: HostGit, common: Path) -> bool:
    """Tell whether this git is new enough for `apply_work`."""
    found = re.match(r"git version (\d+)\.(\d+)", await git.read(common, "version"))
    return found is not None and (int(found[1]), int(found[2])) >= MERGES_SINCE


async def apply_work(
    repo: Repo, work: SavedWork, *, sandbox: GitSandbox, git: HostGit
) -> AppliedWork:
    """Merge saved work into the parent's tree.

    Raises:
        ApplyRefused: A conflict, a file in the way, or git is too old; nothing was written.
        WorktreeError: git failed; the text says what stands where.
    """
    session, handle = owner_of(work.ref)
    for commit in (work.base, work.commit):
        if not is_commit_id(commit) or await git.commit_of(repo.common, commit) != commit:
            raise ApplyRefused(
                f"The work of {handle} is not in this repository.",
                "Open the repository it was made in.",
            )
    if not await can_merge(git, repo.common):
        kept = f" Its patch: {work.patch}" if work.patch else ""
        raise ApplyRefused(
            f"This git is older than 2.38 and cannot merge trees; nothing was written.{kept}",
            "Apply the patch with `git apply --3way`, or install a newer git.",
        )
    root = ref_name(session, handle, "undo")
    values = {"BASE": work.base, "WORK": work.commit, "TARGET": ""}
    return await change_tree(repo, values, root, f"the apply of {handle}", sandbox=sandbox, git=git)


async def restore_snapshot(
    repo: Repo, commit: str, root: str, *, sandbox: GitSandbox, git: HostGit
) -> AppliedWork:
    """Bring the parent's tree back to a snapshot.

    Args:
        repo: The project.
        commit: The snapshot.
        root: Ref below which the undo of this is kept.
        sandbox: Where git works.
        git: Host git.

    Raises:
        ApplyRefused: A file is in the way, or nothing differs; nothing was written.
        WorktreeError: git failed.
    """
    values = {"BASE": "", "WORK": "", "TARGET": commit}
    return await change_tree(repo, values, root, "a restore", sandbox=sandbox, git=git)


async def change_tree(
    repo: Repo,
    values: dict[str, str],
    root: str,
    what: str,
    *,
    sandbox: GitSandbox,
    git: HostGit,
) -> AppliedWork:
    """Plan, check and write one change of the parent's tree.

    Raises:
        ApplyRefused: Nothing was written, or it was put back.
        WorktreeError: git failed.
    """
    head = await git.commit_of(repo.git_dir, "HEAD")
    ref = await next_ref(git, repo.common, root)
    async with sandbox.scratch(repo, head=head, index=repo.git_dir / "index") as scratch:
        shared = {
            "HEAD_AT": head or "",
            "BORDER": " ".join(
                commit for commit in (head, values["BASE"], values["WORK"]) if commit
            ),
            "MESSAGE": UNDO_MARK + what,
            "NESTED": "skip",
            "STRICT": "0",
            **values,
        }
        await sandbox.run(scratch, PLAN, repo=repo, tree=repo.top, values=shared)
        raw = await git.thread(lambda: scratch.read("raw"))
        numstat = await git.thread(lambda: scratch.read("numstat"))
        await _check(scratch, repo, raw, git)
        await receive(scratch, repo, ref, await git.thread(lambda: scratch.text("commit")), git)
        await sandbox.run(
            scratch, CHANGE, repo=repo, tree=repo.top, values=shared, writable=(repo.top,)
        )
        await _finish(scratch, repo, ref, git)
    return AppliedWork(undo_ref=ref, files=file_changes(raw, numstat))


async def _check(scratch: ScratchRepo, repo: Repo, raw: bytes, git: HostGit) -> None:
    conflicts = await git.thread(lambda: scratch.read("conflicts"))
    entries = parse_raw(raw)
    if conflicts:
        names = sorted({visible(name) for name in conflicts.split(b"\0") if name})
        raise ApplyRefused(
            f"{_files(names)} changed on both sides; nothing was written.",
            "Look at the diff, or ask the fork to start again from your tree.",
            names,
        )
    if not entries:
        raise ApplyRefused("Your tree already has all of this; nothing was written.")
    modules = [visible(e.path) for e in entries if _GITLINK in (e.old_mode, e.new_mode)]
    if modules:
        raise ApplyRefused(
            f"{_files(modules)} is a submodule at another commit; nothing was written.",
            "Move the submodule by hand; the patch names the commit.",
            modules,
        )
    blocked = await git.thread(lambda: in_the_way(repo.top, entries))
    if blocked:
        raise ApplyRefused(
            f"{_files(blocked)} would be overwritten, but git does not track it here; "
            "nothing was written.",
            "Move it away, then apply again.",
            blocked,
        )


async def _finish(scratch: ScratchRepo, repo: Repo, ref: str, git: HostGit) -> None:
    outcome = await git.thread(lambda: scratch.text("outcome"))
    if outcome == "changed":
        commit = await git.thread(lambda: scratch.text("commit"))
        await receive(scratch, repo, ref, commit, git)
        return
    why = (await git.thread(lambda: scratch.read("why"))).split(b"\n")[0]
    if outcome == "refused":
        await git.call(repo.common, "update-ref", "-d", ref)
        raise ApplyRefused(
            f"The tree moved while this was applied; nothing was written. git: {visible(why)}",
            "Try again.",
        )
    if outcome == "put back":
        raise ApplyRefused(
            f"The tree could not be written, and is as it was. git: {visible(why)}",
            "Check the free space and the permissions, then try again.",
        )
    raise WorktreeError(
        f"The tree could not be written in full. git: {visible(why)}",
        f"Every file as it was stands in {ref}.",
    )


def in_the_way(top: Path, entries: Sequence[Entry]) -> list[str]:
    """Return what git would overwrite without a word; blocking.

    That is an ignored file (or a link, or a directory with ignored files) where a new file goes:
    git holds ignored files for expendable.
    """
    removed = {entry.name for entry in entries if entry.status == "D"}
    blocked: set[str] = set()
    for entry in entries:
        if entry.status != "A":
            continue
        path = Path(entry.name)
        for part in (path, *path.parents[:-1]):
            name = str(part)
            try:
                mode = (top / part).lstat().st_mode
            except OSError:
                continue
            if name in removed:
                continue
            if not stat.S_ISDIR(mode):
                blocked.add(name)
            elif part == path:
                blocked.update(_strangers(top, part, removed))
    return [visible(os.fsencode(name)) for name in sorted(blocked)]


def _strangers(top: Path, directory: Path, removed: set[str]) -> list[str]:
    found: list[str] = []
    for root, names, files in os.walk(top / directory, followlinks=False):
        links = [name for name in names if Path(root, name).is_symlink()]
        for name in (*files, *links):
            relative = os.path.relpath(Path(root, name), top)
            if relative not in removed:
                found.append(relative)
    return found


def owner_of(ref: str) -> tuple[str, str]:
    """Return session and handle of a work's ref.

    Raises:
        WorktreeError: It is no ref that ForkDeck made.
    """
    parts = ref.split("/")
    if len(parts) < 5 or "/".join(parts[:2]) != REFS:
        raise WorktreeError(f"{ref[:120]!r} is no saved work of ForkDeck.")
    session, handle = parts[2], parts[3]
    if handle == "parent":
        parent_ref(session)
    else:
        ref_name(session, handle)
    if not all(re.fullmatch(r"[a-z0-9]{1,10}", part) for part in parts[4:]):
        raise WorktreeError(f"{ref[:120]!r} is no saved work of ForkDeck.")
    return session, handle


async def next_ref(git: HostGit, common: Path, root: str) -> str:
    """Return the first unused number below a ref.

    Raises:
        WorktreeError: git failed.
    """
    text = await git.read(common, "for-each-ref", "--format=%(refname)", root)
    numbers = [
        int(tail) for line in text.splitlines() if (tail := line.rpartition("/")[2]).isdigit()
    ]
    return f"{root}/{max(numbers, default=0) + 1}"


def _files(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
