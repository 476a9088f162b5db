"""Where things stand: directories of worktrees, names of refs, and the record beside each tree.

``<state>/worktrees/<repo id>/<session>/<handle>/`` holds ``fork.json`` (the record), the tree
``<session>-<handle>``, its private git directory ``git`` and what the fork must not reach. The
names come from `forkdeck.model.ids` and are checked before any path or ref is made of them.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

import msgspec

from forkdeck.errors import WorktreeError
from forkdeck.model.ids import is_handle, is_session_id

REFS: Final = "refs/forkdeck"
"""Root of the hidden refs."""


class Repo(msgspec.Struct, frozen=True, kw_only=True):
    """A repository as it was found: real paths on the host."""

    top: Path
    git_dir: Path
    """The working tree's own git directory; differs from `common` in a linked worktree."""
    common: Path
    object_format: str = "sha1"

    @property
    def id(self) -> str:
        """Name of the repository's directory below the state directory."""
        return hashlib.sha256(os.fsencode(self.common)).hexdigest()[:16]


class ForkRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a worktree without its process: ``fork.json``."""

    session: str
    handle: str
    top: str
    git_dir: str
    common: str
    object_format: str
    base: str
    inside_cwd: str
    dirty: bool = False
    not_visible: int = 0
    shared: tuple[str, ...] = ()
    """Ignored paths of the parent that are mounted read-only, relative to the root."""
    copied: tuple[str, ...] = ()
    """Ignored files of the parent that were copied."""

    @property
    def repo(self) -> Repo:
        """The repository the worktree belongs to."""
        return Repo(
            top=Path(self.top),
            git_dir=Path(self.git_dir),
            common=Path(self.common),
            object_format=self.object_format,
        )


class ForkPlace(msgspec.Struct, frozen=True):
    """The directory of one worktree."""

    directory: Path
    session: str
    handle: str

    @property
    def tree(self) -> Path:
        """The working tree; its basename is unique, so git's name for it is too."""
        return self.directory / f"{self.session}-{self.handle}"

    @property
    def git(self) -> Path:
        """The private git directory, writable for the fork."""
        return self.directory / "git"

    @property
    def objects(self) -> Path:
        """Where the parent's objects are mounted inside the sandbox."""
        return self.directory / "objects"

    @property
    def pointer(self) -> Path:
        """The file that is mounted over ``.git``."""
        return self.directory / "dotgit"

    @property
    def linked(self) -> Path:
        """The tree's own ``.git`` file, kept here where the tree leads to the private one."""
        return self.directory / "linked"

    @property
    def known(self) -> Path:
        """Commits the fork found named in its project; what is not among them it made."""
        return self.directory / "known"

    @property
    def kept_index(self) -> Path:
        """The index as it was populated, out of the fork's reach."""
        return self.directory / "index"

    @property
    def record(self) -> Path:
        """The record of the worktree."""
        return self.directory / "fork.json"


class Layout(msgspec.Struct, frozen=True):
    """All places of one state directory."""

    state: Path

    @property
    def worktrees(self) -> Path:
        """Root of all worktrees."""
        return self.state / "worktrees"

    def repo(self, repo: Repo) -> Path:
        """Return the directory of a repository's worktrees."""
        return self.worktrees / repo.id

    def session(self, repo: Repo, session: str) -> Path:
        """Return the directory of a session's worktrees.

        Raises:
            WorktreeError: The id is none that ForkDeck makes.
        """
        check_names(session)
        return self.repo(repo) / session

    def place(self, repo: Repo, session: str, handle: str) -> ForkPlace:
        """Return the place of a fork's worktree.

        Raises:
            WorktreeError: A name is none that ForkDeck makes.
        """
        check_names(session, handle)
        return ForkPlace(self.session(repo, session) / handle, session, handle)

    def scratch(self, repo: Repo) -> Path:
        """Return where short-lived git directories are made."""
        return self.repo(repo) / "scratch"

    def contains(self, path: Path) -> bool:
        """Tell whether a path really stands below the worktrees' root, links followed."""
        real = Path(os.path.realpath(path.parent)) / path.name
        return real.is_relative_to(os.path.realpath(self.worktrees)) and real != self.worktrees


def check_names(session: str, handle: str | None = None) -> None:
    """Refuse names that ForkDeck did not make.

    Raises:
        WorktreeError: A session id or a handle that must not become a path or a ref.
    """
    if not is_session_id(session):
        raise WorktreeError(f"{session[:80]!r} is no session id.", "Use an id from the list.")
    if handle is not None and not is_handle(handle):
        raise WorktreeError(f"{handle[:80]!r} is no fork's handle.", "Use one such as f3.")


def ref_name(session: str, handle: str, *rest: str | int) -> str:
    """Return a hidden ref, such as ``refs/forkdeck/<session>/f3/work/1``.

    Raises:
        WorktreeError: A name is none that ForkDeck makes.
    """
    check_names(session, handle)
    return "/".join((REFS, session, handle, *map(str, rest)))


def parent_ref(session: str, *rest: str | int) -> str:
    """Return a hidden ref of the parent, such as ``refs/forkdeck/<session>/parent/4``.

    Raises:
        WorktreeError: The session id is none that ForkDeck makes.
    """
    check_names(session)
    return "/".join((REFS, session, "parent", *map(str, rest)))


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner reads, replacing it whole; blocking."""
    temporary = path.with_name(f"{path.name}.new")
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    temporary.replace(path)


def write_record(place: ForkPlace, record: ForkRecord) -> None:
    """Write the record beside a tree; blocking."""
    write_private(place.record, msgspec.json.encode(record))


def read_record(place: ForkPlace) -> ForkRecord | None:
    """Read the record beside a tree, or None when there is none that belongs there; blocking."""
    try:
        record = msgspec.json.decode(place.record.read_bytes(), type=ForkRecord)
    except (OSError, msgspec.DecodeError):
        return None
    named = (record.session, record.handle) == (place.session, place.handle)
    return record if named and place.directory.parent.parent.name == record.repo.id else None
