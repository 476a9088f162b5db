"""What a person types to limit a fork: ``40 turns, $1, 10m, 200k tokens`` or ``none``."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from forkdeck.errors import UsageError
from forkdeck.model.intents import SetLimits
from forkdeck.model.state import ForkState

EXAMPLE: Final = "40 turns, $1, 10m, 200k tokens or none"

_LIMIT: Final = re.compile(
    r"(?:(?P<none>none|no)"
    r"|\$\s*(?P<usd>\d+(?:\.\d+)?)"
    r"|(?P<number>\d+(?:\.\d+)?)\s*(?:(?P<turns>turns?)|(?P<seconds>s)|(?P<minutes>m|min)|(?P<hours>h)"
    r"|(?P<thousand>k)?\s*(?P<tokens>tokens?)))(?=[\s,]|$)",
    re.IGNORECASE,
)
_SECONDS: Final = {"seconds": 1, "minutes": 60, "hours": 3600}


def limits_of(text: str, handle: str, fork: ForkState) -> SetLimits:
    """Return a fork's limits with what was typed in their place; what is not named stays.

    Raises:
        UsageError: Words that are no limit, by name; or a limit of nothing.
    """
    now: dict[str, Any] = {
        "max_turns": fork.max_turns,
        "timeout_s": fork.timeout_s,
        "budget_usd": fork.budget_usd,
        "budget_tokens": fork.budget_tokens,
    }
    rest = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text).strip(" ,\t\n")
    unknown: list[str] = []
    while rest:
        found = _LIMIT.match(rest)
        if found is None:
            word = re.split(r"[\s,]", rest, maxsplit=1)[0]
            unknown.append(word)
            rest = rest[len(word) :].lstrip(" ,\t\n")
            continue
        now.update(_value(found))
        rest = rest[found.end() :].lstrip(" ,\t\n")
    if unknown:
        words = ", ".join(repr(word) for word in unknown)
        raise UsageError(f"No limit: {words}.", f"Type {EXAMPLE}.")
    return SetLimits(handle=handle, **now)


def _value(found: re.Match[str]) -> dict[str, Any]:
    """Return the limits that one match sets."""
    if found["none"]:
        return dict.fromkeys(("max_turns", "timeout_s", "budget_usd", "budget_tokens"))
    amount = Decimal(found["usd"] or found["number"])
    if not amount:
        raise UsageError(f"{found[0]} is no limit: it must be more than 0.", f"Type {EXAMPLE}.")
    if found["usd"]:
        return {"budget_usd": found["usd"]}
    for unit, seconds in _SECONDS.items():
        if found[unit]:
            return {"timeout_s": float(amount * seconds)}
    count = amount * 1000 if found["thousand"] else amount
    if count != int(count):
        raise UsageError(f"{found[0]} is no whole number.", f"Type {EXAMPLE}.")
    return {"max_turns" if found["turns"] else "budget_tokens": int(count)}
