"""What is said of limits: that one was reached, that a launch is too dear, and what to do then.

A remedy names only what can be done where it is read: a key when a person is attached, else the
flag or the setting.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from forkdeck.errors import AdmissionRefused, ForkDeckError
from forkdeck.store.figures import plural

if TYPE_CHECKING:
    from forkdeck.engine.scopes import Scope

PRICE_REMEDY = 'give the price as [prices."MODEL"] in config.toml and start forkdeck again.'
"""What to do about a budget without a price."""

SETTINGS = {
    "turns": "max_turns",
    "time": "timeout_s",
    "budget": "budget_usd",
    "tokens": "budget_tokens",
}
"""Last part of the setting of each limit."""

_OWNERS = {"run": "fork", "batch": "batch", "session": "session"}
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


def setting_of(kind: str, limit: str) -> str:
    """Return the setting of a limit, such as ``forks.batch_max_turns``."""
    prefix = {"run": "forks.", "batch": "forks.batch_", "session": "session."}[kind]
    return prefix + SETTINGS[limit]


def reached(scope: Scope, limit: str, *, attached: bool) -> LimitReached:
    """Return that the turns or the time of a scope are over; `limit` is ``turns`` or ``time``."""
    what = f"The {scope.named(limit)} limit is reached; no other step is started."
    return LimitReached(scope.named(limit), what, raise_it(scope.kind, limit, attached=attached))


def spent(scope: Scope, limit: str, *, attached: bool) -> LimitReached:
    """Return that a budget can take no other step; `limit` is ``budget`` or ``tokens``."""
    owner = _OWNERS[scope.kind]
    if limit == "budget":
        what = f"The {owner}'s budget of ${scope.limits.budget_usd} cannot pay another step."
    else:
        budget = scope.limits.budget_tokens or 0
        what = f"The {owner}'s budget of {budget:,} tokens cannot take another step."
    return LimitReached(scope.named(limit), what, raise_it(scope.kind, limit, attached=attached))


def raise_it(kind: str, limit: str, *, attached: bool) -> str:
    """Return how a limit is raised; nothing for a fork's own, which its call may have set."""
    if kind == "run":
        return ""
    if (kind, limit) == ("session", "budget"):
        return (
            "Raise it with b on the parent, then resend with r."
            if attached
            else "Raise it with --budget-usd."
        )
    return f"Raise {setting_of(kind, limit)} in the settings."


def unpriced(scope: Scope, model: str, *, attached: bool) -> LimitReached:
    """Return that a budget of money cannot be kept, because a model has no price."""
    limit, budget = scope.named("budget"), scope.limits.budget_usd
    what = (
        f"The {_OWNERS[scope.kind]}'s budget of ${budget} cannot be kept: no price of {model} "
        "is known."
    )
    if scope.kind != "session":
        return LimitReached(limit, what, f"The person can {PRICE_REMEDY}")
    lift = "Lift it with b and resend with r" if attached else "Leave --budget-usd out"
    return LimitReached(limit, what, f"{lift}, or {PRICE_REMEDY}")


def not_kept(budget: str, model: str) -> str:
    """Return why a budget of money cannot be set."""
    return f"A budget of ${budget} cannot be kept: no price of {model} is known."


def too_dear(kind: str, count: int, need: str, left: str, limit: str) -> AdmissionRefused:
    """Return the refusal of a launch that a shared budget cannot carry.

    Args:
        kind: ``batch`` or ``session``.
        count: How many forks there are.
        need: What they need at least, with its unit.
        left: What there is, with its unit.
        limit: ``budget`` or ``tokens``.
    """
    setting = setting_of(kind, limit)
    has = f"a batch has {left} ({setting})" if kind == "batch" else f"this session has {left} left"
    return AdmissionRefused(
        f"{limit}: {plural(count, 'fork')} would need at least {need} to begin and "
        f"to report, and {has}.",
        f"Start fewer forks, or ask the person to raise {setting}.",
    )


def dollars(amount: Decimal) -> str:
    """Return an amount in cents, such as ``$0.11``; never below zero."""
    return f"${max(amount, Decimal(0)).quantize(_CENT)}"
