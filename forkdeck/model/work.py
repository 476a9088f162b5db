"""What worktrees and diffs are made of."""

from __future__ import annotations

from typing import Literal

import msgspec

from forkdeck.model.words import Level


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file that differs from its base."""

    path: str
    """Relative to the repository root, ``/`` separated."""
    kind: Literal["added", "modified", "deleted", "renamed", "mode"] = "modified"
    added: int | None = None
    """Lines added; None for a binary file or when not counted."""
    removed: int | None = None
    warning: str = ""
    """Why to look twice: ``executable``, ``symlink``, ``runs on open``."""


class RepoFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the project's directory; `kind` says whether write forks work."""

    kind: Literal["ok", "none", "empty", "bare", "unsafe", "no git"]
    root: str | None = None
    """Top of the working tree."""
    common_dir: str | None = None
    head: str | None = None
    branch: str | None = None
    """None when detached."""
    dirty_files: int | None = None
    reason: str = ""
    """Why write forks do not work here, and what to do."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A write fork's worktree."""

    handle: str
    path: str
    inside: str
    base: str
    base_ref: str
    level: Level
    dirty: bool = False
    not_visible: int = 0


class SavedWork(msgspec.Struct, frozen=True, kw_only=True):
    """Work that stands in a ref."""

    ref: str
    commit: str
    base: str
    files: tuple[FileChange, ...] = ()
    commits: int = 0
    patch: str | None = None


class AppliedWork(msgspec.Struct, frozen=True, kw_only=True):
    """What an apply or an undo did to the parent's tree."""

    undo_ref: str
    files: tuple[FileChange, ...] = ()


class DiffLine(msgspec.Struct, frozen=True):
    """One line of a diff."""

    kind: Literal["file", "hunk", "context", "added", "removed", "note"]
    text: str
    old: int | None = None
    new: int | None = None


class WorkDiff(msgspec.Struct, frozen=True, kw_only=True):
    """A fork's changes against its base, ready to be drawn."""

    base: str
    commit: str
    files: tuple[FileChange, ...] = ()
    lines: tuple[DiffLine, ...] = ()
    truncated: bool = False


class SavedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `forkdeck worktrees`."""

    session: str
    handle: str
    path: str | None
    ref: str | None
    size_bytes: int | None = None
    age_s: float | None = None
    dirty: bool | None = None
    live: bool = False
    verdict: str = ""
    """``in use``, ``saved``, ``not saved`` or why it cannot be told."""
