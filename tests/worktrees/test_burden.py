"""Counting before a copy: git's own index formats, and what is said."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from forkdeck.worktrees import burden as module
from forkdeck.worktrees.burden import burden
from forkdeck.worktrees.layout import Repo
from tests.worktrees.helpers import git, make_repo


@pytest.fixture(params=["2", "3", "4", "sha256"])
def repo(request: pytest.FixtureRequest, tmp_path: Path) -> Repo:
    """A repository whose files have 3000 bytes, in one of the index formats."""
    top = tmp_path / "proj"
    if request.param == "sha256":
        top.mkdir()
        git(top, "init", "-q", "--object-format=sha256", ".")
    else:
        make_repo(top)
        for path in git(top, "ls-files").splitlines():
            (top / path).unlink()
    (top / ("long" * 50)).mkdir()
    names = [f"{'long' * 50}/{'name' * 49}{n}{'x' * n}" for n in range(9)]
    names.append("short")
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("a" * 300)
    git(top, "add", "-A")
    if request.param in "34":
        git(top, "update-index", "--index-version", request.param)
    if request.param == "3":
        git(top, "update-index", "--skip-worktree", names[0])
    store = "sha256" if request.param == "sha256" else "sha1"
    return Repo(top=top, git_dir=top / ".git", common=top / ".git", object_format=store)


def test_nothing_is_said_of_a_usual_repository(repo: Repo, tmp_path: Path) -> None:
    assert burden(repo, tmp_path / "state") == ""


def test_files_are_counted(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY_FILES", 10)
    assert burden(repo, tmp_path) == ""
    monkeypatch.setattr(module, "MANY_FILES", 9)
    assert burden(repo, tmp_path).startswith("This repository has 10 files")


def test_bytes_are_counted(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY_BYTES", 3000)
    assert burden(repo, tmp_path) == ""
    monkeypatch.setattr(module, "MANY_BYTES", 2999)
    assert "MB of files" in burden(repo, tmp_path)


def test_little_room_is_said(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=700_000_000))
    assert burden(repo, tmp_path / "not" / "there").startswith("Only 700 MB are free below")


@pytest.mark.parametrize(
    "data", [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\5short", b"JUNK" * 90], ids=len
)
def test_an_odd_index_is_no_reason_to_fail(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "index").write_bytes(data)
    place = Repo(top=tmp_path, git_dir=tmp_path, common=tmp_path, object_format="sha1")
    assert burden(place, tmp_path) == ""
