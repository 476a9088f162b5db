"""Finds the git directories of a working tree by reading files, without running git.

`sandbox.views` asks it what to protect. A pointer file that names a directory outside the usual
layout is followed only to say where it leads; nothing is created here.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

_POINTER_LIMIT = 4096
_CONFIG_LIMIT = 1 << 20
_WORKTREE = re.compile(r"^[ \t]*worktree[ \t]*=(.*)$", re.MULTILINE | re.IGNORECASE)


class GitDirs(msgspec.Struct, frozen=True):
    """Where git of a working tree keeps things (equal unless it is a linked worktree)."""

    git_dir: Path
    common_dir: Path


def find(root: Path) -> GitDirs | None:
    """Return the git directories of `root`, or None when it has none."""
    dot_git = root / ".git"
    if dot_git.is_dir():
        git_dir = dot_git.resolve()
    elif dot_git.is_file():
        target = _line(dot_git, "gitdir: ")
        if target is None:
            return None
        git_dir = (root / target).resolve()
        if not git_dir.is_dir():
            return None
    else:
        return None
    common = _line(git_dir / "commondir", "")
    common_dir = git_dir if common is None else (git_dir / common).resolve()
    if not (common_dir / "objects").is_dir():
        return None
    return GitDirs(git_dir, common_dir)


def belongs(root: Path, dirs: GitDirs) -> bool:
    """Tell whether the git directories are the project's own.

    A project's files can name any repository of this host; only what lies in the project, or
    points back at it, may be written for its sake. That holds for a repository, a linked
    worktree and a submodule.
    """
    git_dir, common = dirs.git_dir, dirs.common_dir
    dot_git = root / ".git"
    if git_dir == common:
        if dot_git.is_dir() and git_dir.is_relative_to(root.resolve()):
            return True
        return _names(git_dir, _worktree_of(git_dir / "config"), root)
    if git_dir.parent != common / "worktrees":
        return False
    return _names(git_dir, _line(git_dir / "gitdir", ""), dot_git)


def _names(base: Path, target: str | None, path: Path) -> bool:
    return target is not None and (base / target).resolve() == path.resolve()


def _worktree_of(config: Path) -> str | None:
    """Return ``core.worktree`` of a configuration that git wrote."""
    try:
        with config.open("rb") as file:
            text = file.read(_CONFIG_LIMIT).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    found = _WORKTREE.findall(text)
    return found[-1].strip().strip('"') if found else None


def _line(path: Path, prefix: str) -> str | None:
    try:
        with path.open("rb") as file:
            text = file.read(_POINTER_LIMIT).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    first = text.split("\n", 1)[0]
    if not first.startswith(prefix) or "\0" in first:
        return None
    return first.removeprefix(prefix).strip() or None
