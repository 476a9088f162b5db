"""Where sessions lie on the disk, and the names inside a session's directory.

Used by the writer, the catalogue, the engine (request heads, reports, spilled output) and the
command line. Builds paths only; nothing is opened or made here.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
from platformdirs import user_state_dir

from forkdeck.errors import SessionError
from forkdeck.model.ids import is_handle, is_session_id, slug

STATE_VARIABLE = "FORKDECK_STATE_DIR"
"""Environment variable that moves the state directory."""

LOG_NAME = "events.jsonl"
"""Name of a session's log in its directory."""


def state_root() -> Path:
    """Return the user's state directory for ForkDeck; it need not exist."""
    chosen = os.environ.get(STATE_VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else Path(user_state_dir("forkdeck"))


class SessionPaths(msgspec.Struct, frozen=True):
    """The names inside one session's directory.

    `log_name` differs from the usual only for a log file that was opened by its own path.
    """

    directory: Path
    log_name: str = LOG_NAME

    @property
    def session(self) -> str:
        """The session's id: the directory's name."""
        return self.directory.name

    @property
    def events(self) -> Path:
        """The log."""
        return self.directory / self.log_name

    @property
    def heads(self) -> Path:
        """Directory of raw request heads, ``<sha256>.json``."""
        return self.directory / "heads"

    @property
    def spill(self) -> Path:
        """Directory of tool output that was too long for a result."""
        return self.directory / "spill"

    @property
    def forks(self) -> Path:
        """Directory of the forks' results."""
        return self.directory / "forks"

    @property
    def lock(self) -> Path:
        """The file whose lock says that a process has the session open."""
        return self.directory / "lock"

    @property
    def summary(self) -> Path:
        """The derived row of the session list."""
        return self.directory / "summary.json"

    def report(self, handle: str) -> Path:
        """Return the file of a fork's whole report.

        Raises:
            SessionError: `handle` is no fork's handle.
        """
        return self._fork(handle) / "report.md"

    def result(self, handle: str) -> Path:
        """Return the file of a fork's outcome and figures.

        Raises:
            SessionError: `handle` is no fork's handle.
        """
        return self._fork(handle) / "result.json"

    def _fork(self, handle: str) -> Path:
        if not is_handle(handle):
            raise SessionError(f"{handle!r} is no fork's handle", "Handles look like f3.")
        return self.forks / handle


def project_slug(project_cwd: Path | str) -> str:
    """Return a project directory's name among the sessions: its last part and a short hash."""
    path = str(project_cwd)
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{slug(Path(path).name)}-{digest}"


def session_directory(root: Path, project_cwd: Path | str, session_id: str) -> Path:
    """Return the directory of a session below the state directory `root`.

    Raises:
        SessionError: `session_id` is not an id that ForkDeck makes.
    """
    if not is_session_id(session_id):
        raise SessionError(
            f"{session_id!r} is no session id", "Ids look like 20261130-202200-1f3a9c."
        )
    return root / "sessions" / project_slug(project_cwd) / session_id
