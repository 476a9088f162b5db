"""Short-lived git directories in which all work-tree git of ForkDeck happens.

A scratch repository borrows the project's objects and nothing else: its configuration is written
here (line ends, filters and identity are carried over), it has no hooks, and its index is a copy.
So the project's own git directory is only ever read, and a configuration that a run planted there
is never obeyed. Made and thrown away by `forkdeck.worktrees.git_sandbox`.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from forkdeck.errors import WorktreeError
from forkdeck.sessionlog.logfile import make_private_directory
from forkdeck.worktrees.git import HostGit
from forkdeck.worktrees.layout import Repo

CARRIED: Final = frozenset(
    (
        "core.autocrlf",
        "core.eol",
        "core.filemode",
        "core.ignorecase",
        "core.precomposeunicode",
        "core.safecrlf",
        "core.symlinks",
        "extensions.partialclone",
        "user.email",
        "user.name",
    )
)
"""Settings that decide what bytes a checkout has, and who commits in a fork."""

RAW_ATTRIBUTES: Final = b"* -text -crlf -eol -filter -ident -working-tree-encoding\n"
"""Attributes under which git stores and writes bytes exactly as they are."""


class ScratchRepo(msgspec.Struct, frozen=True):
    """One scratch repository; everything in it may be written by the sandbox."""

    directory: Path

    @property
    def git(self) -> Path:
        """The git directory."""
        return self.directory / "g"

    @property
    def index(self) -> Path:
        """The index that scripts stage into."""
        return self.directory / "out" / "index"

    @property
    def out(self) -> Path:
        """Where scripts leave their results."""
        return self.directory / "out"

    def result(self, name: str) -> Path:
        """Return a result that is a regular file of our own.

        Raises:
            WorktreeError: It is missing, a link or a special file.
        """
        path = self.out / name
        try:
            mode = path.lstat().st_mode
        except OSError as error:
            raise WorktreeError(f"git gave no {name}: {error.strerror}.") from error
        if not stat.S_ISREG(mode):
            raise WorktreeError(f"git's {name} is no regular file; it was not used.")
        return path

    def read(self, name: str, limit: int = 16 << 20) -> bytes:
        """Read a result of a script; blocking.

        Raises:
            WorktreeError: It is missing, no regular file, or longer than `limit` bytes.
        """
        descriptor = os.open(self.result(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise WorktreeError(f"git's {name} is longer than {limit >> 20} MiB.")
        return data

    def text(self, name: str) -> str:
        """Read a short result as text without its last newline; blocking."""
        return os.fsdecode(self.read(name, 1 << 20)).strip("\n")


def config_text(settings: Sequence[tuple[str, str]]) -> bytes:
    """Return settings in git's configuration syntax, every value quoted."""
    lines: list[str] = []
    for key, value in settings:
        section, _, rest = key.partition(".")
        subsection, _, name = rest.rpartition(".")
        escaped = subsection.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[{section} "{escaped}"]' if subsection else f"[{section}]")
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        quoted = quoted.replace("\n", "\\n").replace("\t", "\\t")
        lines.append(f'\t{name} = "{quoted}"')
    return os.fsencode("\n".join(lines) + "\n")


async def own_settings(git: HostGit, repo: Repo) -> list[tuple[str, str]]:
    """Return what a repository's own files configure, includes not followed."""
    found: list[tuple[str, str]] = []
    for file in dict.fromkeys((repo.common / "config", repo.git_dir / "config.worktree")):
        found += await _settings_of(git, repo, file)
    return found


async def _settings_of(git: HostGit, repo: Repo, file: Path) -> Sequence[tuple[str, str]]:
    """Return the settings of one file; git is asked again only when the file is another."""
    try:
        facts = await git.thread(file.stat)
    except OSError:
        return ()
    signature = (facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size)
    known = git.settings.get(file)
    if known is not None and known[0] == signature:
        return known[1]
    answer = await git.call(
        repo.common, "config", "--file", str(file), "--no-includes", "-z", "--list"
    )
    found: list[tuple[str, str]] = []
    for entry in os.fsdecode(answer.out).split("\0"):
        key, separator, value = entry.partition("\n")
        if key:
            found.append((key, value if separator else "true"))
    git.settings[file] = (signature, found)
    return found


async def carried_settings(git: HostGit, repo: Repo) -> list[tuple[str, str]]:
    """Return the settings a private or scratch git directory takes over from its project."""
    own = await own_settings(git, repo)
    kept = [
        (key, value)
        for key, value in own
        if key in CARRIED or key.startswith("filter.") or key.endswith(".promisor")
    ]
    partial = any(key == "extensions.partialclone" for key, _ in kept)
    version = "1" if partial or repo.object_format != "sha1" else "0"
    base = [("core.repositoryformatversion", version), ("core.bare", "false")]
    if repo.object_format != "sha1":
        base.append(("extensions.objectformat", repo.object_format))
    return [*base, *kept]


def write_git_dir(
    git_dir: Path,
    *,
    repo: Repo,
    settings: Sequence[tuple[str, str]],
    head: str,
    objects: Sequence[Path],
) -> None:
    """Make a git directory by hand that borrows `objects`; blocking.

    Args:
        git_dir: Where; it must not exist.
        repo: The project, for its exclude file and shallow marks.
        settings: Its whole configuration.
        head: What ``HEAD`` says: a commit, or ``ref: …``.
        objects: Object directories to borrow from.

    Raises:
        WorktreeError: A path that git's alternates file cannot name.
    """
    if any("\n" in str(path) for path in objects):
        raise WorktreeError("The project's path has a line break, which git cannot borrow from.")
    for name in ("objects/info", "refs/heads", "info"):
        (git_dir / name).mkdir(parents=True, mode=0o700)
    (git_dir / "HEAD").write_text(f"{head}\n")
    (git_dir / "config").write_bytes(config_text(settings))
    alternates = b"".join(os.fsencode(path) + b"\n" for path in objects)
    (git_dir / "objects/info/alternates").write_bytes(alternates)
    for name in ("info/exclude", "info/attributes", "shallow"):
        copy_plain(repo.common / name, git_dir / name)


def copy_plain(source: Path, target: Path) -> bool:
    """Copy a regular file with its times, never through a link; blocking."""
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            return False
        with target.open("wb") as copy:
            shutil.copyfileobj(file, copy)
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    return True


def make_scratch(
    parent: Path,
    *,
    repo: Repo,
    settings: Sequence[tuple[str, str]],
    head: str,
    objects: Sequence[Path],
    index: Path | None,
) -> ScratchRepo:
    """Make a scratch repository below `parent`; blocking.

    Raises:
        WorktreeError: It cannot be made.
    """
    try:
        make_private_directory(parent)
        scratch = ScratchRepo(Path(tempfile.mkdtemp(prefix="s-", dir=parent)))
        for name in ("out", "tmp", "share"):
            (scratch.directory / name).mkdir(mode=0o700)
        write_git_dir(scratch.git, repo=repo, settings=settings, head=head, objects=objects)
        (scratch.git / "info/attributes.raw").write_bytes(RAW_ATTRIBUTES)
        if index is not None and copy_plain(index, scratch.index):
            # A split index names its other half in the git directory.
            for shared in index.parent.glob("sharedindex.*"):
                copy_plain(shared, scratch.git / shared.name)
    except OSError as error:
        raise WorktreeError(
            f"No room for git's work below {parent}: {error.strerror}.",
            "Free some space, or set FORKDECK_STATE_DIR to another disk.",
        ) from error
    return scratch
