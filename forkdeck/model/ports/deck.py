"""What the user interface talks to: decks and what opens them; live and replay implement it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from forkdeck.model.intents import Intent, IntentResult
from forkdeck.model.state import DeckState
from forkdeck.model.work import WorkDiff


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What this deck can do; the user interface greys out the rest."""

    live: bool = True
    """Prompts, forks, answers, aborts are possible."""
    worktrees: bool = True
    recorded: bool = False
    """A replay: live intents answer "recorded"."""


class PlaybackFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Transport state of a replay; not deck state, never logged."""

    playing: bool
    speed: float
    position_ms: int
    duration_ms: int
    event: int
    events: int
    skip_idle: bool = True


class Transport(Protocol):
    """The transport keys of a replay."""

    @property
    def facts(self) -> PlaybackFacts:
        """Where the replay is."""
        ...

    def play(self) -> None:
        """Go on from here; at the end, start again from the beginning."""
        ...

    def pause(self) -> None:
        """Stop here."""
        ...

    def step(self, events: int) -> None:
        """Go `events` forward (or back when negative) and pause."""
        ...

    def seek_ms(self, position_ms: int) -> None:
        """Go to a time; clamped to the recording."""
        ...

    def seek_next(self, what: Literal["owed", "error", "fork", "turn"], back: bool = False) -> bool:
        """Go to the next such event; False when there is none."""
        ...

    def set_speed(self, speed: float) -> None:
        """Set the speed, 0.25 to 32."""
        ...

    def set_skip_idle(self, on: bool) -> None:
        """Cut gaps of more than 2 s to 0.5 s, or play them in full."""
        ...


class Deck(Protocol):
    """A running session, live or replayed: state out, intents in."""

    @property
    def state(self) -> DeckState:
        """The state now."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this deck can do."""
        ...

    @property
    def transport(self) -> Transport | None:
        """The replay's transport; None on a live deck."""
        ...

    def now_ms(self) -> int:
        """The session's clock, for ages and waits; a replay's position."""
        ...

    def subscribe(self, wake: Callable[[bool], None]) -> Callable[[], None]:
        """Call `wake(urgent)` on the loop after every change; returns how to stop that.

        `urgent` is true for lifecycle changes, which are drawn at once.
        """
        ...

    async def submit(self, intent: Intent) -> IntentResult:
        """Do what the person asks; refusals are results, not exceptions."""
        ...

    async def diff(self, handle: str) -> WorkDiff:
        """Return a fork's changes against its base.

        Raises:
            WorktreeError: The work cannot be read.
        """
        ...

    async def complete_path(self, prefix: str, limit: int = 20) -> Sequence[str]:
        """Return project files that begin like `prefix`, for ``@file`` completion."""
        ...

    async def close(self) -> None:
        """End the session: stop and save every fork, flush the log. Safe to call twice."""
        ...


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the session list (``summary.json``)."""

    session: str
    path: str
    started_at: str
    project: str
    cwd: str
    branch: str | None = None
    title: str = ""
    forks: int = 0
    asks: int = 0
    new: int = 0
    interrupted: int = 0
    failed: int = 0
    cost_usd: str | None = None
    """Decimal text; None when part of it has no known price."""
    simulated: bool = False
    updated_at: str = ""
    log_bytes: int = 0


class StartFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the start screen shows: what is ready, what is missing, and the way out."""

    version: str
    project: str
    branch: str | None
    dirty_files: int | None
    cwd: str = ""
    """Where it looked; sessions of it stand first."""
    checks: tuple[tuple[str, bool, str], ...]
    """(name, good, text): key, git, sandbox, prices, search, trust."""
    can_start: bool
    """Whether there are credentials for a live session."""
    missing: str = ""
    """Without credentials: what was looked for, and how to set a key."""
    trust: str = ""
    """``trusted``, ``changed`` or ``untrusted``; empty when the project has no such files."""
    trust_files: tuple[tuple[str, str], ...] = ()
    """(path relative to the project, content) of each file that trust is about."""


class DeckFactory(Protocol):
    """Opens decks; made by the command line and given to the user interface."""

    async def start_facts(self) -> StartFacts:
        """Look at the directory, the credentials and the host."""
        ...

    async def trust(self) -> str:
        """Trust the project's files as they are now; returns what that means, in words."""
        ...

    async def sessions(self, limit: int = 50) -> Sequence[SessionSummary]:
        """Return saved sessions, newest first."""
        ...

    async def open_live(self, *, demo: bool = False, resume: str | None = None) -> Deck:
        """Open a live session, or the demo, or go on with a saved one.

        Raises:
            ForkDeckError: It cannot be opened; the message says what to do.
        """
        ...

    async def open_replay(self, target: str) -> Deck:
        """Open a saved session or a log file for replay.

        Raises:
            SessionError: There is no such session, or the file is no log.
        """
        ...
