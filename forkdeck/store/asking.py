"""Which open requests concern a run: its own, and the plan of a launch it is part of.

Pure functions over the folded state; used by cards, by the board and by the keys that answer.
"""

from __future__ import annotations

from forkdeck.model.state import Ask, DeckState


def plan_ask(state: DeckState, handle: str) -> Ask | None:
    """Return the open question about the launch that a planned fork is part of."""
    fork = state.forks.get(handle)
    return None if fork is None or fork.settled else _about(state, handle)


def answerable_ask(state: DeckState, run: str) -> Ask | None:
    """Return the request that the answer keys are for on a run, or None.

    A fork that was left out of a plan still stands for that plan while it is asked about.
    """
    return shown_ask(state, run) or _about(state, run)


def asks_of(state: DeckState, run: str) -> list[Ask]:
    """Return the open requests to show with a run, oldest first."""
    found = [ask for ask in state.asks if ask.run == run]
    plan = plan_ask(state, run) if state.asks else None
    return [*found, plan] if plan is not None and plan not in found else found


def shown_ask(state: DeckState, run: str) -> Ask | None:
    """Return the request that an answer on a run is for, or None."""
    found = asks_of(state, run) if state.asks else []
    return found[0] if found else None


def _about(state: DeckState, handle: str) -> Ask | None:
    """Return the open question about a launch that names a fork, left out of it or not."""
    for ask in state.asks:
        plan = ask.event.plan
        if plan is not None and any(each.handle == handle for each in plan.forks):
            return ask
    return None
