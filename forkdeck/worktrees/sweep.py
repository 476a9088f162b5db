"""Finds every worktree and saved work of a repository, and tidies what no process owns.

A worktree whose session's lock can be taken belongs to a process that died. Its work is saved
and shown; only `clean` removes it, and only when it is saved. Called by
`forkdeck.worktrees.manager` for the start of a session and for ``forkdeck worktrees``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from forkdeck.errors import WorktreeError
from forkdeck.model.ids import is_handle, is_session_id
from forkdeck.model.work import SavedEntry, SavedWork
from forkdeck.worktrees.create import Maker
from forkdeck.worktrees.diff import compare
from forkdeck.worktrees.layout import REFS, ForkPlace, ForkRecord, Repo, read_record, ref_name
from forkdeck.worktrees.locks import SessionLocks
from forkdeck.worktrees.remove import remove_worktree
from forkdeck.worktrees.save import is_saved, save_work, saved_works

_MAX_FILES = 200_000


class Orphan(msgspec.Struct, frozen=True):
    """A worktree on the disk; `record` is None when it is damaged."""

    place: ForkPlace
    record: ForkRecord | None
    live: bool


async def find(maker: Maker, repo: Repo, locks: SessionLocks) -> list[Orphan]:
    """Return the worktrees of a repository, also those in use."""
    return await maker.git.thread(lambda: _find(maker.layout.repo(repo), locks))


def _find(root: Path, locks: SessionLocks) -> list[Orphan]:
    found: list[Orphan] = []
    for session in _directories(root):
        if not is_session_id(session.name):
            continue
        live = locks.is_live(session)
        for directory in _directories(session):
            if is_handle(directory.name):
                place = ForkPlace(directory, session.name, directory.name)
                found.append(Orphan(place, read_record(place), live))
    return found


def _directories(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as entries:
            return sorted(Path(e.path) for e in entries if e.is_dir(follow_symlinks=False))
    except OSError:
        return []


async def list_entries(maker: Maker, repo: Repo, locks: SessionLocks) -> list[SavedEntry]:
    """Return a row for every worktree, then for every saved work without one.

    Raises:
        WorktreeError: The repository's refs cannot be read.
    """
    refs = await _newest_refs(maker, repo)
    rows: list[SavedEntry] = []
    for orphan in await find(maker, repo, locks):
        key = (orphan.place.session, orphan.place.handle)
        ref = refs.pop(key, (None, 0))[0]
        rows.append(await _row(maker, orphan, ref))
    now = time.time()
    rows.extend(
        SavedEntry(
            session=session,
            handle=handle,
            path=None,
            ref=ref,
            age_s=max(0.0, now - made) if made else None,
            verdict="saved",
        )
        for (session, handle), (ref, made) in sorted(refs.items())
    )
    return rows


async def _newest_refs(maker: Maker, repo: Repo) -> dict[tuple[str, str], tuple[str | None, int]]:
    text = await maker.git.read(
        repo.common, "for-each-ref", "--format=%(refname) %(committerdate:unix)", f"{REFS}/"
    )
    newest: dict[tuple[str, str], tuple[int, str, int]] = {}
    for line in text.splitlines():
        ref, _, made = line.partition(" ")
        parts = ref.split("/")
        if len(parts) != 6 or parts[4] != "work" or not parts[5].isdigit():
            continue
        key, number = (parts[2], parts[3]), int(parts[5])
        if number > newest.get(key, (0, "", 0))[0]:
            newest[key] = (number, ref, int(made) if made.isdigit() else 0)
    return {key: (ref, made) for key, (_, ref, made) in newest.items()}


async def _row(maker: Maker, orphan: Orphan, ref: str | None) -> SavedEntry:
    place, record = orphan.place, orphan.record
    size, age = await maker.git.thread(lambda: _measure(place.directory))
    dirty: bool | None = None
    verdict = "in use" if orphan.live else ""
    if record is None:
        verdict = verdict or "its record is damaged; look at it by hand"
    elif not orphan.live:
        try:
            dirty = not await is_saved(place, record, sandbox=maker.sandbox, git=maker.git)
            verdict = "not saved" if dirty else "saved"
        except WorktreeError as error:
            verdict = error.what.splitlines()[0][:200]
    return SavedEntry(
        session=place.session,
        handle=place.handle,
        path=str(place.tree),
        ref=ref,
        size_bytes=size,
        age_s=age,
        dirty=dirty,
        live=orphan.live,
        verdict=verdict,
    )


def _measure(directory: Path) -> tuple[int | None, float | None]:
    """Return bytes on the disk (None above 200,000 files) and seconds since it was made."""
    try:
        age = max(0.0, time.time() - directory.lstat().st_mtime)
    except OSError:
        return None, None
    total = seen = 0
    for root, _, files in os.walk(directory, followlinks=False):
        for name in files:
            seen += 1
            if seen > _MAX_FILES:
                return None, age
            try:
                total += Path(root, name).lstat().st_blocks * 512
            except OSError:
                continue
    return total, age


async def newest_work(maker: Maker, repo: Repo, session: str, handle: str) -> SavedWork:
    """Return the newest saved work of a fork of any session.

    Raises:
        WorktreeError: There is none, or its base is gone.
    """
    works = await saved_works(maker.git, repo.common, session, handle)
    base = await maker.git.commit_of(repo.common, ref_name(session, handle, "base"))
    if not works or base is None:
        raise WorktreeError(
            f"No saved work of {session}/{handle} is in this repository.",
            "forkdeck worktrees lists what there is.",
        )
    last = works[-1]
    diff = await compare(repo, base, last.commit, maker.sandbox, maker.git)
    count = await maker.git.read(repo.common, "rev-list", "--count", last.commit, "--not", base)
    return SavedWork(
        ref=last.ref, commit=last.commit, base=base, files=diff.files, commits=int(count)
    )


async def save_orphans(
    maker: Maker, repo: Repo, locks: SessionLocks
) -> tuple[list[SavedEntry], list[str]]:
    """Save the work of every worktree no process owns; removes nothing.

    Returns:
        The rows of the orphans, and a line for each that could not be saved.
    """
    rows: list[SavedEntry] = []
    troubles: list[str] = []
    for orphan in await find(maker, repo, locks):
        if orphan.live:
            continue
        place, record, ref = orphan.place, orphan.record, None
        if record is not None:
            try:
                work = await save_work(place, record, None, sandbox=maker.sandbox, git=maker.git)
                ref = work.ref if work else None
            except WorktreeError as error:
                troubles.append(f"{place.session}/{place.handle}: {error.what}")
        rows.append(await _row(maker, orphan, ref))
    return rows, troubles


async def clean(
    maker: Maker, repo: Repo, locks: SessionLocks
) -> tuple[Sequence[str], Sequence[str]]:
    """Remove every orphan whose work is saved.

    Returns:
        What was removed, and for each that stays why it does.
    """
    removed: list[str] = []
    kept: list[str] = []
    for orphan in await find(maker, repo, locks):
        name = f"{orphan.place.session}/{orphan.place.handle}"
        if orphan.live:
            kept.append(f"{name}: in use")
        elif orphan.record is None:
            kept.append(f"{name}: its record is damaged: {orphan.place.directory}")
        else:
            try:
                await remove_worktree(maker, orphan.place, orphan.record)
                removed.append(name)
            except WorktreeError as error:
                kept.append(f"{name}: {error.what}")
    return removed, kept
