"""A deck that stands still: a saved session, folded up to one event, shown as if live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from forkdeck.errors import SessionError
from forkdeck.model.events import Event
from forkdeck.model.intents import Intent, IntentResult
from forkdeck.model.ports import (
    Capabilities,
    Deck,
    SessionSummary,
    StartFacts,
    Transport,
)
from forkdeck.model.state import DeckState
from forkdeck.model.work import WorkDiff
from forkdeck.playback.patches import recorded_diff
from forkdeck.sessionlog.reader import read_log
from forkdeck.store.reducer import fold

SESSIONS = Path(__file__).parents[1] / "sessions"


@dataclass(frozen=True)
class Moment:
    """A saved session and the event behind which it stands still."""

    log: str
    until: Callable[[Event], bool]
    later_ms: int = 0
    """How much later than that event the picture is taken."""

    def state(self) -> DeckState:
        kept: list[Event] = []
        for event in read_log(SESSIONS / self.log / "events.jsonl").events:
            kept.append(event)
            if self.until(event):
                return fold(kept)
        raise ValueError(f"{self.log}: the moment never comes")


class StillDeck:
    """Shows one state; does nothing it is asked."""

    def __init__(self, moment: Moment) -> None:
        self.state = moment.state()
        self.transport: Transport | None = None
        self.capabilities = Capabilities()
        self.trouble: str | None = None
        self._directory = SESSIONS / moment.log
        self._later_ms = moment.later_ms

    def now_ms(self) -> int:
        return self.state.at_ms + self._later_ms

    def subscribe(self, wake: Callable[[bool], None]) -> Callable[[], None]:
        return lambda: None

    async def submit(self, intent: Intent) -> IntentResult:
        return IntentResult(ok=True)

    async def diff(self, handle: str) -> WorkDiff:
        return recorded_diff(self._directory, self.state.forks[handle])

    async def complete_path(self, prefix: str, limit: int = 20) -> Sequence[str]:
        return []

    async def close(self) -> None:
        pass


class StillFactory:
    """Opens the one deck; lists sessions that look like a week's work."""

    def __init__(self, open_deck: Callable[[], Deck]) -> None:
        self._open = open_deck

    async def start_facts(self) -> StartFacts:
        checks = (
            ("key", True, "ANTHROPIC_API_KEY"),
            ("git", True, "worktrees work here"),
            ("sandbox", True, "read-only enforced by the system"),
            ("prices", True, "claude-opus-5-5, list prices"),
            ("search", False, "rg not found, built-in is slower"),
        )
        return StartFacts(
            version="0.1.0", project="tally", branch="main", dirty_files=2, checks=checks,
            can_start=True,
        )  # fmt: skip

    async def trust(self) -> str:
        raise AssertionError

    async def sessions(self, limit: int = 50) -> Sequence[SessionSummary]:
        rows = (
            ("auth-rework", "main", "2026-11-30T11:58:00+00:00", 8, 1, 2, 0, "0.56"),
            ("cache-headers", "main", "2026-11-29T16:20:00+00:00", 4, 0, 0, 0, "0.31"),
            ("flaky-net", "fix/net", "2026-11-24T09:12:00+00:00", 12, 0, 0, 1, "1.94"),
            ("docs-tone", "main", "2026-11-20T13:40:00+00:00", 0, 0, 0, 0, None),
        )
        return [
            SessionSummary(
                session=f"2026112{number}-090000-a1b2c{number}", path="", started_at=started,
                updated_at=started, project="tally", cwd="/home/sample/tally", branch=branch,
                title=title, forks=forks, asks=asks, new=new, interrupted=lost, cost_usd=cost,
            )
            for number, (title, branch, started, forks, asks, new, lost, cost) in enumerate(rows)
        ]  # fmt: skip

    async def open_live(self, *, demo: bool = False, resume: str | None = None) -> Deck:
        return self._open()

    async def open_replay(self, target: str) -> Deck:
        raise SessionError("a still picture has no replay")
