"""Ports of the machine's side: workspace, tools, worktrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self, TypeAlias

import msgspec

from forkdeck.model.raw import JsonDict
from forkdeck.model.tooling import ProcessResult, ToolContext, ToolResult, ToolSpec
from forkdeck.model.words import Access, Level
from forkdeck.model.work import AppliedWork, Lease, RepoFacts, SavedEntry, SavedWork, WorkDiff


class Enforcement(msgspec.Struct, frozen=True, kw_only=True):
    """What was probed on this host."""

    level: Level
    program: str | None = None
    """Path of the sandbox program."""
    why: str = ""
    remedy: str = ""
    notes: tuple[str, ...] = ()
    private_proc: bool = True
    """Whether a fresh ``/proc`` can be mounted; without it host processes stay visible."""


class Workspace(Protocol):
    """What one run sees of the machine: paths, files and commands, in one world.

    All paths are inside paths: what the model says and what bash sees. One value answers both,
    so `read`, `bash` and ``@file`` agree.
    """

    @property
    def root(self) -> str:
        """The project root as the run sees it."""
        ...

    @property
    def cwd(self) -> str:
        """The directory commands start in."""
        ...

    @property
    def level(self) -> Level:
        """How far the operating system enforces the view."""
        ...

    def resolve(self, path: str, *, write: bool = False) -> Path:
        """Return the host path of an inside path (relative ones start at `cwd`).

        Raises:
            PathRefused: It is hidden, special, outside, or leads outside through a link.
        """
        ...

    async def read_bytes(self, path: str, limit: int) -> bytes:
        """Return at most `limit` + 1 bytes of a regular file.

        Raises:
            PathRefused: As `resolve`.
            ToolError: It is no readable file.
        """
        ...

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Replace a file atomically, keeping its mode; makes missing directories.

        In a write fork the write goes through the sandbox.

        Raises:
            PathRefused: As `resolve`, or the view is read-only there.
        """
        ...

    async def run(
        self,
        command: str | Sequence[str],
        *,
        access: Access,
        timeout_s: float,
        spill_name: str,
        progress: Callable[[str, int], None] | None = None,
    ) -> ProcessResult:
        """Run a shell text or an argument list and wait; cancellation kills all of it.

        Raises:
            SandboxError: The sandbox did not start; the command did not run.
            ToolDenied: Without a sandbox this view cannot be given.
        """
        ...


class TreeState(Protocol):
    """HEAD, index and status of the parent's tree at one time."""

    def moved(self, later: Self) -> tuple[str, ...]:
        """Return what differs in a later state: status lines, ``HEAD`` and ``index``."""
        ...


class Tool(Protocol):
    """A built-in tool."""

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        ...

    @property
    def effects(self) -> bool:
        """Whether it can change anything (`edit`, `write`, `bash`)."""
        ...

    def describe(self, arguments: JsonDict) -> str:
        """Return the call in one line; takes any input, also a wrong one."""
        ...

    async def run(self, arguments: JsonDict, context: ToolContext) -> ToolResult:
        """Do it.

        Raises:
            ToolError: It gave no result; the text is for the model.
        """
        ...


ChangeListener: TypeAlias = Callable[[str, Sequence[str]], None]
"""Called with a handle and the changed paths, relative to its worktree."""


class Worktrees(Protocol):
    """Worktrees of write forks and the work saved from them; blocking git is off the loop."""

    @property
    def unwatched(self) -> Mapping[str, str]:
        """Handles whose tree is not watched in full, and why."""
        ...

    async def inspect(self) -> RepoFacts:
        """Look at the project's directory; never runs repository code."""
        ...

    async def parent_state(self) -> TreeState | None:
        """Return what a fork must not change of the parent's tree; None without git.

        Raises:
            WorktreeError: git failed, or must not run here.
        """
        ...

    async def burden(self) -> str:
        """Return why a worktree here takes long or much room, or an empty string.

        Raises:
            WorktreeError: git does not start.
        """
        ...

    async def create(self, handle: str, *, dirty: bool = False) -> Lease:
        """Make a fork's worktree at the parent's HEAD, or at a snapshot of its tree.

        Raises:
            WorktreeError: It could not be made; nothing is left behind.
        """
        ...

    async def reopen(self, handle: str) -> Lease:
        """Return the lease of a worktree that still stands, for a fork that goes on.

        Raises:
            WorktreeError: There is none.
        """
        ...

    def workspace(self, lease: Lease) -> Workspace:
        """Return the fork's view of its worktree."""
        ...

    async def save(self, handle: str) -> SavedWork | None:
        """Save all work of a fork to a ref and a patch; None when nothing changed.

        Raises:
            WorktreeError: It could not be saved; the directory stays.
        """
        ...

    async def remove(self, handle: str) -> None:
        """Remove a worktree whose work was saved.

        Raises:
            WorktreeError: It is not saved, or git refused; the directory stays.
        """
        ...

    async def diff(self, base: str, commit: str) -> WorkDiff:
        """Return what changed from `base` to `commit`."""
        ...

    async def live_diff(self, handle: str) -> WorkDiff:
        """Return what a running fork has changed so far."""
        ...

    async def apply(self, work: SavedWork, *, method: str = "patch") -> AppliedWork:
        """Merge saved work into the parent's tree, 3-way.

        Raises:
            ApplyRefused: A conflict, or a file in the way; nothing was written.
        """
        ...

    async def undo(self, ref: str) -> AppliedWork:
        """Restore the parent's tree from a snapshot ref.

        Raises:
            ApplyRefused: The tree moved since; nothing was written.
        """
        ...

    async def snapshot(self, turn: int) -> str | None:
        """Keep the parent's tree in a ref before a turn changes it; None without git."""
        ...

    def watch(self, changed: ChangeListener) -> None:
        """Report changing files of every living worktree from now on, on the loop."""
        ...

    async def entries(self) -> Sequence[SavedEntry]:
        """Return every worktree and saved work of this repository."""
        ...

    async def close(self) -> None:
        """Stop watching; saves and removes nothing."""
        ...
