"""A write fork's worktree: made beside the parent, worked in, saved whole, removed."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from forkdeck.errors import WorktreeError
from tests.worktrees.helpers import Bench, git, make_repo

pytestmark = pytest.mark.needs_sandbox


async def test_a_fork_works_at_the_parents_path_and_its_work_is_saved(bench: Bench) -> None:
    before, files = bench.parent(), bench.files()
    lease = await bench.trees.create("f1")
    assert lease.inside == str(bench.repo)
    assert lease.base == git(bench.repo, "rev-parse", "HEAD")
    assert lease.level == "sandboxed"
    assert Path(lease.path).is_relative_to(bench.state)
    code, out = await bench.bash(
        lease,
        f"pwd; cd {bench.repo} && echo w >> a.txt && git commit -qam work && echo u > new.txt"
        " && printf '\\0\\1' > made.bin && git log --format=%an -1 && git status --porcelain",
    )
    assert code == 0, out
    assert out.splitlines() == [str(bench.repo), "ForkDeck", "?? made.bin", "?? new.txt"]
    work = await bench.trees.save("f1")
    assert work is not None
    assert work.ref == f"refs/forkdeck/{lease.base_ref.split('/')[2]}/f1/work/1"
    assert [(f.path, f.kind, f.added, f.removed) for f in work.files] == [
        ("a.txt", "modified", 1, 0),
        ("made.bin", "added", None, None),
        ("new.txt", "added", 1, 0),
    ]
    assert work.commits == 1
    assert git(bench.repo, "show", f"{work.ref}:new.txt") == "u"
    assert git(bench.repo, "log", "-1", "--format=%an", work.ref) == "ForkDeck"
    assert work.patch is not None
    assert b"GIT binary patch" in Path(work.patch).read_bytes()
    assert (bench.parent(), bench.files()) == (before, files)
    assert await bench.trees.save("f1") == work, "the same work is saved once"
    await bench.trees.remove("f1")
    assert not Path(lease.path).parent.exists()
    assert git(bench.repo, "worktree", "list").count("\n") == 0
    assert bench.parent() == before
    assert git(bench.repo, "fsck") == ""


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("update-ref", "fatal: cannot lock ref 'refs/x': Unable to create: Read-only file system"),
        ("worktree", "fatal: could not create directory of '.git/worktrees/x': Permission denied"),
    ],
)
async def test_a_git_directory_that_cannot_be_written_is_said_in_clear_words(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, words: str
) -> None:
    """As root every directory can be written: a git before the real one refuses in its words."""
    script = tmp_path / "bin" / "git"
    script.parent.mkdir()
    script.write_text(
        f'#!/bin/sh\ncase "$2" in {verb}) echo "{words}" >&2; exit 128;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    with pytest.raises(WorktreeError) as refused:
        await bench.trees.create("f1")
    assert f"git cannot write to {bench.repo}/.git" in refused.value.what
    assert words not in refused.value.what
    assert "without --write" in refused.value.remedy


async def test_nothing_changed_is_nothing_saved(bench: Bench) -> None:
    lease = await bench.trees.create("f1")
    await bench.bash(lease, "ls; git status")
    assert await bench.trees.save("f1") is None
    await bench.trees.remove("f1")
    assert not any("/work/" in ref for ref in bench.refs())


async def test_unsaved_work_is_never_removed(bench: Bench) -> None:
    lease = await bench.trees.create("f1")
    await bench.bash(lease, "echo x > kept.txt")
    with pytest.raises(WorktreeError, match="not saved"):
        await bench.trees.remove("f1")
    assert (Path(lease.path) / "kept.txt").read_text() == "x\n"


@pytest.mark.parametrize(
    ("name", "script", "check"),
    [
        ("untracked", "echo 1 > n", ("n", "1")),
        ("staged", "echo 1 > n; git add n", ("n", "1")),
        ("modified", "echo z > b.txt", ("b.txt", "z")),
        ("committed", "echo z > b.txt; git commit -qam z", ("b.txt", "z")),
        (
            "amended head back",
            "echo z > b.txt; git commit -qam z; git checkout -q HEAD~1; echo y > b.txt",
            ("b.txt", "y"),
        ),
        ("stash", "echo z > b.txt; git stash -q; echo k > n", ("n", "k")),
        ("unreadable", "echo z > n; chmod 000 n; mkdir d; echo q > d/e; chmod 000 d", ("d/e", "q")),
        (
            "index tricks",
            "git update-index --assume-unchanged b.txt; echo z > b.txt",
            ("b.txt", "z"),
        ),
        (
            "excluded by its own file",
            "echo b.txt >> .git/info/exclude || true; "
            "echo '*' > \"$(git rev-parse --git-dir)\"/info/exclude; echo z > n",
            ("n", "z"),
        ),
        (
            "failing hooks",
            "d=$(git rev-parse --git-dir)/hooks; mkdir -p $d; "
            "printf '#!/bin/sh\\nexit 1\\n' > $d/pre-commit; chmod +x $d/pre-commit; "
            "echo 1 > n",
            ("n", "1"),
        ),
        (
            "signing",
            "git config commit.gpgSign true; git config gpg.program /bin/false; echo 1 > n",
            ("n", "1"),
        ),
        (
            "nested",
            "mkdir -p v/w && cd v && git init -q . && echo 1 > w/n && "
            "git add -A && git commit -qm n",
            ("v/w/n", "1"),
        ),
        ("nested without commit", "mkdir v && cd v && git init -q . && echo 1 > n", ("v/n", "1")),
        (
            "nested in nested",
            "mkdir -p v/u && cd v && git init -q . && echo 1 > n && cd u && "
            "git init -q . && echo 2 > m",
            ("v/u/m", "2"),
        ),
        ("nested over tracked", "cd sub && git init -q . && echo 9 > c.txt", ("sub/c.txt", "9")),
        (
            "own git dir broken",
            'rm -rf "$(git rev-parse --git-dir)"/HEAD; echo 1 > n',
            ("n", "1"),
        ),
        ("line break in a name", "echo 1 > $'x\\ny'", ("x\ny", "1")),
        (
            "dash and colon",
            "echo 1 > ./--force; mkdir ':(top)'; cd ':(top)'; git init -q .; echo 2 > n",
            (":(top)/n", "2"),
        ),
    ],
)
async def test_every_kind_of_work_is_saved_then_removed(
    bench: Bench, name: str, script: str, check: tuple[str, str]
) -> None:
    lease = await bench.trees.create("f1")
    _, out = await bench.bash(lease, script)
    work = await bench.trees.save("f1")
    assert work is not None, out
    assert git(bench.repo, "show", f"{work.commit}:{check[0]}") == check[1], out
    await bench.trees.remove("f1")
    assert not Path(lease.path).exists()


async def test_a_stash_stays_reachable(bench: Bench) -> None:
    lease = await bench.trees.create("f1")
    _, out = await bench.bash(lease, "echo stashed > b.txt; git stash -q; git rev-parse stash")
    stash = out.split()[-1]
    work = await bench.trees.save("f1")
    assert work is not None
    assert work.files == ()
    assert git(bench.repo, "show", f"{stash}:b.txt") == "stashed"
    assert stash in git(bench.repo, "rev-list", work.commit).split()


async def test_a_dirty_base_carries_everything_and_touches_nothing(bench: Bench) -> None:
    (bench.repo / "a.txt").write_text("dirty\n")
    (bench.repo / "new ünï.txt").write_text("untracked\n")
    (bench.repo / ".env").write_text("SECRET=1")
    git(bench.repo, "rm", "-q", "--cached", "b.txt")
    before, files = bench.parent(), bench.files()
    lease = await bench.trees.create("f1", dirty=True)
    tree = Path(lease.path)
    assert lease.dirty
    assert (tree / "a.txt").read_text() == "dirty\n"
    assert (tree / "new ünï.txt").exists()
    assert (tree / "b.txt").exists()
    assert not (tree / ".env").exists()
    assert (bench.parent(), bench.files()) == (before, files)
    await bench.bash(lease, "echo more >> 'new ünï.txt'")
    work = await bench.trees.save("f1")
    assert work is not None
    assert [f.path for f in work.files] == ["new ünï.txt"]


async def test_a_clean_base_counts_what_it_does_not_carry(bench: Bench) -> None:
    (bench.repo / "a.txt").write_text("dirty\n")
    (bench.repo / "x").write_text("untracked\n")
    lease = await bench.trees.create("f1")
    assert lease.not_visible == 2
    assert (Path(lease.path) / "a.txt").read_text().startswith("l0\n")


async def test_the_directory_below_the_root_is_kept(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "proj")
    bench = Bench(tmp_path, repo=repo, cwd=repo / "sub")
    lease = await bench.trees.create("f1")
    code, out = await bench.bash(lease, "pwd; cat c.txt")
    assert (code, out) == (0, f"{repo}/sub\nc\n")
    await bench.trees.close()


@pytest.mark.parametrize("handle", ["--bad", "a..b", "x.lock", "f0", "../f1", "f1/../f2", "", "é"])
async def test_no_name_that_was_not_made_here_becomes_a_path_or_a_ref(
    bench: Bench, handle: str
) -> None:
    with pytest.raises(WorktreeError):
        await bench.trees.create(handle)
    assert bench.refs() == []


async def test_eight_at_once(bench: Bench) -> None:
    handles = [f"f{n}" for n in range(1, 9)]
    leases = await asyncio.gather(*(bench.trees.create(h) for h in handles))
    assert len({lease.path for lease in leases}) == 8
    assert git(bench.repo, "worktree", "list").count("\n") == 8
    assert all((Path(lease.path) / "sub/c.txt").read_text() == "c\n" for lease in leases)
    assert git(bench.repo, "fsck") == ""


async def test_a_failed_creation_leaves_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise WorktreeError("no room")

    monkeypatch.setattr("forkdeck.worktrees.create._populate", broken)
    before = bench.parent()
    with pytest.raises(WorktreeError, match="no room"):
        await bench.trees.create("f1")
    assert bench.refs() == []
    assert git(bench.repo, "worktree", "list").count("\n") == 0
    assert list(bench.state.rglob("f1")) == []
    assert bench.parent() == before


async def test_the_tree_deleted_by_hand(bench: Bench) -> None:
    lease = await bench.trees.create("f1")
    await bench.bash(lease, "echo z > b.txt; git commit -qam z")
    await asyncio.to_thread(shutil.rmtree, lease.path)
    work = await bench.trees.save("f1")
    assert work is not None, "what was committed stands in the private git directory"
    assert git(bench.repo, "show", f"{work.ref}:b.txt") == "z"
    await bench.trees.remove("f1")
    assert git(bench.repo, "worktree", "list").count("\n") == 0
