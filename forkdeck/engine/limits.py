"""The purse: whether a run's next step may be done, what it may cost, and whether it is the last.

The run loop asks before every step. What a running request may still use is set aside, and so is
what every living fork needs for its last step, which only reports. The rest of a shared budget is
divided: no step takes what the others need to go on, and one that finds too little because
others' steps hold it waits until they have given back what they did not use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from forkdeck.engine.cache_verdict import why_cold
from forkdeck.engine.limit_words import (
    PRICE_REMEDY,
    LimitReached,
    dollars,
    reached,
    spent,
    too_dear,
    unpriced,
)
from forkdeck.engine.scopes import (
    NO_LIMITS,
    Limits,
    Scope,
    TimeLeft,
    batch_limits,
    counted_tokens,
    scopes_of,
    session_scope,
)
from forkdeck.engine.step_price import (
    HELD_TOKENS,
    REPORT_TOKENS,
    Price,
    answer_tokens,
    first_usd,
    new_tokens,
    price_at,
    prompt_usd,
    report_usd,
)
from forkdeck.errors import AdmissionRefused
from forkdeck.model.events.step import RequestDelayed

if TYPE_CHECKING:
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.plans import BatchPlan, ForkPlan
    from forkdeck.engine.run import Run, Warmth

__all__ = ["NO_LIMITS", "LimitReached", "Limits", "Purse", "StepPlan", "counted_tokens"]

SMALLEST_ANSWER_TOKENS = 256
"""A step whose answer could not even have this many tokens is not started."""

USUAL_ANSWER_TOKENS = 8_000
"""A share of a budget is not cut below this: most answers are shorter."""


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
class _Aside:
    """What is set aside for one run: money, and tokens as budgets count them."""

    usd: Decimal = Decimal(0)
    tokens: int = 0

    def plus(self, usd: Decimal, tokens: int) -> _Aside:
        """Return it with more set aside."""
        return _Aside(self.usd + usd, self.tokens + tokens)


@dataclass(frozen=True)
class _Room:
    """What one budget leaves for the next answer.

    Attributes:
        scope: Whose budget it is.
        limit: ``budget`` or ``tokens``.
        left: Answer tokens it can take, with nothing kept for a report.
        report: Answer tokens that must stay for the run's own report.
        out: Answer tokens that running steps of others hold, beyond what they keep for reports.
        sharers: Runs that live on it, the asking one included.
        busy: Whether steps of others run, which will give back what they do not use.
    """

    scope: Scope
    limit: str
    left: int
    report: int
    out: int
    sharers: int
    busy: bool

    def share(self, wanted: int) -> int:
        """Return how much of it one step may take: an equal part of all that is not used."""
        free = self.left - self.report
        part = (free + self.out) // self.sharers
        return min(wanted, free, max(part, USUAL_ANSWER_TOKENS))


class Purse:
    """Turns, time, tokens and money of runs, batches and the session.

    Args:
        parts: The deck's parts: what is used, prices, the limits of batches and of the session.
    """

    def __init__(self, parts: EngineParts) -> None:
        self._hub = parts.hub
        self._prices = parts.prices
        self._provider = parts.provider
        self._settings = parts.settings
        self._attached = parts.attached
        self._reserved: dict[str, _Aside] = {}
        self._held: dict[str, _Aside] = {}
        self._changed = asyncio.Event()

    # --- steps ----------------------------------------------------------------------------

    async def plan(self, run: Run, last: str = "") -> StepPlan:
        """Say how the next step of `run` may be done, and set its cost aside.

        Waits while the steps of other runs hold what it needs of a shared budget.

        Args:
            run: The run; its messages already hold what will be sent.
            last: A limit already reached: the step only reports.

        Raises:
            LimitReached: Not even a short report may be written any more.
        """
        told = False
        while (plan := self._plan(run, last)) is None:
            if not told:
                self._hub.append(RequestDelayed(run=run.run, reason="budget", wait_ms=0))
                told = True
            await self._changed.wait()
        return plan

    def release(self, run: str) -> None:
        """Give back what a step set aside; what it really used stands in the state."""
        if self._reserved.pop(run, None) is not None:
            self.look_again()

    def look_again(self) -> None:
        """Let those that wait for their share ask again: something has changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    def scopes(self, run: Run) -> list[Scope]:
        """Return what counts for the next step of `run`, the narrowest first."""
        return scopes_of(run, self._hub.state, self._settings, self._hub.now_ms())

    def times(self, run: Run) -> list[TimeLeft]:
        """Return what is left of each time limit of `run`."""
        return [left for scope in self.scopes(run) if (left := scope.time()) is not None]

    def session_exhausted(self) -> bool:
        """Whether the session's limits let no turn begin."""
        scope = self._session()
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
        if not plans:
            return
        needs: dict[str, Decimal | None] = {}
        for plan in plans:
            price = self._price(plan.head.model)
            needs[plan.handle] = (
                None
                if price is None
                else first_usd(plan, price, cold=self._is_cold(plan.warmth, plan.head.model))
            )
        limits = batch_limits(self._settings)
        self._check_priced(plans, needs, limits.budget_usd)
        for batch in batches:
            usd = _total(needs[plan.handle] for plan in batch.plans)
            _check("batch", len(batch.plans), usd, limits.budget_usd, limits.budget_tokens)
        scope = self._session()
        aside, _ = self._aside("", scope)
        usd, tokens = scope.limits.budget_usd, scope.limits.budget_tokens
        usd_left = None if usd is None else usd - scope.usd - aside.usd
        tokens_left = None if tokens is None else tokens - scope.tokens - aside.tokens
        _check("session", len(plans), _total(needs.values()), usd_left, tokens_left)
        for handle, need in needs.items():
            self._held[handle] = _Aside(need or Decimal(0), HELD_TOKENS)

    def settled(self, handle: str) -> None:
        """Give back what was held for a fork that is over."""
        self._held.pop(handle, None)
        self._reserved.pop(handle, None)
        self.look_again()

    # --- inside ---------------------------------------------------------------------------

    def _session(self) -> Scope:
        return session_scope(self._hub.state, self._settings, self._hub.now_ms())

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

    def _plan(self, run: Run, last: str) -> StepPlan | None:
        """Return the plan of a step, or None while others hold what it needs."""
        scopes = self.scopes(run)
        last = last or self._reached(run, scopes)
        price = self._price(run.head.model)
        rooms = self._rooms(run, scopes, price)
        wanted = run.facts.max_output_tokens
        if not last:
            usual = min(wanted, USUAL_ANSWER_TOKENS)
            if any(room.busy and room.left - room.report < usual for room in rooms):
                return None
            last = self._narrow(run, rooms)
        if last:
            wanted = REPORT_TOKENS
            # A fork's own budget of tokens always has its last step: nobody shares it.
            rooms = [room for room in rooms if (room.scope.kind, room.limit) != ("run", "tokens")]
            for room in rooms:
                if room.left < SMALLEST_ANSWER_TOKENS:
                    if room.busy:
                        return None
                    raise spent(room.scope, room.limit, attached=self._attached)
        bounds = [room.left if last else room.share(wanted) for room in rooms]
        tokens = max(SMALLEST_ANSWER_TOKENS, min([wanted, *bounds]))
        return self._set_aside(run, price, tokens, last)

    def _narrow(self, run: Run, rooms: Sequence[_Room]) -> str:
        """Return the budget that leaves a fork nothing but its report, or nothing.

        Raises:
            LimitReached: It leaves the parent nothing.
        """
        for room in rooms:
            if room.left - room.report < SMALLEST_ANSWER_TOKENS:
                if run.is_parent:
                    raise spent(room.scope, room.limit, attached=self._attached)
                return room.scope.named(room.limit)
        return ""

    def _set_aside(self, run: Run, price: Price | None, tokens: int, last: str) -> StepPlan:
        """Set a step's cost aside, with what the fork needs to report after it."""
        cold = self._is_cold(run.warmth, run.head.model)
        cost = None if price is None else prompt_usd(run, price, cold=cold) + price[3] * tokens
        usd, after = cost or Decimal(0), 0
        if not run.is_parent:
            report = Decimal(0) if price is None else report_usd(run, price)
            self._held[run.run] = _Aside(report, HELD_TOKENS)
            if not last:
                usd, after = usd + report, REPORT_TOKENS
        self._reserved[run.run] = _Aside(usd, new_tokens(run, cold=cold) + tokens + after)
        return StepPlan(tokens, last, cost)

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
                make = spent if limit == "tokens" else reached
                raise make(scope, limit, attached=self._attached)
            return scope.named(limit)
        return ""

    def _rooms(self, run: Run, scopes: Sequence[Scope], price: Price | None) -> list[_Room]:
        """Return what each budget leaves for the next answer.

        Raises:
            LimitReached: A budget of money cannot be kept, because there is no price.
        """
        rooms: list[_Room] = []
        cold = self._is_cold(run.warmth, run.head.model)
        for scope in scopes:
            aside, out = self._aside(run.run, scope)
            living = self._living(scope) | {run.run}
            sharers = len(living) + (scope.kind == "session" and not run.is_parent)
            busy = any(name != run.run and scope.counts(name) for name in self._reserved)
            tokens, usd = scope.limits.budget_tokens, scope.limits.budget_usd
            if tokens is not None:
                left = tokens - scope.tokens - aside.tokens - new_tokens(run, cold=cold)
                report = 0 if run.is_parent else min(REPORT_TOKENS, tokens // 4)
                rooms.append(_Room(scope, "tokens", left, report, out.tokens, sharers, busy))
            if usd is None:
                continue
            if price is None:
                raise unpriced(scope, run.head.model, attached=self._attached)
            left_usd = usd - scope.usd - aside.usd - prompt_usd(run, price, cold=cold)
            most = run.facts.max_output_tokens
            left = answer_tokens(left_usd, price, most)
            report = 0 if run.is_parent else answer_tokens(report_usd(run, price), price, 0)
            held = answer_tokens(out.usd, price, 0)
            rooms.append(_Room(scope, "budget", left, report, held, sharers, busy))
        return rooms

    def _price(self, model: str) -> Price | None:
        return price_at(self._prices, self._provider.endpoint_for(model), model)

    def _is_cold(self, warmth: Warmth, model: str) -> bool:
        """Tell whether a request sent now would read nothing from the cache."""
        return bool(why_cold(warmth, self._hub.now_ms(), self._provider.endpoint_for(model)))

    def _living(self, scope: Scope) -> frozenset[str]:
        """Return the forks of a scope that are not over."""
        forks = self._hub.state.forks
        return frozenset(
            name for name, fork in forks.items() if not fork.settled and scope.counts(name)
        )

    def _aside(self, run: str, scope: Scope) -> tuple[_Aside, _Aside]:
        """Return what is set aside within `scope` for runs other than `run`, and its passing part.

        That part stands for running steps; the rest is kept for reports.
        """
        all_of, passing = _Aside(), _Aside()
        for name in self._held.keys() | self._reserved.keys():
            if name == run or not scope.counts(name):
                continue
            kept = self._held.get(name, _Aside())
            asked = self._reserved.get(name, kept)
            usd, tokens = max(asked.usd, kept.usd), max(asked.tokens, kept.tokens)
            all_of = all_of.plus(usd, tokens)
            passing = passing.plus(usd - kept.usd, tokens - kept.tokens)
        return all_of, passing


def _total(amounts: Iterable[Decimal | None]) -> Decimal:
    return sum((each for each in amounts if each is not None), Decimal(0))


def _check(kind: str, count: int, usd: Decimal, money: Decimal | None, tokens: int | None) -> None:
    """Raise AdmissionRefused when a shared budget cannot carry `count` forks to their reports.

    Args:
        kind: ``batch`` or ``session``.
        count: How many forks.
        usd: What they cost at least.
        money: What there is, None without a budget.
        tokens: Likewise.
    """
    if money is not None and usd > money:
        raise too_dear(kind, count, dollars(usd), dollars(money), "budget")
    need = count * HELD_TOKENS
    if tokens is not None and need > tokens:
        raise too_dear(kind, count, f"{need:,} tokens", f"{max(0, tokens):,}", "tokens")
