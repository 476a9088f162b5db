"""How the screens write figures: the store's forms, and a few that only screens need.

Pure functions. What is not known is ``–``, never a zero.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from forkdeck.model.usage import Cost
from forkdeck.store import figures

UNKNOWN: Final = figures.UNKNOWN


def duration(ms: int | None) -> str:
    """Return ``0:03``, ``15:00`` or ``1:02:05``."""
    return figures.clock(ms)


def tokens(count: int | None) -> str:
    """Return ``850``, ``41.2k`` or ``3.20M``."""
    return figures.tokens(count)


def window(count: int | None) -> str:
    """Return a context window: ``200k``, ``1M``."""
    return figures.window(count)


def money(usd: Decimal | None) -> str:
    """Return ``$0.06``; unknown is ``–``."""
    return figures.money(usd)


def cost(value: Cost | None, *, known: bool = True) -> str:
    """Return a cost; ``–`` when part of it has no price."""
    return figures.cost(value, known=known)


def of_budget(spent: str, budget_usd: Decimal | None) -> tuple[str, str]:
    """Return the two halves of ``$0.19 of 5.00``; the second is empty without a budget."""
    return spent, f" of {figures.limit(budget_usd)}" if budget_usd is not None else ""


def percent(share: float | None) -> str:
    """Return ``95%``; unknown is ``–``."""
    return figures.percent(share)


def tools(count: int) -> str:
    """Return a count of tool calls as the metrics column shows it: ``18t``."""
    return f"{count}t"


def context(used: int | None, limit: int | None) -> str:
    """Return ``41.2k of 200k context``, or what of it is known."""
    if used is None:
        return ""
    if limit is None:
        return f"{tokens(used)} context"
    return f"{tokens(used)} of {window(limit)} context"


def size(count: int | None) -> str:
    """Return bytes as ``38 MB``."""
    return figures.size(count)


def plural(count: int, word: str) -> str:
    """Return ``1 file``, ``3 files``."""
    return figures.plural(count, word)


def speed(value: float) -> str:
    """Return a playback speed: ``2×``, ``0.25×``."""
    return f"{value:g}×"
