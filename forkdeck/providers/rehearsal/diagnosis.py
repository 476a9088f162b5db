"""Why a request could not read what an earlier one had cached, in the API's own words.

Asked by the exchange when a request names a previous message; compares with the journal.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from forkdeck.model.raw import JsonDict
from forkdeck.providers.rehearsal.errors import object_in
from forkdeck.providers.rehearsal.journal import Journal
from forkdeck.providers.rehearsal.positions import Position, blocks_of


def diagnose(
    body: JsonDict, found: Sequence[Position], read: int, journal: Journal
) -> JsonDict | None:
    """Return the ``diagnostics`` of an answer, or None when there is nothing to tell.

    Args:
        body: The request.
        found: Its positions.
        read: Tokens it reads from the cache.
        journal: Where the previous request stands.
    """
    previous: Any = object_in(body, "diagnostics").get("previous_message_id")
    if not isinstance(previous, str):
        return None
    entry = journal.by_message(previous)
    if entry is None:
        return _reason("previous_message_not_found", None)
    kind = _changed(entry.body, body)
    digests = tuple(place.digest for place in found)
    if not kind and digests[: len(entry.digests)] != entry.digests:
        kind = "messages_changed"
    if not kind:
        return None
    cached = int(entry.usage.get("cache_read_input_tokens", 0))
    cached += int(entry.usage.get("cache_creation_input_tokens", 0))
    return _reason(kind, max(cached - read, 0))


def _reason(kind: str, missed: int | None) -> JsonDict:
    reason: JsonDict = {"type": kind}
    if missed is not None:
        reason["cache_missed_input_tokens"] = missed
    return {"cache_miss_reason": reason}


def _changed(before: JsonDict, now: JsonDict) -> str:
    if (before.get("model"), before.get("speed")) != (now.get("model"), now.get("speed")):
        return "model_changed"
    if _bare(before.get("tools") or []) != _bare(now.get("tools") or []):
        return "tools_changed"
    if _bare(blocks_of(before.get("system"))) != _bare(blocks_of(now.get("system"))):
        return "system_changed"
    return ""


def _bare(blocks: Sequence[JsonDict]) -> str:
    kept = [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]
    return json.dumps(kept)
