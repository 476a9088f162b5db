"""Opens decks for the user interface: live, resumed, demo, replay.

Made before the first paint, which waits for nothing: what a live deck is composed of is imported
after it, in a thread.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from forkdeck import __version__
from forkdeck.cli.host import Host, working_directory
from forkdeck.cli.project import look_at_project
from forkdeck.cli.trusted_files import grant
from forkdeck.config.loading import LoadedSettings
from forkdeck.config.project_files import project_root, read
from forkdeck.config.trust import TrustStore
from forkdeck.errors import SessionError
from forkdeck.model.events import Event
from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.intents import SendPrompt
from forkdeck.model.ports import Deck, SessionSummary, StartFacts
from forkdeck.sessionlog.catalogue import find_session, list_sessions
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.sessionlog.reader import LogContents, read_log
from forkdeck.store.reducer import fold

if TYPE_CHECKING:
    from forkdeck.cli.demo_place import DemoPlace


_TRUST_BYTES = 64 * 1024
"""How much of a file is shown before it is trusted."""

_NOTES_SHOWN = 5
"""Marks of a log that are named in its replay."""


async def _loaded(*modules: str) -> None:
    """Import modules in a thread, so that keys are drawn meanwhile."""
    for module in modules:
        await asyncio.to_thread(importlib.import_module, module)


def log_notes(log: LogContents) -> tuple[str, ...]:
    """Return what a person should know about a log that was read: damage, a newer version."""
    if not log.newer:
        return log.notes
    newer = "written by a newer ForkDeck; what this one does not know is left out"
    return (newer, *log.notes)


def _marked(log: LogContents) -> list[Event]:
    """Return a log's events, with a notice behind the header when the log has marks."""
    notes = log_notes(log)
    if not notes:
        return log.events
    first, *rest = log.events
    told = "\n".join(notes[:_NOTES_SHOWN])
    more = len(notes) - _NOTES_SHOWN
    notice = NoticeRaised(
        seq=first.seq,
        at_ms=first.at_ms,
        severity="warning",
        what=f"This log has marks:\n{told}" + (f"\nand {more} more" if more > 0 else ""),
        kept="The file is as it was.",
    )
    return [first, notice, *rest]


