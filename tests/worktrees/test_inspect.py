"""Every kind of directory gets a true answer, and no code of it runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from forkdeck.errors import WorktreeError
from tests.worktrees.helpers import NO_SANDBOX, Bench, git, make_repo

pytestmark = pytest.mark.needs_sandbox


def plain(base: Path) -> Path:
    (base / "plain").mkdir()
    return base / "plain"


def empty(base: Path) -> Path:
    (base / "empty").mkdir()
    git(base / "empty", "init", "-q", "-b", "trunk", ".")
    return base / "empty"


def bare(base: Path) -> Path:
    repo = make_repo(base / "origin")
    git(base, "clone", "-q", "--bare", str(repo), "bare.git")
    return base / "bare.git"


def inside_git(base: Path) -> Path:
    return make_repo(base / "r") / ".git"


def owned(base: Path) -> Path:
    repo = make_repo(base / "owned")
    for path in (repo, *repo.rglob("*")):
        os.chown(path, 1234, 1234)
    return repo


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (plain, "none", "no git repository"),
        (empty, "empty", "no commit yet"),
        (bare, "bare", "bare repository"),
        (inside_git, "bare", "git's own data"),
        (owned, "unsafe", "dubious ownership"),
    ],
)
async def test_where_write_forks_do_not_work(
    tmp_path: Path, make: Callable[[Path], Path], kind: str, words: str
) -> None:
    if make is owned and os.getuid() != 0:
        pytest.skip("only root can give a file away")
    place = make(tmp_path)
    bench = Bench(tmp_path, repo=place)
    facts = await bench.trees.inspect()
    assert facts.kind == kind
    assert words in facts.reason
    with pytest.raises(WorktreeError):
        await bench.trees.create("f1")
    await bench.trees.close()


async def test_no_git(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forkdeck.worktrees.inspect.git_program", lambda: None)
    facts = await bench.trees.inspect()
    assert facts.kind == "no git"
    assert "install" in facts.reason


@pytest.mark.parametrize("key", ["remote.origin.uploadpack", "remote.origin.vcs"])
async def test_a_remote_that_names_a_program_is_not_trusted(bench: Bench, key: str) -> None:
    """An older git fetches missing objects by itself, and would run it."""
    git(bench.repo, "config", key, "touch /tmp/x; git-upload-pack")
    facts = await bench.trees.inspect()
    assert facts.kind == "unsafe"
    assert key in facts.reason
    bench.trees.trust()
    assert (await bench.trees.inspect()).kind == "ok"


async def test_facts_of_a_usual_repository(bench: Bench) -> None:
    (bench.repo / "b.txt").unlink()
    git(bench.repo, "mv", "sub/c.txt", "moved.txt")
    (bench.repo / "n").write_text("")
    (bench.repo / ".env").write_text("")
    before = bench.parent()
    facts = await bench.trees.inspect()
    assert (facts.kind, facts.root, facts.branch, facts.dirty_files, facts.reason) == (
        "ok",
        str(bench.repo),
        "main",
        3,
        "",
    )
    assert facts.head == git(bench.repo, "rev-parse", "HEAD")
    assert bench.parent() == before


async def test_an_empty_repository_can_be_snapshotted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, repo=empty(tmp_path))
    (bench.repo / "x").write_text("1\n")
    assert (await bench.trees.inspect()).branch == "trunk"
    ref = await bench.trees.snapshot(1)
    assert ref is not None
    (bench.repo / "x").write_text("2\n")
    assert git(bench.repo, "show", f"{ref}:x") == "1"
    await bench.trees.undo(ref)
    assert (bench.repo / "x").read_text() == "1\n"
    await bench.trees.close()


@pytest.mark.parametrize("state", ["detached", "rebase", "merge", "worktree", "submodule", "odd"])
async def test_unusual_states_work_and_stay(tmp_path: Path, state: str) -> None:
    repo = make_repo(tmp_path / ("répo wïth 'space" if state == "odd" else "proj"))
    cwd = repo
    if state in ("rebase", "merge"):
        git(repo, "checkout", "-qb", "o")
        (repo / "b.txt").write_text("o\n")
        git(repo, "commit", "-qam", "o")
        git(repo, "checkout", "-q", "main")
        (repo / "b.txt").write_text("m\n")
        git(repo, "commit", "-qam", "m")
        git(repo, "rebase" if state == "rebase" else "merge", "o", ok=False)
        assert "UU b.txt" in git(repo, "status", "--porcelain")
    elif state == "detached":
        git(repo, "checkout", "-q", "--detach")
    elif state == "worktree":
        git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
        cwd = tmp_path / "linked"
    elif state == "submodule":
        library = make_repo(tmp_path / "library")
        git(repo, "submodule", "add", "-q", str(library), "lib")
        git(repo, "commit", "-qm", "sub")
    bench = Bench(tmp_path, repo=cwd)
    status = git(cwd, "--no-optional-locks", "status", "--porcelain")
    facts = await bench.trees.inspect()
    assert facts.kind == "ok"
    if state in ("detached", "rebase"):
        assert facts.branch is None
    lease = await bench.trees.create("f1", dirty=state in ("rebase", "merge"))
    code, out = await bench.bash(lease, "pwd; echo 1 > n; git add n; git commit -qm n; cat b.txt")
    assert code == 0
    assert out.startswith(f"{cwd}\n")
    assert ("<<<<" in out) == (state in ("rebase", "merge"))
    work = await bench.trees.save("f1")
    assert work is not None
    assert [f.path for f in work.files] == ["n"]
    await bench.trees.remove("f1")
    assert git(cwd, "--no-optional-locks", "status", "--porcelain") == status
    applied = await bench.trees.apply(work)
    assert (cwd / "n").read_text() == "1\n"
    await bench.trees.undo(applied.undo_ref)
    assert git(cwd, "--no-optional-locks", "status", "--porcelain") == status
    await bench.trees.close()


@pytest.mark.parametrize("kind", ["shallow", "sparse", "sha256"])
async def test_unusual_object_stores(tmp_path: Path, kind: str) -> None:
    origin = make_repo(tmp_path / "origin")
    git(origin, "commit", "-q", "--allow-empty", "-m", "two")
    repo = tmp_path / "proj"
    if kind == "shallow":
        git(tmp_path, "clone", "-q", "--depth", "1", f"file://{origin}", "proj")
    elif kind == "sparse":
        git(tmp_path, "clone", "-q", str(origin), "proj")
        git(repo, "sparse-checkout", "set", "--no-cone", "/a.txt")
        assert not (repo / "b.txt").exists()
    else:
        repo.mkdir()
        git(repo, "init", "-q", "--object-format=sha256", ".")
        (repo / "b.txt").write_text("b\n")
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "one")
    bench = Bench(tmp_path, repo=repo)
    before = bench.parent()
    lease = await bench.trees.create("f1", dirty=True)
    assert (Path(lease.path) / "b.txt").read_text() == "b\n"
    code, out = await bench.bash(
        lease, "echo 1 > n; git add n; git commit -qm n; git log --oneline"
    )
    assert code == 0, out
    work = await bench.trees.save("f1")
    assert work is not None
    assert [f.path for f in work.files] == ["n"]
    assert bench.parent() == before
    applied = await bench.trees.apply(work)
    await bench.trees.undo(applied.undo_ref)
    assert bench.parent() == before
    await bench.trees.remove("f1")
    await bench.trees.close()


async def test_the_user_goes_on_meanwhile(bench: Bench) -> None:
    lease = await bench.trees.create("f1")
    git(bench.repo, "checkout", "-qb", "elsewhere")
    (bench.repo / "b.txt").write_text("other\n")
    git(bench.repo, "commit", "-qam", "other")
    git(bench.repo, "gc", "-q", "--prune=now")
    git(bench.repo, "worktree", "prune")
    code, out = await bench.bash(lease, "echo 1 >> a.txt; git commit -qam x; git log --format=%s")
    assert (code, out) == (0, "x\nfirst\n")
    work = await bench.trees.save("f1")
    assert work is not None
    git(bench.repo, "gc", "-q", "--prune=now")
    await bench.trees.apply(work)
    assert (bench.repo / "b.txt").read_text() == "other\n"
    assert (bench.repo / "a.txt").read_text().endswith("1\n")


async def test_the_start_screens_facts(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "proj")
    (repo / "n").write_text("")
    bench = Bench(tmp_path, repo=repo, cwd=repo / "sub")
    facts = await bench.trees.inspect()
    assert (facts.branch, facts.dirty_files, facts.root) == ("main", 1, str(repo))
    bare_host = Bench(tmp_path, repo=repo, level=NO_SANDBOX)
    facts = await bare_host.trees.inspect()
    assert (facts.branch, facts.dirty_files) == ("main", None)
    assert not any((bench.state / "worktrees").rglob("s-*")), "nothing short-lived is left"
    for made in (bench, bare_host):
        await made.trees.close()


async def test_a_moved_parent_is_told(bench: Bench) -> None:
    before = await bench.trees.parent_state()
    assert before is not None
    assert (await bench.trees.parent_state()) == before
    (bench.repo / "b.txt").write_text("x")
    git(bench.repo, "add", "b.txt")
    after = await bench.trees.parent_state()
    assert after is not None
    assert before.moved(after) == ("M  b.txt", "index")
