"""Which ignored files of a trusted project a write fork sees: ``.worktreeinclude``.

The file holds ignore patterns; what is both ignored by git and matched by them is shown read-only
(or, without mounts, copied while small). Links are left out and nothing is linked. Called by
`create`'s caller, `forkdeck.worktrees.manager`.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Final

from forkdeck.worktrees.git import HostGit
from forkdeck.worktrees.git_sandbox import GitSandbox
from forkdeck.worktrees.layout import Repo

FILE: Final = ".worktreeinclude"
MAX_PATHS: Final = 200
MAX_COPY_BYTES: Final = 64 << 20

_IGNORED: Final = """
cd -- "$GIT_WORK_TREE"
git ls-files -z --others --ignored --exclude-standard --directory > "$OUT/ignored"
"""


async def included_paths(repo: Repo, head: str, sandbox: GitSandbox, git: HostGit) -> list[str]:
    """Return the ignored paths to share, relative to the root; directories stand for all in them.

    Raises:
        WorktreeError: git failed.
    """
    patterns = await git.thread(lambda: _patterns(repo.top))
    if not patterns:
        return []
    async with sandbox.scratch(repo, head=head, index=repo.git_dir / "index") as scratch:
        await sandbox.run(scratch, _IGNORED, repo=repo, tree=repo.top)
        data = await git.thread(lambda: scratch.read("ignored"))
    return await git.thread(lambda: _matching(repo.top, patterns, data))


def _patterns(top: Path) -> list[str]:
    try:
        if not stat.S_ISREG((top / FILE).lstat().st_mode):
            return []
        with (top / FILE).open("rb") as file:
            return file.read(65536).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def _matching(top: Path, patterns: list[str], data: bytes) -> list[str]:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - only for a project that has the file

    spec = GitIgnoreSpec.from_lines(patterns)
    found: list[str] = []
    for entry in data.split(b"\0"):
        name = os.fsdecode(entry)
        if not name or len(found) >= MAX_PATHS:
            continue
        if spec.match_file(name):
            _take(top, name.rstrip("/"), found)
        elif name.endswith("/"):
            _search(top, name.rstrip("/"), spec.match_file, found)
    return found


def _take(top: Path, name: str, found: list[str]) -> None:
    mode = (top / name).lstat().st_mode
    if (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and len(found) < MAX_PATHS:
        found.append(name)


def _search(top: Path, directory: str, matches: object, found: list[str]) -> None:
    """Look for matching files inside a directory that is ignored as a whole."""
    if not callable(matches):
        return
    seen = 0
    for root, names, files in os.walk(top / directory, followlinks=False):
        relative = os.path.relpath(root, top)
        for name in files:
            seen += 1
            if matches(f"{relative}/{name}"):
                _take(top, f"{relative}/{name}", found)
        for name in list(names):
            if matches(f"{relative}/{name}/"):
                _take(top, f"{relative}/{name}", found)
                names.remove(name)
        if seen > 20_000 or len(found) >= MAX_PATHS:
            return


def copy_included(top: Path, tree: Path, paths: list[str]) -> list[str]:
    """Copy shared files into a tree, up to 64 MiB in all, never through a link; blocking."""
    left, copied = MAX_COPY_BYTES, list[str]()
    for name in paths:
        source, target = top / name, tree / name
        try:
            facts = source.lstat()
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > left or target.exists():
                continue
            if not Path(os.path.realpath(target.parent)).is_relative_to(os.path.realpath(tree)):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
        except OSError:
            continue
        left -= facts.st_size
        copied.append(name)
    return copied
