"""What makes a list of messages one that may be sent, and the only merging that is allowed."""

from __future__ import annotations

from collections.abc import Sequence

from forkdeck.errors import SeedRefused
from forkdeck.model.prefix import message_blocks
from forkdeck.model.raw import JsonDict


def merged(messages: Sequence[JsonDict]) -> list[JsonDict]:
    """Join neighbouring messages of one role; the positions stay the same.

    Blocks are shared, not copied; messages that need no joining are passed through, and empty
    ones are left out.
    """
    result: list[JsonDict] = []
    for message in messages:
        if message.get("content") == []:
            continue
        if result and result[-1]["role"] == message["role"]:
            blocks = message_blocks(result[-1]) + message_blocks(message)
            result[-1] = {"role": message["role"], "content": blocks}
        else:
            result.append(message)
    return result


def tool_use_ids(message: JsonDict) -> list[str]:
    """Return the ids of a message's tool calls, in order."""
    return [str(b["id"]) for b in message_blocks(message) if b.get("type") == "tool_use"]


def check(messages: Sequence[JsonDict]) -> None:
    """Check a merged history that ends in a user message.

    Raises:
        SeedRefused: Naming the first fault: an empty history, a wrong first or last role, an
            empty message, a call that is not answered in the next message, a result without a
            call, or text before results.
    """
    if not messages:
        raise SeedRefused("The history is empty.", "Send a prompt first.")
    if messages[0]["role"] != "user" or messages[-1]["role"] != "user":
        raise SeedRefused("A history must begin and end with a user message.")
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        blocks = message_blocks(message)
        if not blocks:
            raise SeedRefused(f"Message {number} of the history is empty.")
        if number and messages[number - 1]["role"] == message["role"]:
            raise SeedRefused(f"Messages {number - 1} and {number} have the same role.")
        if message["role"] == "assistant":
            open_calls = tool_use_ids(message)
            continue
        _check_results(number, blocks, open_calls)
        open_calls = []


def _check_results(number: int, blocks: Sequence[JsonDict], open_calls: Sequence[str]) -> None:
    kinds = [block.get("type") for block in blocks]
    results = [str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"]
    if sorted(results) != sorted(open_calls):
        missing = sorted(set(open_calls) - set(results))
        what = f"call {missing[0]} has no result" if missing else "a result has no call"
        raise SeedRefused(f"Message {number} of the history: {what}.")
    if "tool_result" in kinds[len(results) :]:
        raise SeedRefused(f"Message {number} of the history: text stands before a tool result.")
