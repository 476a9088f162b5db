"""Limits of a run and the session's purse: what the next step may cost, and whether it is the last.

The run loop asks before every step. Money that a running request may still spend is reserved, so
that eight forks cannot each spend the same last dollar.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from forkdeck.errors import ForkDeckError
from forkdeck.store.selectors import total_cost

if TYPE_CHECKING:
    from forkdeck.engine.run import Run
    from forkdeck.model.ports import PriceBook
    from forkdeck.store.hub import Hub

SMALLEST_ANSWER_TOKENS = 256
"""A step whose answer could not even have this many tokens is not started."""

REPORT_TOKENS = 2_000
"""Answer tokens kept in reserve for the last step, which only reports."""

SOFT_MARK = Decimal("0.8")
"""Share of a limit at which the run is told."""


class LimitReached(ForkDeckError):
    """A step that must not be started. Raised by `Purse.plan`, caught by the run loop.

    Args:
        limit: Name of the limit, such as ``turns``.
        what: What happened.
        remedy: What to do.
    """

    def __init__(self, limit: str, what: str, remedy: str = "") -> None:
        super().__init__(what, remedy)
        self.limit = limit


@dataclass(frozen=True)
class Limits:
    """Limits of one run; None means no limit.

    Attributes:
        max_turns: Steps.
        timeout_s: Seconds from its start, waits included.
        budget_usd: Money, all its requests together.
        budget_tokens: Input, output and cache writes together; cache reads do not count.
    """

    max_turns: int | None = None
    timeout_s: float | None = None
    budget_usd: Decimal | None = None
    budget_tokens: int | None = None


@dataclass(frozen=True)
class StepPlan:
    """How the next step may be done.

    Attributes:
        max_tokens: Upper bound of its answer.
        last: The limit that makes it the run's last step, or an empty string.
        cost_usd: What it costs at most; None when the price is unknown.
    """

    max_tokens: int
    last: str = ""
    cost_usd: Decimal | None = None


class Purse:
    """Money of the session, with what running requests may still spend set aside.

    Args:
        hub: Where the spent money stands.
        prices: Prices per token.
    """

    def __init__(self, hub: Hub, prices: PriceBook) -> None:
        self._hub = hub
        self._prices = prices
        self._reserved: dict[str, Decimal] = {}

    def plan(self, run: Run, last: str = "") -> StepPlan:
        """Say how the next step of `run` may be done, and set its cost aside.

        Args:
            run: The run; its messages already hold what will be sent.
            last: A limit already reached: the step only reports.

        Raises:
            LimitReached: Not even a short report can be paid.
        """
        last = last or self._reached(run)
        wanted = REPORT_TOKENS if last else run.facts.max_output_tokens
        price = self._prices.per_token_usd(run.head.model)
        left = self._left(run)
        if price is None or left is None:
            return StepPlan(wanted, last)
        prompt = self._prompt_usd(run, price)
        payable = int((left - prompt) / price[3]) if price[3] else wanted
        reserve = 0 if run.is_parent or last else REPORT_TOKENS
        if payable - reserve < SMALLEST_ANSWER_TOKENS and not last and not run.is_parent:
            last, wanted, reserve = "budget", REPORT_TOKENS, 0
        if payable < SMALLEST_ANSWER_TOKENS:
            raise self._broke(run)
        tokens = max(SMALLEST_ANSWER_TOKENS, min(wanted, payable - reserve))
        cost = prompt + price[3] * tokens
        self._reserved[run.run] = cost
        return StepPlan(tokens, last, cost)

    def release(self, run: str) -> None:
        """Give back what was set aside; the real cost stands in the state."""
        self._reserved.pop(run, None)

    def soft_mark(self, run: Run) -> str:
        """Return the words for the nearest limit when 80 % of it is used, else nothing."""
        own = self._hub.state.runs.get(run.run)
        limits = run.limits
        if own is None:
            return ""
        shares: list[tuple[Decimal, str]] = []
        if limits.max_turns:
            shares.append((Decimal(run.steps) / limits.max_turns, f"{limits.max_turns} turns"))
        if limits.timeout_s:
            used = Decimal(self._hub.now_ms() - run.started_ms) / 1000
            shares.append((used / Decimal(str(limits.timeout_s)), f"{limits.timeout_s:g} seconds"))
        if limits.budget_usd:
            shares.append((own.cost.usd / limits.budget_usd, f"${limits.budget_usd}"))
        share, words = max(shares, default=(Decimal(0), ""))
        return words if share >= SOFT_MARK else ""

    def session_exhausted(self) -> bool:
        """Whether the session's budget is spent."""
        budget = self._hub.state.session.budget_usd
        return budget is not None and total_cost(self._hub.state).usd >= budget

    def _reached(self, run: Run) -> str:
        limits = run.limits
        if run.stop:
            return run.stop
        if limits.max_turns is not None and run.steps >= limits.max_turns:
            return "turns"
        elapsed_ms = self._hub.now_ms() - run.started_ms
        if limits.timeout_s is not None and elapsed_ms >= limits.timeout_s * 1000:
            return "time"
        own = self._hub.state.runs.get(run.run)
        if own is not None and limits.budget_tokens is not None:
            spent = own.usage.input_tokens + own.usage.output_tokens
            spent += own.usage.cache_creation_input_tokens or 0
            if spent >= limits.budget_tokens:
                return "tokens"
        return ""

    def _left(self, run: Run) -> Decimal | None:
        """Return the money this run may still spend, or None without a budget."""
        state = self._hub.state
        left: list[Decimal] = []
        own = state.runs.get(run.run)
        if run.limits.budget_usd is not None:
            left.append(run.limits.budget_usd - (own.cost.usd if own else Decimal(0)))
        if state.session.budget_usd is not None:
            others = sum(
                (cost for name, cost in self._reserved.items() if name != run.run), Decimal(0)
            )
            left.append(state.session.budget_usd - total_cost(state).usd - others)
        return min(left) if left else None

    def _prompt_usd(self, run: Run, price: tuple[Decimal, Decimal, Decimal, Decimal]) -> Decimal:
        """Price the next prompt: what is known to be cached is read, the rest is written."""
        _, write, read, _ = price
        known = run.warmth.tokens or 0
        total = max(known, run.estimated_tokens())
        cached = 0 if run.warmth.cold else known
        return read * cached + write * (total - cached)

    def _broke(self, run: Run) -> LimitReached:
        own = run.limits.budget_usd
        if own is not None and not run.is_parent:
            return LimitReached("budget", f"The fork's budget of ${own} cannot pay another step.")
        budget = self._hub.state.session.budget_usd
        return LimitReached(
            "session budget",
            f"The session's budget of ${budget} cannot pay another step.",
            "Raise it with b, then resend with r.",
        )
