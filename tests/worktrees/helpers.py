"""A real repository, a real sandbox and a manager over both."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from forkdeck.model.ports import Enforcement
from forkdeck.providers.clock import SystemClock
from forkdeck.sandbox.probe import probe
from forkdeck.sandbox.runner import Runner
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.worktrees.manager import GitWorktrees

SESSION = "20261130-202200-1f3a9c"
OTHER = "20261130-202201-aaaaaa"
IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}
NO_SANDBOX = Enforcement(level="tool-policy only", why="a test says so")


@cache
def enforcement() -> Enforcement:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(probe())).result()


def git(cwd: Path, *arguments: str, ok: bool = True) -> str:
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=cwd,
        check=ok,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        env={**os.environ, **IDENTITY, "LC_ALL": "C"},
    )
    return done.stdout.strip("\n") if ok else done.stdout + done.stderr


def make_repo(path: Path) -> Path:
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main", ".")
    (path / "a.txt").write_text("".join(f"l{n}\n" for n in range(20)))
    (path / "b.txt").write_text("b\n")
    (path / "sub").mkdir()
    (path / "sub/c.txt").write_text("c\n")
    (path / ".gitignore").write_text(".env\n*.log\nnode_modules/\n")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "first")
    return path


class Bench:
    """A repository with its manager."""

    def __init__(
        self,
        base: Path,
        *,
        repo: Path | None = None,
        cwd: Path | None = None,
        level: Enforcement | None = None,
        trusted: bool = False,
        session: str = SESSION,
        hide: Sequence[Path] = (),
    ) -> None:
        self.base = base
        self.repo = repo or make_repo(base / "proj")
        self.state = base / "state"
        self.state.mkdir(exist_ok=True)
        self.paths = SessionPaths(base / "sessions" / session)
        self.paths.spill.mkdir(parents=True, exist_ok=True)
        self.runner = Runner(level or enforcement(), scratch=base / "scratch")
        self.trees = GitWorktrees(
            cwd=cwd or self.repo,
            session=session,
            paths=self.paths,
            runner=self.runner,
            clock=SystemClock(),
            trusted=trusted,
            state=self.state,
            hide=lambda: (self.state, *hide),
        )

    async def bash(self, lease_or_space: object, script: str) -> tuple[int | None, str]:
        space = lease_or_space if hasattr(lease_or_space, "run") else None
        if space is None:
            space = self.trees.workspace(lease_or_space)  # type: ignore[arg-type]
        result = await space.run(script, access="fork", timeout_s=30, spill_name="out")  # type: ignore[attr-defined]
        return result.exit_code, result.head

    def parent(self) -> tuple[str, bytes, str, str]:
        """What must not change: HEAD, the index's bytes, status and stash."""
        index = self.repo / ".git/index"
        data = index.read_bytes() if index.exists() else b""
        status = git(self.repo, "--no-optional-locks", "status", "--porcelain")
        return (
            git(self.repo, "rev-parse", "-q", "--verify", "HEAD", ok=False),
            data,
            status,
            git(self.repo, "stash", "list"),
        )

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Every file of the parent's tree with its bytes and mode."""
        found: dict[str, tuple[bytes, int]] = {}
        for root, names, files in os.walk(self.repo):
            if ".git" in names:
                names.remove(".git")
            for name in files:
                path = Path(root, name)
                data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
                found[os.path.relpath(path, self.repo)] = (data, path.lstat().st_mode)
        return found

    def refs(self) -> list[str]:
        return git(self.repo, "for-each-ref", "--format=%(refname)", "refs/forkdeck").split()
