"""What a step takes from a budget: its prompt, its answer, and the report that may follow."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from forkdeck.engine.plans import ForkPlan
    from forkdeck.engine.run import Run
    from forkdeck.model.ports import EndpointFacts, PriceBook

Price: TypeAlias = tuple[Decimal, Decimal, Decimal, Decimal]
"""US dollars per token: input, cache write, cache read, output."""

REPORT_TOKENS = 2_000
"""Answer tokens kept in reserve for the last step, which only reports."""

DIRECTIVE_TOKENS = 600
"""Rough size of what a fork's first request adds to its seed."""

HELD_TOKENS = DIRECTIVE_TOKENS + REPORT_TOKENS
"""What every living fork keeps of a shared budget of tokens, to begin and to report."""


def price_at(prices: PriceBook, endpoint: EndpointFacts, model: str) -> Price | None:
    """Return what a token of `model` costs there: all input is fresh where nothing is cached."""
    price = prices.per_token_usd(model)
    if price is None or endpoint.caches:
        return price
    return (price[0], price[0], price[0], price[3])


def new_tokens(run: Run, *, cold: bool) -> int:
    """Return the rough tokens the next prompt adds to what can still be read."""
    known = 0 if cold else run.warmth.tokens or 0
    return max(0, run.estimated_tokens() - known)


def first_usd(plan: ForkPlan, price: Price, *, cold: bool) -> Decimal:
    """Price a fork's first step with a report for an answer."""
    _, write, read, output = price
    prefix = plan.warmth.tokens or plan.head.estimated_tokens
    first = prefix * (write if cold else read) + DIRECTIVE_TOKENS * write
    return first + REPORT_TOKENS * output


def prompt_usd(run: Run, price: Price, *, cold: bool) -> Decimal:
    """Price the next prompt: what is known to be cached is read, the rest is written."""
    _, write, read, _ = price
    known = run.warmth.tokens or 0
    cached = 0 if cold else known
    total = max(known, run.estimated_tokens())
    return read * cached + write * (total - cached)


def report_usd(run: Run, price: Price) -> Decimal:
    """Price a report after the next step: by then all that is sent now can be read again."""
    _, _, read, output = price
    return read * max(run.warmth.tokens or 0, run.estimated_tokens()) + output * REPORT_TOKENS


def answer_tokens(amount: Decimal, price: Price, most: int) -> int:
    """Return how many answer tokens an amount pays; `most` when they cost nothing."""
    return int(amount / price[3]) if price[3] else most
