"""How numbers are written: one form per kind, the same on every face of the store.

Pure functions. What is not known is `UNKNOWN`, never a zero.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

from forkdeck.model.usage import Cost

UNKNOWN = "–"
"""Stands for a number nobody told."""

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)")
_CENT = Decimal("0.01")
_BELIEVABLE = Decimal(10) ** 15


def clock(ms: int | None) -> str:
    """Return a duration as ``0:03``, ``15:00`` or ``1:02:05``."""
    if ms is None:
        return UNKNOWN
    seconds = max(0, ms) // 1000
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def tokens(count: int | None) -> str:
    """Return a count as ``850``, ``8.4k``, ``402.4k`` or ``3.20M``."""
    if count is None:
        return UNKNOWN
    if count < 1_000:
        return str(count)
    if count < 999_950:
        return f"{count / 1_000:.1f}k"
    return f"{count / 1_000_000:.2f}M"


def window(count: int | None) -> str:
    """Return a limit in tokens without needless digits: ``200k``, ``1M``."""
    if count is None:
        return UNKNOWN
    if count >= 1_000_000 and count % 100_000 == 0:
        return f"{count / 1_000_000:g}M"
    return f"{count // 1_000}k" if count >= 1_000 and count % 1_000 == 0 else tokens(count)


def money(usd: Decimal | None) -> str:
    """Return dollars to the cent: ``$0.06``; ``<$0.01`` for less than half a cent."""
    if usd is None or not usd.is_finite() or abs(usd) >= _BELIEVABLE:
        return UNKNOWN
    if 0 < usd < Decimal("0.005"):
        return "<$0.01"
    rounded = usd.quantize(_CENT, rounding=ROUND_HALF_UP)
    return f"−${-rounded:,.2f}" if rounded < 0 else f"${rounded:,.2f}"


def dollars(text: str | None) -> Decimal | None:
    """Return decimal text as an amount; None when it is none that a price can have."""
    try:
        amount = Decimal(text or "")
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount < _BELIEVABLE else None


def cost(value: Cost | None, *, known: bool = True) -> str:
    """Return a cost; unknown when a part of it has no price."""
    return UNKNOWN if value is None or not known or value.unpriced else money(value.usd)


def limit(usd: Decimal | str) -> str:
    """Return a budget as the second half of ``$0.19 of 5.00``."""
    return f"{Decimal(usd).quantize(_CENT, rounding=ROUND_HALF_UP):,.2f}"


def limit_words(
    max_turns: int | None,
    timeout_s: float | None,
    budget_usd: Decimal | str | None,
    budget_tokens: int | None,
) -> str:
    """Return a fork's limits in words that can be typed: ``40 turns, $1, 10m``, or ``none``."""
    parts = [
        plural(max_turns, "turn") if max_turns else "",
        f"${budget_usd}" if budget_usd is not None else "",
        _span(timeout_s) if timeout_s else "",
        f"{budget_tokens:,} tokens" if budget_tokens else "",
    ]
    return ", ".join(filter(None, parts)) or "none"


def _span(seconds: float) -> str:
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"


def percent(share: float | None) -> str:
    """Return a share as a whole percentage; it reaches 100 only when it is whole."""
    if share is None:
        return UNKNOWN
    value = round(share * 100)
    return f"{99 if value >= 100 and share < 1 else value}%"


def size(count: int | None) -> str:
    """Return bytes as ``312 B``, ``38 MB``."""
    if count is None:
        return UNKNOWN
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError


def plural(count: int, word: str) -> str:
    """Return ``1 file``, ``3 files``."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def instant(text: str) -> str:
    """Return an ISO instant as a person reads it, in UTC: ``Mon 30 Nov 20:00 UTC``."""
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return UNKNOWN
    then = then.astimezone(UTC) if then.tzinfo is not None else then.replace(tzinfo=UTC)
    return f"{then:%a %d %b %H:%M} UTC"


def readable_instants(text: str) -> str:
    """Return text with each ISO instant in it as `instant` says it."""
    return _INSTANT.sub(lambda found: instant(found[0]), text)
