"""Saves all work of a fork: committed, uncommitted and untracked, binary too, as one commit.

The work is collected in the git sandbox with ForkDeck's own configuration (no hooks, no signing,
an explicit identity) from the tree and from every commit the fork named, handed over as a
bundle, checked, and kept under ``refs/forkdeck/<session>/<handle>/work/<n>`` with a binary patch
beside the log. Called by `forkdeck.worktrees.manager`, `remove` and `sweep`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from forkdeck.errors import WorktreeError
from forkdeck.model.work import FileChange, SavedWork
from forkdeck.sandbox.view import Mount
from forkdeck.sessionlog.logfile import make_private_directory
from forkdeck.worktrees.diff import DIFF_BYTES, compare, file_changes
from forkdeck.worktrees.git import HostGit
from forkdeck.worktrees.git_sandbox import GitSandbox
from forkdeck.worktrees.layout import ForkPlace, ForkRecord, ref_name
from forkdeck.worktrees.scratch import ScratchRepo, copy_plain
from forkdeck.worktrees.scripts import COLLECT
from forkdeck.worktrees.snapshot import receive


class Collected(msgspec.Struct, frozen=True):
    """What a fork holds now; `commit` is empty when nothing differs from its base."""

    commit: str
    files: tuple[FileChange, ...] = ()
    commits: int = 0


class WorkRef(msgspec.Struct, frozen=True):
    """A saved work's ref."""

    number: int
    ref: str
    commit: str


async def saved_works(git: HostGit, common: Path, session: str, handle: str) -> list[WorkRef]:
    """Return the works saved of a fork, oldest first.

    Raises:
        WorktreeError: A name is none ForkDeck makes, or git failed.
    """
    root = ref_name(session, handle, "work")
    text = await git.read(common, "for-each-ref", "--format=%(objectname) %(refname)", root)
    found: list[WorkRef] = []
    for line in text.splitlines():
        commit, _, ref = line.partition(" ")
        number = ref.rpartition("/")[2]
        if number.isdigit():
            found.append(WorkRef(int(number), ref, commit))
    return sorted(found, key=lambda work: work.number)


async def save_work(
    place: ForkPlace,
    record: ForkRecord,
    patches: Path | None,
    *,
    sandbox: GitSandbox,
    git: HostGit,
) -> SavedWork | None:
    """Save a fork's work; None when it changed nothing. The same work is saved once.

    Args:
        place: Where the worktree stands.
        record: Its record.
        patches: Directory for the binary patch, or None for no patch.
        sandbox: Where it is collected.
        git: Host git.

    Raises:
        WorktreeError: It could not be saved; nothing was removed.
    """
    repo = record.repo
    works = await saved_works(git, repo.common, record.session, record.handle)
    last = works[-1] if works else None
    number = (last.number if last else 0) + 1
    ref = ref_name(record.session, record.handle, "work", number)
    patch: Path | None = None
    async with sandbox.scratch(
        repo, head=record.base, index=place.kept_index, objects=(place.git / "objects",)
    ) as scratch:
        collected = await _collect(scratch, place, record, last, sandbox=sandbox, git=git)
        if not collected.commit:
            return None
        if last is not None and collected.commit == last.commit:
            ref, number = last.ref, last.number
        else:
            await receive(scratch, repo, ref, collected.commit, git)
            # What ran beside the fork's own files may have written a list of its own liking.
            told = await compare(repo, record.base, collected.commit, sandbox, git)
            collected = msgspec.structs.replace(collected, files=told.files)
        if patches is not None:
            patch = patches / f"work-{number}.patch"
            kept = patch
            await git.thread(lambda: _keep_patch(scratch, kept))
    return SavedWork(
        ref=ref,
        commit=collected.commit,
        base=record.base,
        files=collected.files,
        commits=collected.commits,
        patch=str(patch) if patch else None,
    )


async def is_saved(
    place: ForkPlace, record: ForkRecord, *, sandbox: GitSandbox, git: HostGit
) -> bool:
    """Tell whether everything a fork holds now stands in its newest saved work, or is its base.

    Raises:
        WorktreeError: It cannot be told.
    """
    repo = record.repo
    works = await saved_works(git, repo.common, record.session, record.handle)
    last = works[-1] if works else None
    async with sandbox.scratch(
        repo, head=record.base, index=place.kept_index, objects=(place.git / "objects",)
    ) as scratch:
        now = await _collect(scratch, place, record, last, sandbox=sandbox, git=git)
    return not now.commit or (last is not None and last.commit == now.commit)


async def _collect(
    scratch: ScratchRepo,
    place: ForkPlace,
    record: ForkRecord,
    last: WorkRef | None,
    *,
    sandbox: GitSandbox,
    git: HostGit,
) -> Collected:
    repo = record.repo
    has_tree = await git.thread(lambda: place.tree.is_dir() and not place.tree.is_symlink())
    if not await git.thread(lambda: copy_plain(place.known, scratch.out / "known")):
        raise WorktreeError(
            f"The record of {record.handle}'s worktree is damaged, so its work was not collected.",
            f"Look at {place.directory}.",
        )
    values = {
        "BASE": record.base,
        "BORDER": record.base,
        "FORK_GIT": str(place.git),
        "GIT_WORK_TREE": str(place.tree),
        "LAST": last.commit if last else "",
        "MESSAGE": f"forkdeck: work of {record.handle}\n\nsession {record.session}",
        "NESTED": "take",
        "STRICT": "1",
        "DIFF_BYTES": str(DIFF_BYTES),
    }
    await sandbox.run(
        scratch,
        COLLECT,
        repo=repo,
        tree=place.tree if has_tree else None,
        values=values,
        read_only=(place.git,),
        writable=(place.tree,) if has_tree else (),
        mounts=(Mount(str(place.objects), repo.common / "objects", "ro"),),
    )

    def results() -> Collected:
        commit = scratch.text("commit")
        if not commit:
            return Collected("")
        return Collected(
            commit,
            file_changes(scratch.read("raw"), scratch.read("numstat")),
            int(scratch.text("commits")),
        )

    return await git.thread(results)


def _keep_patch(scratch: ScratchRepo, target: Path) -> None:
    source = scratch.result("patch")
    try:
        make_private_directory(target.parent)
        descriptor = os.open(
            target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "wb") as copy, source.open("rb") as patch:
            shutil.copyfileobj(patch, copy)
    except OSError as error:
        raise WorktreeError(
            f"The patch {target} could not be written: {error.strerror}.",
            "The work itself stands in its ref.",
        ) from error
