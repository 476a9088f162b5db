"""Watches the trees of living write forks with one watcher for all of them.

The list of directories is explicit and not recursive, because the library follows links and a
link to ``/`` would be the whole disk: real directories only, the ignored heavy ones and ``.git``
left out, 2,000 per fork at most. A new directory restarts the watcher with a longer list and is
scanned once. Where watching does not work a flag says so, and the tool calls' own file list
serves. Changes go to the engine, on the loop.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from forkdeck.model.ports import ChangeListener
from forkdeck.sandbox.atomic import is_part

Made = TypeVar("Made")

MAX_DIRECTORIES: Final = 2_000
"""Watched directories of one fork."""

_STEP_MS: Final = 100
_DEBOUNCE_MS: Final = 400
_LEFT_OUT: Final = frozenset(
    (
        ".git",
        ".hg",
        ".mypy_cache",
        ".nox",
        ".pytest_cache",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".venv",
        "__pycache__",
        "node_modules",
        "target",
        "venv",
    )
)


class TreeWatcher:
    """One watcher over many trees; used on the loop only."""

    def __init__(self) -> None:
        self._trees: dict[str, Path] = {}
        self._listener: ChangeListener | None = None
        self._task: asyncio.Task[None] | None = None
        self._again = asyncio.Event()
        self._closed = False
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="watch")
        self.unwatched: dict[str, str] = {}
        """Handles whose tree is not watched in full, and why."""

    def listen(self, listener: ChangeListener) -> None:
        """Call `listener(handle, paths)` for every change from now on."""
        self._listener = listener
        self._wake()

    def add(self, handle: str, tree: Path) -> None:
        """Watch a tree."""
        self._trees[handle] = tree
        self._wake()

    def drop(self, handle: str) -> None:
        """Stop watching a tree, before it is removed."""
        if self._trees.pop(handle, None) is not None:
            self.unwatched.pop(handle, None)
            self._wake()

    async def close(self) -> None:
        """Stop watching."""
        self._closed = True
        self._again.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._executor.shutdown(wait=False)

    async def _thread(self, work: Callable[[], Made]) -> Made:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def _wake(self) -> None:
        if self._listener is None or self._closed:
            return
        self._again.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="worktree watcher")

    async def _run(self) -> None:
        known: dict[Path, str] = {}
        while not self._closed:
            self._again.clear()
            trees = dict(self._trees)
            before = known
            known, over = await self._thread(partial(_directories, trees))
            for handle in over:
                self.unwatched[handle] = f"more than {MAX_DIRECTORIES} directories"
            await self._scan_new(set(known) - set(before), known, before)
            if not known:
                await self._again.wait()
                continue
            try:
                await self._watch(known)
            except (OSError, RuntimeError) as error:
                # The kernel's limit of watches, or a file system without them.
                self.unwatched.update(dict.fromkeys(trees, f"watching failed: {error}"))
                await self._again.wait()

    async def _scan_new(
        self, new: set[Path], known: Mapping[Path, str], before: Mapping[Path, str]
    ) -> None:
        """Report what stands in directories that were made under a watched tree."""
        handles = set(before.values())
        fresh = {path: known[path] for path in new if known[path] in handles}
        if not fresh:
            return
        files = await self._thread(lambda: _files_in(list(fresh)))
        for path, names in files.items():
            self._tell(known[path], [path / name for name in names])

    async def _watch(self, known: Mapping[Path, str]) -> None:
        # awatch also takes events of a library that has no types here.
        from watchfiles import (  # noqa: PLC0415 - only when a fork can write
            Change,
            awatch,  # pyright: ignore[reportUnknownVariableType]
        )

        stop = asyncio.Event()
        waker = asyncio.create_task(_set_after(self._again, stop))
        try:
            async for changes in awatch(
                *known,
                watch_filter=None,
                recursive=False,
                step=_STEP_MS,
                debounce=_DEBOUNCE_MS,
                stop_event=stop,
                ignore_permission_denied=True,
            ):
                by_handle: dict[str, list[Path]] = {}
                restart = False
                for change, text in changes:
                    path = Path(text)
                    handle = known.get(path.parent) or known.get(path)
                    if handle is None or path.name in _LEFT_OUT:
                        continue
                    is_directory = _is_real_directory(path)
                    restart = restart or (change is Change.added and is_directory)
                    if not is_directory:
                        by_handle.setdefault(handle, []).append(path)
                for handle, paths in by_handle.items():
                    self._tell(handle, paths)
                if restart:
                    return
        finally:
            waker.cancel()
            await asyncio.gather(waker, return_exceptions=True)

    def _tell(self, handle: str, paths: list[Path]) -> None:
        tree, listener = self._trees.get(handle), self._listener
        if tree is None or listener is None:
            return
        names = sorted(
            {
                os.fsdecode(path.relative_to(tree))
                for path in paths
                if path != tree and not is_part(path.name)
            }
        )
        if names:
            listener(handle, names)


async def _set_after(first: asyncio.Event, then: asyncio.Event) -> None:
    await first.wait()
    then.set()


def _directories(trees: Mapping[str, Path]) -> tuple[dict[Path, str], list[str]]:
    """Return the directories to watch and whose they are, and the handles with too many."""
    found: dict[Path, str] = {}
    over: list[str] = []
    for handle, tree in trees.items():
        if not _is_real_directory(tree):
            continue
        for count, (root, names, _) in enumerate(os.walk(tree, followlinks=False)):
            if count >= MAX_DIRECTORIES:
                over.append(handle)
                break
            found[Path(root)] = handle
            names[:] = [
                name
                for name in sorted(names)
                if name not in _LEFT_OUT and not Path(root, name).is_symlink()
            ]
    return found, over


def _files_in(directories: list[Path]) -> dict[Path, list[str]]:
    found: dict[Path, list[str]] = {}
    for directory in directories:
        try:
            with os.scandir(directory) as entries:
                found[directory] = [
                    entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)
                ]
        except OSError:
            continue
    return found


def _is_real_directory(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False
