"""Builders of the views: look, work, outside, a write fork's own, and narrow ones for git.

Called by `sandbox.workspace` and by the worktree manager before each command, so that what is
hidden is looked at anew. Order matters: the root, private places, the project, what is hidden,
and last what must be seen in spite of that.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec

from forkdeck.errors import SandboxError
from forkdeck.sandbox import gitdirs, hidden
from forkdeck.sandbox.view import Mount, MountKind, View

SHARED = "/tmp/forkdeck"  # an inside path
"""Inside directory of a run's own spill files and of its forks' reports, read-only."""

_PROTECTED_DIRECTORIES = ("hooks", "info", "worktrees", "modules", "refs/forkdeck")
_PROTECTED_FILES = ("config", "config.worktree")
_LINKED_FILES = ("commondir", "gitdir", "config.worktree")
# A file of this name moves hooks and configuration elsewhere; "." leaves them where they are.
_NOT_MOVED = (".", "commondir")
_RESOLVERS = ("/run/systemd/resolve", "/run/resolvconf")


class Scratch(msgspec.Struct, frozen=True):
    """A run's private host directories, made by `sandbox.runner.Runner.scratch`.

    Args:
        tmp: Writable ``/tmp`` and ``/var/tmp`` of the run.
        share: Mount points below `SHARED`; the run cannot write there.
    """

    tmp: Path
    share: Path


def look_view(
    *,
    root: Path,
    cwd: Path,
    scratch: Scratch,
    hide: Sequence[Path] = (),
    network: bool = False,
) -> View:
    """Return the view in which everything is read-only but a private ``/tmp``.

    Args:
        root: The project's root on the host.
        cwd: Where commands start, at or below `root`.
        scratch: The run's private directories.
        hide: Places to hide, present or not (`hidden.candidates`).
        network: Whether the network is reached.
    """
    root, cwd = root.resolve(), cwd.resolve()
    mounts = _with_root(scratch, root, "ro")
    dirs = gitdirs.find(root)
    if dirs is not None:
        mounts.extend(_put_back(root, dirs, "ro"))
    mounts.extend(hidden.mounts(hide))
    mounts.append(Mount(SHARED, scratch.share, "ro"))
    return View(mounts=tuple(mounts), cwd=str(cwd), root=str(root), network=network)


def work_view(
    *,
    root: Path,
    cwd: Path,
    scratch: Scratch,
    hide: Sequence[Path] = (),
    network: bool = False,
) -> View:
    """Return the view in which the project and its git data are writable.

    The parts of the git directory that run code or hold ForkDeck's saved work stay read-only;
    missing ones are made empty first, or the mount fails. Arguments as `look_view`.

    Raises:
        SandboxError: A protected part cannot be made.
    """
    root, cwd = root.resolve(), cwd.resolve()
    mounts = _with_root(scratch, root, "rw")
    dirs = gitdirs.find(root)
    if dirs is not None:
        mounts.extend(_put_back(root, dirs, "rw"))
        mounts.extend(_protect(root, dirs))
    mounts.extend(hidden.mounts(hide))
    mounts.append(Mount(SHARED, scratch.share, "ro"))
    return View(mounts=tuple(mounts), cwd=str(cwd), root=str(root), network=network, writable=True)


def outside_view(*, root: Path, cwd: Path) -> View:
    """Return the view of a command that the person let out of the sandbox: the host itself."""
    root, cwd = root.resolve(), cwd.resolve()
    return View(
        mounts=(Mount("/", Path("/"), "rw"),),
        cwd=str(cwd),
        root=str(root),
        network=True,
        enforced=False,
        writable=True,
    )


class ForkPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """The host's side of a write fork's same-path view.

    Args:
        tree: The linked worktree, shown at the parent's root.
        git_dir: The private git directory; writable.
        pointer: File that says ``gitdir: <git_inside>``, shown as ``<root>/.git``.
        objects: The parent's object directory; read-only.
        git_inside: Where `git_dir` is shown; its host path when empty.
        objects_inside: Where `objects` are shown (the alternates' target); their host path
            when empty.
        includes: (path relative to the root, host path) of shared ignored files; read-only.
    """

    tree: Path
    git_dir: Path
    pointer: Path
    objects: Path
    git_inside: str = ""
    objects_inside: str = ""
    includes: tuple[tuple[str, Path], ...] = ()


def fork_view(
    *,
    root: Path,
    cwd: Path,
    scratch: Scratch,
    places: ForkPlaces,
    hide: Sequence[Path] = (),
    network: bool = False,
    outside: bool = False,
) -> View:
    """Return the same-path view of a write fork: its worktree stands at the parent's root.

    Args:
        root: The parent's repository root (its path is where the fork's tree is shown).
        cwd: The parent's working directory, at or below `root`.
        scratch: The fork's private directories.
        places: The fork's worktree and git data.
        hide: Places to hide, present or not.
        network: Whether the network is reached.
        outside: After the person let the command out: the rest of the host is writable and the
            network is reached, but the fork's tree still stands at the root.
    """
    root, cwd = root.resolve(), cwd.resolve()
    base = [Mount("/", Path("/"), "rw")] if outside else _base(scratch)
    git_dir, objects = places.git_dir.resolve(), places.objects.resolve()
    inside = str(root)
    mounts = [
        *base,
        *hidden.mounts(hide),
        Mount(places.objects_inside or str(objects), objects, "ro"),
        Mount(inside, places.tree.resolve(), "rw"),
        Mount(places.git_inside or str(git_dir), git_dir, "rw"),
        Mount(f"{inside}/.git", places.pointer.resolve(), "ro"),
    ]
    mounts.extend(
        Mount(os.path.normpath(f"{inside}/{name}"), host.resolve(), "ro")
        for name, host in places.includes
        if host.exists()
    )
    if not outside:
        mounts.append(Mount(SHARED, scratch.share, "ro"))
    return View(
        mounts=tuple(mounts),
        cwd=str(cwd),
        root=inside,
        network=network or outside,
        writable=True,
    )


def narrow_view(
    *,
    cwd: Path,
    scratch: Scratch,
    read_only: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    hide: Sequence[Path] = (),
) -> View:
    """Return a view for ForkDeck's own git work: the host read-only, `writable` writable.

    `read_only` are mounted after `writable` (and so win inside them) and both after what is
    hidden. No network.
    """
    cwd = cwd.resolve()
    mounts = [*_base(scratch), *hidden.mounts(hide)]
    mounts.extend(Mount(str(path.resolve()), path.resolve(), "rw") for path in writable)
    mounts.extend(Mount(str(path.resolve()), path.resolve(), "ro") for path in read_only)
    return View(mounts=tuple(mounts), cwd=str(cwd), root=str(cwd), writable=bool(writable))


def _base(scratch: Scratch) -> list[Mount]:
    mounts = [Mount("/", Path("/"), "ro")]
    # Sockets of daemons live here, and a read-only mount does not stop a connection.
    for name in ("/run", "/var/run"):
        path = Path(name)
        if path.is_dir() and not path.is_symlink():
            mounts.append(Mount(name, None, "hidden"))
    mounts.extend(Mount(name, Path(name), "ro") for name in _RESOLVERS if Path(name).is_dir())
    tmp = scratch.tmp.resolve()
    # Links such as macOS's /tmp are mounted at their target.
    for name in dict.fromkeys(os.path.realpath(name) for name in ("/tmp", "/var/tmp")):
        if Path(name).is_dir():
            mounts.append(Mount(name, tmp, "tmp"))
    return mounts


def _with_root(scratch: Scratch, root: Path, kind: MountKind) -> list[Mount]:
    first, *private = _base(scratch)
    if str(root) == first.inside:
        # The whole host is the project: private places still cover theirs.
        return [Mount(first.inside, root, kind), *private]
    return [first, *private, Mount(str(root), root, kind)]


def _put_back(root: Path, dirs: gitdirs.GitDirs, kind: MountKind) -> list[Mount]:
    """Show git data that lies outside the root; inside, the root's own mount shows it."""
    mounts: list[Mount] = []
    for path in dict.fromkeys((dirs.common_dir, dirs.git_dir)):
        if not path.is_relative_to(root):
            mounts.append(Mount(str(path), path, kind))
    return mounts


