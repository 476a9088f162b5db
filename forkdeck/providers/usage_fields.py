"""Token counts gathered from the events of one answer.

``message_start`` tells the input side and the split of cache writes by lifetime, ``message_delta``
overrides counts but never the split. What was never told stays None: unknown, not zero.
"""

from __future__ import annotations

from typing import cast

from forkdeck.model.raw import JsonDict
from forkdeck.model.usage import Usage

_NAMES = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)

_MOST_TOKENS = 1_000_000_000


class UsageFields:
    """Counts as the endpoint told them, the later over the earlier."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        self._split: tuple[int, int] | None = None
        self._thinking: int | None = None

    def take(self, usage: JsonDict) -> None:
        """Take the usage of one event; null and missing fields change nothing."""
        for name in _NAMES:
            count = _count(usage.get(name))
            if count is not None:
                self._told[name] = count
        split = usage.get("cache_creation")
        if isinstance(split, dict):
            pair = cast("JsonDict", split)
            short = _count(pair.get("ephemeral_5m_input_tokens"))
            long = _count(pair.get("ephemeral_1h_input_tokens"))
            if short is not None or long is not None:
                self._split = (short or 0, long or 0)
        details = usage.get("output_tokens_details")
        if isinstance(details, dict):
            thinking = _count(cast("JsonDict", details).get("thinking_tokens"))
            self._thinking = self._thinking if thinking is None else thinking

    def usage(self) -> Usage | None:
        """Return what is known; None when the input was never told, so nothing can be priced."""
        if "input_tokens" not in self._told:
            return None
        creation = self._told.get("cache_creation_input_tokens")
        short, long = self._split if self._split is not None else (None, None)
        # A split that no longer adds up belongs to counts that were corrected since.
        if short is not None and long is not None and creation != short + long:
            short = long = None
        return Usage(
            input_tokens=self._told["input_tokens"],
            output_tokens=self._told.get("output_tokens", 0),
            cache_read_input_tokens=self._told.get("cache_read_input_tokens"),
            cache_creation_input_tokens=creation,
            cache_creation_5m_tokens=short,
            cache_creation_1h_tokens=long,
            thinking_tokens=self._thinking,
        )


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    # A number nobody can have used is no fact, and would make every sum one.
    return value if 0 <= value <= _MOST_TOKENS else None
