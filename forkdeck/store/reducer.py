"""The reducer: what an event does to the state. Pure and total.

Called by the hub for every event, live or replayed, and by tests and tools through `fold`.
Dispatches by event family; each family's function is one `match`. Any event may meet any
state, in any order: what it needs and does not find is made, and nothing is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, get_args

from msgspec.structs import replace

from forkdeck.model.events import (
    Event,
    ForkFamily,
    SessionFamily,
    StepFamily,
    ToolFamily,
    TurnFamily,
    WorkFamily,
)
from forkdeck.model.state import EMPTY, DeckState
from forkdeck.store.reduce_fork import reduce_fork
from forkdeck.store.reduce_session import reduce_session
from forkdeck.store.reduce_step import reduce_step
from forkdeck.store.reduce_tool import reduce_tool
from forkdeck.store.reduce_turn import reduce_turn
from forkdeck.store.reduce_work import reduce_work

_FAMILIES: tuple[tuple[Any, Callable[[DeckState, Any], DeckState]], ...] = (
    (SessionFamily, reduce_session),
    (TurnFamily, reduce_turn),
    (StepFamily, reduce_step),
    (ToolFamily, reduce_tool),
    (ForkFamily, reduce_fork),
    (WorkFamily, reduce_work),
)
# A dictionary instead of a chain of isinstance: this runs for every streamed piece of text.
_REDUCE: dict[type[Event], Callable[[DeckState, Any], DeckState]] = {
    kind: function for family, function in _FAMILIES for kind in get_args(family)
}


def reduce(state: DeckState, event: Event) -> DeckState:
    """Return the state after `event`.

    An event of an unknown kind changes nothing but the position. The position (`seq`, `at_ms`)
    never goes back.
    """
    function = _REDUCE.get(type(event))
    if function is not None:
        state = function(state, event)
    seq, at_ms = event.seq, event.at_ms
    if seq > state.seq or at_ms > state.at_ms:
        return replace(state, seq=max(seq, state.seq), at_ms=max(at_ms, state.at_ms))
    return state


def fold(events: Iterable[Event], state: DeckState = EMPTY) -> DeckState:
    """Return the state after all of `events`, in order."""
    for event in events:
        state = reduce(state, event)
    return state
