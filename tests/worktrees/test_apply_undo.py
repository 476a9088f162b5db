"""Work goes back into the parent's tree whole or not at all, and comes out of it byte for byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from forkdeck.errors import ApplyRefused, WorktreeError
from forkdeck.model.work import SavedWork
from tests.worktrees.helpers import Bench, git

pytestmark = pytest.mark.needs_sandbox


async def saved(bench: Bench, script: str, handle: str = "f1", dirty: bool = False) -> SavedWork:
    lease = await bench.trees.create(handle, dirty=dirty)
    code, out = await bench.bash(lease, script)
    assert code == 0, out
    work = await bench.trees.save(handle)
    assert work is not None
    return work


CHANGES = {
    "modify": "sed -i s/l15/fork15/ a.txt",
    "add in a new directory": "mkdir -p x/y && echo 1 > x/y/z",
    "delete": "rm b.txt",
    "delete a whole directory": "rm -r sub",
    "rename": "git mv b.txt moved.txt",
    "mode": "chmod +x b.txt",
    "binary": "head -c 3000 /dev/urandom > blob.bin",
    "symlink": "ln -s /etc/passwd evil",
    "file becomes a directory": "rm b.txt && mkdir b.txt && echo 1 > b.txt/in",
    "directory becomes a file": "rm -r sub && echo 1 > sub",
    "odd names": "echo 1 > ' lead'; echo 2 > $'n\\nl'; echo 3 > --; echo 4 > ü; echo 5 > $'\\xff'",
    "committed and not": "echo c >> b.txt; git commit -qam c; echo u > u",
    "crlf": "printf 'x\\r\\ny\\r\\n' > crlf.txt",
}


@pytest.mark.parametrize("name", CHANGES)
async def test_apply_then_undo_is_exact(bench: Bench, name: str) -> None:
    work = await saved(bench, CHANGES[name])
    dirty_parent = name != "modify"
    if dirty_parent:
        text = (bench.repo / "a.txt").read_text().replace("l0\n", "user\r\n")
        (bench.repo / "a.txt").write_bytes(text.encode())
        (bench.repo / "mine").write_bytes(b"untracked\0\r\n")
        (bench.repo / ".env").write_text("ignored\n")
    before, files = bench.parent(), bench.files()
    applied = await bench.trees.apply(work)
    assert applied.files
    after = bench.files()
    assert after != files
    assert bench.parent()[:2] == before[:2], "HEAD and index bytes are untouched"
    if dirty_parent:
        assert after[".env"][0] == b"ignored\n"
        assert after["mine"][0] == b"untracked\0\r\n"
        assert b"user\r\n" in after["a.txt"][0]
    undone = await bench.trees.undo(applied.undo_ref)
    assert bench.files() == files
    assert bench.parent() == before
    if name not in ("modify", "directory becomes a file"):
        return
    again = await bench.trees.undo(undone.undo_ref)
    assert bench.files() == after, "an undo can be undone"
    await bench.trees.undo(again.undo_ref)
    assert bench.files() == files


async def test_what_is_applied_is_what_the_fork_had(bench: Bench) -> None:
    work = await saved(bench, "printf 'z\\n' > b.txt; chmod +x b.txt; ln -s a.txt ln; rm sub/c.txt")
    assert {(f.path, f.kind, f.warning) for f in work.files} == {
        ("b.txt", "modified", "executable"),
        ("ln", "added", "symlink"),
        ("sub/c.txt", "deleted", ""),
    }
    await bench.trees.apply(work)
    assert (bench.repo / "b.txt").read_text() == "z\n"
    assert os.access(bench.repo / "b.txt", os.X_OK)
    assert (bench.repo / "ln").readlink() == Path("a.txt")
    assert not (bench.repo / "sub").exists()


async def test_a_conflict_writes_nothing_and_names_the_paths(bench: Bench) -> None:
    work = await saved(bench, "sed -i s/l7/fork/ a.txt; echo new > n")
    (bench.repo / "a.txt").write_text((bench.repo / "a.txt").read_text().replace("l7", "user"))
    before, files, refs = bench.parent(), bench.files(), bench.refs()
    with pytest.raises(ApplyRefused, match="both sides") as refused:
        await bench.trees.apply(work)
    assert refused.value.conflicts == ("a.txt",)
    assert (bench.parent(), bench.files(), bench.refs()) == (before, files, refs)


async def test_two_sides_of_one_file_merge(bench: Bench) -> None:
    work = await saved(bench, "sed -i s/l15/fork/ a.txt")
    (bench.repo / "a.txt").write_text((bench.repo / "a.txt").read_text().replace("l1\n", "me\n"))
    await bench.trees.apply(work)
    text = (bench.repo / "a.txt").read_text()
    assert "me\n" in text
    assert "fork\n" in text


@pytest.mark.parametrize(
    ("script", "plant", "named"),
    [
        ("echo f > n", "n", "n"),
        ("mkdir -p d && echo f > d/n", "d", "d"),
        ("rm -rf sub; echo f > sub", "sub/x.log", "sub/x.log"),
    ],
)
async def test_an_ignored_file_in_the_way_stops_it(
    bench: Bench, script: str, plant: str, named: str
) -> None:
    work = await saved(bench, script)
    with (bench.repo / ".gitignore").open("a") as file:
        file.write("n\nd\n")
    (bench.repo / plant).write_text("mine\n")
    files = bench.files()
    with pytest.raises(ApplyRefused, match="overwritten") as refused:
        await bench.trees.apply(work)
    assert refused.value.conflicts == (named,)
    assert bench.files() == files


async def test_a_link_in_the_way_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    work = await saved(bench, "mkdir -p d && echo f > d/n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (bench.repo / "d").symlink_to(outside)
    with pytest.raises(ApplyRefused):
        await bench.trees.apply(work)
    assert list(outside.iterdir()) == []


async def test_both_added(bench: Bench) -> None:
    work = await saved(bench, "echo f > n")
    (bench.repo / "n").write_text("mine\n")
    with pytest.raises(ApplyRefused) as refused:
        await bench.trees.apply(work)
    assert refused.value.conflicts == ("n",)
    assert (bench.repo / "n").read_text() == "mine\n"


async def test_the_tree_moved_between_plan_and_write(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = await saved(bench, "echo f > b.txt")
    from forkdeck.worktrees import apply

    real = apply.receive

    async def meanwhile(*arguments: object) -> None:
        await real(*arguments)  # type: ignore[arg-type]
        (bench.repo / "b.txt").write_text("typed just now\n")

    monkeypatch.setattr(apply, "receive", meanwhile)
    with pytest.raises(ApplyRefused, match="moved"):
        await bench.trees.apply(work)
    assert (bench.repo / "b.txt").read_text() == "typed just now\n"


async def test_an_undo_refuses_when_the_file_moved_since(bench: Bench) -> None:
    work = await saved(bench, "echo f > b.txt; echo n > n")
    applied = await bench.trees.apply(work)
    (bench.repo / "b.txt").write_text("later\n")
    files = bench.files()
    with pytest.raises(ApplyRefused, match=r"b\.txt changed since"):
        await bench.trees.undo(applied.undo_ref)
    assert bench.files() == files


async def test_an_undo_leaves_other_files_alone(bench: Bench) -> None:
    work = await saved(bench, "echo f > b.txt")
    applied = await bench.trees.apply(work)
    (bench.repo / "other").write_text("later\n")
    git(bench.repo, "add", "other")
    await bench.trees.undo(applied.undo_ref)
    assert (bench.repo / "b.txt").read_text() == "b\n"
    assert (bench.repo / "other").read_text() == "later\n"


async def test_applied_twice_says_so(bench: Bench) -> None:
    work = await saved(bench, "echo f > b.txt")
    await bench.trees.apply(work)
    with pytest.raises(ApplyRefused, match="already has"):
        await bench.trees.apply(work)


async def test_a_turns_snapshot_comes_back(bench: Bench) -> None:
    (bench.repo / "a.txt").write_text("dirty\n")
    (bench.repo / "mine").write_text("m\n")
    before, files = bench.parent(), bench.files()
    ref = await bench.trees.snapshot(4)
    assert ref is not None
    assert bench.parent() == before
    (bench.repo / "a.txt").unlink()
    (bench.repo / "mine").write_text("changed\n")
    (bench.repo / "made").write_text("by the turn\n")
    undone = await bench.trees.undo(ref)
    assert bench.files() == files
    assert {f.path for f in undone.files} == {"a.txt", "made", "mine"}
    await bench.trees.undo(undone.undo_ref)
    assert (bench.repo / "made").read_text() == "by the turn\n"


async def test_line_ends_that_git_converts_come_back_exactly(bench: Bench) -> None:
    (bench.repo / ".gitattributes").write_text("*.txt text eol=crlf\n")
    git(bench.repo, "add", ".gitattributes")
    git(bench.repo, "commit", "-qm", "attributes")
    (bench.repo / "b.txt").write_bytes(b"mixed\r\nends\nhere\r\n")
    files = bench.files()
    work = await saved(bench, "printf 'b\\r\\nfork\\r\\n' > b.txt", dirty=False)
    (bench.repo / "b.txt").write_bytes(b"b\r\n")
    files = bench.files()
    applied = await bench.trees.apply(work)
    assert (bench.repo / "b.txt").read_bytes() == b"b\r\nfork\r\n"
    await bench.trees.undo(applied.undo_ref)
    assert bench.files() == files


@pytest.mark.parametrize(
    "ref", ["refs/heads/main", "--force", "refs/forkdeck/x/f1/undo/1", "refs/forkdeck/../../x/y/z"]
)
async def test_only_our_own_refs_are_undone(bench: Bench, ref: str) -> None:
    with pytest.raises(WorktreeError):
        await bench.trees.undo(ref)


async def test_work_of_another_repository_is_refused(bench: Bench) -> None:
    work = await saved(bench, "echo f > b.txt")
    strange = SavedWork(ref=work.ref, commit="1" * 40, base=work.base)
    with pytest.raises(ApplyRefused, match="not in this repository"):
        await bench.trees.apply(strange)


async def test_an_old_git_keeps_the_patch(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    work = await saved(bench, "echo f > b.txt")
    monkeypatch.setattr("forkdeck.worktrees.apply.MERGES_SINCE", (99, 0))
    with pytest.raises(ApplyRefused, match=r"older.*work-1\.patch"):
        await bench.trees.apply(work)
    assert work.patch is not None
    git(bench.repo, "apply", "--check", work.patch)


async def test_cherry_pick_commits_on_the_branch_and_undo_moves_it_back(bench: Bench) -> None:
    work = await saved(
        bench,
        "git config user.name Fork; echo 1 >> b.txt; git commit -qam one; echo 2 > n;"
        " git add n; git commit -qm two; echo 3 > rest",
    )
    (bench.repo / "a.txt").write_text("dirty\n")
    (bench.repo / "staged").write_text("s\n")
    git(bench.repo, "add", "staged")
    head, files = git(bench.repo, "rev-parse", "HEAD"), bench.files()
    status = git(bench.repo, "status", "--porcelain")
    applied = await bench.trees.apply(work, method="cherry-pick")
    log = git(bench.repo, "log", "--format=%s|%an", f"{head}..").splitlines()
    assert log == ["forkdeck: work of f1|ForkDeck", "two|Fork", "one|Fork"]
    assert git(bench.repo, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert git(bench.repo, "status", "--porcelain") == status, "the person's changes stay theirs"
    assert (bench.repo / "rest").read_text() == "3\n"
    await bench.trees.undo(applied.undo_ref)
    assert git(bench.repo, "rev-parse", "HEAD") == head
    assert bench.files() == files
    assert git(bench.repo, "status", "--porcelain") == status


async def test_cherry_pick_refuses_overlapping_staged_changes(bench: Bench) -> None:
    work = await saved(bench, "echo 1 >> b.txt; git commit -qam one")
    (bench.repo / "b.txt").write_text("0\nb\n")
    git(bench.repo, "add", "b.txt")
    before, files = bench.parent(), bench.files()
    with pytest.raises(ApplyRefused, match="Staged"):
        await bench.trees.apply(work, method="cherry-pick")
    assert (bench.parent(), bench.files()) == (before, files)
    assert not (bench.repo / ".git/index.lock").exists()


async def test_cherry_pick_conflict_writes_nothing(bench: Bench) -> None:
    work = await saved(bench, "echo 1 > b.txt; git commit -qam one")
    (bench.repo / "b.txt").write_text("mine\n")
    git(bench.repo, "commit", "-qam", "mine")
    before, files = bench.parent(), bench.files()
    with pytest.raises(ApplyRefused) as refused:
        await bench.trees.apply(work, method="cherry-pick")
    assert refused.value.conflicts == ("b.txt",)
    assert (bench.parent(), bench.files()) == (before, files)


async def test_a_write_that_breaks_midway_is_put_back(bench: Bench) -> None:
    work = await saved(bench, "echo f > b.txt; echo f > sub/c.txt; echo n > sub/n; echo n > n")
    files = bench.files()
    (bench.repo / "sub").chmod(0o555)
    with pytest.raises(ApplyRefused, match="as it was"):
        await bench.trees.apply(work)
    (bench.repo / "sub").chmod(0o755)
    assert bench.files() == files
    await bench.trees.apply(work)
    assert (bench.repo / "sub/n").read_text() == "n\n"
