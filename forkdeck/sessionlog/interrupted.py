"""What a session that was not ended in good order still needs, before it can go on.

Called by whoever opens a saved session again, on the state folded from its log. Returns events
to append; nothing is written here.
"""

from __future__ import annotations

from forkdeck.model.events import Event
from forkdeck.model.events.fork import BatchEnded, ForkEnded
from forkdeck.model.events.turn import TurnEnded
from forkdeck.model.ids import PARENT
from forkdeck.model.state import DeckState
from forkdeck.store.changes import run_of
from forkdeck.store.selectors import living, partial_text

REASON = "ForkDeck ended while this ran"
"""Why such forks and turns are interrupted, in the words shown."""


def closing_events(state: DeckState) -> list[Event]:
    """Return the events that end what a dead process left running.

    Every living fork ends ``interrupted`` with its partial text as its report, batches whose
    forks are all over end, and so does a running turn of the parent. Not yet numbered.
    """
    events: list[Event] = [
        ForkEnded(
            run=handle,
            outcome="interrupted",
            reason=REASON,
            report=partial_text(run_of(state, handle)),
            remedy="Resume it with r, or start the task again.",
        )
        for handle in living(state)
    ]
    events += [
        BatchEnded(run=batch.run, batch=batch.batch)
        for batch in state.batches.values()
        if not batch.ended
    ]
    turn = state.parent.turn
    if turn.running:
        events.append(TurnEnded(run=PARENT, turn=turn.turn, outcome="interrupted", reason=REASON))
    return events
