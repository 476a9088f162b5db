"""A deck and a factory without anything behind them: states folded from hand-made events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from forkdeck.errors import SessionError
from forkdeck.model.events import Event
from forkdeck.model.intents import Intent, IntentResult
from forkdeck.model.ports import (
    Capabilities,
    Deck,
    PlaybackFacts,
    SessionSummary,
    StartFacts,
    Transport,
)
from forkdeck.model.state import EMPTY, DeckState
from forkdeck.model.work import DiffLine, FileChange, WorkDiff
from forkdeck.store.reducer import fold, reduce
from forkdeck.ui.app import ForkDeckApp
from forkdeck.ui.start_request import StartRequest

ENVIRON = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": "/nowhere"}


class FakeClock:
    """Time that is moved by hand."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def monotonic_ms(self) -> int:
        return self.ms

    def now(self) -> datetime:
        return datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


class FakeTransport:
    """Remembers what was asked of a replay."""

    def __init__(self) -> None:
        self.facts = PlaybackFacts(
            playing=False, speed=1.0, position_ms=60_000, duration_ms=120_000, event=40, events=80
        )
        self.calls: list[tuple[str, object]] = []

    def _note(self, name: str, value: object = None) -> None:
        self.calls.append((name, value))

    def play(self) -> None:
        self._note("play")
        self.facts = self._with(playing=True)

    def pause(self) -> None:
        self._note("pause")
        self.facts = self._with(playing=False)

    def step(self, events: int) -> None:
        self._note("step", events)

    def seek_ms(self, position_ms: int) -> None:
        self._note("seek", position_ms)
        self.facts = self._with(position_ms=max(0, min(position_ms, self.facts.duration_ms)))

    def seek_next(self, what: Literal["owed", "error", "fork", "turn"], back: bool = False) -> bool:
        self._note(what, back)
        return what != "turn" or not back

    def set_speed(self, speed: float) -> None:
        self._note("speed", speed)
        self.facts = self._with(speed=speed)

    def set_skip_idle(self, on: bool) -> None:
        self._note("idle", on)
        self.facts = self._with(skip_idle=on)

    def _with(self, **change: Any) -> PlaybackFacts:
        values = {name: getattr(self.facts, name) for name in PlaybackFacts.__struct_fields__}
        return PlaybackFacts(**{**values, **change})


class FakeDeck:
    """Shows a state; remembers intents; answers them with `results` or "done"."""

    def __init__(self, events: Sequence[Event] = (), *, replay: bool = False) -> None:
        self.state: DeckState = fold(list(events), EMPTY)
        self.transport: Transport | None = FakeTransport() if replay else None
        self.capabilities = Capabilities(live=not replay, worktrees=not replay, recorded=replay)
        self.intents: list[Intent] = []
        self.results: dict[str, IntentResult] = {}
        self.files = ["src/app.py", "src/api.py", "README.md"]
        self.closed = 0
        self.trouble: str | None = None
        self._wakes: list[Callable[[bool], None]] = []

    def now_ms(self) -> int:
        return self.state.at_ms + 3_000

    def subscribe(self, wake: Callable[[bool], None]) -> Callable[[], None]:
        self._wakes.append(wake)
        return lambda: self._wakes.remove(wake)

    def apply(self, *events: Event, urgent: bool = False) -> None:
        for event in events:
            self.state = reduce(self.state, event)
        for wake in list(self._wakes):
            wake(urgent)

    async def submit(self, intent: Intent) -> IntentResult:
        self.intents.append(intent)
        return self.results.get(type(intent).__name__, IntentResult(ok=True))

    async def diff(self, handle: str) -> WorkDiff:
        lines = (
            DiffLine("file", "src/io/retry.py"),
            DiffLine("hunk", "@@ -18,3 +18,3 @@ class Retry"),
            DiffLine("context", "    def call(self, fn):", 18, 18),
            DiffLine("removed", "        time.sleep(2 ** n)", 19, None),
            DiffLine("added", "        self.clock.sleep(wait)", None, 19),
            DiffLine("file", "run.sh"),
            DiffLine("hunk", "@@ -0,0 +1 @@"),
            DiffLine("added", "#!/bin/sh", None, 1),
        )
        files = (
            FileChange(path="src/io/retry.py", added=41, removed=6),
            FileChange(path="run.sh", kind="added", added=1, removed=0, warning="executable"),
        )
        return WorkDiff(base="4f2c9a1b22", commit="aa", files=files, lines=lines)

    async def complete_path(self, prefix: str, limit: int = 20) -> Sequence[str]:
        return [name for name in self.files if name.startswith(prefix)][:limit]

    async def close(self) -> None:
        self.closed += 1

    def asked(self, kind: type[Intent]) -> list[Intent]:
        return [intent for intent in self.intents if isinstance(intent, kind)]


