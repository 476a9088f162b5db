"""What the person does with saved work, and what is kept before the parent changes anything.

The deck hands over the intents; worktrees do them; results are events, refusals are answers.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from forkdeck.errors import ApplyRefused, ForkDeckError, WorktreeError
from forkdeck.model.events import Event
from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.events.tool import ToolEnded
from forkdeck.model.events.work import (
    ApplyStopped,
    SnapshotTaken,
    WorkApplied,
    WorkDiscarded,
    WorkSaved,
    WorktreeChanged,
    WorkUndone,
)
from forkdeck.model.ids import PARENT
from forkdeck.model.intents import IntentResult
from forkdeck.model.state import ForkState, UndoEntry
from forkdeck.model.work import FileChange, SavedWork, WorkDiff

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forkdeck.engine.durability import Durable
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.run import Run

_NO_GIT = "There is no git here, so there is no saved work."


class Work:
    """Applies, undoes, discards and shows work.

    Args:
        parts: The deck's parts.
        durable: The hub with joined syncs.
    """

    def __init__(self, parts: EngineParts, durable: Durable) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._durable = durable
        self._busy = asyncio.Lock()
        self._snapshot_turn = -1

    async def apply(self, handle: str, method: Literal["patch", "cherry-pick"]) -> IntentResult:
        """Merge a fork's saved work into the parent's tree."""
        worktrees = self._parts.worktrees
        fork = self._hub.state.forks.get(handle)
        if worktrees is None:
            return IntentResult(ok=False, text=_NO_GIT)
        if fork is None or fork.work is None:
            return IntentResult(ok=False, text=f"{handle} has no saved work to apply.")
        if fork.work.applied_ref is not None:
            return IntentResult(ok=False, text=f"{handle} is applied already; u takes it back.")
        async with self._busy:
            try:
                applied = await worktrees.apply(_saved(fork), method=method)
            except ApplyRefused as error:
                await self._durable.append(
                    ApplyStopped(
                        run=handle, what=error.what, remedy=error.remedy, conflicts=error.conflicts
                    )
                )
                return IntentResult(ok=False, text=str(error))
            except ForkDeckError as error:
                return IntentResult(ok=False, text=str(error))
            await self._durable.append(
                WorkApplied(
                    run=handle, undo_ref=applied.undo_ref, files=applied.files, method=method
                )
            )
        return IntentResult(ok=True, text=f"applied {handle}: {_count(applied.files)} · u undoes")

    async def undo(self, handle: str | None) -> IntentResult:
        """Take back the last undoable act, or the last of one fork."""
        entry = self.last(handle)
        if entry is None:
            return IntentResult(ok=False, text="There is nothing to undo.")
        if entry.kind == "discard":
            await self._durable.append(WorkUndone(run=entry.run, ref=entry.ref, what="discard"))
            return IntentResult(ok=True, text=f"undone: {entry.label}")
        worktrees = self._parts.worktrees
        if worktrees is None:
            return IntentResult(ok=False, text=_NO_GIT)
        async with self._busy:
            try:
                back = await worktrees.undo(entry.ref)
            except ForkDeckError as error:
                return IntentResult(ok=False, text=str(error))
            await self._durable.append(
                WorkUndone(run=entry.run, ref=entry.ref, what=entry.kind, files=back.files)
            )
        return IntentResult(ok=True, text=f"undone: {entry.label} ({_count(back.files)})")

    def last(self, handle: str | None) -> UndoEntry | None:
        """Return what `undo` would take back."""
        entries = self._hub.state.undo
        if handle is not None:
            entries = tuple(entry for entry in entries if entry.run == handle)
        return entries[-1] if entries else None

    async def discard(self, handle: str) -> IntentResult:
        """Mark a fork's work as unwanted; its ref is kept."""
        fork = self._hub.state.forks.get(handle)
        if fork is None or fork.work is None:
            return IntentResult(ok=False, text=f"{handle} has no saved work to discard.")
        if fork.work.applied_ref is not None:
            return IntentResult(ok=False, text=f"{handle} is applied; undo that first with u.")
        if fork.work.discarded:
            return IntentResult(ok=False, text=f"The work of {handle} is discarded already.")
        await self._durable.append(WorkDiscarded(run=handle, ref=fork.work.ref))
        return IntentResult(ok=True, text=f"discarded the work of {handle}; u brings it back")

    async def diff(self, handle: str) -> WorkDiff:
        """Return a fork's changes against its base.

        Raises:
            WorktreeError: There are none, or they cannot be read.
        """
        worktrees = self._parts.worktrees
        fork = self._hub.state.forks.get(handle)
        if worktrees is None:
            raise WorktreeError(_NO_GIT)
        if fork is None:
            raise WorktreeError(f"There is no fork {handle}.")
        if fork.worktree is not None and fork.worktree.exists:
            return await worktrees.live_diff(handle)
        if fork.work is not None:
            return await worktrees.diff(fork.work.base, fork.work.commit)
        if fork.write:
            raise WorktreeError(f"{handle} changed nothing.")
        raise WorktreeError(f"{handle} is a read-only fork: it has no changes.")

    async def before_effect(self, run: Run) -> None:
        """Keep the parent's tree before the first change of its turn."""
        worktrees = self._parts.worktrees
        turn = self._hub.state.parent.turn.turn
        if worktrees is None or run.run != PARENT or self._snapshot_turn == turn:
            return
        async with self._busy:
            if self._snapshot_turn == turn:
                return
            try:
                ref = await worktrees.snapshot(turn)
            except ForkDeckError as error:
                self._hub.append(
                    NoticeRaised(
                        severity="warning",
                        what=f"The tree could not be kept before this turn: {error.what}",
                        remedy="What this turn changes cannot be undone with u.",
                    )
                )
                ref = None
            self._snapshot_turn = turn
            if ref is not None:
                await self._durable.append(SnapshotTaken(ref=ref, turn=turn))

    def watch(self) -> None:
        """Note the files that write forks change, while they change them."""
        if self._parts.worktrees is not None:
            self._parts.worktrees.watch(self._changed)
            self._hub.listen(self._heard)

    def _changed(self, handle: str, paths: Sequence[str]) -> None:
        fork = self._hub.state.forks.get(handle)
        if fork is None or fork.settled:
            return
        known = {change.path: change for change in fork.files}
        for path in paths:
            known.setdefault(path, FileChange(path))
        files = tuple(known[path] for path in sorted(known))
        worktrees = self._parts.worktrees
        watched = worktrees is None or handle not in worktrees.unwatched
        if files != fork.files or watched != fork.files_watched:
            self._hub.append(WorktreeChanged(run=handle, files=files, watched=watched))

    def _heard(self, event: Event) -> None:
        """Take the tool calls' own file list where a tree is not watched in full."""
        worktrees = self._parts.worktrees
        if worktrees is None or not isinstance(event, ToolEnded) or event.status != "ok":
            return
        if event.run in worktrees.unwatched and event.path and event.name in ("edit", "write"):
            self._changed(event.run, [event.path])


def saved_event(handle: str, saved: SavedWork) -> WorkSaved:
    """Return the event that says where a fork's work stands."""
    return WorkSaved(
        run=handle,
        ref=saved.ref,
        commit=saved.commit,
        base=saved.base,
        files=saved.files,
        commits=saved.commits,
        patch=saved.patch,
    )


def _saved(fork: ForkState) -> SavedWork:
    work = fork.work
    if work is None:
        raise WorktreeError(f"{fork.handle} has no saved work.")
    return SavedWork(
        ref=work.ref,
        commit=work.commit,
        base=work.base,
        files=fork.files,
        commits=work.commits,
        patch=work.patch,
    )


def _count(files: Sequence[FileChange]) -> str:
    return f"{len(files)} file{'s' if len(files) != 1 else ''}"
