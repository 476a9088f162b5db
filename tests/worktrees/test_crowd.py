"""Many worktrees at once, locks, cancellation, and the ignored files a fork may see."""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path

import pytest

from forkdeck.errors import WorktreeError
from forkdeck.providers.clock import SystemClock
from forkdeck.worktrees import create
from forkdeck.worktrees.layout import Layout
from forkdeck.worktrees.locks import RepoLock, SessionLocks, take
from forkdeck.worktrees.removal import remove_directory
from tests.soak import SOAK
from tests.worktrees.helpers import NO_SANDBOX, OTHER, Bench, git, make_repo


@pytest.mark.needs_sandbox
async def test_thirty_two_at_once(bench: Bench) -> None:
    before = bench.parent()
    for start in range(1, 1 + 32 * (20 if SOAK else 1), 32):
        names = [f"f{number}" for number in range(start, start + 32)]
        leases = await asyncio.gather(*(bench.trees.create(name) for name in names))
        assert git(bench.repo, "worktree", "list").count("\n") == 32
        assert all((Path(lease.path) / "a.txt").exists() for lease in leases)
        assert bench.parent() == before
        assert len(bench.refs()) == start + 31
        if SOAK:
            await asyncio.gather(*(bench.trees.remove(name) for name in names))


@pytest.mark.needs_sandbox
@pytest.mark.parametrize("step", ["keep_snapshot", "_add", "make_private_git", "_populate"])
async def test_a_cancelled_creation_leaves_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    reached = asyncio.Event()
    real = getattr(create, step)

    async def stuck(*arguments: object, **named: object) -> None:
        await real(*arguments, **named)
        reached.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(create, step, stuck)
    task = asyncio.create_task(bench.trees.create("f1", dirty=True))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.refs() == []
    assert git(bench.repo, "worktree", "list").count("\n") == 0
    assert list(bench.state.rglob("f1")) == []
    monkeypatch.undo()
    await bench.trees.create("f1")


@pytest.mark.needs_sandbox
async def test_a_session_in_use_elsewhere_is_refused(bench: Bench) -> None:
    await bench.trees.create("f1")
    other = Bench(bench.base, repo=bench.repo)
    with pytest.raises(WorktreeError, match="Another process"):
        await other.trees.create("f2")
    await other.trees.close()
    third = Bench(bench.base, repo=bench.repo, session=OTHER)
    await third.trees.create("f1")
    await third.trees.close()


async def test_the_repository_lock_waits_and_gives_up(tmp_path: Path) -> None:
    class Hurried(SystemClock):
        def __init__(self) -> None:
            self.now_ms = 0

        def monotonic_ms(self) -> int:
            return self.now_ms

        async def sleep(self, seconds: float) -> None:
            self.now_ms += 20_000

    held = take(tmp_path / "lock")
    assert held is not None
    with pytest.raises(WorktreeError, match="for a minute"):
        async with RepoLock(tmp_path / "lock", Hurried()).held():
            raise AssertionError
    os.close(held)
    async with RepoLock(tmp_path / "lock", Hurried()).held():
        assert take(tmp_path / "lock") is None
    fcntl.flock(again := take(tmp_path / "lock") or -1, fcntl.LOCK_UN)
    os.close(again)


def test_session_locks(tmp_path: Path) -> None:
    mine, other = SessionLocks(), SessionLocks()
    assert mine.hold(tmp_path / "s")
    assert mine.hold(tmp_path / "s")
    assert not other.hold(tmp_path / "s")
    assert other.is_live(tmp_path / "s")
    mine.close()
    assert not other.is_live(tmp_path / "s")


@pytest.mark.parametrize("where", ["outside", "link", "root", "dots", "through a link"])
def test_only_our_own_directories_are_removed(tmp_path: Path, where: str) -> None:
    layout = Layout(tmp_path / "state")
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    layout.worktrees.mkdir(parents=True)
    link = layout.worktrees / "link"
    link.symlink_to(outside)
    target = {
        "outside": outside,
        "link": link,
        "root": layout.worktrees,
        "dots": layout.worktrees / "../../outside",
        "through a link": link / "deep",
    }[where]
    with pytest.raises(WorktreeError, match="left alone"):
        remove_directory(layout, target)
    assert (outside / "deep").is_dir()
    assert layout.worktrees.is_dir()


INCLUDE = ".env\nnode_modules/\ncache/keep.txt\n../outside\nb.txt\nlinked\n"


def ignored_things(repo: Path, base: Path) -> None:
    (base / "outside").write_text("secret")
    (repo / ".gitignore").write_text(".env\nnode_modules/\ncache/\nlinked\n")
    (repo / ".worktreeinclude").write_text(INCLUDE)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "ignore")
    (repo / ".env").write_text("KEY=1\n")
    (repo / "linked").symlink_to(base / "outside")
    for name in ("node_modules/m/index.js", "cache/keep.txt", "cache/no.txt"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("x\n")


@pytest.mark.needs_sandbox
async def test_included_files_are_seen_and_stay_the_parents(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "proj")
    ignored_things(repo, tmp_path)
    bench = Bench(tmp_path, repo=repo, trusted=True)
    lease = await bench.trees.create("f1")
    code, out = await bench.bash(
        lease, "cat .env cache/keep.txt node_modules/m/index.js; ls cache; ls linked;"
        " echo x > .env; rm -rf node_modules; git status --porcelain",
    )  # fmt: skip
    assert out.startswith("KEY=1\nx\nx\nkeep.txt\n"), out
    assert (repo / ".env").read_text() == "KEY=1\n"
    assert (repo / "node_modules/m/index.js").exists()
    assert code == 0
    assert await bench.trees.save("f1") is None
    await bench.trees.remove("f1")
    assert (repo / "node_modules/m/index.js").exists()
    await bench.trees.close()


@pytest.mark.needs_sandbox
async def test_an_untrusted_project_shares_nothing(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "proj")
    ignored_things(repo, tmp_path)
    bench = Bench(tmp_path, repo=repo)
    lease = await bench.trees.create("f1")
    _, out = await bench.bash(lease, "ls -a")
    assert ".env" not in out.split()
    await bench.trees.close()


async def test_without_mounts_small_files_are_copied(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "proj")
    ignored_things(repo, tmp_path)
    bench = Bench(tmp_path, repo=repo, trusted=True, level=NO_SANDBOX)
    lease = await bench.trees.create("f1")
    tree = Path(lease.path)
    assert (tree / ".env").read_text() == "KEY=1\n"
    assert (tree / "cache/keep.txt").exists()
    assert not (tree / "cache/no.txt").exists()
    assert not (tree / "linked").exists()
    await bench.trees.remove("f1")
    await bench.trees.close()
