"""How thorough the tests are: quick and repeatable as a rule, exhaustive with ``make soak``."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

SOAK = os.environ.get("FORKDECK_SOAK", "") not in ("", "0")
"""Whether time does not matter: more of everything, and other examples each time."""

_MORE = 20


def laws(examples: int, **more: Any) -> settings:
    """Return hypothesis settings for a property.

    Args:
        examples: How many are tried as a rule; twenty times as many in a soak.
        more: Further settings.
    """
    return settings(
        max_examples=examples * (_MORE if SOAK else 1),
        derandomize=not SOAK,
        deadline=None,
        database=None,
        **more,
    )
