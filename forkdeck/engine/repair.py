"""Making a history valid again after it was interrupted: every open call gets its result."""

from __future__ import annotations

from collections.abc import Sequence

from forkdeck.engine.dispatch import result_block
from forkdeck.model.raw import JsonDict
from forkdeck.seeds.validity import tool_use_ids

INTERRUPTED = (
    "Interrupted: the session ended before this call had a result. It may have run in part."
)


def interrupted_results(messages: Sequence[JsonDict]) -> list[JsonDict]:
    """Return a result for each call of a trailing assistant message; none when it has no calls."""
    if not messages or messages[-1]["role"] != "assistant":
        return []
    return [result_block(call, INTERRUPTED, error=True) for call in tool_use_ids(messages[-1])]
