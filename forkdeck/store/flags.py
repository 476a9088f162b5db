"""What else there is to say of a fork beside its state word: slow, near a limit, unverified.

Pure functions over the folded state, for rows, tiles and headers.
"""

from __future__ import annotations

from typing import Final

from forkdeck.model.state import DeckState, ForkState, Pace, RunState
from forkdeck.model.words import SlowClock
from forkdeck.store.figures import clock, dollars, limit, money, percent
from forkdeck.store.text import one_line

_CLOCKS: Final[dict[SlowClock, str]] = {
    "silence": "silence, no byte of an answer",
    "tool": "one tool call runs long",
    "repeats": "repeats, the very same call again",
    "errors": "errors, the same one again",
}
NEAR_CONTEXT: Final = 0.95
"""From this part of its context window on a conversation should be compacted."""


def slow_clock_words(name: SlowClock) -> str:
    """Return which clock says a fork is slow, in words."""
    return _CLOCKS[name]


def slow_words(fork: ForkState, now_ms: int) -> str:
    """Return in one line which clock says a fork is slow, for how long, and on what; else empty."""
    slow = fork.slow
    if slow is None or fork.settled:
        return ""
    return f"{slow.clock} {clock(now_ms - slow.since_ms)}: {one_line(slow.what, 80)}"


def reason_words(fork: ForkState, run: RunState | None) -> str:
    """Return why a fork ended: its reason, and of a limit the figures that reached it."""
    reason = one_line(fork.reason, 400)
    if fork.status == "ABRT" and reason == "person":
        return "stopped by you"
    if fork.status != "PART" or run is None:
        return reason
    if reason == "turns" and fork.max_turns:
        # The step that reports after the last one is not one of them.
        return f"turns, {min(run.counters.turns, fork.max_turns)} of {fork.max_turns}"
    if reason == "time" and fork.timeout_s and fork.started_at_ms is not None:
        used = (fork.ended_at_ms or fork.started_at_ms) - fork.started_at_ms
        return f"time, {clock(used)} of {clock(round(fork.timeout_s * 1000))}"
    budget = dollars(fork.budget_usd)
    if reason == "budget" and budget is not None and run.cost.known:
        return f"money, {money(run.cost.usd)} of {limit(budget)}"
    return reason


def flags_of(state: DeckState, handle: str) -> list[tuple[str, bool]]:
    """Return a fork's flags as (text, warns), the most pressing first."""
    fork, run = state.forks[handle], state.runs.get(handle)
    flags: list[tuple[str, bool]] = []
    if fork.claims is not None and fork.settled and fork.claims.unverified:
        count = fork.claims.checked - fork.claims.verified
        flags.append((f"UNVERIFIED {count}", True))
    if fork.near_limit and not fork.settled:
        flags.append((f"! near {one_line(fork.near_limit, 24)}", True))
    if run is not None and run.cache is not None and run.cache.verdict == "MISS":
        flags.append(("MISS", True))
    if fork.steering and not fork.settled:
        flags.append(("STEER", False))
    if fork.private:
        flags.append(("PRIVATE", False))
    return flags


def context_words(state: DeckState) -> str:
    """Say that the parent's context is nearly full; empty while it is not, or not known."""
    run = state.parent
    window = run.head.context_tokens if run.head is not None else None
    if not window or run.context_tokens is None:
        return ""
    share = run.context_tokens / window
    if share < NEAR_CONTEXT:
        return ""
    return f"context {percent(min(1.0, share))} full: /compact makes a summary of the older part"


def pace_words(state: DeckState, *, short: bool = False) -> str:
    """Say how many requests may be out while that is fewer than usual, and why; else empty.

    Where nothing runs nothing is held back, so nothing is said.
    """
    pace = state.pace
    runs = state.parent.turn.running or not all(fork.settled for fork in state.forks.values())
    if pace is None or pace.width >= pace.most or not runs:
        return ""
    return f"{pace.width} of {pace.most} at once" if short else pace_change(pace)


def pace_change(pace: Pace) -> str:
    """Say how many requests may be out from now on, and why fewer than usual."""
    if pace.width >= pace.most:
        return f"{pace.width} requests at once again"
    why = f", after a {one_line(pace.reason, 20)}" if pace.reason else ""
    return f"{pace.width} of {pace.most} requests at once{why}"
