"""The replay deck: a recorded session behind the same port as a live one.

Opened by the command line for the user interface, from events in memory. Folds the recording in
small pieces on the event loop while it is in use, plays it against the injected clock, and
answers every live intent with "recorded". Writes nothing, asks no network and no git.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from forkdeck.errors import WorktreeError
from forkdeck.model.events import Event
from forkdeck.model.intents import Intent, IntentResult
from forkdeck.model.ports import Capabilities, Clock, PlaybackFacts
from forkdeck.model.state import DeckState
from forkdeck.model.work import WorkDiff
from forkdeck.playback.landmarks import is_landmark
from forkdeck.playback.patches import recorded_diff
from forkdeck.playback.timeline import Timeline
from forkdeck.store.hub import Hub, is_urgent

SPEEDS = (0.25, 32.0)
"""Slowest and fastest replay."""

IDLE_MS = 2_000
"""Gaps longer than this are idle time."""

IDLE_SHOWN_MS = 500
"""What an idle gap is cut to."""

_TICK_S = 1 / 30
_FOLD_EVENTS = 400  # about 2 ms: no key waits longer for the folding
_RECORDED = "recorded: this is a replay; it shows what happened and changes nothing"


class _NoSink:
    """A replay logs nothing."""

    @property
    def trouble(self) -> str | None:
        return None

    @property
    def full(self) -> bool:
        return False

    def put(self, event: Event) -> None:
        pass

    async def sync(self) -> None:
        pass

    async def close(self) -> None:
        pass


class ReplayDeck:
    """A recorded session; implements `Deck` and, by itself, its `Transport`.

    Made by `open` inside a running event loop. It stands paused behind the first event.
    """

    def __init__(
        self, events: Sequence[Event], *, clock: Clock, title: str, directory: Path | None
    ) -> None:
        self.title = title
        """What is replayed, for the header."""
        self._timeline = Timeline(events)
        self._clock = clock
        self._directory = directory
        self._hub = Hub(sink=_NoSink(), clock=clock)
        self._position = 0
        self._now_ms = 0.0
        self._speed = 1.0
        self._skip_idle = True
        self._wanted: int | None = None
        self._player: asyncio.Task[None] | None = None
        self._folder: asyncio.Task[None] | None = None
        self._stopping: set[asyncio.Task[None]] = set()
        self._files: ThreadPoolExecutor | None = None
        self._closed = False

    @classmethod
    def open(
        cls,
        events: Sequence[Event],
        *,
        clock: Clock,
        title: str,
        directory: Path | None = None,
    ) -> ReplayDeck:
        """Open a recording; the first state is there at once, the rest is folded meanwhile.

        Args:
            events: The recording, in order.
            clock: Time for playing.
            title: What is replayed, for the header.
            directory: The session's directory, for patches beside the log.
        """
        deck = cls(events, clock=clock, title=title, directory=directory)
        deck._go_to(min(1, len(events)))
        deck._folder = asyncio.get_running_loop().create_task(deck._fold_all(), name="replay fold")
        return deck

    # --- the deck ---

    @property
    def state(self) -> DeckState:
        """The state at the replay's position."""
        return self._hub.state

    @property
    def capabilities(self) -> Capabilities:
        """Nothing live, no worktrees; recorded."""
        return Capabilities(live=False, worktrees=False, recorded=True)

    @property
    def transport(self) -> ReplayDeck:
        """The transport keys."""
        return self

    def now_ms(self) -> int:
        """Return the position in milliseconds of the recording."""
        return int(self._now_ms)

    def subscribe(self, wake: Callable[[bool], None]) -> Callable[[], None]:
        """Call `wake(urgent)` after every change; returns how to stop that."""
        return self._hub.subscribe(wake)

    async def submit(self, intent: Intent) -> IntentResult:
        """Refuse: a recording changes nothing."""
        return IntentResult(ok=False, text=_RECORDED)

    async def diff(self, handle: str) -> WorkDiff:
        """Return a fork's saved changes, from the patch beside the log.

        Raises:
            WorktreeError: The recording does not hold them.
        """
        fork = self.state.forks.get(handle)
        if fork is None:
            raise WorktreeError(f"there is no fork {handle} at this point of the recording")
        if self._files is None:
            self._files = ThreadPoolExecutor(1, "replay-files")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._files, recorded_diff, self._directory, fork)

    async def complete_path(self, prefix: str, limit: int = 20) -> Sequence[str]:
        """Return nothing: a recording has no project."""
        return ()

    async def close(self) -> None:
        """Stop playing and folding. Safe to call twice."""
        self._closed = True
        for task in (self._player, self._folder, *self._stopping):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait((task,))
        self._player = self._folder = None
        if self._files is not None:
            self._files.shutdown(wait=False)
            self._files = None
        await self._hub.close()

    @property
    def final_state(self) -> DeckState:
        """The newest state folded so far; the recording's last one once `folded` returned."""
        return self._timeline.newest

    async def folded(self) -> None:
        """Return when the whole recording is folded; cancelling the waiter harms nothing."""
        if self._folder is not None:
            await asyncio.wait((self._folder,))

    # --- the transport ---

    @property
    def facts(self) -> PlaybackFacts:
        """Where the replay is."""
        return PlaybackFacts(
            playing=self._player is not None,
            speed=self._speed,
            position_ms=self.now_ms(),
            duration_ms=self._timeline.duration_ms,
            event=self._position,
            events=len(self._timeline),
            skip_idle=self._skip_idle,
        )

    def play(self) -> None:
        """Go on from here; at the end, start again from the beginning."""
        if self._player is not None or self._closed or not len(self._timeline):
            return
        if self._position >= len(self._timeline):
            self._seek(min(1, len(self._timeline)))
        task = asyncio.get_running_loop().create_task(self._play(), name="replay play")
        self._player = task
        self._hub.touch()

    def pause(self) -> None:
        """Stop here."""
        if self._player is not None:
            self._player.cancel()
            self._stopping.add(self._player)
            self._player.add_done_callback(self._stopping.discard)
            self._player = None
            self._hub.touch()

    def step(self, events: int) -> None:
        """Go `events` forward (or back when negative) and pause."""
        self.pause()
        start = self._position if self._wanted is None else self._wanted
        self._seek(start + events)

    def seek_ms(self, position_ms: int) -> None:
        """Go to a time; clamped to the recording. Playing goes on from there."""
        time_ms = max(0, min(position_ms, self._timeline.duration_ms))
        self._seek(self._timeline.position_at(time_ms), time_ms)

    def seek_next(self, what: Literal["owed", "error", "fork", "turn"], back: bool = False) -> bool:
        """Go to the next such event and pause; False when there is none."""
        start = self._position if self._wanted is None else self._wanted
        found = self._timeline.find(start, lambda event: is_landmark(event, what), back=back)
        if found is None:
            return False
        self.pause()
        self._seek(found)
        return True

    def set_speed(self, speed: float) -> None:
        """Set the speed, 0.25 to 32; anything else is moved to the nearer end."""
        slowest, fastest = SPEEDS
        self._speed = max(slowest, min(speed, fastest))
        self._hub.touch()

    def set_skip_idle(self, on: bool) -> None:
        """Cut gaps of more than 2 s to 0.5 s, or play them in full."""
        self._skip_idle = on
        self._hub.touch()

    # --- moving ---

    def _seek(self, position: int, time_ms: float | None = None) -> None:
        position = max(min(1, len(self._timeline)), min(position, len(self._timeline)))
        if self._timeline.near(position, self._position):
            self._wanted = None
            self._go_to(position, time_ms)
        else:
            # Not folded that far yet: the folding goes there and shows it.
            self._wanted = position
            self._now_ms = float(self._time_of(position) if time_ms is None else time_ms)
            self._hub.touch()

    def _go_to(self, position: int, time_ms: float | None = None) -> None:
        state = self._timeline.state_at(position, (self._position, self._hub.state))
        self._position = position
        self._now_ms = float(self._time_of(position) if time_ms is None else time_ms)
        self._show(state)

    def _show(self, state: DeckState, *, urgent: bool = True) -> None:
        if state is self._hub.state:
            self._hub.touch(urgent=urgent)
        else:
            self._hub.show(state, urgent=urgent)

    def _time_of(self, position: int) -> int:
        return self._timeline.times_ms[position - 1] if position > 0 else 0

    async def _fold_all(self) -> None:
        while self._timeline.fold_some(_FOLD_EVENTS):
            self._reach()
            await asyncio.sleep(0)
        self._reach()
        self._hub.touch(urgent=False)

    def _reach(self) -> None:
        wanted = self._wanted
        if wanted is not None and self._timeline.near(wanted, self._position):
            self._wanted = None
            self._go_to(wanted, self._now_ms)

    async def _play(self) -> None:
        last_ms = self._clock.monotonic_ms()
        while self._position < len(self._timeline) or self._wanted is not None:
            await self._clock.sleep(_TICK_S)
            now_ms = self._clock.monotonic_ms()
            if self._wanted is None:
                self._advance((now_ms - last_ms) * self._speed)
            last_ms = now_ms
        self._player = None
        self._hub.touch()

    def _advance(self, budget_ms: float) -> None:
        """Let `budget_ms` of playing time pass, and show what happens in it."""
        times, position, now_ms = self._timeline.times_ms, self._position, self._now_ms
        while position < len(times):
            rate = self._rate(position)
            needed_ms = max(times[position] - now_ms, 0) / rate
            if needed_ms > budget_ms:
                now_ms += budget_ms * rate
                break
            budget_ms -= needed_ms
            now_ms = max(now_ms, float(times[position]))
            position += 1
        passed = self._timeline.events[self._position : position]
        state = self._timeline.state_at(position, (self._position, self._hub.state))
        self._position, self._now_ms = position, now_ms
        if passed:
            self._show(state, urgent=any(map(is_urgent, passed)))
        else:
            self._hub.touch(urgent=False)

    def _rate(self, position: int) -> float:
        """How much faster than real time the gap before an event passes."""
        gap_ms = self._timeline.times_ms[position] - self._time_of(position)
        return gap_ms / IDLE_SHOWN_MS if self._skip_idle and gap_ms > IDLE_MS else 1.0
