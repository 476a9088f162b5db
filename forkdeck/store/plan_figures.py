"""What the forks of a launch plan cost and find in the cache, for all of them or those left in it.

Pure functions over a plan, for the engine that makes it and for every face that shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from forkdeck.model.launching import ForkPrice, LaunchPlan, PlannedFork
from forkdeck.model.state import DeckState
from forkdeck.store.figures import dollars

CENT = Decimal("0.01")


@dataclass(frozen=True)
class PriceRange:
    """A price in US dollars: of one short step per fork, as a rule, and at most."""

    low: Decimal
    likely: Decimal
    high: Decimal

    def texts(self) -> tuple[str, str, str]:
        """Return the three in cents, as decimal text."""
        cents = [str(each.quantize(CENT)) for each in (self.low, self.likely, self.high)]
        return cents[0], cents[1], cents[2]


def kept_forks(plan: LaunchPlan, state: DeckState) -> list[PlannedFork]:
    """Return the forks of a plan that would start: those the person has not left out."""
    return [
        each
        for each in plan.forks
        if each.handle not in state.forks or not state.forks[each.handle].settled
    ]


def fork_prices(forks: Sequence[PlannedFork]) -> dict[str, PriceRange]:
    """Return the price of each fork that has one, by handle, when just these forks start.

    The first fork of a prefix that is not in the cache writes it; the others read it.
    """
    written: set[str] = set()
    found: dict[str, PriceRange] = {}
    for fork in forks:
        leads = fork.lead_price is not None and fork.prefix not in written
        written.add(fork.prefix)
        price = _range(fork.lead_price if leads else fork.price)
        if price is not None:
            found[fork.handle] = price
    return found


def launch_price(forks: Sequence[PlannedFork]) -> PriceRange | None:
    """Return what these forks cost together; None when the price of one is not known."""
    found = list(fork_prices(forks).values())
    if not found or len(found) < len(forks):
        return None
    return PriceRange(
        sum((each.low for each in found), Decimal(0)),
        sum((each.likely for each in found), Decimal(0)),
        sum((each.high for each in found), Decimal(0)),
    )


def kept_price(plan: LaunchPlan, kept: Sequence[PlannedFork]) -> tuple[PriceRange | None, bool]:
    """Return the price of the forks that are left, and whether it is that of all for want of it."""
    if len(kept) < len(plan.forks) and (found := launch_price(kept)) is not None:
        return found, False
    low, likely, high = map(dollars, (plan.low_usd, plan.likely_usd, plan.high_usd))
    if low is None or high is None:
        return None, False
    whole = PriceRange(low, high if likely is None else likely, high)
    return whole, len(kept) < len(plan.forks)


def warmth_words(plan: LaunchPlan, forks: Sequence[PlannedFork]) -> str:
    """Say what these forks of a plan should find in the cache; empty when nothing is shared."""
    if plan.warm is None:
        return plan.cold_why
    told = [fork for fork in forks if fork.warm is not None]
    if not told:
        return "warm" if plan.warm else ": ".join(filter(None, ("cold", plan.cold_why)))
    warm = sum(fork.warm is True for fork in told)
    if warm == len(told):
        return "warm"
    why = "; ".join(dict.fromkeys(fork.cold_why for fork in told if fork.cold_why))
    word = f"{warm} of {len(told)} warm" if warm else "cold"
    return f"{word}: {why}" if why else word


def waits_for_leader(plan: LaunchPlan, forks: Sequence[PlannedFork]) -> bool:
    """Tell whether one of these forks must write a prefix that another one reads."""
    if all(fork.warm is None and not fork.cold_why for fork in plan.forks):
        # The log is older than these facts.
        return plan.warm is False and len(forks) > 1
    cold = [fork.prefix for fork in forks if fork.prefix and not fork.warm]
    return len(cold) > len(set(cold))


def _range(price: ForkPrice | None) -> PriceRange | None:
    if price is None:
        return None
    low, likely, high = map(dollars, (price.low_usd, price.likely_usd, price.high_usd))
    if low is None or likely is None or high is None:
        return None
    return PriceRange(low, likely, high)
