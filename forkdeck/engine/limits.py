"""The purse: whether a run's next step may be done, what it may cost, and whether it is the last.

The run loop asks before every step. Money and tokens that a running request may still use are
set aside, and so is what every living fork needs for its last step, which only reports: eight
forks cannot each spend the same last dollar.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from forkdeck.engine.scopes import (
    NO_LIMITS,
    Limits,
    Scope,
    batch_limits,
    counted_tokens,
    scopes_of,
    session_scope,
)
from forkdeck.errors import AdmissionRefused, ForkDeckError

if TYPE_CHECKING:
    from forkdeck.config.settings import Settings
    from forkdeck.engine.plans import BatchPlan, ForkPlan
    from forkdeck.engine.run import Run
    from forkdeck.model.ports import PriceBook
    from forkdeck.store.hub import Hub

__all__ = ["NO_LIMITS", "LimitReached", "Limits", "Neared", "Purse", "StepPlan", "counted_tokens"]

SMALLEST_ANSWER_TOKENS = 256
"""A step whose answer could not even have this many tokens is not started."""

REPORT_TOKENS = 2_000
"""Answer tokens kept in reserve for the last step, which only reports."""

DIRECTIVE_TOKENS = 600
"""Rough size of what a fork's first request adds to its seed."""

SOFT_MARK = Decimal("0.8")
"""Share of a limit at which the run and the person are told."""

PRICE_REMEDY = 'give the price as [prices."MODEL"] in config.toml and start forkdeck again.'
"""What to do about a budget without a price."""

_CENT = Decimal("0.01")


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


@dataclass(frozen=True)
class Neared:
    """A limit of which 80 % is used.

    Attributes:
        limit: Its name.
        words: The limit in words.
        share: The used part, 0 to 1.
        session: It is one of the whole session.
    """

    limit: str
    words: str
    share: float
    session: bool


