"""Rate limits as the endpoint documents them: token buckets that fill again all the time.

Used by an exchange before it answers. Requests and input tokens are counted apart; what is read
from the cache is free, what is written is not. Without limits nothing is counted and no header
is sent. Time comes from the injected clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Final

from forkdeck.model.ports import Clock
from forkdeck.providers.rehearsal.faults import Refusal

_MINUTE_MS: Final = 60_000


@dataclass(frozen=True)
class Limits:
    """What one minute holds; None is without limit."""

    requests: int | None = None
    input_tokens: int | None = None


NO_LIMITS: Final = Limits()
"""Nothing is counted."""


class _Bucket:
    """A bucket that holds a minute's worth and fills at an even rate.

    A single request larger than the whole bucket passes when it is full, and leaves a debt:
    otherwise it would be refused for ever.
    """

    def __init__(self, limit: int, now_ms: int) -> None:
        self.limit = limit
        self._level = float(limit)
        self._at_ms = now_ms

    def level(self, now_ms: int) -> float:
        """Return what is in it now; negative while there is a debt."""
        passed = max(0, now_ms - self._at_ms)
        self._level = min(self.limit, self._level + passed * self.limit / _MINUTE_MS)
        self._at_ms = now_ms
        return self._level

    def wait_ms(self, amount: float, now_ms: int) -> float:
        """Return how long until `amount` can be taken; 0: now."""
        missing = min(amount, self.limit) - self.level(now_ms)
        return max(0.0, missing * _MINUTE_MS / self.limit)

    def take(self, amount: float) -> None:
        """Take `amount` out; only after `wait_ms` said 0."""
        self._level -= amount

    def full_in_ms(self, now_ms: int) -> float:
        """Return how long until it is full again."""
        return (self.limit - self.level(now_ms)) * _MINUTE_MS / self.limit


class RateLimits:
    """The buckets of one server.

    Args:
        limits: What a minute holds.
        clock: Where time comes from.
    """

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._clock = clock
        now = clock.monotonic_ms()
        given = {"requests": limits.requests, "input-tokens": limits.input_tokens}
        self._buckets = {name: _Bucket(limit, now) for name, limit in given.items() if limit}

    def admit(self, input_tokens: int) -> Refusal | None:
        """Take one request out of the buckets, or return the 429 that it gets.

        A refused request takes nothing.

        Args:
            input_tokens: Its tokens that are not read from the cache.
        """
        now = self._clock.monotonic_ms()
        amounts = {"requests": 1, "input-tokens": input_tokens}
        waits = {name: bucket.wait_ms(amounts[name], now) for name, bucket in self._buckets.items()}
        worst = max(waits, key=lambda name: waits[name], default="")
        if worst and waits[worst] > 0:
            bucket = self._buckets[worst]
            said = (
                f"This request would exceed your rate limit of {bucket.limit:,}"
                f" {worst.replace('-', ' ')} per minute."
            )
            # Whole seconds, as the endpoint sends them; never less than what is missing.
            seconds = max(1, math.ceil(waits[worst] / 1000))
            headers = {"retry-after": str(seconds), **self.headers()}
            return Refusal(429, "rate_limit_error", said, headers)
        for name, bucket in self._buckets.items():
            bucket.take(amounts[name])
        return None

    def headers(self) -> dict[str, str]:
        """Return the ``anthropic-ratelimit-*`` headers of an answer now; none without limits."""
        now = self._clock.monotonic_ms()
        found: dict[str, str] = {}
        for name, bucket in self._buckets.items():
            full = self._clock.now().astimezone(UTC) + timedelta(
                milliseconds=bucket.full_in_ms(now)
            )
            stem = f"anthropic-ratelimit-{name}"
            found[f"{stem}-limit"] = str(bucket.limit)
            found[f"{stem}-remaining"] = str(max(0, math.floor(bucket.level(now))))
            found[f"{stem}-reset"] = f"{full:%Y-%m-%dT%H:%M:%S}Z"
        return found
