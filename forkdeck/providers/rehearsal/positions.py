"""A request as the cache sees it: positions, cumulative hashes, tokens and cache marks.

Made from a request body by the server; read by the cache, the journal and the diagnosis. It is
written from the published caching rules alone and shares no code with the client's side.

Tokens follow one rule, everywhere: a quarter of the characters of a position's compact JSON,
rounded up. It is an estimate, but the same one for every request, so shares are exact.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Literal, cast

from forkdeck.model.raw import JsonDict
from forkdeck.providers.rehearsal.errors import invalid, object_in

Level = Literal["tools", "system", "messages"]
TTL_MS: Final = {"5m": 300_000, "1h": 3_600_000}
"""Life times of entries, in milliseconds."""

_UNMARKABLE: Final = ("thinking", "redacted_thinking")
_MOST_MARKS: Final = 4


@dataclass(frozen=True)
class Position:
    """One tool, system block or message block."""

    digest: str
    """SHA-256 over everything from the start of the request up to here."""
    tokens: int
    """Tokens from the start of the request up to here."""
    kind: str
    level: Level
    ttl: str | None = None
    """``5m`` or ``1h`` when a cache mark stands here."""


def count_tokens(value: Any) -> int:
    """Return the tokens of a JSON value by the quarter rule; at least 1."""
    return max(1, -(-len(_canonical(value)) // 4))


def _canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def blocks_of(content: Any) -> list[JsonDict]:
    """Return a content as blocks; a string counts as one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks: list[JsonDict] = list(content or ())
    return blocks


class _Walk:
    """Adds up hash and tokens over a request."""

    def __init__(self, salt: str) -> None:
        self._hash = hashlib.sha256(salt.encode("utf-8", "replace"))
        self._tokens = 0
        self.found: list[Position] = []

    def salt(self, text: str) -> None:
        """Let what follows depend on `text`, which is no position itself."""
        self._hash.update(b"\0" + text.encode("utf-8", "replace"))

    def add(self, level: Level, role: str, block: JsonDict, kind: str) -> None:
        """Add one position; its cache mark is not hashed."""
        bare = {key: value for key, value in block.items() if key != "cache_control"}
        text = _canonical(bare)
        self._hash.update(f"\0{level}\0{role}\0{text}".encode("utf-8", "replace"))
        self._tokens += max(1, -(-len(text) // 4))
        mark: Any = block.get("cache_control")
        ttl = _ttl(mark, block, kind) if mark is not None else None
        self.found.append(Position(self._hash.hexdigest(), self._tokens, kind, level, ttl))


def _ttl(mark: Any, block: JsonDict, kind: str) -> str:
    if not isinstance(mark, dict):
        raise invalid("cache_control: Input should be an object")
    fields = cast("JsonDict", mark)
    ttl = fields.get("ttl", "5m")
    if fields.get("type") != "ephemeral" or ttl not in TTL_MS or set(fields) - {"type", "ttl"}:
        raise invalid('cache_control: use {"type": "ephemeral"} with a ttl of "5m" or "1h"')
    if kind in _UNMARKABLE:
        raise invalid(f"cache_control cannot be set on {kind} blocks")
    if kind == "text" and not block.get("text"):
        raise invalid("cache_control cannot be set for empty text blocks")
    return str(ttl)


def positions(
    body: JsonDict, *, partition: str = "", effort_at_start: bool = True
) -> list[Position]:
    """Return every position of a request in cache order: tools, system, messages.

    Args:
        body: A checked request body.
        partition: Whose cache it is; entries of different partitions never meet.
        effort_at_start: Whether thinking and effort part the whole cache (models that render
            them before the tools) or the messages only.

    Raises:
        ApiRefused: A cache mark that the API refuses.
    """
    effort: Any = object_in(body, "output_config").get("effort")
    config = _canonical([body.get("thinking"), effort])
    walk = _Walk(_canonical([partition, body["model"], config if effort_at_start else ""]))
    for tool in body.get("tools") or ():
        walk.add("tools", "", tool, "tool")
    walk.salt(f"speed:{body.get('speed', 'standard')}")
    for block in blocks_of(body.get("system")):
        walk.add("system", "", block, str(block.get("type")))
    messages: list[JsonDict] = body["messages"]
    images = any(
        block.get("type") == "image" for entry in messages for block in blocks_of(entry["content"])
    )
    walk.salt(_canonical([body.get("tool_choice"), config, images]))
    for entry in messages:
        for block in blocks_of(entry["content"]):
            walk.add("messages", str(entry["role"]), block, str(block.get("type")))
    return _with_automatic(walk.found, body.get("cache_control"))


def _with_automatic(found: list[Position], mark: Any) -> list[Position]:
    """Place the request's own top-level mark, then check all of them."""
    marked = [place for place in found if place.ttl]
    if mark is not None:
        ttl = _ttl(mark, {"text": "-"}, "text")
        last = len(found) - 1
        while last >= 0 and found[last].kind in _UNMARKABLE:
            last -= 1
        if last >= 0 and found[last].ttl is None:
            if len(marked) >= _MOST_MARKS:
                raise invalid("cache_control: no breakpoint is left for automatic caching")
            found[last] = replace(found[last], ttl=ttl)
        elif last >= 0 and found[last].ttl != ttl:
            raise invalid("cache_control: automatic caching and the last block differ in ttl")
    marked = [place for place in found if place.ttl]
    if len(marked) > _MOST_MARKS:
        raise invalid(
            f"A maximum of {_MOST_MARKS} blocks with cache_control may be provided. "
            f"Found {len(marked)}."
        )
    for left, right in pairwise(marked):
        if left.ttl == "5m" and right.ttl == "1h":
            raise invalid("a ttl='1h' cache_control block must not come after a ttl='5m' one")
    return found


def level_digests(found: list[Position]) -> dict[str, str]:
    """Return the hash at the end of each level that has positions."""
    return {place.level: place.digest for place in found}
