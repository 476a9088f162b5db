"""Canonical bytes of a request: what must be equal for a prompt cache to be hit.

The unit is the *position*: each tool, each system block, each (role, block) of the messages.
``cache_control`` is not part of it; key order is. A *prefix* is always a list of positions.
Pure functions; used before every send, by the seeds and by the tests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from forkdeck.model.raw import JsonDict


def _canonical(level: str, value: Any) -> bytes:
    body = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"{level}|{body}".encode()


def without_mark(block: JsonDict) -> JsonDict:
    """Return `block` without its ``cache_control``, keys in their order."""
    return {key: value for key, value in block.items() if key != "cache_control"}


def message_blocks(message: JsonDict) -> list[JsonDict]:
    """Return a message's content as a list of blocks; a string counts as one text block."""
    content: Any = message.get("content", "")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks: list[JsonDict] = content
    return blocks


def message_positions(messages: Iterable[JsonDict]) -> list[bytes]:
    """Return the canonical bytes of each block of `messages`, in order."""
    return [
        _canonical(str(message["role"]), without_mark(block))
        for message in messages
        for block in message_blocks(message)
    ]


def positions(body: JsonDict) -> list[bytes]:
    """Return the canonical bytes of every position of a request body, in cache order.

    The model, thinking and effort salt the first position: they partition the cache.
    """
    salt = {
        "model": body.get("model"),
        "thinking": body.get("thinking"),
        "output_config": body.get("output_config"),
    }
    found = [_canonical("head", salt)]
    found += [_canonical("tool", without_mark(tool)) for tool in body.get("tools") or ()]
    found += [_canonical("system", without_mark(block)) for block in body.get("system") or ()]
    return found + message_positions(body.get("messages") or ())


def fingerprint(found: Sequence[bytes]) -> str:
    """Return the SHA-256 (hex) over a list of positions."""
    digest = hashlib.sha256()
    for position in found:
        digest.update(len(position).to_bytes(8, "big"))
        digest.update(position)
    return digest.hexdigest()


def first_difference(expected: Sequence[bytes], found: Sequence[bytes]) -> int | None:
    """Return the index of the first of `expected` that `found` lacks; None when it extends it."""
    for index, position in enumerate(expected):
        if index >= len(found) or found[index] != position:
            return index
    return None


def describe_position(body: JsonDict, index: int) -> str:
    """Name a position of `body` in words, such as ``messages[3] block 1``."""
    if index == 0:
        return "model, thinking or effort"
    index -= 1
    tools = len(body.get("tools") or ())
    if index < tools:
        return f"tools[{index}]"
    index -= tools
    system = len(body.get("system") or ())
    if index < system:
        return f"system block {index}"
    index -= system
    for number, message in enumerate(body.get("messages") or ()):
        size = len(message_blocks(message))
        if index < size:
            return f"messages[{number}] block {index}"
        index -= size
    return "past the end of the request"
