"""Which projects the person trusts, and the files that this is about.

The hashes stand in the user's state directory, never in the repository; a file that changes, comes
or goes makes the project ask again. Used by the command line and the engine's ``/trust``.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from forkdeck.config.project_files import below, read, sha256
from forkdeck.errors import ConfigError

TrustState: TypeAlias = Literal["trusted", "changed", "untrusted"]

CONFIG_FILE = ".forkdeck/config.toml"
"""The project's settings file, relative to its root."""

_MOST_FILES = 2_000


@dataclass(frozen=True)
class ProjectFile:
    """One file that has a say only when the project is trusted.

    Attributes:
        path: Relative to the root, ``/`` separated.
        sha256: Hash of its bytes (hex).
        size_bytes: Its size.
        what: What it is for, in words.
    """

    path: str
    sha256: str
    size_bytes: int
    what: str


def _what(path: str) -> str:
    if path == CONFIG_FILE:
        return "settings"
    if path == ".worktreeinclude":
        return "ignored files for worktrees"
    if path.startswith((".forkdeck/agents/", ".claude/agents/")):
        return "agent"
    if path.startswith(".forkdeck/profiles/"):
        return "fork profile"
    return "file"


class TrustStore:
    """The person's trust in projects, kept in one file of the state directory.

    Args:
        state_root: ForkDeck's state directory; made when something is granted.
    """

    def __init__(self, state_root: Path) -> None:
        self._file = state_root / "trust.json"

    def files(self, project_root: Path) -> tuple[ProjectFile, ...]:
        """Return the files that trust is about, sorted by path, as they are now."""
        names = {
            *below(project_root, ".forkdeck", most=_MOST_FILES),
            *below(project_root, ".claude/agents", ".md", most=_MOST_FILES),
            ".worktreeinclude",
        }
        found: list[ProjectFile] = []
        for name in sorted(names):
            hashed = sha256(project_root, name)
            if hashed is not None:
                found.append(ProjectFile(name, hashed[0], hashed[1], _what(name)))
        return tuple(found)

    def state(self, project_root: Path) -> TrustState:
        """Say whether the project is trusted as it is now."""
        known = self._load().get(_name(project_root))
        if known is None:
            return "untrusted"
        now = {file.path: file.sha256 for file in self.files(project_root)}
        return "trusted" if now == known else "changed"

    def changed(self, project_root: Path) -> tuple[str, ...]:
        """Return the paths that differ from what was trusted, sorted."""
        known = self._load().get(_name(project_root), {})
        now = {file.path: file.sha256 for file in self.files(project_root)}
        return tuple(
            sorted(path for path in known.keys() | now.keys() if known.get(path) != now.get(path))
        )

    def read(self, project_root: Path, relative: str, limit: int) -> bytes | None:
        """Return a trusted file's bytes, or None when they are not what was trusted.

        The check is of the bytes that are returned, so nothing can change in between.
        """
        data = read(project_root, relative, limit)
        known = self._load().get(_name(project_root), {}).get(relative)
        if data is None or known is None or len(data) > limit:
            return None
        return data if hashlib.sha256(data).hexdigest() == known else None

    def grant(self, project_root: Path) -> tuple[ProjectFile, ...]:
        """Trust the project's files as they are now, and return them.

        Raises:
            ConfigError: There are too many files, or the state directory cannot be written.
        """
        files = self.files(project_root)
        if len(files) >= _MOST_FILES:
            raise ConfigError(
                f"The project has more than {_MOST_FILES} files under .forkdeck and .claude.",
                "Remove what does not belong there, then trust it again.",
            )
        self._store(project_root, {file.path: file.sha256 for file in files})
        return files

    def _load(self) -> dict[str, dict[str, str]]:
        try:
            loaded: Any = json.loads(self._file.read_bytes())
            projects: Any = loaded["projects"]
        except (OSError, ValueError, KeyError, TypeError):
            # A file that cannot be read trusts nothing: the person is asked again.
            return {}
        if not isinstance(projects, dict):
            return {}
        found: dict[str, dict[str, str]] = {}
        for name, files in cast("dict[Any, Any]", projects).items():
            if isinstance(files, dict):
                pairs = cast("dict[Any, Any]", files)
                found[str(name)] = {str(path): str(value) for path, value in pairs.items()}
        return found

    def _store(self, project_root: Path, files: Mapping[str, str]) -> None:
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(self._file.with_suffix(".lock")):
                projects = self._load()
                projects[_name(project_root)] = dict(files)
                _replace(self._file, json.dumps({"version": 1, "projects": projects}, indent=1))
        except OSError as error:
            raise ConfigError(
                f"The trust could not be stored in {self._file}: {error.strerror}.",
                "Make the directory writable, or set FORKDECK_STATE_DIR to one that is.",
            ) from error


def _name(project_root: Path) -> str:
    return str(project_root.resolve())


@contextmanager
def _locked(path: Path) -> Generator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
