"""The price range of a launch, told before it starts.

The lower bound is one short step per fork on a warm prefix; the upper one is a working fork:
`STEPS` steps that each add `GROWTH_TOKENS` and answer `ANSWER_TOKENS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from forkdeck.engine.cache_verdict import ENTRY_LIFE_MS

if TYPE_CHECKING:
    from forkdeck.engine.plans import ForkPlan
    from forkdeck.model.ports import PriceBook

DIRECTIVE_TOKENS = 600
STEPS = 4
GROWTH_TOKENS = 2_000
ANSWER_TOKENS = 500
CENT = Decimal("0.01")


def estimate(prices: PriceBook, plans: Sequence[ForkPlan], now_ms: int) -> tuple[str, str] | None:
    """Return the lower and upper price in US dollars, as text; None without a price."""
    low = high = Decimal(0)
    for plan in plans:
        price = prices.per_token_usd(plan.head.model)
        if price is None:
            return None
        _, write, read, output = price
        warmth = plan.warmth
        prefix = warmth.tokens or plan.head.estimated_tokens
        warm = (
            not warmth.cold and warmth.at_ms is not None and now_ms - warmth.at_ms <= ENTRY_LIFE_MS
        )
        first = prefix * (read if warm else write) + DIRECTIVE_TOKENS * write
        low += first + ANSWER_TOKENS * output
        again = sum(
            (prefix + step * GROWTH_TOKENS) * read + GROWTH_TOKENS * write
            for step in range(1, STEPS)
        )
        high += first + again + STEPS * ANSWER_TOKENS * output
    return str(low.quantize(CENT)), str(high.quantize(CENT))


def plan_text(plans: Sequence[ForkPlan], range_usd: tuple[str, str] | None) -> str:
    """Return a launch plan in words, for the question whether it may start."""
    count = len(plans)
    price = f"${range_usd[0]} to ${range_usd[1]}" if range_usd else "price not known"
    lines = [f"{count} fork{'s' if count != 1 else ''}, {price}"]
    for plan in plans:
        kind = "write" if plan.write else "read-only"
        lines.append(f"{plan.name} ({kind}, seed {plan.seed.mode}): {plan.task.strip()}")
    return "\n".join(lines)


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
