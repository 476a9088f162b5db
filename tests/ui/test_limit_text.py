"""What is typed to limit a fork: several in one line, units, and words that are no limit."""

from __future__ import annotations

import pytest

from forkdeck.errors import UsageError
from forkdeck.model.intents import SetLimits
from forkdeck.model.state import ForkState
from forkdeck.store.figures import limit_words
from forkdeck.ui.limit_text import EXAMPLE, limits_of

FORK = ForkState(
    handle="f3", batch="b1", index=0, name="a", task="Look.", seed="before_call", from_run="p",
    depth=1, write=False, queued_at_ms=0, max_turns=200, timeout_s=90.0, budget_usd="2",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("40 turns", (40, 90.0, "2", None)),
        ("1 turn", (1, 90.0, "2", None)),
        ("$0.50", (200, 90.0, "0.50", None)),
        ("10m", (200, 600.0, "2", None)),
        ("1.5 h", (200, 5400.0, "2", None)),
        ("45s", (200, 45.0, "2", None)),
        ("200k tokens", (200, 90.0, "2", 200_000)),
        ("1,500 tokens", (200, 90.0, "2", 1_500)),
        ("40 turns, $1, 10m, 200k tokens", (40, 600.0, "1", 200_000)),
        ("40 turns $1 10m", (40, 600.0, "1", None)),
        (" none ", (None, None, None, None)),
        ("none, 5 turns", (5, None, None, None)),
    ],
)
def test_what_is_named_takes_the_place_of_what_was(
    text: str, limits: tuple[int | None, float | None, str | None, int | None]
) -> None:
    turns, seconds, usd, tokens = limits
    assert limits_of(text, "f3", FORK) == SetLimits(
        handle="f3", max_turns=turns, timeout_s=seconds, budget_usd=usd, budget_tokens=tokens
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("40", "No limit: '40'."),
        ("40 turns, much, $x", "No limit: 'much', '$x'."),
        ("10km", "No limit: '10km'."),
        ("-3 turns", "No limit: '-3', 'turns'."),
        ("0 turns", "0 turns is no limit: it must be more than 0."),
        ("1.5 turns", "1.5 turns is no whole number."),
    ],
)
def test_what_is_no_limit_is_named(text: str, named: str) -> None:
    with pytest.raises(UsageError) as caught:
        limits_of(text, "f3", FORK)
    assert caught.value.what == named
    assert caught.value.remedy == f"Type {EXAMPLE}."


def test_limits_are_told_as_they_are_typed() -> None:
    assert limit_words(40, 600.0, "1", 200_000) == "40 turns, $1, 10m, 200,000 tokens"
    assert limit_words(1, 7200.0, None, None) == "1 turn, 2h"
    assert limit_words(None, 90.0, None, None) == "90s"
    assert limit_words(None, None, None, None) == "none"
