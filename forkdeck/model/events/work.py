"""Events of worktrees and of the work that is saved from them."""

from __future__ import annotations

from typing import TypeAlias

from forkdeck.model.events.base import Event
from forkdeck.model.words import Level
from forkdeck.model.work import FileChange


class WorktreeCreated(Event, frozen=True, kw_only=True, tag="worktree.created"):
    """A write fork (``run``) has its own worktree."""

    path: str
    """Directory on the host."""
    inside: str
    """The path at which the fork sees it."""
    base: str
    """Commit it was made from."""
    level: Level
    dirty: bool = False
    """Whether the base is a snapshot that carries uncommitted files."""
    not_visible: int = 0
    """Uncommitted files of the parent that the fork does not see."""


class WorktreeChanged(Event, frozen=True, kw_only=True, tag="worktree.changed"):
    """Files differ from the base, as far as seen; replaces the list before it."""

    files: tuple[FileChange, ...]
    watched: bool = True
    """False when the list comes from the tool calls alone."""


class WorktreeRemoved(Event, frozen=True, kw_only=True, tag="worktree.removed"):
    """The directory is gone; its work was saved before."""


class WorktreeKept(Event, frozen=True, kw_only=True, tag="worktree.kept"):
    """The directory stays, because its work could not be saved."""

    path: str
    why: str


class WorkSaved(Event, frozen=True, kw_only=True, tag="work.saved"):
    """A fork's work stands in a hidden ref."""

    ref: str
    commit: str
    base: str
    files: tuple[FileChange, ...]
    commits: int = 0
    """Commits the fork made itself."""
    patch: str | None = None
    """Path of the binary patch beside the log."""


class SnapshotTaken(Event, frozen=True, kw_only=True, tag="snapshot.taken"):
    """The parent's tree was kept before its first change of a turn."""

    ref: str
    turn: int


class WorkApplied(Event, frozen=True, kw_only=True, tag="work.applied"):
    """A fork's work was merged into the parent's tree."""

    undo_ref: str
    files: tuple[FileChange, ...]
    method: str = "patch"


class WorkUndone(Event, frozen=True, kw_only=True, tag="work.undone"):
    """The tree is as it was before an apply, a discard or a parent's turn."""

    ref: str
    what: str
    """``apply``, ``discard`` or ``turn``."""
    files: tuple[FileChange, ...] = ()


class WorkDiscarded(Event, frozen=True, kw_only=True, tag="work.discarded"):
    """The person does not want the work; its ref is kept."""

    ref: str


class ApplyStopped(Event, frozen=True, kw_only=True, tag="apply.refused"):
    """Work could not be applied; nothing was written."""

    what: str
    remedy: str = ""
    conflicts: tuple[str, ...] = ()


WorkFamily: TypeAlias = (
    WorktreeCreated
    | WorktreeChanged
    | WorktreeRemoved
    | WorktreeKept
    | WorkSaved
    | SnapshotTaken
    | WorkApplied
    | WorkUndone
    | WorkDiscarded
    | ApplyStopped
)
"""The events of work and worktrees."""
