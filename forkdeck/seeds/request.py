"""Request bodies: head, messages and cache marks, and the check of the shared prefix.

A mark is the flat index of a message block (0 is the first block of the first message). Marks
are not part of the prefix, so they may move. There are at most four: S on the last system
block, and up to three in the messages.
"""

from __future__ import annotations

from collections.abc import Sequence

from forkdeck.errors import PrefixChanged
from forkdeck.model.prefix import (
    describe_position,
    fingerprint,
    first_difference,
    message_blocks,
)
from forkdeck.model.raw import JsonDict
from forkdeck.seeds.head import RequestHead
from forkdeck.seeds.validity import merged

EPHEMERAL: JsonDict = {"type": "ephemeral"}
_UNMARKABLE = ("thinking", "redacted_thinking")


def block_count(messages: Sequence[JsonDict]) -> int:
    """Return the number of blocks in `messages`."""
    return sum(len(message_blocks(message)) for message in messages)


def request_ends(messages: Sequence[JsonDict]) -> list[int]:
    """Return the flat index of the block before each answer: where a request ended, and was marked.

    Args:
        messages: A run's messages in history order; neighbours may have one role.
    """
    ends: list[int] = []
    count = 0
    for message in messages:
        if message["role"] == "assistant" and count:
            ends.append(count - 1)
        count += len(message_blocks(message))
    return ends


def rolling_marks(shared: Sequence[int], previous: int | None, total: int) -> tuple[int, ...]:
    """Choose at most three message marks for the next request of a run.

    Args:
        shared: Marks that must be repeated, most valuable last: P (the block the parent marked
            last) and T (end of the shared tail). Later steps keep the last one only.
        previous: End of the run's previous request, or None on its first.
        total: Blocks in the messages now; the last one is always marked.
    """
    if total <= 0:
        return ()
    keep = list(shared) if previous is None else [*list(shared)[-1:], previous]
    marks = [mark for mark in keep if 0 <= mark < total - 1]
    return tuple(sorted({*marks[-2:], total - 1}))


def build_body(
    head: RequestHead,
    messages: Sequence[JsonDict],
    marks: Sequence[int],
    max_tokens: int,
) -> JsonDict:
    """Return a Messages API body; `messages` and the head are not changed.

    Neighbouring messages of one role are joined. Only messages that carry a mark are copied.
    """
    parts = head.parts()
    body: JsonDict = {"model": parts.pop("model"), "max_tokens": max_tokens}
    body.update(parts)
    system = list(body["system"])
    system[-1] = {**system[-1], "cache_control": EPHEMERAL}
    body["system"] = system
    body["messages"] = _marked(merged(messages), set(marks))
    return body


def _marked(messages: list[JsonDict], marks: set[int]) -> list[JsonDict]:
    start = 0
    for number, message in enumerate(messages):
        blocks = message_blocks(message)
        here = {mark - start for mark in marks if start <= mark < start + len(blocks)}
        start += len(blocks)
        if not here:
            continue
        copied = list(blocks)
        for index in here:
            markable = _markable(copied, index)
            if markable is not None:
                copied[markable] = {**copied[markable], "cache_control": EPHEMERAL}
        messages[number] = {"role": message["role"], "content": copied}
    return messages


def _markable(blocks: Sequence[JsonDict], index: int) -> int | None:
    """Walk back from `index` to a block that may carry a mark."""
    while index >= 0:
        block = blocks[index]
        if block.get("type") not in _UNMARKABLE and block.get("text") != "":
            return index
        index -= 1
    return None


def check_prefix(
    expected: Sequence[bytes], found: Sequence[bytes], body: JsonDict, who: str
) -> None:
    """Check that `found` (the positions of `body`) extends `expected`.

    Raises:
        PrefixChanged: Naming the first differing position.
    """
    index = first_difference(expected, found)
    if index is None:
        return
    where = describe_position(body, index)
    raise PrefixChanged(f"{who} would lose the shared prefix: it differs at {where}.", index, where)


def check_recorded(recorded: tuple[int, str], found: Sequence[bytes], who: str) -> None:
    """Check that `found` extends a request of which only the fingerprint was kept.

    Args:
        recorded: How many positions it had, and their fingerprint.
        found: Positions of the request to be sent.
        who: Whose request it is, for the message.

    Raises:
        PrefixChanged: It does not; which position differs cannot be told.
    """
    count, sha256 = recorded
    if count <= len(found) and fingerprint(found[:count]) == sha256:
        return
    where = f"one of the first {count} positions"
    raise PrefixChanged(
        f"{who} would not extend what was sent before the session was opened again: it differs "
        f"at {where}.",
        0,
        where,
    )