def _trust(state: Path, root: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return how far a project is trusted, and each file that is about with its content."""
    store = TrustStore(state)
    files = store.files(root)
    if not files:
        return "", ()
    shown: list[tuple[str, str]] = []
    for file in files:
        data = read(root, file.path, _TRUST_BYTES) or b""
        text = data[:_TRUST_BYTES].decode(errors="replace")
        if file.size_bytes > _TRUST_BYTES:
            text += f"\n[{file.size_bytes - _TRUST_BYTES} more bytes: open the file to read them]"
        shown.append((file.path, text))
    return store.state(root), tuple(shown)


class Factory:
    """Implements `forkdeck.model.ports.DeckFactory`; `close` removes what demos left.

    Args:
        host: This process.
        cwd: The directory to work in, resolved.
        flags: Settings given on the command line, by dotted key.
    """

    def __init__(self, host: Host, cwd: Path, flags: Mapping[str, object]) -> None:
        self._host = host
        self._cwd = cwd
        self._flags = flags
        self._demos: list[DemoPlace] = []

    @property
    def loaded(self) -> LoadedSettings:
        """The settings as they are now.

        Raises:
            ConfigError: A settings file, key or value is wrong.
        """
        return look_at_project(self._host, self._cwd, self._flags).loaded

    async def start_facts(self) -> StartFacts:
        """Look at the directory, the credentials and the host."""
        await _loaded("forkdeck.cli.health")
        from forkdeck.cli.health import checks  # noqa: PLC0415 - after the first paint

        found, repo = await checks(self._host, self._cwd, self._flags, quick=True)
        trust, files = await asyncio.to_thread(_trust, self._host.state, project_root(self._cwd))
        credentials = self._host.credentials
        return StartFacts(
            version=__version__,
            project=self._cwd.name or str(self._cwd),
            branch=repo.branch,
            dirty_files=repo.dirty_files,
            cwd=str(self._cwd),
            checks=tuple((each.name, each.good, each.text) for each in found),
            can_start=credentials.found,
            missing="" if credentials.found else credentials.looked_for,
            trust=trust,
            trust_files=files,
        )

    async def trust(self) -> str:
        """Trust the project's files as they are now, before a session is begun."""
        store = TrustStore(self._host.state)
        return await asyncio.to_thread(grant, store, project_root(self._cwd))

    async def sessions(self, limit: int = 50) -> Sequence[SessionSummary]:
        """Return saved sessions, newest first; those of demos too while they can be opened."""
        found: list[SessionSummary] = []
        for root in self._roots():
            found += await asyncio.to_thread(list_sessions, root, limit)
        return sorted(found, key=lambda each: each.updated_at, reverse=True)[:limit]

    def _roots(self) -> list[Path]:
        return [self._host.state, *(place.state for place in self._demos)]

    def _found(self, target: str) -> SessionPaths:
        """Find a session of the person's own, else one of this process's demos."""
        own, *demos = self._roots()
        try:
            return find_session(own, target)
        except SessionError:
            for root in demos:
                with suppress(SessionError):
                    return find_session(root, target)
            raise

    async def open_live(self, *, demo: bool = False, resume: str | None = None) -> Deck:
        """Open a live session, the demo, or go on with a saved one; see `DeckFactory`."""
        await _loaded("forkdeck.cli.compose")
        from forkdeck.cli.compose import LiveRequest, open_live  # noqa: PLC0415 - as above

        if demo:
            await _loaded("forkdeck.cli.demo_place")
            from forkdeck.cli.demo_place import DemoPlace  # noqa: PLC0415 - as above

            place = await DemoPlace.make(self._host)
            self._demos.append(place)
            deck = await place.open(attached=True)
            for prompt in place.prompts:
                await deck.submit(SendPrompt(text=prompt))
            return deck
        if not self._host.credentials.found:
            what, _, remedy = self._host.credentials.looked_for.partition("\n")
            raise SessionError(what, remedy)
        cwd = await asyncio.to_thread(self._directory, resume)
        project = await asyncio.to_thread(look_at_project, self._host, cwd, self._flags)
        request = LiveRequest(project=project, credentials=self._host.credentials, resume=resume)
        return await open_live(self._host, request)

    def _directory(self, resume: str | None) -> Path:
        """Return where a session works: a resumed one goes on in its own directory."""
        if resume is None:
            return self._cwd
        facts = fold(read_log(find_session(self._host.state, resume).events).events).session
        return working_directory(facts.cwd) if facts.cwd else self._cwd

    async def warm_up(self) -> None:
        """Load what the first request needs, in a thread."""
        if self._host.credentials.found:
            await _loaded("forkdeck.cli.compose")
            from forkdeck.providers.prices import Prices  # noqa: PLC0415 - after the first paint
            from forkdeck.providers.sdk import import_sdk  # noqa: PLC0415 - as above

            await asyncio.to_thread(import_sdk)
            await asyncio.to_thread(Prices().warm_up)

    async def open_replay(self, target: str) -> Deck:
        """Open a saved session or a log file for replay; see `DeckFactory`."""
        paths = await asyncio.to_thread(self._found, target)
        log = await asyncio.to_thread(read_log, paths.events)
        from forkdeck.playback.deck import ReplayDeck  # noqa: PLC0415 - after the first paint

        return ReplayDeck.open(
            _marked(log), clock=self._host.clock, title=paths.session, directory=paths.directory
        )

    async def close(self) -> None:
        """Stop the demos' models and remove their directories."""
        for place in self._demos:
            await place.close()
        self._demos.clear()