class Purse:
    """Turns, time, tokens and money of runs, batches and the session.

    Args:
        hub: Where what is used stands.
        prices: Prices per token.
        settings: The limits of batches and of the session.
    """

    def __init__(self, hub: Hub, prices: PriceBook, settings: Settings) -> None:
        self._hub = hub
        self._prices = prices
        self._settings = settings
        self._reserved: dict[str, tuple[Decimal, int]] = {}
        self._held: dict[str, Decimal] = {}
        self._neared: set[str] = set()

    # --- steps ----------------------------------------------------------------------------

    def plan(self, run: Run, last: str = "") -> StepPlan:
        """Say how the next step of `run` may be done, and set its cost aside.

        Args:
            run: The run; its messages already hold what will be sent.
            last: A limit already reached: the step only reports.

        Raises:
            LimitReached: Not even a short report may be written any more.
        """
        scopes = self._scopes(run)
        last = last or run.stop or self._reached(run, scopes)
        wanted = REPORT_TOKENS if last else run.facts.max_output_tokens
        if not last:
            last, wanted = self._within_tokens(run, scopes, wanted)
        price = self._prices.per_token_usd(run.head.model)
        left, narrow = self._left(run, scopes)
        if price is None and narrow is not None:
            raise _unpriced(narrow, run.head.model)
        if price is None or left is None or narrow is None:
            self._reserved[run.run] = (Decimal(0), wanted)
            return StepPlan(wanted, last)
        prompt = self._prompt_usd(run, price)
        payable = int((left - prompt) / price[3]) if price[3] else wanted
        reserve = 0 if run.is_parent or last else REPORT_TOKENS
        if payable - reserve < SMALLEST_ANSWER_TOKENS and not last and not run.is_parent:
            last, wanted, reserve = narrow.named("budget"), REPORT_TOKENS, 0
        if payable < SMALLEST_ANSWER_TOKENS:
            raise _broke(narrow)
        tokens = max(SMALLEST_ANSWER_TOKENS, min(wanted, payable - reserve))
        cost = prompt + price[3] * tokens
        self._reserved[run.run] = (cost, tokens)
        return StepPlan(tokens, last, cost)

    def release(self, run: str) -> None:
        """Give back what a step set aside; what it really used stands in the state."""
        self._reserved.pop(run, None)

    def neared(self, run: Run) -> list[Neared]:
        """Return the limits of which `run` or the session used 80 % since it was asked last."""
        found: list[Neared] = []
        for scope in self._scopes(run):
            known = self._neared if scope.kind == "session" else run.neared
            for limit, words, share in scope.shares():
                if share >= SOFT_MARK and words not in known:
                    known.add(words)
                    whole = scope.kind == "session"
                    found.append(Neared(limit, words, min(1.0, float(share)), whole))
        return found

    def session_exhausted(self) -> bool:
        """Whether the session's limits let no turn begin."""
        scope = session_scope(self._hub.state, self._settings, self._hub.now_ms())
        budget = scope.limits.budget_usd
        return bool(scope.reached()) or (budget is not None and scope.usd >= budget)

    # --- launches -------------------------------------------------------------------------

    def admit(self, batches: Sequence[BatchPlan]) -> None:
        """Set aside what every fork of a launch needs to begin and to report.

        Raises:
            AdmissionRefused: A budget cannot pay that, or cannot be kept because a model's price
                is unknown; nothing is set aside.
        """
        plans = [plan for batch in batches for plan in batch.plans]
        needs = {plan.handle: self._need(plan) for plan in plans}
        limit = batch_limits(self._settings).budget_usd
        self._check_priced(plans, needs, limit)
        for batch in batches:
            need = _total(needs[plan.handle] for plan in batch.plans)
            if limit is not None and need > limit:
                raise _too_dear(len(batch.plans), need, limit, "of a batch")
        budget = self._hub.state.session.budget_usd
        if budget is not None and needs:
            scope = session_scope(self._hub.state, self._settings, self._hub.now_ms())
            left = budget - scope.usd - self._aside("", scope)
            if _total(needs.values()) > left:
                raise _too_dear(len(needs), _total(needs.values()), left, "left in this session")
        self._held.update({handle: need for handle, need in needs.items() if need is not None})

    def settled(self, handle: str) -> None:
        """Give back what was held for a fork that is over."""
        self._held.pop(handle, None)
        self._reserved.pop(handle, None)

    # --- inside ---------------------------------------------------------------------------

    def _check_priced(
        self,
        plans: Sequence[ForkPlan],
        needs: Mapping[str, Decimal | None],
        limit: Decimal | None,
    ) -> None:
        """Raise AdmissionRefused for a fork under a budget that nothing could keep."""
        shared = limit is not None or self._hub.state.session.budget_usd is not None
        for plan in plans:
            if needs[plan.handle] is None and (shared or plan.limits.budget_usd is not None):
                raise AdmissionRefused(
                    f"budget: it cannot be kept, because no price of {plan.head.model} is known.",
                    "Leave the budget out, or ask the person to " + PRICE_REMEDY,
                )

    def _scopes(self, run: Run) -> list[Scope]:
        return scopes_of(run, self._hub.state, self._settings, self._hub.now_ms())

    def _reached(self, run: Run, scopes: Sequence[Scope]) -> str:
        """Return the limit that makes the next step the last one.

        Raises:
            LimitReached: It is not the run's own, and there is nothing to report yet.
        """
        for scope in scopes:
            limit = scope.reached()
            if not limit:
                continue
            if scope.kind != "run" and (run.is_parent or not run.steps):
                what = f"The {limit} limit is reached; no other step is started."
                remedy = "Raise it in the settings." if scope.kind == "session" else ""
                raise LimitReached(limit, what, remedy)
            return limit
        return ""

    def _within_tokens(self, run: Run, scopes: Sequence[Scope], wanted: int) -> tuple[str, int]:
        """Lower an answer's bound to what the token budgets leave."""
        for scope in scopes:
            budget = scope.limits.budget_tokens
            if budget is None:
                continue
            others = sum(
                tokens for name, (_, tokens) in self._reserved.items()
                if name != run.run and scope.counts(name)
            )  # fmt: skip
            left = budget - scope.tokens - others - _new_tokens(run)
            reserve = 0 if run.is_parent else min(REPORT_TOKENS, budget // 4)
            if left - reserve < SMALLEST_ANSWER_TOKENS:
                if run.is_parent:
                    limit = scope.named("tokens")
                    what = f"The {limit} limit of {budget:,} cannot take another step."
                    raise LimitReached(limit, what, "Raise it in the settings.")
                return scope.named("tokens"), REPORT_TOKENS
            wanted = min(wanted, left - reserve)
        return "", wanted

    def _left(self, run: Run, scopes: Sequence[Scope]) -> tuple[Decimal | None, Scope | None]:
        """Return the money this run may still spend and whose limit that is; None without one."""
        left: Decimal | None = None
        narrow: Scope | None = None
        for scope in scopes:
            budget = scope.limits.budget_usd
            if budget is None:
                continue
            here = budget - scope.usd - self._aside(run.run, scope)
            if left is None or here < left:
                left, narrow = here, scope
        return left, narrow

    def _aside(self, run: str, scope: Scope) -> Decimal:
        """Return what is set aside within `scope` for runs other than `run`."""
        total = Decimal(0)
        for name in self._held.keys() | self._reserved.keys():
            if name == run or not scope.counts(name):
                continue
            asked = self._reserved.get(name, (Decimal(0), 0))[0]
            total += max(asked, self._held.get(name, Decimal(0)))
        return total

    def _need(self, plan: ForkPlan) -> Decimal | None:
        """Price a fork's first step with a report for an answer; None without a price."""
        price = self._prices.per_token_usd(plan.head.model)
        if price is None:
            return None
        _, write, read, output = price
        warmth = plan.warmth
        prefix = warmth.tokens or plan.head.estimated_tokens
        first = prefix * (write if warmth.cold else read) + DIRECTIVE_TOKENS * write
        return first + REPORT_TOKENS * output

    def _prompt_usd(self, run: Run, price: tuple[Decimal, Decimal, Decimal, Decimal]) -> Decimal:
        """Price the next prompt: what is known to be cached is read, the rest is written."""
        _, write, read, _ = price
        known = run.warmth.tokens or 0
        cached = 0 if run.warmth.cold else known
        total = max(known, run.estimated_tokens())
        return read * cached + write * (total - cached)


def _new_tokens(run: Run) -> int:
    """Return the rough tokens the next prompt adds to what was sent before."""
    known = 0 if run.warmth.cold else run.warmth.tokens or 0
    return max(0, run.estimated_tokens() - known)


def _total(amounts: Iterable[Decimal | None]) -> Decimal:
    return sum((each for each in amounts if each is not None), Decimal(0))


def _too_dear(count: int, need: Decimal, left: Decimal, whose: str) -> AdmissionRefused:
    cost = f"${need.quantize(_CENT)}"
    return AdmissionRefused(
        f"budget: {count} fork{'s' if count != 1 else ''} would need at least {cost} to begin and "
        f"to report, and ${max(left, Decimal(0)).quantize(_CENT)} is {whose}.",
        "Start fewer forks, or ask the person to raise the budget.",
    )


def _unpriced(scope: Scope, model: str) -> LimitReached:
    limit, budget = scope.named("budget"), scope.limits.budget_usd
    whose = {"run": "fork", "batch": "batch"}.get(scope.kind, "session")
    what = f"The {whose}'s budget of ${budget} cannot be kept: no price of {model} is known."
    if scope.kind == "session":
        return LimitReached(limit, what, f"Lift it with b and resend with r, or {PRICE_REMEDY}")
    return LimitReached(limit, what, f"The person can {PRICE_REMEDY}")


def _broke(scope: Scope) -> LimitReached:
    limit, budget = scope.named("budget"), scope.limits.budget_usd
    if scope.kind == "session":
        return LimitReached(
            limit,
            f"The session's budget of ${budget} cannot pay another step.",
            "Raise it with b, then resend with r.",
        )
    whose = "fork" if scope.kind == "run" else "batch"
    return LimitReached(limit, f"The {whose}'s budget of ${budget} cannot pay another step.")
