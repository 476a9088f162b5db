"""Questions about a state that more than one face asks. Pure functions.

Called by the user interface, the plain faces and the engine. What is not known is None here
and a dash on the screen; it is never zero.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from forkdeck.model.ids import PARENT
from forkdeck.model.state import Ask, DeckState, ForkState, RunState
from forkdeck.model.usage import NO_COST, Cost, Usage
from forkdeck.store.changes import streamed_text

ATTENTION = (
    "ASK", "FAIL", "SLOW", "PART", "INTR", "NEW", "WAIT", "RUN", "START", "STOP", "SAVE", "QUE",
    "PAUSE", "PLAN", "DONE", "ABRT",
)  # fmt: skip
"""Badge words, what needs the person first."""

_RANK = {word: rank for rank, word in enumerate(ATTENTION)}
_SETTLED_RANK = len(ATTENTION)


class Activity(msgspec.Struct, frozen=True):
    """What a run is doing, in a verb and its argument; `since_ms` is None when not known."""

    verb: str
    argument: str = ""
    since_ms: int | None = None


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a run's footer."""

    age_ms: int | None
    """A fork's time since it was started (or queued), a parent's since its turn began."""
    tools: int
    cost: Cost
    cost_known: bool
    """Whether `cost` is the whole cost and something was reported at all."""
    cache_share: float | None


def badge(state: DeckState, handle: str) -> str:
    """Return a fork's state word.

    NEW for a DONE nobody has read, ASK while it asks, SLOW while it makes no headway.
    """
    fork = state.forks.get(handle)
    if fork is None:
        return ""
    if fork.status == "DONE" and fork.owed:
        return "NEW"
    if not fork.settled and open_ask(state, handle) is not None:
        return "ASK"
    if fork.slow is not None and not fork.settled and fork.status not in ("STOP", "SAVE"):
        return "SLOW"
    return fork.status


def attention_order(state: DeckState) -> list[str]:
    """Return all handles, what needs the person first; of one kind, the oldest first."""

    def key(fork: ForkState) -> tuple[int, int]:
        rank = _SETTLED_RANK if fork.settled and not fork.owed else _RANK[badge(state, fork.handle)]
        return (rank, fork.owed_at_ms or 0)

    return [fork.handle for fork in sorted(state.forks.values(), key=key)]


def counts(state: DeckState) -> list[tuple[str, int]]:
    """Return how many forks show each badge word, in attention order, without zeros."""
    found: dict[str, int] = {}
    for handle in state.forks:
        word = badge(state, handle)
        found[word] = found.get(word, 0) + 1
    return [(word, found[word]) for word in ATTENTION if word in found]


def owed(state: DeckState) -> list[str]:
    """Return the handles that owe the person something, oldest first."""
    forks = [fork for fork in state.forks.values() if fork.owed]
    return [fork.handle for fork in sorted(forks, key=lambda fork: fork.owed_at_ms or 0)]


def living(state: DeckState) -> list[str]:
    """Return the handles of forks that are not over, in order of admission."""
    return [fork.handle for fork in state.forks.values() if not fork.settled]


def total_cost(state: DeckState) -> Cost:
    """Return what the session cost: the parent and every fork, each once."""
    return sum((run.cost for run in state.runs.values()), NO_COST)


def total_usage(state: DeckState) -> Usage:
    """Return the session's tokens: the parent and every fork, each once."""
    return sum((run.usage for run in state.runs.values()), Usage())


def saved_usd(state: DeckState) -> Decimal | None:
    """Return what the cache saved in US dollars; None when nothing is known of it."""
    known = [
        run.cache.saved_usd
        for run in state.runs.values()
        if run.cache is not None and run.cache.saved_usd is not None
    ]
    return sum(known, Decimal(0)) if known else None


def cache_share(state: DeckState) -> float | None:
    """Return the part of all prompts that was read from the cache, 0 to 1.

    Runs whose endpoint told nothing of a cache are left out; None when all are.
    """
    told = [run.usage for run in state.runs.values() if run.usage.cache_share is not None]
    return sum(told, Usage()).cache_share


