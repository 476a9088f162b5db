"""Git's output becomes lines that are right, capped and harmless."""

from __future__ import annotations

from pathlib import Path

import pytest

from forkdeck.errors import WorktreeError
from forkdeck.model.work import DiffLine
from forkdeck.worktrees import diff
from forkdeck.worktrees.diff import Entry, diff_lines, file_changes, parse_raw, visible, warning
from tests.worktrees.helpers import Bench, git

ID = b"0" * 40


def test_raw_and_numstat() -> None:
    raw = (
        b":100644 100755 " + ID + b" " + ID + b" M\0run\0"
        b":100644 000000 " + ID + b" " + ID + b" D\0gone\0"
        b":100644 100644 " + ID + b" " + ID + b" R090\0old\0new\0"
        b":000000 120000 " + ID + b" " + ID + b" A\0ln\0"
    )
    numstat = b"0\t0\trun\x000\t3\tgone\x001\t2\t\0old\0new\0-\t-\tln\0"
    files = file_changes(raw, numstat)
    assert [(f.path, f.kind, f.added, f.removed, f.warning) for f in files] == [
        ("run", "mode", 0, 0, "executable"),
        ("gone", "deleted", 0, 3, ""),
        ("new", "renamed", 1, 2, ""),
        ("ln", "added", None, None, "symlink"),
    ]
    assert parse_raw(raw)[2].source == b"old"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (b".envrc", "runs on open"),
        (b"x/.VSCODE/tasks.json", "runs on open"),
        (b".github/workflows/ci.yml", "runs on open"),
        (b"sub/package.json", "runs on open"),
        (b"Makefile", "runs on open"),
        (b"tests/conftest.py", "runs on open"),
        (b"lib/evil.pth", "runs on open"),
        (b"src/main.py", ""),
        (b"vscode/x", ""),
    ],
)
def test_what_runs_when_it_is_opened(path: bytes, words: str) -> None:
    assert warning(Entry("M", "100644", "100644", path)) == words


def test_lines_follow_the_hunks_own_counts() -> None:
    patch = (
        b"diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ def f\n"
        b" one\n--- a/fake\n+++ b/fake\n diff --git a/no b/no\n\\ No newline at end of file\n"
        b"diff --git a/y b/y\nnew file mode 100755\n@@ -0,0 +1 @@\n+@@ -1 +1 @@\n"
    )
    entries = [Entry("M", "100644", "100644", b"x"), Entry("A", "0", "100755", b"y")]
    lines, cut = diff_lines(patch, entries)
    assert not cut
    assert lines == [
        DiffLine("file", "x"),
        DiffLine("hunk", "@@ -1,3 +1,3 @@ def f"),
        DiffLine("context", "one", 1, 1),
        DiffLine("removed", "-- a/fake", 2, None),
        DiffLine("added", "++ b/fake", None, 2),
        DiffLine("context", "diff --git a/no b/no", 3, 3),
        DiffLine("note", "No newline at end of file"),
        DiffLine("file", "y"),
        DiffLine("note", "new file mode 100755"),
        DiffLine("hunk", "@@ -0,0 +1 @@"),
        DiffLine("added", "@@ -1 +1 @@", None, 1),
    ]


def test_nothing_reaches_the_terminal_as_it_is() -> None:
    text = visible(b"\x1b[2J\x07a\tb\xc2\x9b\xe2\x80\xae\xff\x7f\r")
    assert text == "␛[2J␇a\tb\ufffd\ufffd\ufffd␡␍"
    assert len(visible(b"x" * 9000)) == 2001


def test_long_patches_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "MAX_LINES", 4)
    patch = b"diff --git a/x b/x\n@@ -0,0 +1,9 @@\n" + b"+l\n" * 9
    lines, cut = diff_lines(patch, [Entry("A", "0", "100644", b"x")])
    assert (len(lines), cut) == (4, True)


@pytest.mark.needs_sandbox
async def test_a_living_fork_and_saved_work_show_the_same(bench: Bench) -> None:
    lease = await bench.trees.create("f1")
    await bench.bash(
        lease,
        "sed -i s/l3/x3/ a.txt; git mv b.txt c.txt; rm -r sub; ln -s /etc sub; echo 1 > $'\\e'",
    )
    live = await bench.trees.live_diff("f1")
    work = await bench.trees.save("f1")
    assert work is not None
    saved = await bench.trees.diff(work.base, work.commit)
    assert live.lines == saved.lines
    assert live.files == saved.files == work.files
    assert [(f.path, f.kind) for f in saved.files] == [
        ("␛", "added"),
        ("a.txt", "modified"),
        ("c.txt", "renamed"),
        ("sub", "added"),
        ("sub/c.txt", "deleted"),
    ]
    changed = [(line.kind, line.text) for line in saved.lines if line.kind in ("added", "removed")]
    assert ("removed", "l3") in changed
    assert ("added", "x3") in changed
    assert [line.text for line in saved.lines if line.kind == "file"] == [
        "␛", "a.txt", "b.txt → c.txt", "sub", "sub/c.txt",
    ]  # fmt: skip


@pytest.mark.needs_sandbox
async def test_a_huge_diff_is_cut(bench: Bench) -> None:
    lease = await bench.trees.create("f1")
    await bench.bash(lease, "seq 400000 > n")
    shown = await bench.trees.live_diff("f1")
    assert shown.truncated
    assert shown.files[0].added == 400_000
    assert len(shown.lines) == diff.MAX_LINES


@pytest.mark.needs_sandbox
@pytest.mark.parametrize("name", ["--output=/tmp/x", "HEAD", "main", "0" * 40, ""])
async def test_only_commits_are_compared(bench: Bench, name: str, tmp_path: Path) -> None:
    with pytest.raises(WorktreeError):
        await bench.trees.diff(git(bench.repo, "rev-parse", "HEAD"), name)
