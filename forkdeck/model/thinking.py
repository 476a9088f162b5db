"""Inherited thinking: kept byte for byte, or left out whole.

Signed thinking is only valid for the model, endpoint and account that made it, behind the very
messages it was made for. The engine says from which message on it is kept; everything before is
sent without it, by the parent and by its forks alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from forkdeck.model.prefix import message_blocks
from forkdeck.model.raw import JsonDict, from_raw, to_raw
from forkdeck.model.state import HistoryEntry

KINDS = ("thinking", "redacted_thinking")
"""Types of blocks that only their maker can read."""


def has_thinking(message: JsonDict) -> bool:
    """Tell whether a message holds a block of thinking."""
    return any(block.get("type") in KINDS for block in message_blocks(message))


def stripped(message: JsonDict) -> JsonDict:
    """Return a message without its thinking; its other blocks are shared. May be left empty."""
    kept = [block for block in message_blocks(message) if block.get("type") not in KINDS]
    return {"role": message["role"], "content": kept}


def sent_messages(history: Sequence[HistoryEntry], thinking_from: int) -> list[JsonDict]:
    """Return a history decoded as it is sent: no thinking before `thinking_from`.

    The list is as long as the history; a message of nothing but thinking stays as an empty one,
    which a request body leaves out.
    """
    return [
        _as_sent(from_raw(entry.message)) if index < thinking_from else from_raw(entry.message)
        for index, entry in enumerate(history)
    ]


def as_sent(history: Sequence[HistoryEntry], thinking_from: int) -> Sequence[HistoryEntry]:
    """Return a history whose messages are what is sent; the same value when nothing changes."""
    if thinking_from <= 0:
        return history
    found: list[HistoryEntry] = []
    for index, entry in enumerate(history):
        if index < thinking_from and entry.role == "assistant":
            message = from_raw(entry.message)
            if has_thinking(message):
                found.append(replace(entry, message=to_raw(stripped(message))))
                continue
        found.append(entry)
    return found


def _as_sent(message: JsonDict) -> JsonDict:
    return stripped(message) if has_thinking(message) else message