def summary(number: int, **more: Any) -> SessionSummary:
    values: dict[str, Any] = {
        "session": f"20261130-10000{number}-00000{number}",
        "path": f"/s/{number}",
        "started_at": f"2026-11-30T11:{10 + number}:00+00:00",
        "project": "sample",
        "cwd": "/home/me/sample",
        "branch": "main",
        "title": f"title {number}",
        "forks": number,
        "cost_usd": "0.56",
    }
    return SessionSummary(**{**values, **more})


class FakeFactory:
    """Opens the deck it was given, or raises what it was given."""

    def __init__(self, deck: Deck | None = None, *, can_start: bool = True) -> None:
        self.deck = deck or FakeDeck()
        self.can_start = can_start
        self.error: Exception | None = None
        self.opened: list[tuple[str, object]] = []
        self.listed: list[SessionSummary] = [
            summary(1, asks=1, new=2), summary(2), summary(3, interrupted=1), summary(4, forks=0),
        ]  # fmt: skip

    async def start_facts(self) -> StartFacts:
        return StartFacts(
            version="0.1.0",
            project="sample",
            branch="main",
            dirty_files=2,
            checks=(
                ("key", self.can_start, "ANTHROPIC_API_KEY in environment"),
                ("git", True, "2.43, worktrees work here"),
                ("sandbox", True, "read-only enforced by the system"),
                ("search", False, "rg not found, built-in is slower"),
            ),
            can_start=self.can_start,
            missing=""
            if self.can_start
            else "No credentials found.\nLooked for ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN and a "
            "profile. Set one: export ANTHROPIC_API_KEY=…",
            trust="untrusted",
            trust_files=((".forkdeck/config.toml", 'mode = "auto"\n'),),
        )

    async def trust(self) -> str:
        self.opened.append(("trust", None))
        return "Trusted as they are now."

    async def sessions(self, limit: int = 50) -> Sequence[SessionSummary]:
        return self.listed[:limit]

    async def open_live(self, *, demo: bool = False, resume: str | None = None) -> Deck:
        self.opened.append(("demo" if demo else "live", resume))
        return self._open()

    async def open_replay(self, target: str) -> Deck:
        self.opened.append(("replay", target))
        return self._open()

    def _open(self) -> Deck:
        if self.error is not None:
            raise self.error
        return self.deck


def app_of(
    deck: Deck | None = None,
    *,
    start: StartRequest | None = None,
    factory: FakeFactory | None = None,
    clock: FakeClock | None = None,
    state_dir: Path | None = None,
    theme: str = "forkdeck-dark",
    ascii_only: bool | None = None,
) -> ForkDeckApp:
    """Return an app over a fake deck, opened live unless told otherwise."""
    return ForkDeckApp(
        factory or FakeFactory(deck),
        clock=clock or FakeClock(),
        start=start or StartRequest("live" if deck is not None else "start"),
        theme_name=theme,
        ascii_only=ascii_only,
        reduced_motion=True,
        state_dir=state_dir,
        environ=ENVIRON,
    )


def no_such_session() -> SessionError:
    return SessionError("There is no session '2026'.", "forkdeck sessions lists them.")
