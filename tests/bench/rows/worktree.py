"""Making a write fork's worktree in a repository of 10,000 files, beside plain git."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from forkdeck.model.ids import handle
from forkdeck.providers.clock import SystemClock
from forkdeck.sandbox.probe import probe
from forkdeck.sandbox.runner import Runner
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.worktrees.manager import GitWorktrees
from tests.bench.figure import Figure, median
from tests.bench.place import git, make_place

_FILES = 10_000
_ROUNDS = 5
_SESSION = "20261130-202200-1f3a9c"


def measure_create() -> Sequence[Figure]:
    """Make worktrees in turns with ``git worktree add``."""
    with make_place() as place:
        project = place.project
        for number in range(_FILES):
            folder = project / f"d{number % 100:02}"
            folder.mkdir(exist_ok=True)
            (folder / f"f{number}.txt").write_text(f"line {number}\n" * (5 + number % 40))
        git(project, "add", "-A")
        git(project, "commit", "-qm", "many files")
        own, bare = asyncio.run(_in_turns(project, place.base))
    ratios = [mine / floor for mine, floor in zip(own, bare, strict=True)]
    detail: dict[str, object] = {
        "own_s": round(median(own), 3),
        "git_s": round(median(bare), 3),
        "of_medians": round(median(own) / median(bare), 3),
    }
    name = "write fork create, 10k files / git worktree add"
    return [Figure(name, 1.15, round(median(ratios), 3), detail=detail)]


async def _in_turns(project: Path, base: Path) -> tuple[list[float], list[float]]:
    paths = SessionPaths(base / "sessions" / _SESSION)
    paths.spill.mkdir(parents=True)
    state = base / "state"
    trees = GitWorktrees(
        cwd=project, session=_SESSION, paths=paths, clock=SystemClock(), trusted=True,
        runner=Runner(await probe(), scratch=base / "scratch"), state=state, hide=lambda: (state,),
    )  # fmt: skip
    own: list[float] = []
    bare: list[float] = []
    try:
        for number in range(_ROUNDS + 1):
            started = time.perf_counter()
            target = base / f"bare{number}"
            await asyncio.to_thread(
                git, project, "worktree", "add", "-q", "--detach", str(target), "HEAD"
            )
            between = time.perf_counter()
            await trees.create(handle(number + 1))
            ended = time.perf_counter()
            if number:
                bare.append(between - started)
                own.append(ended - between)
    finally:
        await trees.close()
    return own, bare
