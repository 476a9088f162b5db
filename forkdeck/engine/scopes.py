"""What a limit counts: one run, its batch, or the whole session, and how much of it is used.

Pure looks at the folded state, called by the purse before every step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING

from forkdeck.store.selectors import total_cost, total_usage

if TYPE_CHECKING:
    from forkdeck.config.settings import Settings
    from forkdeck.engine.run import Run
    from forkdeck.model.state import DeckState, ForkState
    from forkdeck.model.usage import Usage


@dataclass(frozen=True)
class Limits:
    """Limits of one run, batch or session; None means no limit.

    Attributes:
        max_turns: Steps.
        timeout_s: Seconds from its start, waits included.
        budget_usd: Money, all requests together.
        budget_tokens: Input, output and cache writes together; cache reads do not count.
    """

    max_turns: int | None = None
    timeout_s: float | None = None
    budget_usd: Decimal | None = None
    budget_tokens: int | None = None


NO_LIMITS = Limits()
"""Nothing is limited."""


@dataclass(frozen=True)
class TimeLeft:
    """What is left of a time limit.

    Attributes:
        limit: Its name, such as ``batch time``.
        whose: Whose it is, as ``batch's``.
        timeout_s: The whole limit.
        left_ms: Until it is reached; not above zero when it was.
        mark_ms: Until 80 % of it is used, likewise.
    """

    limit: str
    whose: str
    timeout_s: float
    left_ms: int
    mark_ms: int


@dataclass(frozen=True)
class Scope:
    """What some limits count, and what is used of them.

    Attributes:
        kind: ``run``, ``batch`` or ``session``.
        limits: The limits.
        runs: Ids of the runs that are counted; None: all.
        turns: Steps begun.
        elapsed_ms: Time since its start.
        usd: Money spent.
        tokens: Tokens used, as `counted_tokens` counts them.
    """

    kind: str
    limits: Limits
    runs: frozenset[str] | None
    turns: int
    elapsed_ms: int
    usd: Decimal
    tokens: int

    def named(self, limit: str) -> str:
        """Return the name of one of its limits, such as ``turns`` or ``batch turns``."""
        return limit if self.kind == "run" else f"{self.kind} {limit}"

    def counts(self, run: str) -> bool:
        """Tell whether a run is counted here."""
        return self.runs is None or run in self.runs

    def reached(self) -> str:
        """Return ``turns``, ``time`` or ``tokens``, the first that is used up; or nothing."""
        limits = self.limits
        if limits.max_turns is not None and self.turns >= limits.max_turns:
            return "turns"
        if limits.timeout_s is not None and self.elapsed_ms >= limits.timeout_s * 1000:
            return "time"
        if limits.budget_tokens is not None and self.tokens >= limits.budget_tokens:
            return "tokens"
        return ""

    def time(self) -> TimeLeft | None:
        """Return what is left of its time; None when that has no limit."""
        timeout_s = self.limits.timeout_s
        if timeout_s is None:
            return None
        return TimeLeft(
            limit=self.named("time"),
            whose={"run": "fork's", "batch": "batch's"}.get(self.kind, "session's"),
            timeout_s=timeout_s,
            left_ms=ceil(timeout_s * 1000) - self.elapsed_ms,
            mark_ms=ceil(timeout_s * 800) - self.elapsed_ms,
        )

    def shares(self, beginning: int = 0) -> Iterable[tuple[str, str, Decimal]]:
        """Yield (name, the limit in words, used share) of each limit there is.

        Args:
            beginning: Steps about to begin, counted as begun.
        """
        limits = self.limits
        of = {"batch": " of the batch", "session": " of the session"}.get(self.kind, "")
        if limits.max_turns:
            share = Decimal(self.turns + beginning) / limits.max_turns
            yield self.named("turns"), f"{limits.max_turns} turns{of}", share
        if limits.timeout_s:
            share = Decimal(self.elapsed_ms) / 1000 / Decimal(str(limits.timeout_s))
            yield self.named("time"), f"{limits.timeout_s:g} seconds{of}", share
        if limits.budget_usd:
            share = self.usd / limits.budget_usd
            yield self.named("budget"), f"${limits.budget_usd}{of}", share
        if limits.budget_tokens:
            share = Decimal(self.tokens) / limits.budget_tokens
            yield self.named("tokens"), f"{limits.budget_tokens:,} tokens{of}", share


def counted_tokens(usage: Usage) -> int:
    """Return the tokens that budgets count: fresh input, output, cache writes."""
    written = usage.cache_creation_input_tokens or 0
    return usage.input_tokens + usage.output_tokens + written


def fork_limits(fork: ForkState, usd: Decimal = Decimal(0), tokens: int = 0) -> Limits:
    """Return the limits of a fork; a resumed one has its budgets on top of what it had used."""
    money, most = fork.budget_usd, fork.budget_tokens
    return Limits(
        fork.max_turns,
        fork.timeout_s,
        None if money is None else usd + Decimal(money),
        None if most is None else tokens + most,
    )


def batch_limits(settings: Settings) -> Limits:
    """Return the limits that the settings give every batch."""
    forks = settings.forks
    return Limits(
        forks.batch_max_turns,
        forks.batch_timeout_s,
        forks.batch_budget_usd,
        forks.batch_budget_tokens,
    )


def session_limits(settings: Settings, state: DeckState) -> Limits:
    """Return the session's limits; its money is what the person set last."""
    session = settings.session
    return Limits(
        session.max_turns, session.timeout_s, state.session.budget_usd, session.budget_tokens
    )


def scopes_of(run: Run, state: DeckState, settings: Settings, now_ms: int) -> list[Scope]:
    """Return what counts for the next step of `run`, the narrowest first."""
    found: list[Scope] = []
    own = state.runs.get(run.run)
    if not run.is_parent:
        found.append(
            Scope(
                "run",
                run.limits,
                frozenset((run.run,)),
                run.steps,
                now_ms - run.started_ms,
                own.cost.usd if own else Decimal(0),
                counted_tokens(own.usage) if own else 0,
            )
        )
    batch = state.batches.get(run.batch or "")
    limits = batch_limits(settings)
    # A fork that goes on after its batch was over is a wish of its own.
    if batch is not None and not batch.ended and limits != NO_LIMITS:
        runs = [state.runs[handle] for handle in batch.handles if handle in state.runs]
        found.append(
            Scope(
                "batch",
                limits,
                frozenset(batch.handles),
                sum(each.counters.turns for each in runs),
                now_ms - batch.admitted_at_ms,
                sum((each.cost.usd for each in runs), Decimal(0)),
                sum(counted_tokens(each.usage) for each in runs),
            )
        )
    found.append(session_scope(state, settings, now_ms))
    return found


def session_scope(state: DeckState, settings: Settings, now_ms: int) -> Scope:
    """Return what the session's limits count."""
    return Scope(
        "session",
        session_limits(settings, state),
        None,
        sum(each.counters.turns for each in state.runs.values()),
        now_ms,
        total_cost(state).usd,
        counted_tokens(total_usage(state)),
    )
