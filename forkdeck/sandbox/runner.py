"""Runs a command in a view: in bubblewrap where it works, and never silently without it.

`Runner` is made once per session from the probed `Enforcement` and shared by every workspace and
by the worktree manager. Commands come in as shell texts or argument lists; results go back as
`ProcessResult`. Before each command the mount points are prepared and sockets are hidden anew.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from forkdeck.errors import SandboxError, ToolDenied
from forkdeck.model.ports import Enforcement
from forkdeck.model.tooling import ProcessResult
from forkdeck.sandbox import bubblewrap, hidden, sweep
from forkdeck.sandbox.environment import MARKER, child_environment
from forkdeck.sandbox.files import in_thread
from forkdeck.sandbox.process import Manner, Progress, run_process
from forkdeck.sandbox.view import Mount, View, covers
from forkdeck.sandbox.views import SHARED, Scratch

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh")
_STATUS_BYTES = 65536
_STARTS = 4
MOVED: Final = ("Can't create file at", "Can't find source path", "Can't mkdir", "Can't bind mount")
"""Signs of a socket or file that went between listing and mounting; the command did not run yet."""

NO_SANDBOX = (
    "Without a working sandbox this command is not run in a read-only view: it could change "
    "anything."
)
"""Why a look command is refused at ``tool-policy only``."""

WAY_OUT = (
    "Use read, grep, find and ls, or ask the person to allow bash for this session "
    "(forkdeck doctor names the remedy for this host)."
)
"""What to do instead."""


class Runner:
    """Runs commands in views.

    Args:
        enforcement: What was probed on this host.
        scratch: Host directory for the private directories of runs; made with mode 0700.
        environment_names: Further variables to pass on (``sandbox.environment``).
    """

    def __init__(
        self,
        enforcement: Enforcement,
        *,
        scratch: Path,
        environment_names: Iterable[str] = (),
    ) -> None:
        self.enforcement = enforcement
        self._scratch = scratch
        self._names = tuple(environment_names)
        self._numbers = itertools.count(1)

    @property
    def sandboxed(self) -> bool:
        """Whether commands run in bubblewrap."""
        return self.enforcement.level == "sandboxed"

    def scratch(self, run: str) -> Scratch:
        """Return (and make) the private directories of a run.

        Args:
            run: Run id or another plain name.

        Raises:
            SandboxError: They cannot be made.
        """
        base = self._scratch / run
        places = Scratch(base / "tmp", base / "share")
        try:
            for path in (places.tmp, places.share):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SandboxError(
                f"The private directory {base} cannot be made: {error.strerror}.",
                "Check the free space and the permissions of the state directory.",
            ) from error
        return Scratch(places.tmp.resolve(), places.share.resolve())

    def discard_scratch(self, run: str) -> None:
        """Remove the private directories of a run that is over; blocking."""
        base = self._scratch / run
        if base.is_symlink() or not base.is_dir():
            return

        def make_writable(directory: str) -> None:
            os.chmod(directory, 0o700)  # noqa: PTH101 - os.walk gives texts

        make_writable(str(base))
        for directory, names, _ in os.walk(base):
            for name in names:
                path = Path(directory, name)
                if not path.is_symlink():
                    make_writable(str(path))
        shutil.rmtree(base, ignore_errors=True)

    async def run(
        self,
        view: View,
        command: str | Sequence[str],
        *,
        timeout_s: float | None,
        spill: Path | None = None,
        progress: Progress | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        unguarded: bool = False,
    ) -> ProcessResult:
        """Run a shell text or an argument list in a view and wait.

        Args:
            view: What the command sees.
            command: A text for the shell, or an argument list.
            timeout_s: Seconds until it is killed, or None.
            spill: Host file for output that does not fit in memory.
            progress: Told about output while it arrives.
            env: Variables added to the child's environment.
            stdin: What it reads; the null device otherwise.
            unguarded: The person allowed read-only commands without a sandbox.

        Raises:
            SandboxError: The sandbox did not start; the command did not run.
            ToolDenied: Without a sandbox a read-only view cannot be given.
        """
        argv = _argv(command)
        number = next(self._numbers)
        environment = child_environment(
            env, names=self._names, read_only=not view.writable, network=view.network
        )
        environment[MARKER] = sweep.marker(number)
        if view.enforced and self.sandboxed:
            for left in reversed(range(_STARTS)):
                try:
                    return await self._contained(
                        view, argv, environment, timeout_s, spill, progress, stdin
                    )
                except SandboxError as error:
                    if not left or not any(word in error.what for word in MOVED):
                        raise
        if view.enforced and not view.writable and not unguarded:
            raise ToolDenied(NO_SANDBOX, WAY_OUT)
        cwd = view.resolve(view.cwd)
        if not cwd.is_dir():
            raise SandboxError(f"The working directory {view.cwd} does not exist in this view.")
        return await run_process(
            argv,
            cwd=cwd,
            env=environment,
            timeout_s=timeout_s,
            spill=spill,
            progress=progress,
            stdin=stdin,
        )

    async def _contained(
        self,
        view: View,
        argv: Sequence[str],
        environment: Mapping[str, str],
        timeout_s: float | None,
        spill: Path | None,
        progress: Progress | None,
        stdin: bytes | None,
    ) -> ProcessResult:
        program = self.enforcement.program
        if program is None:
            raise SandboxError("No sandbox program is known.", "Run forkdeck doctor.")
        ready = await in_thread(prepared, view)
        prefix = bubblewrap.arguments(program, ready, proc=self.enforcement.private_proc)
        status_read, status_write = os.pipe()
        os.set_blocking(status_read, False)
        try:
            result = await run_process(
                [*prefix, "--json-status-fd", str(status_write), "--", *argv],
                cwd="/",
                env=environment,
                timeout_s=timeout_s,
                spill=spill,
                progress=progress,
                stdin=stdin,
                manner=Manner(keep_fds=(status_write,)),
            )
            started = result.exit_code is None or _reported_exit(status_read)
        finally:
            os.close(status_write)
            os.close(status_read)
        if not started:
            raise SandboxError(
                f"The sandbox did not start: {_reason(result)}.",
                "The command did not run. Run forkdeck doctor to see what is wrong.",
            )
        return result


def _argv(command: str | Sequence[str]) -> list[str]:
    if not isinstance(command, str):
        return list(command)
    shell = next((path for path in _SHELLS if os.access(path, os.X_OK)), "/bin/sh")
    return [shell, "-c", command]


def _reported_exit(fd: int) -> bool:
    """Tell whether bubblewrap reported an exit code, which it does only for a started command."""
    try:
        text = os.read(fd, _STATUS_BYTES).decode("ascii", "replace")
    except BlockingIOError:
        return False
    for line in text.splitlines():
        try:
            if "exit-code" in json.loads(line):
                return True
        except ValueError:
            continue
    return False


def _reason(result: ProcessResult) -> str:
    lines = [line for line in result.head.splitlines() if line.startswith("bwrap:")]
    text = lines[-1].removeprefix("bwrap:").strip() if lines else ""
    return text or f"it ended with code {result.exit_code} and said nothing"


def prepared(view: View) -> View:
    """Hide sockets and make every mount point that the sandbox cannot safely make itself.

    Blocking; done before every command.

    Raises:
        SandboxError: A mount point cannot be made.
    """
    ready = view.adding(*hidden.socket_mounts(view))
    try:
        for index, mount in enumerate(ready.mounts):
            if mount.kind == "tmp" and mount.host is not None:
                # A command may have taken its own rights away.
                mount.host.chmod(0o700)
            below = ready.mounts[:index]
            under = next((m for m in reversed(below) if covers(m.inside, mount.inside)), None)
            if under is not None and under.host is not None and _is_ours(under):
                _make_point(under.host, os.path.relpath(mount.inside, under.inside), mount)
    except OSError as error:
        raise SandboxError(
            f"A mount point could not be made: {error.strerror} ({error.filename}).",
            "The command did not run. Check the free space of the state directory.",
        ) from error
    return ready


def _is_ours(mount: Mount) -> bool:
    return mount.kind == "tmp" or mount.inside == SHARED


def _make_point(base: Path, relative: str, mount: Mount) -> None:
    """Make a mount point below one of our directories; a run may have left a link in its way."""
    parts = [part for part in relative.split("/") if part != "."]
    path = base
    for position, part in enumerate(parts, start=1):
        path = path / part
        directory = position < len(parts) or mount.host is None or mount.host.is_dir()
        if os.path.lexists(path):
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode) if directory else stat.S_ISREG(mode):
                continue
            path.unlink()
        if directory:
            path.mkdir(mode=0o700)
        else:
            path.touch(mode=0o600)
