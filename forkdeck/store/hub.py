"""The hub: the one door through which events become state.

The engine appends; the hub numbers and stamps the event, hands it to the log,
folds it, tells the listeners, and wakes the screens. A replay shows its states through the same
door. Runs on one event loop and never blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from forkdeck.errors import SessionError
from forkdeck.model.events import Event
from forkdeck.model.events.step import CallStreamed, TextStreamed, ThinkingStreamed
from forkdeck.model.events.tool import ToolProgressed
from forkdeck.model.events.work import WorktreeChanged
from forkdeck.model.ports import Clock, LogSink
from forkdeck.model.state import EMPTY, DeckState
from forkdeck.store.clean import cleaned
from forkdeck.store.reducer import reduce

Wake: TypeAlias = Callable[[bool], None]
"""Called with whether the change is urgent."""

_CALM = frozenset((TextStreamed, ThinkingStreamed, CallStreamed, ToolProgressed, WorktreeChanged))


def is_urgent(event: Event) -> bool:
    """Tell whether an event is a change of life, drawn at once; deltas wait for the next frame."""
    return type(event) not in _CALM


class Hub:
    """State, and the only way to change it.

    Args:
        sink: Where every event goes first.
        clock: Time of the session.
        state: What was folded from the log before, when a session goes on; numbers and times
            go on behind it.
    """

    def __init__(self, *, sink: LogSink, clock: Clock, state: DeckState = EMPTY) -> None:
        self._sink = sink
        self._clock = clock
        self._state = state
        self._seq = state.seq
        self._origin_ms = clock.monotonic_ms()
        self._base_ms = state.at_ms + 1 if state.seq else 0
        self._wakes: list[Wake] = []
        self._listeners: list[Callable[[Event], None]] = []
        self._closed = False

    @property
    def state(self) -> DeckState:
        """The state now."""
        return self._state

    @property
    def trouble(self) -> str | None:
        """Why events are unsaved at the moment, or None; nothing new may start meanwhile."""
        return self._sink.trouble

    @property
    def full(self) -> bool:
        """Whether so much is unsaved that running streams should pause."""
        return self._sink.full

    def now_ms(self) -> int:
        """Return milliseconds of the session's clock; it goes on behind the last event."""
        passed = self._clock.monotonic_ms() - self._origin_ms
        return max(self._base_ms + passed, self._state.at_ms)

    def append(self, event: Event) -> Event:
        """Take an event: stamp it (when `seq` is 0), log it, fold it, tell everyone.

        Returns:
            The stamped event.

        Raises:
            SessionError: The hub is closed.
        """
        if self._closed:
            raise SessionError(f"the session is closed; {type(event).__name__} came too late")
        if event.seq == 0:
            event = replace(event, seq=self._seq + 1, at_ms=self.now_ms())
        try:
            self._sink.put(event)
        except UnicodeEncodeError:
            # A lone surrogate, such as in a file's name, must not cost the run its event.
            event = cleaned(event)
            self._sink.put(event)
        self._seq = max(self._seq, event.seq)
        self._state = reduce(self._state, event)
        for listener in tuple(self._listeners):
            listener(event)
        self._wake(is_urgent(event))
        return event

    async def append_synced(self, event: Event) -> Event:
        """Take an event and return once it is on the disk, or the log's trouble is known."""
        event = self.append(event)
        await self._sink.sync()
        return event

    def subscribe(self, wake: Wake) -> Callable[[], None]:
        """Call `wake(urgent)` after every change; returns how to stop that."""
        self._wakes.append(wake)
        return _remover(self._wakes, wake)

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call `listener` with every stamped event, after it was folded; returns how to stop."""
        self._listeners.append(listener)
        return _remover(self._listeners, listener)

    def show(self, state: DeckState, *, urgent: bool = True) -> None:
        """Put a replayed state in place; for playback alone, nothing is logged."""
        if state is not self._state:
            self._state = state
            self._wake(urgent)

    def touch(self, *, urgent: bool = True) -> None:
        """Wake the screens without a change of state: a replay's transport moved."""
        self._wake(urgent)

    async def sync(self) -> None:
        """Return when everything appended is on the disk, or the log's trouble is known."""
        await self._sink.sync()

    async def close(self) -> None:
        """Refuse further events, write what is left and release the log; safe to call twice."""
        if not self._closed:
            self._closed = True
            await self._sink.close()

    def _wake(self, urgent: bool) -> None:
        for wake in tuple(self._wakes):
            wake(urgent)


def _remover(entries: list[Callable[..., None]], entry: Callable[..., None]) -> Callable[[], None]:
    def remove() -> None:
        if entry in entries:
            entries.remove(entry)

    return remove
