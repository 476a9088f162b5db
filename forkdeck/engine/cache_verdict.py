"""What an answer's usage says about the shared prefix, and the money it saved.

Called by the step when the first usage of a request arrives. Pure functions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forkdeck.model.events.step import CacheJudged
from forkdeck.model.prefix import describe_position, first_difference
from forkdeck.model.words import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forkdeck.engine.run import Run, Warmth
    from forkdeck.model.ports import EndpointFacts, PriceBook
    from forkdeck.model.raw import JsonDict
    from forkdeck.model.usage import Usage

ENTRY_LIFE_MS = 300_000
"""A cache entry lives five minutes from the start of the last request that used it."""

WHOLE = 0.95
"""Share of the expected tokens from which a read counts as a full hit."""

NO_MARKS = "this endpoint takes no cache marks: nothing is cached"


@dataclass(frozen=True)
class Expectation:
    """What a request should read from the cache.

    Attributes:
        tokens: Tokens that should be read; None when not known.
        minimum: Smallest prefix the model caches.
        cold: Why nothing is expected, or an empty string.
        first: It is the first request of a fork.
        shared_tokens: Of `tokens`, what was inherited.
        differs: Where it stops being equal to the source's request, in words.
        overrides: Parameters that alone make it cold.
        else_cold: What `cold` is when the endpoint takes none of them.
    """

    tokens: int | None
    minimum: int
    cold: str
    first: bool = False
    shared_tokens: int | None = None
    differs: str = ""
    overrides: frozenset[str] = frozenset()
    else_cold: str = ""

    def as_sent(self, endpoint: EndpointFacts) -> Expectation:
        """Return what to expect of the request as it went out, without what was left out of it."""
        if not endpoint.cache_control:
            return replace(self, cold=NO_MARKS, differs="")
        if _left_out(self.overrides, endpoint):
            # That they differ is all that differs.
            return replace(self, cold=self.else_cold, differs="")
        return self


def why_cold(warmth: Warmth, now_ms: int, endpoint: EndpointFacts) -> str:
    """Return why a request at `now_ms` should find nothing in the cache; empty when it should."""
    if not endpoint.cache_control:
        return NO_MARKS
    if warmth.cold and not _left_out(warmth.overrides, endpoint):
        return warmth.cold
    return _why_gone(warmth, now_ms)


def expectation(
    run: Run, now_ms: int, found: Sequence[bytes] = (), body: JsonDict | None = None
) -> Expectation:
    """Return what the next request of `run` should read, sent at `now_ms`.

    Args:
        run: The run that asks.
        now_ms: The session's time.
        found: Positions of the request.
        body: The request, to name a position.
    """
    warmth = run.warmth
    gone = _why_gone(warmth, now_ms)
    first = run.steps == 0 and run.previous_mark is None and not run.is_parent
    differs = ""
    if first and body is not None:
        index = first_difference(run.source_record, found)
        differs = "" if index is None else describe_position(body, index)
    return Expectation(
        warmth.tokens,
        run.facts.cache_minimum_tokens,
        warmth.cold or gone,
        first,
        warmth.shared_tokens,
        differs,
        warmth.overrides,
        gone,
    )


def _why_gone(warmth: Warmth, now_ms: int) -> str:
    """Return why a prefix that nothing else makes cold is not in the cache; empty when it is."""
    if warmth.at_ms is None:
        return "nothing was sent before"
    if not warmth.tokens:
        return "how long the shared prefix is was not told yet"
    if now_ms - warmth.at_ms <= ENTRY_LIFE_MS:
        return ""
    minutes = (now_ms - warmth.at_ms) // 60_000
    return f"the cached prefix was last used {minutes} minutes ago; it lives five minutes"


def _left_out(overrides: frozenset[str], endpoint: EndpointFacts) -> bool:
    """Tell whether all these parameters, and there are some, are not sent to the endpoint."""
    taken = {"effort": endpoint.effort, "thinking": endpoint.thinking}
    return bool(overrides) and not any(taken.get(name, True) for name in overrides)


def verdict(expected: Expectation, read: int | None) -> Verdict:
    """Judge a read against what was expected; None read means the endpoint told nothing.

    COLD is what was not all read and was not expected to be: tools and system may have been.
    MISS and PARTIAL are what was expected and not, or not all, read.
    """
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
    saved = None
    if expected.first and read is not None and expected.shared_tokens is not None:
        saved = prices.read_saving_usd(run.head.model, min(read, expected.shared_tokens))
    told = read is not None
    return CacheJudged(
        run=run.run,
        verdict=word,
        read_tokens=read,
        expected_tokens=expected.tokens,
        first_step=expected.first,
        saved_usd=saved,
        difference=_difference(word, expected, endpoint_reason),
        written_tokens=usage.cache_creation_input_tokens if told else None,
        fresh_tokens=usage.input_tokens if told else None,
    )


def _difference(word: Verdict, expected: Expectation, endpoint_reason: str | None) -> str:
    """Say why a request did not read all of its prefix; nothing when it did."""
    if word == "BELOW MINIMUM":
        return f"the model caches nothing under {expected.minimum:,} tokens"
    if word == "COLD":
        parts = [expected.cold]
        if expected.differs:
            parts.append(f"{expected.differs} differs from the parent's request")
    elif word in ("MISS", "PARTIAL"):
        parts = [
            f"{expected.differs} differs from the parent's request"
            if expected.differs
            else "the request is equal to what was sent before, as far as it is shared; the "
            "endpoint did not have all of it any more"
        ]
    else:
        return ""
    if endpoint_reason:
        parts.append(f"the endpoint says: {endpoint_reason}")
    return "; ".join(parts)
