"""What an answer's usage says about the shared prefix, and the money it saved.

Called by the step when the first usage of a request arrives. Pure functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forkdeck.model.events.step import CacheJudged
from forkdeck.model.words import Verdict

if TYPE_CHECKING:
    from forkdeck.engine.run import Run
    from forkdeck.model.ports import PriceBook
    from forkdeck.model.usage import Usage

ENTRY_LIFE_MS = 300_000
"""A cache entry lives five minutes from the start of the last request that used it."""

WHOLE = 0.95
"""Share of the expected tokens from which a read counts as a full hit."""


@dataclass(frozen=True)
class Expectation:
    """What a request should read from the cache.

    Attributes:
        tokens: Tokens that should be read; None when not known.
        minimum: Smallest prefix the model caches.
        cold: Why nothing is expected, or an empty string.
    """

    tokens: int | None
    minimum: int
    cold: str


def expectation(run: Run, now_ms: int) -> Expectation:
    """Return what the next request of `run` should read, sent at `now_ms`."""
    warmth = run.warmth
    cold = warmth.cold
    if not cold and warmth.tokens is None:
        cold = "nothing was sent before"
    elif not cold and warmth.at_ms is not None and now_ms - warmth.at_ms > ENTRY_LIFE_MS:
        cold = "the cached prefix is older than five minutes"
    return Expectation(warmth.tokens, run.facts.cache_minimum_tokens, cold)


def verdict(expected: Expectation, read: int | None) -> Verdict:
    """Judge a read against what was expected; None read means the endpoint told nothing."""
    if read is None:
        return "UNKNOWN"
    if expected.tokens and not expected.cold and read >= WHOLE * expected.tokens:
        return "HIT"
    if expected.cold:
        whole = expected.tokens is not None and read >= WHOLE * expected.tokens > 0
        return "HIT" if whole else "COLD"
    if not expected.tokens or expected.tokens < expected.minimum:
        return "BELOW MINIMUM"
    return "PARTIAL" if read > 0 else "MISS"


def judge(
    run: Run,
    usage: Usage,
    expected: Expectation,
    prices: PriceBook,
    endpoint_reason: str | None,
) -> CacheJudged:
    """Return the event that judges the first usage of a request.

    Only the first step of a fork saves: what later steps read is its own, and of the first
    read only the inherited tokens count.
    """
    read = usage.cache_read_input_tokens
    word = verdict(expected, read)
    first = run.steps == 0 and run.previous_mark is None and not run.is_parent
    saved = None
    shared = run.warmth.shared_tokens
    if first and read is not None and shared is not None:
        saved = prices.read_saving_usd(run.head.model, min(read, shared))
    difference = ""
    if word == "COLD":
        difference = expected.cold
    elif word in ("MISS", "PARTIAL"):
        difference = endpoint_reason or (
            "the request is equal to the parent's as far as it is shared; "
            "the endpoint did not have all of it any more"
        )
    return CacheJudged(
        run=run.run,
        verdict=word,
        read_tokens=read,
        expected_tokens=expected.tokens,
        first_step=first,
        saved_usd=saved,
        difference=difference,
    )
