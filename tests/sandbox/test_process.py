"""Ending commands: trees, daemons, held pipes, floods, and what is kept of the output."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from forkdeck.errors import SandboxError
from forkdeck.model.tooling import ProcessResult
from forkdeck.sandbox import sweep
from forkdeck.sandbox.environment import MARKER
from forkdeck.sandbox.output import HEAD_BYTES, TAIL_BYTES, Output
from forkdeck.sandbox.process import Manner, run_process
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.views import look_view, outside_view
from tests.sandbox.lab import Lab

TREE = """
import os, signal, sys, time
for i in range(50):
    if os.fork() == 0:
        if i % 5 == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if i % 10 == 3:
            os.setsid()
            if os.fork():
                os._exit(0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.execvp("sleep", ["sleep", sys.argv[1]])
print("up", flush=True)
time.sleep(600)
"""


def alive(tag: str) -> int:
    count = 0
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            count += entry.read_bytes() == f"sleep\0{tag}\0".encode()
        except OSError:
            continue
    return count


async def plain(*argv: str, **options: object) -> ProcessResult:
    values: dict[str, object] = {"timeout_s": 30.0, "spill": None, **options}
    env = {"PATH": os.environ["PATH"], MARKER: sweep.marker(time.monotonic_ns())}
    return await run_process(argv, cwd="/", env=env, **values)  # pyright: ignore[reportArgumentType]


async def count_reaches(tag: str, wanted: int, within_s: float = 20) -> None:
    """Wait until that many processes carry the tag (exactly none, when none is wanted)."""
    for _ in range(int(within_s / 0.02)):
        count = alive(tag)
        if count >= wanted > 0 or count == wanted == 0:
            return
        await asyncio.sleep(0.02)
    pytest.fail(f"{alive(tag)} processes live, {wanted} were wanted")


async def cancelled_after_up(work: asyncio.Task[ProcessResult], tag: str) -> float:
    await count_reaches(tag, 50)
    started = time.monotonic()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    return time.monotonic() - started


async def test_cancelling_a_tree_of_50_leaves_nothing_without_a_sandbox() -> None:
    tag = f"61.{os.getpid()}1"
    work = asyncio.create_task(plain(sys.executable, "-c", TREE, tag))
    took = await cancelled_after_up(work, tag)
    assert alive(tag) == 0
    assert took < 3


@pytest.mark.needs_sandbox
async def test_cancelling_a_tree_of_50_leaves_nothing_in_the_sandbox(
    lab: Lab, runner: Runner
) -> None:
    tag = f"61.{os.getpid()}2"
    view = look_view(root=lab.repo, cwd=lab.repo, scratch=lab.scratch())
    command = ["/usr/bin/env", "python3", "-c", TREE, tag]
    work = asyncio.create_task(runner.run(view, command, timeout_s=60))
    took = await cancelled_after_up(work, tag)
    assert alive(tag) == 0
    assert took < 2


@pytest.mark.needs_sandbox
async def test_sandboxed_processes_die_with_the_app(lab: Lab) -> None:
    tag = f"61.{os.getpid()}3"
    code = f"""
import asyncio
from pathlib import Path
from forkdeck.sandbox.probe import probe
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.views import look_view
async def main():
    runner = Runner(await probe(), scratch=Path({str(lab.state)!r}))
    view = look_view(root=Path("/"), cwd=Path("/"), scratch=runner.scratch("p"))
    await runner.run(view, "setsid sleep {tag} & exec sleep {tag}", timeout_s=60)
asyncio.run(main())
"""
    app = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=Path(__file__).parents[2]
    )
    await count_reaches(tag, 2)
    app.kill()
    await app.wait()
    await count_reaches(tag, 0, within_s=1)


async def test_orphans_of_a_dead_app_are_swept_at_the_next_start() -> None:
    tag = f"61.{os.getpid()}4"
    code = (
        "import os, subprocess; from forkdeck.sandbox import sweep; "
        f"subprocess.Popen(['sleep', '{tag}'], start_new_session=True, "
        "env={'PATH': os.environ['PATH'], 'FORKDECK_CALL': sweep.marker(1)})"
    )
    app = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "ignore", "-c", code, cwd=Path(__file__).parents[2]
    )
    await app.wait()
    assert alive(tag) == 1
    mine = await asyncio.create_subprocess_exec(
        "sleep", f"{tag}9", env={"PATH": os.environ["PATH"], MARKER: sweep.marker(7)}
    )
    sweep.kill_orphans()
    await asyncio.sleep(0.05)
    assert alive(tag) == 0
    assert mine.returncode is None
    assert alive(f"{tag}9") == 1
    mine.kill()
    await mine.wait()


async def test_timeout_ends_what_ignores_term() -> None:
    script = "trap '' TERM; echo a; while :; do sleep 1; done"
    result = await plain("bash", "-c", script, timeout_s=0.3)
    assert (result.exit_code, result.timed_out, result.head) == (None, True, "a\n")
    assert result.duration_ms < 3000


@pytest.mark.parametrize("script", ["sleep 30 & echo done", "setsid sleep 30.5 & echo done"])
async def test_a_background_child_does_not_hold_the_call(script: str) -> None:
    result = await plain("bash", "-c", script)
    assert (result.exit_code, result.head, result.held_pipe) == (0, "done\n", True)
    assert result.duration_ms < 3000


async def test_stdin_is_closed_and_there_is_no_terminal() -> None:
    result = await plain("bash", "-c", "read x; echo got=$x rc=$?; echo y > /dev/tty")
    assert result.head.startswith("got= rc=1")
    assert result.exit_code == 1


async def test_stdin_is_given_whole() -> None:
    data = b"x" * 3_000_000
    result = await plain("wc", "-c", stdin=data)
    assert result.head.split() == ["3000000"]


async def test_500_megabytes_are_stopped(tmp_path: Path) -> None:
    spill = tmp_path / "out"
    result = await plain("bash", "-c", "yes | head -c 500000000", spill=spill)
    assert (result.exit_code, result.timed_out, result.spill_capped) == (None, False, True)
    assert spill.stat().st_size <= 256 * 1024 * 1024
    assert result.total_bytes < 300 * 1024 * 1024


async def test_a_flood_without_a_spill_file_is_stopped_too() -> None:
    result = await plain("yes", manner=Manner(limit_bytes=1_000_000))
    assert result.exit_code is None
    assert result.spill is None


async def test_100_megabytes_are_kept(tmp_path: Path) -> None:
    spill = tmp_path / "out"
    stalls: list[float] = []

    async def watch() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            stalls.append(time.monotonic() - before)

    watcher = asyncio.create_task(watch())
    script = "echo FIRST; yes | head -c 100000000; echo END"
    result = await plain("bash", "-c", script, spill=spill)
    watcher.cancel()
    assert (result.exit_code, result.total_bytes) == (0, 100_000_010)
    assert spill.stat().st_size == 100_000_010
    assert spill.stat().st_mode & 0o777 == 0o600
    assert result.head.startswith("FIRST\ny\n")
    assert result.tail.endswith("y\nEND\n")
    assert len(result.head) == HEAD_BYTES
    assert len(result.tail) == TAIL_BYTES
    assert sorted(stalls)[int(len(stalls) * 0.9)] < 0.2


async def test_progress_tells_the_last_lines() -> None:
    seen: list[tuple[str, int]] = []
    script = "for i in 1 2 3; do echo line$i; sleep 0.3; done"
    await plain("bash", "-c", script, progress=lambda tail, size: seen.append((tail, size)))
    assert seen[0] == ("line1\n", 6)
    assert seen[-1][0].endswith("line3\n")


async def test_a_missing_program_and_a_too_long_command_are_named() -> None:
    with pytest.raises(SandboxError, match="No such file"):
        await plain("/nonexistent")
    with pytest.raises(SandboxError, match="too long"):
        await plain("true", "x" * 3_000_000)


async def test_no_descriptor_and_no_task_is_left() -> None:
    await plain("true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        await plain("bash", "-c", "sleep 20 & echo x")
        with pytest.raises(SandboxError):
            await plain("/nonexistent")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert len(asyncio.all_tasks()) == 1


async def test_a_second_cancellation_does_not_stop_the_killing() -> None:
    tag = f"61.{os.getpid()}5"
    work = asyncio.create_task(plain("bash", "-c", f"trap '' TERM; sleep {tag}; sleep {tag}"))
    await count_reaches(tag, 1)
    work.cancel()
    await asyncio.sleep(0.05)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert alive(tag) == 0


async def test_32_at_once_stay_bounded(tmp_path: Path) -> None:
    results = await asyncio.gather(
        *(plain("bash", "-c", "yes | head -c 2000000", spill=tmp_path / str(i)) for i in range(32))
    )
    assert all(result.total_bytes == 2_000_000 for result in results)
    assert all((tmp_path / str(i)).stat().st_size == 2_000_000 for i in range(32))


async def test_outside_runs_on_the_host_and_is_swept(lab: Lab, runner: Runner) -> None:
    tag = f"61.{os.getpid()}6"
    view = outside_view(root=lab.repo, cwd=lab.repo)
    script = f"echo free > {lab.victim}; (setsid sleep {tag} >/dev/null 2>&1 &); pwd"
    result = await runner.run(view, script, timeout_s=10)
    assert (result.exit_code, result.head) == (0, f"{lab.repo}\n")
    assert lab.victim.read_text() == "free\n"
    assert alive(tag) == 0


@pytest.mark.needs_sandbox
async def test_a_sandbox_that_does_not_start_is_an_error_not_a_run(lab: Lab) -> None:
    from forkdeck.model.ports import Enforcement

    view = look_view(root=lab.repo, cwd=lab.repo, scratch=lab.scratch())
    for program in ("/bin/true", "/nonexistent/bwrap"):
        broken = Runner(
            Enforcement(level="sandboxed", program=program), scratch=lab.state / "scratch"
        )
        with pytest.raises(SandboxError):
            await broken.run(view, f"echo x > {lab.victim}", timeout_s=5)
        assert lab.victim.read_text() == "victim\n"


@pytest.mark.needs_sandbox
async def test_a_command_that_speaks_like_bubblewrap_is_still_a_command(
    lab: Lab, runner: Runner
) -> None:
    view = look_view(root=lab.repo, cwd=lab.repo, scratch=lab.scratch())
    result = await runner.run(view, "echo 'bwrap: nothing ran' >&2; exit 1", timeout_s=5)
    assert (result.exit_code, result.head) == (1, "bwrap: nothing ran\n")
    result = await runner.run(view, "kill -9 $$", timeout_s=5)
    assert result.exit_code == 137


def test_output_keeps_characters_whole() -> None:
    text = "é" * 40_000
    data = b"x" + text.encode()
    output = Output(None)
    for start in range(0, len(data), 777):
        output.feed(data[start : start + 777])
    assert "\ufffd" not in output.head() + output.tail()
    short = Output(None)
    short.feed(b"x" + ("é" * 10_000).encode())
    assert short.head() + short.tail() == "x" + "é" * 10_000


def test_a_full_disk_is_said_not_raised(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    output = Output(tmp_path / "file" / "out")
    output.write(output.feed(b"x" * 100_000))
    assert output.trouble
    assert output.spill is None
