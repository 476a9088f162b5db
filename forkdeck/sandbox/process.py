"""Runs one command to its end, and kills all of it when told to.

Called by `sandbox.runner` only. The command gets its own pipe and session. The call ends when the
direct child exits, never on end of output: a background process that holds the pipe does not hold
the call. Cancellation, time-out and flood end with TERM, 400 ms, KILL, and a check that nothing
is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import IO, TypeAlias

import msgspec

from forkdeck.errors import SandboxError
from forkdeck.model.tooling import ProcessResult
from forkdeck.sandbox import sweep
from forkdeck.sandbox.environment import MARKER
from forkdeck.sandbox.files import in_thread
from forkdeck.sandbox.output import SPILL_BYTES, Output

Progress: TypeAlias = Callable[[str, int], None]
"""Called with the last lines and the byte count while output arrives."""

_GRACE_S = 0.4
_DRAIN_S = 0.25
_PROGRESS_S = 0.25
_PIPE_BYTES = 1024 * 1024
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, Linux


class Manner(msgspec.Struct, frozen=True):
    """What few callers need: descriptors to keep, another limit.

    Args:
        keep_fds: Further descriptors the child inherits.
        limit_bytes: Output after which the command is killed.
    """

    keep_fds: tuple[int, ...] = ()
    limit_bytes: int = SPILL_BYTES


async def run_process(
    argv: Sequence[str],
    *,
    cwd: str | Path,
    env: Mapping[str, str],
    timeout_s: float | None,
    spill: Path | None = None,
    progress: Progress | None = None,
    stdin: bytes | None = None,
    manner: Manner | None = None,
) -> ProcessResult:
    """Run an argument list and wait; must be called on the loop's thread.

    Args:
        argv: Program and arguments; no shell.
        cwd: Host directory to start in.
        env: The whole environment; with `MARKER` in it, what left the group is found too.
        timeout_s: Seconds until it is killed, or None.
        spill: Host file for output that does not fit in memory.
        progress: Told about output, at most four times a second.
        stdin: What the command reads; it gets the null device otherwise.
        manner: Descriptors to keep, another limit.

    Raises:
        SandboxError: The program could not be started.
    """
    manner = manner or Manner()
    call = _Call(Output(spill, manner.limit_bytes), progress, env.get(MARKER))
    read_end, process = await _spawn(argv, cwd, env, stdin, manner.keep_fds)
    return await call.watch(read_end, process, timeout_s)


async def insist(work: Coroutine[None, None, None]) -> None:
    """Finish `work` even when cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


class _Call:
    """One running command."""

    def __init__(self, output: Output, progress: Progress | None, marker: str | None) -> None:
        self._output = output
        self._progress = progress
        self._marker = marker
        self._said_at = 0.0
        self._flooded = asyncio.Event()
        self._writing: asyncio.Future[None] | None = None

    async def watch(
        self, read_end: int, process: asyncio.subprocess.Process, timeout_s: float | None
    ) -> ProcessResult:
        started = time.monotonic()
        reader = asyncio.create_task(self._read(read_end))
        ended = asyncio.create_task(process.wait())
        flooded = asyncio.create_task(self._flooded.wait())
        timed_out = stopped = False
        try:
            await asyncio.wait(
                {ended, flooded}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if not ended.done():
                timed_out, stopped = not flooded.done(), True
                await insist(self._stop(process))
            await asyncio.wait({reader}, timeout=_DRAIN_S)
            held = not reader.done()
            if not stopped:
                await insist(self._end_leftovers(process))
        except asyncio.CancelledError:
            await insist(self._stop(process))
            raise
        finally:
            try:
                await insist(self._close(ended, flooded, reader))
            finally:
                os.close(read_end)
                self._output.close()
        output = self._output
        return ProcessResult(
            exit_code=None if stopped else process.returncode,
            head=output.head(),
            tail=output.tail(),
            total_bytes=output.total_bytes,
            spill=output.spill,
            spill_capped=output.over_limit or bool(output.trouble),
            timed_out=timed_out,
            held_pipe=held,
            duration_ms=int((time.monotonic() - started) * 1000),
        )

    async def _read(self, fd: int) -> None:
        loop = asyncio.get_running_loop()
        while not self._output.over_limit:
            try:
                data = os.read(fd, _PIPE_BYTES)
            except BlockingIOError:
                await _readable(loop, fd)
                continue
            if not data:
                return
            rest = self._output.feed(data)
            if rest:
                # The write finishes before the file is closed, whatever is cancelled.
                self._writing = asyncio.ensure_future(in_thread(self._output.write, rest))
                await asyncio.shield(self._writing)
            else:
                await asyncio.sleep(0)
            self._report()
        self._flooded.set()

    def _report(self) -> None:
        now = time.monotonic()
        if self._progress is not None and now - self._said_at >= _PROGRESS_S:
            self._said_at = now
            self._progress(self._output.last_lines(), self._output.total_bytes)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            _signal_group(process.pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _GRACE_S)
        # Also reaches what ignored TERM after its leader died.
        _signal_group(process.pid, signal.SIGKILL)
        await process.wait()
        if self._marker is not None:
            await in_thread(sweep.kill_survivors, self._marker)

    async def _end_leftovers(self, process: asyncio.subprocess.Process) -> None:
        _signal_group(process.pid, signal.SIGKILL)
        # A process namespace ends everything too, but a moment after its first process.
        if self._marker is not None:
            await in_thread(sweep.kill_survivors, self._marker)

    async def _close(self, *tasks: asyncio.Task[object]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._writing is not None:
            await self._writing


async def _readable(loop: asyncio.AbstractEventLoop, fd: int) -> None:
    ready = loop.create_future()

    def mark() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(fd, mark)
    try:
        await ready
    finally:
        loop.remove_reader(fd)


async def _spawn(
    argv: Sequence[str],
    cwd: str | Path,
    env: Mapping[str, str],
    stdin: bytes | None,
    keep_fds: Sequence[int],
) -> tuple[int, asyncio.subprocess.Process]:
    source: IO[bytes] | int = asyncio.subprocess.DEVNULL
    if stdin is not None:
        source = await in_thread(_filled, stdin)
    read_end, write_end = os.pipe()
    spawned = False
    try:
        os.set_blocking(read_end, False)
        with contextlib.suppress(OSError):
            fcntl.fcntl(write_end, _SET_PIPE_SIZE, _PIPE_BYTES)
        # Spawned here, on the loop's thread: the sandbox dies with the thread that started it.
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=dict(env),
            stdin=source,
            stdout=write_end,
            stderr=write_end,
            start_new_session=True,
            pass_fds=tuple(keep_fds),
        )
        spawned = True
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SandboxError(
            f"{Path(argv[0]).name} could not be started: {reason}.",
            "Nothing ran. Check the command's length and that the program is installed.",
        ) from error
    finally:
        os.close(write_end)
        if not spawned:
            os.close(read_end)
        if not isinstance(source, int):
            source.close()
    return read_end, process


def _filled(data: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller after the spawn
    file.write(data)
    file.seek(0)
    return file


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
