"""Runs the real ``forkdeck`` as a person or a script would: a process of its own.

Used by the command line's and the end-to-end tests. Nothing of this machine reaches it: home,
state, settings and temporary directory are the test's own.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
"""The tree these tests stand in is the one that is tested, whatever is installed."""

FORKDECK = (sys.executable, "-m", "forkdeck")
KEY = "sk-ant-test-0123456789abcdef"


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@dataclass
class Program:
    """``forkdeck`` with an environment of its own.

    Args:
        base: A directory that is this test's alone.
        more: Further environment variables.
    """

    base: Path
    more: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("home", "tmp", "project"):
            (self.base / name).mkdir(exist_ok=True)

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def state(self) -> Path:
        return self.base / "state"

    @property
    def config(self) -> Path:
        return self.base / "config"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.base / "home"),
            "TMPDIR": str(self.base / "tmp"),
            "LC_ALL": "C.UTF-8",
            "FORKDECK_STATE_DIR": str(self.state),
            "FORKDECK_CONFIG_DIR": str(self.config),
            "FORKDECK_REHEARSAL_SPEED": "20",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            **self.more,
        }

    def run(
        self,
        *words: str,
        stdin: bytes | IO[bytes] | None = None,
        stdout: IO[bytes] | int | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 90,
    ) -> Result:
        """Run a command to its end; fails when anything like a traceback is shown."""
        given = isinstance(stdin, bytes)
        done = subprocess.run(
            [*FORKDECK, *words],
            input=stdin if given else None,
            stdin=None if given else stdin or subprocess.DEVNULL,
            stdout=stdout or subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or self.project,
            env={**self.environment, **(env or {})},
            timeout=timeout,
            check=False,
        )
        out, err = (done.stdout or b"").decode(), done.stderr.decode()
        no_traceback(out + err)
        return Result(done.returncode, out, err)

    @contextmanager
    def started(
        self, *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Generator[subprocess.Popen[bytes]]:
        """Start a command in a session of its own; it is dead when the block is left."""
        process = subprocess.Popen(
            [*FORKDECK, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or self.project,
            env={**self.environment, **(env or {})},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def sessions(self) -> list[Path]:
        """Return the logs of the saved sessions, oldest first."""
        return sorted(self.state.glob("sessions/*/*/events.jsonl"))

    def fork_wrote(self, words: str) -> bool:
        """Tell whether some write fork's own notes hold these words by now."""
        for tree in self.state.glob("worktrees/*/*/*/*"):
            with suppress(OSError):
                if words in (tree / "notes.txt").read_text():
                    return True
        return False

    def log(self) -> Path:
        """Return the newest session's log."""
        return self.sessions()[-1]


def no_traceback(text: str) -> None:
    """Fail when a person would see a traceback or an ignored exception."""
    assert not re.search(r"Traceback|Exception ignored|Task exception", text), text


def git(where: Path, *words: str) -> str:
    """Run git with a fixed identity."""
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]
    return subprocess.run(
        ["git", *who, *words], cwd=where, check=True, capture_output=True, text=True
    ).stdout


def repository(where: Path) -> Path:
    """Make a repository with a few files."""
    where.mkdir(exist_ok=True)
    git(where, "init", "-q", "-b", "main")
    (where / "notes.txt").write_text("plum jam\nquince jelly\n")
    (where / "README.md").write_text("# A project\n")
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", "first")
    return where


def processes_of(base: Path) -> list[str]:
    """Return the command lines of living processes that work in or name a directory."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            where = str((entry / "cwd").readlink())
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z" and (str(base) in words or where.startswith(str(base))):
            found.append(f"{entry.name}: {words.strip()[:200]} (in {where})")
    return found


def descendants(pid: int) -> set[int]:
    """Return the process ids below a process."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rpartition(")")[2].split()[1]
                )
            except OSError:
                continue
    found: set[int] = set()
    rest = {pid}
    while rest:
        rest = {child for child, parent in parents.items() if parent in rest} - found
        found |= rest
    return found


def living(pids: Sequence[int] | set[int]) -> set[int]:
    """Return those of some process ids that are alive and no zombies."""
    alive: set[int] = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            alive.add(pid)
    return alive


def eventually(holds: object, seconds: float = 5) -> bool:
    """Wait until a callable is true, at most some seconds."""
    assert callable(holds)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return bool(holds())


@contextmanager
def scripted_model(base: Path, script: Path) -> Generator[dict[str, str]]:
    """Run ``forkdeck rehearsal`` as a process; gives the variables that point a client at it."""
    place = Program(base)
    process = subprocess.Popen(
        [*FORKDECK, "rehearsal", "--scenario", str(script)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=place.project, env=place.environment, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(2)]
    found = dict(re.findall(r"export (\w+)=(\S+)", "".join(lines)))
    assert set(found) == {"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"}, lines
    try:
        yield found
    finally:
        process.terminate()
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (0, ""), err
    assert "Traceback" not in err
