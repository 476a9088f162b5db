"""What one run sees of the machine: the `Workspace` of the parent, of read-only and write forks.

Owns the rules of the file tools. Made by the engine (parent and read-only forks) and by the
worktree manager (write forks). Paths and commands come in from the tools as the model says them;
they are answered by the views of `sandbox.views` and run by `sandbox.runner`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from forkdeck.errors import PathRefused, ToolDenied, ToolError
from forkdeck.model.tooling import ProcessResult
from forkdeck.model.words import Access, Level
from forkdeck.sandbox import atomic
from forkdeck.sandbox.files import in_thread, read_limited
from forkdeck.sandbox.process import Progress
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.view import Located, Mount, View, covers
from forkdeck.sandbox.views import SHARED, look_view, outside_view, work_view

ViewFor = Callable[[Access], View]
"""Builds the view of an access anew, or raises `ToolDenied` when this run has none."""

_SPECIAL = ("/proc", "/sys", "/dev")


def _never() -> bool:
    return False


class RunWorkspace:
    """A run's world; implements `forkdeck.model.ports.Workspace`.

    Args:
        runner: Runs the commands.
        view_for: Builds the view of an access.
        spill_directory: Host directory of spill files.
        reads: The access that answers `read_bytes` and `resolve`.
        writes: The access that takes writes of file tools; None for a read-only run.
        unguarded: Whether the person allowed, for this session, what the operating system does
            not guard here (look commands and reads outside the root, without a sandbox).
        shared: Names below ``/tmp/forkdeck`` and their host files; more come by `share`.
    """

    def __init__(
        self,
        runner: Runner,
        view_for: ViewFor,
        *,
        spill_directory: Path,
        reads: Access = "look",
        writes: Access | None = "work",
        unguarded: Callable[[], bool] = _never,
        shared: Mapping[str, Path] | None = None,
    ) -> None:
        self._runner = runner
        self._view_for = view_for
        self._spill_directory = spill_directory
        self._reads: Access = reads
        self._writes: Access | None = writes
        self._unguarded = unguarded
        self._shared = dict(shared or {})
        view = view_for(reads)
        self._root, self._cwd = view.root, view.cwd

    @property
    def root(self) -> str:
        """The project root as the run sees it."""
        return self._root

    @property
    def cwd(self) -> str:
        """The directory commands start in."""
        return self._cwd

    @property
    def level(self) -> Level:
        """How far the operating system enforces the view."""
        return self._runner.enforcement.level

    def share(self, name: str, host: Path) -> str:
        """Show a host file read-only below ``/tmp/forkdeck``; return its inside path.

        Args:
            name: Plain file name, without a slash.
            host: The file; it may come to exist later.

        Raises:
            PathRefused: The name is no plain file name.
        """
        if not name or "/" in name or "\0" in name or name in {".", ".."}:
            raise PathRefused(f"{name!r} cannot be shared: it is no plain file name.")
        self._shared[name] = host
        return f"{SHARED}/{name}"

    def view(self, access: Access) -> View:
        """Return the view of an access as it is now, with the shared files.

        Raises:
            ToolDenied: This run has no such view.
            SandboxError: It cannot be made.
        """
        view = self._view_for(access)
        mounts = [
            Mount(f"{SHARED}/{name}", host, "ro")
            for name, host in sorted(self._shared.items())
            if host.is_file() and not host.is_symlink()
        ]
        if not view.enforced:
            return view
        if not self._runner.sandboxed:
            # Commands run on the host's own /tmp then, and so must reads.
            kept = tuple(mount for mount in view.mounts if mount.kind != "tmp")
            view = msgspec.structs.replace(view, mounts=kept)
        return view.adding(*mounts)

    def resolve(self, path: str, *, write: bool = False) -> Path:
        """Return the host path of an inside path (relative ones start at `cwd`).

        Raises:
            PathRefused: It is hidden, special, outside, or leads outside through a link.
            ToolDenied: A write, and this run is read-only.
            ToolError: A part of it is no directory.
        """
        return self._locate(path, write=write).host

    async def read_bytes(self, path: str, limit: int) -> bytes:
        """Return at most `limit` + 1 bytes of a regular file.

        Raises:
            PathRefused: As `resolve`, or it is no regular file.
            ToolError: It cannot be read.
        """
        return await in_thread(self._read, path, limit)

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Replace a file atomically, keeping its mode; makes missing directories.

        Where there is a sandbox the write happens inside it: a command of the same run could
        put a link in the way between the check and the write.

        Raises:
            PathRefused: As `resolve`, or the view is read-only there.
            ToolDenied: This run is read-only.
            SandboxError: The sandbox did not start; nothing was written.
            ToolError: It cannot be written.
        """
        found, mode = await in_thread(self._write_target, path)
        if not self._runner.sandboxed:
            await in_thread(atomic.replace, found.host, data, mode)
            return
        view = await in_thread(self.view, self._write_access())
        result = await self._runner.run(
            view,
            atomic.command(found.inside, mode),
            timeout_s=atomic.TIMEOUT_S,
            stdin=data,
        )
        if result.exit_code != 0:
            reason = result.head.strip().splitlines()
            why = reason[-1] if reason else f"exit {result.exit_code}"
            raise ToolError(f"{path} could not be written: {why}")

    async def run(
        self,
        command: str | Sequence[str],
        *,
        access: Access,
        timeout_s: float,
        spill_name: str,
        progress: Progress | None = None,
    ) -> ProcessResult:
        """Run a shell text or an argument list and wait; cancellation kills all of it.

        Output that does not fit in memory goes to a file that later commands and reads of this
        run see as ``/tmp/forkdeck/<spill_name>``.

        Raises:
            SandboxError: The sandbox did not start; the command did not run.
            ToolDenied: This run has no such view, or it cannot be given without a sandbox.
        """
        view = await in_thread(self.view, access)
        spill = self._spill_directory / spill_name if spill_name else None
        result = await self._runner.run(
            view,
            command,
            timeout_s=timeout_s,
            spill=spill,
            progress=progress,
            unguarded=self._unguarded(),
        )
        if result.spill is not None:
            self.share(spill_name, result.spill)
        return result

    def _read(self, path: str, limit: int) -> bytes:
        return read_limited(
            self._locate(path, write=False).host, limit, as_seen=self._runner.sandboxed
        )

    def _write_access(self) -> Access:
        if self._writes is None:
            raise ToolDenied(
                "This run is read-only: it cannot change files.",
                "Say in the report what should be changed.",
            )
        return self._writes

    def _write_target(self, path: str) -> tuple[Located, int | None]:
        found = self._locate(path, write=True)
        try:
            mode = found.host.lstat().st_mode
        except FileNotFoundError:
            return found, None
        except OSError as error:
            raise ToolError(f"{path} cannot be written: {error.strerror}.") from error
        if not stat.S_ISREG(mode):
            raise PathRefused(f"{path} is no regular file.")
        return found, stat.S_IMODE(mode)

    def _locate(self, path: str, *, write: bool) -> Located:
        view = self.view(self._write_access() if write else self._reads)
        asked = os.path.normpath(f"{view.cwd}/{path}" if not path.startswith("/") else path)
        _refuse_special(asked)
        found = view.locate(path)
        _refuse_special(found.inside)
        if covers(view.root, found.inside):
            self._refuse_ungranted_write(found, write)
            return found
        if covers(view.root, asked):
            raise PathRefused(
                f"{path} leads out of the project through a link (to {found.inside}).",
                "Name the target itself if you need it.",
            )
        if write:
            raise PathRefused(
                f"{path} is outside the project root {view.root}; file tools write only below it.",
                "Use a path below the root.",
            )
        if not self._runner.sandboxed and not self._shown(found.inside) and not self._unguarded():
            raise PathRefused(
                f"{path} is outside the project root {view.root}, and nothing guards this host.",
                "The person can allow it for this session.",
            )
        return found

    @staticmethod
    def _shown(inside: str) -> bool:
        return covers(SHARED, inside)

    @staticmethod
    def _refuse_ungranted_write(found: Located, write: bool) -> None:
        if write and found.kind not in {"rw", "tmp"}:
            raise PathRefused(
                f"{found.inside} is read-only for every run.",
                "It is part of git's own data, or shared with the parent.",
            )


