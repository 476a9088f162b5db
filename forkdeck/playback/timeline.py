"""Events and the states between them: fold once, jump anywhere.

Owned by the replay deck. Keeps a state every `KEYFRAME_EVENTS` events; any other state is
folded from the nearest one before it. The whole is folded in small pieces while the deck is in
use. Positions count events: position n is the state after the first n events.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from forkdeck.model.events import Event
from forkdeck.model.state import EMPTY, DeckState
from forkdeck.store.reducer import reduce

KEYFRAME_EVENTS = 2_000
"""Distance of the kept states: what a seek folds at most."""


class Timeline:
    """A recording, by position and by time."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.times_ms = list(accumulate((event.at_ms for event in events), max))
        self._keyframes: list[DeckState] = [EMPTY]
        self._ahead = EMPTY
        self._folded = 0

    def __len__(self) -> int:
        return len(self.events)

    @property
    def duration_ms(self) -> int:
        """Time of the last event."""
        return self.times_ms[-1] if self.times_ms else 0

    @property
    def folded(self) -> int:
        """How many events are folded so far; behind it a seek takes longer."""
        return self._folded

    @property
    def newest(self) -> DeckState:
        """The state behind the last event that is folded."""
        return self._ahead

    def fold_some(self, count: int) -> bool:
        """Fold up to `count` further events; false when all are folded."""
        end = min(self._folded + count, len(self.events))
        state = self._ahead
        for index in range(self._folded, end):
            state = reduce(state, self.events[index])
            if (index + 1) % KEYFRAME_EVENTS == 0:
                self._keyframes.append(state)
        self._ahead, self._folded = state, end
        return end < len(self.events)

    def near(self, position: int, current: int) -> bool:
        """Tell whether the state at `position` is at hand, seen from the position `current`."""
        return position <= self._folded + KEYFRAME_EVENTS or (
            0 <= position - current <= KEYFRAME_EVENTS
        )

    def state_at(self, position: int, current: tuple[int, DeckState]) -> DeckState:
        """Return the state after `position` events, folded from the nearest state before it.

        Args:
            position: From 0 to the number of events.
            current: A (position, state) that is at hand.
        """
        start, state = current
        if start > position:
            start, state = 0, EMPTY
        if start < self._folded <= position:
            start, state = self._folded, self._ahead
        slot = min(position // KEYFRAME_EVENTS, len(self._keyframes) - 1)
        if slot * KEYFRAME_EVENTS > start:
            start, state = slot * KEYFRAME_EVENTS, self._keyframes[slot]
        for index in range(start, position):
            state = reduce(state, self.events[index])
        return state

    def position_at(self, time_ms: float) -> int:
        """Return the position at a time: behind the last event that is not later."""
        return bisect_right(self.times_ms, time_ms)

    def find(self, position: int, wanted: Callable[[Event], bool], *, back: bool) -> int | None:
        """Return the position behind the next (or the last) wanted event; None without one.

        Going back skips the event that the deck stands on.
        """
        places = range(position - 2, -1, -1) if back else range(position, len(self.events))
        return next((index + 1 for index in places if wanted(self.events[index])), None)