def activity(state: DeckState, handle: str) -> Activity:
    """Return what a run (a fork, or the parent) is doing now."""
    run = state.runs.get(handle)
    fork = state.forks.get(handle)
    if fork is not None and fork.outcome is not None:
        return Activity(fork.outcome, fork.reason, fork.ended_at_ms)
    ask = open_ask(state, handle)
    if ask is not None:
        return Activity("asks", f"{ask.event.tool} {ask.event.argument}".strip(), ask.at_ms)
    if fork is not None and fork.status in ("STOP", "SAVE", "PAUSE"):
        return Activity({"STOP": "stops", "SAVE": "saves", "PAUSE": "paused"}[fork.status])
    if fork is not None and fork.slow is not None:
        return Activity("slow", fork.slow.what, fork.slow.since_ms)
    if run is not None:
        busy = _busy(run)
        if busy is not None:
            return busy
    if fork is None:
        return Activity("idle")
    if fork.status in ("QUE", "PLAN"):
        return Activity("queued", "", fork.queued_at_ms)
    return Activity("starts" if fork.status == "START" else "works", "", fork.started_at_ms)


def _busy(run: RunState) -> Activity | None:
    if run.tools:
        tool = run.tools[-1]
        return Activity(tool.name, tool.argument, tool.started_at_ms)
    if run.delay is not None:
        return Activity("waits", run.delay.reason)
    if run.stream:
        chunk = run.stream[-1]
        if chunk.kind == "call":
            return Activity("calls", chunk.name)
        return Activity("thinks" if chunk.kind == "thinking" else "writes")
    if run.requested:
        return Activity("asks model")
    if run.turn.running:
        return Activity("works", "", run.turn.started_at_ms)
    return None


def metrics(state: DeckState, handle: str, now_ms: int) -> Metrics:
    """Return the figures of a run's footer at the session time `now_ms`."""
    run = state.runs.get(handle) or RunState(run=handle)
    fork = state.forks.get(handle)
    since: int | None = None
    until = now_ms
    if fork is not None:
        since = fork.queued_at_ms if fork.started_at_ms is None else fork.started_at_ms
        until = now_ms if fork.ended_at_ms is None else fork.ended_at_ms
    elif run.turn.running:
        since = run.turn.started_at_ms
    spent = run.usage.prompt_tokens + run.usage.output_tokens > 0 or run.cost.usd > 0
    return Metrics(
        age_ms=None if since is None else max(until - since, 0),
        tools=run.counters.tool_calls,
        cost=run.cost,
        cost_known=run.cost.known and spent,
        cache_share=run.usage.cache_share,
    )


def open_ask(state: DeckState, run: str) -> Ask | None:
    """Return the oldest open request of a run."""
    return next((ask for ask in state.asks if ask.run == run), None)


def pending_deliveries(state: DeckState, run: str = PARENT) -> list[str]:
    """Return ended forks of `run` whose reports it still has to get, in finish order.

    Forks of a call that still waits are left out: its result carries them. A call whose turn is
    over, as after a crash, waits no more.
    """
    waits = state.runs[run].turn.running if run in state.runs else False
    found: list[ForkState] = []
    for batch in state.batches.values():
        if batch.run != run or (waits and not batch.background and batch.tool != "user"):
            continue
        if batch.planned:
            # Nobody said yes to its plan, so nothing of it ran.
            continue
        forks = (state.forks.get(handle) for handle in batch.handles)
        found += [
            fork
            for fork in forks
            if fork is not None and fork.settled and not fork.delivered and not fork.private
        ]
    found.sort(key=lambda fork: fork.ended_at_ms or 0)
    return [fork.handle for fork in found]


def partial_text(run_state: RunState) -> str:
    """Return what a run said last: the answer being streamed, else its last text."""
    text = streamed_text(run_state.stream)
    if text.strip():
        return text
    transcript = run_state.transcript
    for index in range(len(transcript) - 1, -1, -1):
        item = transcript[index]
        if item.kind in ("text", "cut", "report") and item.text.strip():
            return item.text
    return ""