def _refuse_special(inside: str) -> None:
    for directory in _SPECIAL:
        if covers(directory, inside):
            raise PathRefused(
                f"{inside} is no project file; {directory} is closed to file tools.",
                "Use bash for facts about the system.",
            )


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """What the workspaces of one session have in common.

    Args:
        root: The project's root on the host.
        cwd: Where commands start, at or below `root`.
        spill_directory: Host directory of spill files.
        hide: Returns the places to hide; asked anew before each command.
        network: Whether commands in the sandbox reach the network.
    """

    root: Path
    cwd: Path
    spill_directory: Path
    hide: Callable[[], Sequence[Path]] = tuple
    network: bool = False


def parent_workspace(
    runner: Runner,
    project: Project,
    *,
    run: str,
    unguarded: Callable[[], bool] = _never,
    shared: Mapping[str, Path] | None = None,
) -> RunWorkspace:
    """Return the parent's workspace: look by default, work and outside when granted.

    Args:
        runner: Runs the commands.
        project: What it works on.
        run: Run id; names the private directories.
        unguarded: As `RunWorkspace`.
        shared: As `RunWorkspace`.

    Raises:
        SandboxError: The private directories cannot be made.
    """
    scratch = runner.scratch(run)

    def view_for(access: Access) -> View:
        if access == "outside":
            return outside_view(root=project.root, cwd=project.cwd)
        return (work_view if access in {"work", "fork"} else look_view)(
            root=project.root,
            cwd=project.cwd,
            scratch=scratch,
            hide=project.hide(),
            network=project.network,
        )

    return RunWorkspace(
        runner,
        view_for,
        spill_directory=project.spill_directory,
        unguarded=unguarded,
        shared=shared,
    )


def read_only_workspace(
    runner: Runner,
    project: Project,
    *,
    run: str,
    unguarded: Callable[[], bool] = _never,
    shared: Mapping[str, Path] | None = None,
) -> RunWorkspace:
    """Return a read-only fork's workspace: look only. Arguments as `parent_workspace`.

    Raises:
        SandboxError: The private directories cannot be made.
    """
    scratch = runner.scratch(run)

    def view_for(access: Access) -> View:
        if access != "look":
            raise ToolDenied(
                f"This run is read-only: its commands run in the look view, not in {access}.",
                "Say in the report what should be run or changed.",
            )
        return look_view(
            root=project.root,
            cwd=project.cwd,
            scratch=scratch,
            hide=project.hide(),
            network=project.network,
        )

    return RunWorkspace(
        runner,
        view_for,
        spill_directory=project.spill_directory,
        writes=None,
        unguarded=unguarded,
        shared=shared,
    )
