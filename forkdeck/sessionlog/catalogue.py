"""The list of saved sessions: find one, list them, keep the derived summaries.

Called by the command line for the start screen, ``sessions``, ``replay`` and ``--continue``.
Reads ``summary.json`` where it is as new as its log, else folds the log once and writes it.
Never raises for a broken session: it is listed as such.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from forkdeck.errors import SessionError
from forkdeck.model.ids import is_session_id
from forkdeck.model.ports import SessionSummary
from forkdeck.model.state import DeckState
from forkdeck.model.usage import usd_text
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.sessionlog.reader import read_log
from forkdeck.store.reducer import fold
from forkdeck.store.selectors import counts, total_cost

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(SessionSummary)
_SUMMARY_LIMIT = 64 * 1024


def list_sessions(root: Path, limit: int = 50) -> list[SessionSummary]:
    """Return the newest saved sessions below `root`, the last used first.

    A session that cannot be read is listed with what is wrong as its title.
    """
    found: list[tuple[int, Path]] = []
    for directory in _directories(root):
        with suppress(OSError):
            found.append(((directory / "events.jsonl").stat().st_mtime_ns, directory))
    found.sort(reverse=True)
    return [_summary(SessionPaths(directory)) for _, directory in found[: max(limit, 0)]]


def find_session(root: Path, target: str | Path) -> SessionPaths:
    """Find a session by its id, by the beginning of its id, or by a path.

    A path may name a session's directory or a log file of any name.

    Raises:
        SessionError: There is none, or several begin like that.
    """
    text = str(target)
    path = Path(text).expanduser()
    if os.sep in text or path.suffix:
        return _by_path(path)
    matches = [entry for entry in _directories(root) if entry.name.startswith(text)]
    exact = [entry for entry in matches if entry.name == text]
    if exact:
        return SessionPaths(exact[0])
    if len(matches) == 1 and text:
        return SessionPaths(matches[0])
    if not matches and path.exists():
        return _by_path(path)
    if not matches:
        raise SessionError(
            f"there is no session {text!r} in {root}",
            "`forkdeck sessions` lists the saved ones; a file needs its path, such as ./log.jsonl.",
        )
    names = ", ".join(sorted(entry.name for entry in matches)[-5:])
    raise SessionError(f"{len(matches)} sessions begin with {text!r}", f"Say more of it: {names}")


def write_summary(paths: SessionPaths, state: DeckState) -> SessionSummary:
    """Derive a session's summary from its state, and keep it beside the log.

    Returns:
        The summary, also when it could not be written: it can be derived again.
    """
    summary = summarise(paths, state)
    # The directory may be read-only or gone; the list then folds the log again next time.
    with suppress(OSError):
        _replace_file(paths.summary, _ENCODER.encode(summary))
    return summary


def summarise(paths: SessionPaths, state: DeckState) -> SessionSummary:
    """Return a session's row of the list."""
    words = dict(counts(state))
    cost = total_cost(state)
    size, used_ns = 0, 0
    with suppress(OSError):
        facts = paths.events.stat()
        size, used_ns = facts.st_size, facts.st_mtime_ns
    session = state.session
    return SessionSummary(
        session=paths.session if is_session_id(paths.session) else session.session,
        path=str(paths.directory),
        started_at=session.started_at,
        project=session.project,
        cwd=session.cwd,
        branch=session.branch,
        title=session.title,
        forks=len(state.forks),
        asks=len(state.asks),
        new=words.get("NEW", 0),
        interrupted=words.get("INTR", 0),
        failed=words.get("FAIL", 0),
        cost_usd=usd_text(cost.usd) if cost.known else None,
        simulated=session.simulated is not None,
        updated_at=_iso(used_ns),
        log_bytes=size,
    )


def _iso(time_ns: int) -> str:
    moment = datetime.fromtimestamp(time_ns / 1e9, UTC)
    return moment.isoformat(timespec="seconds") if time_ns else ""


def _directories(root: Path) -> Iterator[Path]:
    try:
        projects = list(os.scandir(root / "sessions"))
    except OSError:
        return
    for project in projects:
        try:
            entries = list(os.scandir(project.path))
        except OSError:
            continue
        for entry in entries:
            if is_session_id(entry.name) and entry.is_dir(follow_symlinks=False):
                yield Path(entry.path)


def _by_path(path: Path) -> SessionPaths:
    path = path.absolute()
    if path.is_dir():
        if (path / "events.jsonl").is_file():
            return SessionPaths(path)
        raise SessionError(f"{path} holds no session log", "A session's log is events.jsonl.")
    if path.is_file():
        return SessionPaths(path.parent, path.name)
    raise SessionError(f"there is no file {path}", "Check the path.")


def _summary(paths: SessionPaths) -> SessionSummary:
    kept = _kept(paths)
    if kept is not None:
        return kept
    try:
        contents = read_log(paths.events)
    except SessionError as problem:
        return _broken(paths, problem.what)
    return write_summary(paths, fold(contents.events))


def _kept(paths: SessionPaths) -> SessionSummary | None:
    """Return the stored summary when it is as new as the log and about this session."""
    try:
        log, stored = paths.events.stat(), paths.summary.stat()
        if stored.st_size > _SUMMARY_LIMIT or stored.st_mtime_ns < log.st_mtime_ns:
            return None
        summary = _DECODER.decode(paths.summary.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    same = summary.session == paths.session and summary.path == str(paths.directory)
    return summary if same and summary.log_bytes == log.st_size else None


def _broken(paths: SessionPaths, what: str) -> SessionSummary:
    size = 0
    with suppress(OSError):
        size = paths.events.stat().st_size
    return SessionSummary(
        session=paths.session,
        path=str(paths.directory),
        started_at="",
        project=paths.directory.parent.name,
        cwd="",
        title=f"cannot be read: {what}",
        log_bytes=size,
    )


def _replace_file(path: Path, data: bytes) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(fresh, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
