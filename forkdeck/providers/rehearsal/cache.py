"""The prompt cache as the endpoint documents it: who writes, who reads, and for how long.

Used by the server: `PromptCache.plan` when a request arrives, `PromptCache.commit` at its
first byte. Time comes from the injected clock, so life times are tested without waiting.

Rules: entries are written at cache marks only, one each, from the model's minimum on. A read
looks at each mark, last first, and back over 20 positions counting the mark itself; a run of
tool calls, or of their results, counts as one. An entry can be read once its writer's first
byte is out, and lives from the *start* of the request that wrote or read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from forkdeck.model.ports import Clock
from forkdeck.model.raw import JsonDict
from forkdeck.providers.rehearsal.positions import TTL_MS, Position

LOOKBACK: Final = 20
"""Positions a mark can see, itself included."""

_MOST_ENTRIES: Final = 50_000


@dataclass
class _Entry:
    available_ms: int
    expires_ms: int
    ttl_ms: int


@dataclass(frozen=True)
class Plan:
    """What one request reads and writes; tokens.

    ``read + write_1h + write_5m + fresh`` is ``total``.
    """

    read: int
    write_1h: int
    write_5m: int
    fresh: int
    total: int
    start_ms: int
    hit: str | None
    writes: tuple[tuple[str, int], ...]
    """(digest, life time in ms) of each entry to be written."""

    def usage(self, output: int) -> JsonDict:
        """Return the API's ``usage`` with `output` tokens so far."""
        return {
            "input_tokens": self.fresh,
            "cache_creation_input_tokens": self.write_1h + self.write_5m,
            "cache_read_input_tokens": self.read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.write_5m,
                "ephemeral_1h_input_tokens": self.write_1h,
            },
            "output_tokens": output,
            "service_tier": "standard",
        }


class PromptCache:
    """All entries of one server.

    Args:
        clock: Where life times are read from.
        runs_collapse: Whether a run of tool calls or results counts as one position.
    """

    def __init__(self, clock: Clock, *, runs_collapse: bool = True) -> None:
        self._clock = clock
        self._collapse = runs_collapse
        self._entries: dict[str, _Entry] = {}

    def plan(self, found: Sequence[Position], minimum: int, start_ms: int | None = None) -> Plan:
        """Look up what a request would read and write; changes nothing.

        Args:
            found: The request's positions.
            minimum: The model's fewest cacheable tokens.
            start_ms: When the request arrived; now, when left out.
        """
        start = self._clock.monotonic_ms() if start_ms is None else start_ms
        marks = [index for index, place in enumerate(found) if place.ttl]
        hit = self._lookup(found, marks, start)
        read = found[hit].tokens if hit is not None else 0
        writing = [
            found[index]
            for index in marks
            if found[index].tokens >= minimum and (hit is None or index > hit)
        ]
        long_end = max((place.tokens for place in writing if place.ttl == "1h"), default=read)
        end = max((place.tokens for place in writing), default=read)
        total = found[-1].tokens if found else 0
        return Plan(
            read=read,
            write_1h=long_end - read,
            write_5m=end - long_end,
            fresh=total - end,
            total=total,
            start_ms=start,
            hit=found[hit].digest if hit is not None else None,
            writes=tuple((place.digest, TTL_MS[place.ttl or "5m"]) for place in writing),
        )

    def _lookup(self, found: Sequence[Position], marks: Sequence[int], start: int) -> int | None:
        for mark in reversed(marks):
            seen = 0
            previous = ""
            for index in range(mark, -1, -1):
                kind = found[index].kind
                runs_on = kind == previous and kind in ("tool_use", "tool_result")
                seen += 0 if self._collapse and runs_on else 1
                if seen > LOOKBACK:
                    break
                if self._readable(found[index].digest, start):
                    return index
                previous = kind
        return None

    def _readable(self, digest: str, start: int) -> bool:
        entry = self._entries.get(digest)
        now = self._clock.monotonic_ms()
        return entry is not None and entry.available_ms <= now and entry.expires_ms > start

    def commit(self, plan: Plan) -> None:
        """Make a plan's reads and writes count; called when the first byte leaves.

        A request that never gets there neither writes nor refreshes. A slow second writer of
        the same prefix never shortens a life nor makes an entry available later.
        """
        now = self._clock.monotonic_ms()
        read = self._entries.get(plan.hit) if plan.hit else None
        if read is not None:
            read.expires_ms = max(read.expires_ms, plan.start_ms + read.ttl_ms)
        for digest, ttl_ms in plan.writes:
            entry = self._entries.get(digest)
            if entry is not None and entry.expires_ms > now:
                entry.expires_ms = max(entry.expires_ms, plan.start_ms + ttl_ms)
                entry.ttl_ms = max(entry.ttl_ms, ttl_ms)
            else:
                self._entries[digest] = _Entry(now, plan.start_ms + ttl_ms, ttl_ms)
        if len(self._entries) > _MOST_ENTRIES:
            self._entries = {
                digest: entry for digest, entry in self._entries.items() if entry.expires_ms > now
            }
