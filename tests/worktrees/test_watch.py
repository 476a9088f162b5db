"""Changing files of living worktrees are told, and links lead nowhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from forkdeck.worktrees import watch
from forkdeck.worktrees.watch import TreeWatcher


async def until(ready: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not ready():  # noqa: ASYNC110 - the listener is another thread's, in effect
            await asyncio.sleep(0.02)


async def test_changes_new_directories_and_several_trees(tmp_path: Path) -> None:
    seen: set[tuple[str, str]] = set()
    one, two, outside = (tmp_path / name for name in ("one", "two", "outside"))
    for path in (one / "sub", one / ".git", one / "node_modules", two, outside):
        path.mkdir(parents=True)
    (one / "link").symlink_to(outside)
    (one / "root").symlink_to("/")
    watcher = TreeWatcher()

    def changed(handle: str, paths: Sequence[str]) -> None:
        seen.update((handle, path) for path in paths)

    watcher.add("f1", one)
    watcher.add("f2", two)
    watcher.listen(changed)
    await asyncio.sleep(0.3)
    (one / "sub/a").write_text("1")
    (two / "b").write_text("1")
    (one / ".git/x").write_text("1")
    (one / "node_modules/x").write_text("1")
    (outside / "x").write_text("1")
    await until(lambda: {("f1", "sub/a"), ("f2", "b")} <= seen)
    (one / "made").mkdir()
    (one / "made/inside").write_text("1")
    await until(lambda: ("f1", "made/inside") in seen)
    await asyncio.sleep(0.3)
    (one / "made/later").write_text("1")
    await until(lambda: ("f1", "made/later") in seen)
    (one / "sub/a").unlink()
    seen.clear()
    await until(lambda: ("f1", "sub/a") in seen)
    watcher.drop("f1")
    await asyncio.sleep(0.3)
    seen.clear()
    (one / "sub/c").write_text("1")
    (two / "c").write_text("1")
    await until(lambda: ("f2", "c") in seen)
    assert {path for handle, path in seen if handle == "f1"} == set()
    assert watcher.unwatched == {}
    await watcher.close()


def test_links_and_heavy_directories_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "node_modules/x").mkdir(parents=True)
    (tmp_path / "a/up").symlink_to("..")
    found, over = watch._directories({"f1": tmp_path})
    assert {os.path.relpath(path, tmp_path) for path in found} == {".", "a", "a/b"}
    assert over == []


async def test_too_many_directories_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MAX_DIRECTORIES", 3)
    for number in range(6):
        (tmp_path / f"d{number}").mkdir()
    found, over = watch._directories({"f1": tmp_path})
    assert (len(found), over) == (3, ["f1"])
    watcher = TreeWatcher()
    watcher.listen(lambda *_: None)
    watcher.add("f1", tmp_path)
    await until(lambda: "f1" in watcher.unwatched)
    await watcher.close()