def _protect(root: Path, dirs: gitdirs.GitDirs) -> list[Mount]:
    if (root / ".git").is_symlink():
        raise _unprotected(root / ".git")
    if not gitdirs.belongs(root, dirs):
        # The project names a repository that does not know it: it may be another project's.
        return [Mount(str(path), path, "ro") for path in (root / ".git", *_both(dirs))]
    common = dirs.common_dir
    if (common / "refs").is_symlink():
        raise _unprotected(common / "refs")
    # A mount point can be neither renamed nor removed, so nothing can be put in its place.
    mounts = [Mount(str(path), path, "rw") for path in (common, common / "refs")]
    mounts.extend(_protected(common / name, is_file=False) for name in _PROTECTED_DIRECTORIES)
    mounts.extend(_protected(common / name, is_file=True) for name in _PROTECTED_FILES)
    if dirs.git_dir == common:
        mounts.append(_protected(common / _NOT_MOVED[1], is_file=True, text=_NOT_MOVED[0]))
    else:
        # A linked worktree: its own data lies below the protected `worktrees`.
        mounts.append(Mount(str(dirs.git_dir), dirs.git_dir, "rw"))
        mounts.extend(_protected(dirs.git_dir / name, is_file=True) for name in _LINKED_FILES)
    if (root / ".git").is_file():
        pointer = root / ".git"
        mounts.append(Mount(str(pointer), pointer, "ro"))
    return mounts


def _both(dirs: gitdirs.GitDirs) -> tuple[Path, ...]:
    return tuple(dict.fromkeys((dirs.common_dir, dirs.git_dir)))


def _protected(path: Path, *, is_file: bool, text: str = "") -> Mount:
    if path.is_symlink():
        raise _unprotected(path)
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            if is_file:
                _appear(path, text)
            else:
                path.mkdir()
    except OSError as error:
        raise SandboxError(
            f"{path} cannot be made, so it cannot be protected: {error.strerror}.",
            "Make it by hand, or work in a copy of the repository that you own.",
        ) from error
    return Mount(str(path), path, "ro")


def _appear(path: Path, text: str) -> None:
    """Make a file that is whole from its first moment: git may be reading here."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    part.write_text(f"{text}\n" if text else "")
    try:
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
    finally:
        part.unlink()


def _unprotected(path: Path) -> SandboxError:
    return SandboxError(
        f"{path} is a link; a command with write access could put another in its place.",
        "Replace the link by what it leads to, or use a write fork.",
    )
