"""The price range of a fork, told before it starts.

Three prices: one short step (`low`), what such forks cost as a rule (`likely`), and the
most that long work may cost within the limits (`high`). What is usual is learnt from the forks
of the session that are over; before there are `ENOUGH` of them it is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from statistics import mean
from typing import TYPE_CHECKING

from forkdeck.engine.step_price import DIRECTIVE_TOKENS, Price, price_at
from forkdeck.model.launching import ForkPrice
from forkdeck.store.plan_figures import CENT

if TYPE_CHECKING:
    from forkdeck.engine.plans import ForkPlan
    from forkdeck.model.ports import EndpointFacts, PriceBook
    from forkdeck.model.state import DeckState, ForkState

ENOUGH = 3
"""Ended forks of a session from which its own experience counts."""

LONG = 3
"""How many times the usual number of steps long work takes."""

_EXACT = Decimal("0.000001")
"""To what one fork's price is kept: sums of many are told in cents."""


@dataclass(frozen=True)
class Habit:
    """What a fork does as a rule.

    Attributes:
        steps: Requests.
        growth_tokens: What each step adds to the next prompt.
        answer_tokens: Output of each step.
    """

    steps: int = 4
    growth_tokens: int = 2_000
    answer_tokens: int = 500


def habit(state: DeckState) -> Habit:
    """Return what forks of this session did as a rule, or what is assumed without them."""
    known = [fork for fork in state.forks.values() if _counts(fork, state)]
    if len(known) < ENOUGH:
        return Habit()
    runs = [state.runs[fork.handle] for fork in known]
    steps = mean(run.counters.turns for run in runs)
    grown = mean(_growth(fork, state) / state.runs[fork.handle].counters.turns for fork in known)
    answered = mean(run.usage.output_tokens / run.counters.turns for run in runs)
    return Habit(max(1, round(steps)), max(100, round(grown)), max(50, round(answered)))


def estimate(
    prices: PriceBook, plan: ForkPlan, usual: Habit, endpoint: EndpointFacts, *, warm: bool
) -> tuple[ForkPrice | None, ForkPrice | None]:
    """Return the price of one fork, and its price as the first one of a prefix that is not cached.

    The first is None when the model has no known price; the second also when no prefix is to be
    written: it is in the cache, or the endpoint caches nothing or does not say so, and all is
    counted as fresh input.
    """
    price = price_at(prices, endpoint, plan.head.model)
    if price is None:
        return None, None
    _, write, read, _ = price
    one = _one(plan, price, usual, first=read)
    led = not warm and endpoint.caches
    return one, _one(plan, price, usual, first=write) if led else None


def override_note(plan: ForkPlan, prefix_tokens: int | None, prices: PriceBook) -> str:
    """Say which part of the cache a model or effort override loses and what that costs."""
    if plan.model is None and plan.effort is None:
        return ""
    what = f"model {plan.model}" if plan.model else f"effort {plan.effort}"
    price = prices.per_token_usd(plan.head.model)
    cost = ""
    if price is not None and prefix_tokens:
        extra = (price[1] - price[2]) * prefix_tokens
        cost = f", about ${extra.quantize(CENT)} more per fork"
    return f"{what} is an override: the whole shared cache is lost for it{cost}."


def _one(plan: ForkPlan, price: Price, usual: Habit, *, first: Decimal) -> ForkPrice:
    """Price one fork: its first request, then steps that each read what the last one wrote.

    Args:
        plan: The fork.
        price: Per token.
        usual: What a fork does as a rule.
        first: Per token of the prefix in the first request.
    """
    _, write, read, output = price
    prefix = plan.warmth.tokens or plan.head.estimated_tokens + _seed_tokens(plan)
    begin = prefix * first + DIRECTIVE_TOKENS * write
    answer = usual.answer_tokens * output
    low = begin + answer
    most = plan.limits.max_turns or LONG * usual.steps
    usd = plan.limits.budget_usd

    def work(steps: int) -> Decimal:
        steps = max(1, min(steps, most))
        growth = usual.growth_tokens
        reading = sum(
            (prefix + DIRECTIVE_TOKENS + step * growth) * read for step in range(1, steps)
        )
        spent = begin + reading + (steps - 1) * growth * write + steps * answer
        return spent if usd is None else min(spent, max(usd, low))

    usual_usd, most_usd = work(usual.steps), work(LONG * usual.steps)
    cents = [str(each.quantize(_EXACT)) for each in (low, usual_usd, most_usd)]
    return ForkPrice(low_usd=cents[0], likely_usd=cents[1], high_usd=cents[2])


def _seed_tokens(plan: ForkPlan) -> int:
    inherited = sum(len(str(message.get("content"))) for message in plan.inherited)
    return (inherited + sum(len(bytes(raw)) for raw in plan.seed.messages)) // 4


def _counts(fork: ForkState, state: DeckState) -> bool:
    run = state.runs.get(fork.handle)
    return fork.outcome in ("done", "partial") and run is not None and run.counters.turns > 0


def _growth(fork: ForkState, state: DeckState) -> int:
    """Return what a fork wrote and sent beyond its first prompt."""
    run = state.runs[fork.handle]
    end = run.context_tokens or 0
    return max(0, end - (fork.inherited_tokens or 0))
