"""An answer as the frames of an SSE stream, at the set rate, or as one whole message.

Called by the server with a reply of the script; what comes out is written to the client, after
the faults had their turn. Pure but for the chain that signs thinking.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from forkdeck.model.raw import JsonDict
from forkdeck.providers.rehearsal.cache import Plan
from forkdeck.providers.rehearsal.errors import object_in
from forkdeck.providers.rehearsal.faults import Frame
from forkdeck.providers.rehearsal.reply import Reply
from forkdeck.providers.rehearsal.signatures import Chain

_WORDS: Final = re.compile(r"\s*\S+\s*|\s+")
_PIECE_MS: Final = 40
"""Deltas leave about this often at high rates, as tokens do in bunches."""
_MARKUP_TOKENS: Final = 3
"""Tokens of a block's own markup in the output count."""


@dataclass(frozen=True)
class Envelope:
    """What an answer carries besides its content."""

    message_id: str
    model: str
    plan: Plan
    digest: str
    """Hash of the whole prompt; ids of tool calls are made from it."""
    diagnostics: JsonDict | None = None


@dataclass(frozen=True)
class Rendered:
    """A written answer."""

    frames: tuple[Frame, ...]
    message: JsonDict
    """The whole message, as a request without ``stream`` gets it."""
    output_tokens: int


def _pieces(text: str, rate: float) -> Iterator[str]:
    """Cut a text at word ends into pieces of about one token, more at high rates."""
    least = max(1.0, rate * _PIECE_MS / 1000) * 4
    piece = ""
    for word in _WORDS.findall(text):
        piece += word
        if len(piece) >= least:
            yield piece
            piece = ""
    if piece:
        yield piece


class _Writer:
    """Collects frames with their due times and counts output tokens up to a limit."""

    def __init__(self, ttft_ms: float, limit: int) -> None:
        self.frames: list[Frame] = []
        self.due_ms = ttft_ms
        self.left = limit
        self.used = 0
        self.content: list[JsonDict] = []

    @property
    def full(self) -> bool:
        """Whether ``max_tokens`` is reached."""
        return self.left <= 0

    def put(self, event: JsonDict) -> None:
        """Add an event that is due now."""
        self.frames.append(Frame(self.due_ms, event))

    def spend(self, tokens: int) -> None:
        """Count output tokens."""
        self.used += tokens
        self.left -= tokens

    def open(self, block: JsonDict) -> int:
        """Begin a block; returns its index."""
        index = len(self.content)
        self.content.append(dict(block))
        self.put({"type": "content_block_start", "index": index, "content_block": block})
        return index

    def deltas(self, index: int, kind: str, key: str, text: str, rate: float) -> str:
        """Write a text as deltas, as far as the limit allows; returns what was written."""
        written = ""
        for piece in _pieces(text, rate):
            part = piece[: self.left * 4]
            if not part:
                break
            tokens = -(-len(part) // 4)
            self.due_ms += len(part) / 4 / rate * 1000 if rate > 0 else 0
            self.spend(tokens)
            written += part
            delta = {"type": kind, key: part}
            self.put({"type": "content_block_delta", "index": index, "delta": delta})
        return written

    def close(self, index: int) -> None:
        """End a block."""
        self.put({"type": "content_block_stop", "index": index})


def render(reply: Reply, body: JsonDict, envelope: Envelope, chain: Chain) -> Rendered:
    """Write an answer.

    Args:
        reply: What to say.
        body: The request: its ``max_tokens`` and its thinking display are honoured.
        envelope: Id, model and usage of the answer.
        chain: The signing chain at the end of the request.
    """
    writer = _Writer(reply.ttft_ms, int(body["max_tokens"]))
    start = _message(envelope, [], None, envelope.plan.usage(1 if body["max_tokens"] else 0))
    writer.put({"type": "message_start", "message": start})
    writer.put({"type": "ping"})
    if body["max_tokens"] > 0:
        _write_thinking(writer, reply, object_in(body, "thinking"), chain)
        if reply.text and not writer.full:
            index = writer.open({"type": "text", "text": ""})
            text = writer.deltas(index, "text_delta", "text", reply.text, reply.rate)
            writer.content[index]["text"] = text
            writer.close(index)
        _write_calls(writer, reply, envelope.digest)
    stop = reply.stops_for if writer.left > 0 else "max_tokens"
    usage = {"output_tokens": max(writer.used, 1 if writer.content else 0)}
    delta = {"stop_reason": stop, "stop_sequence": None, "stop_details": None}
    writer.put({"type": "message_delta", "delta": delta, "usage": usage})
    writer.put({"type": "message_stop"})
    whole = _message(envelope, writer.content, stop, envelope.plan.usage(usage["output_tokens"]))
    return Rendered(tuple(writer.frames), whole, writer.used)


def _write_thinking(writer: _Writer, reply: Reply, config: JsonDict, chain: Chain) -> None:
    kind = config.get("type", "disabled")
    if not reply.thinking or kind == "disabled":
        return
    index = writer.open({"type": "thinking", "thinking": "", "signature": ""})
    if config.get("display", "omitted") == "summarized":
        written = writer.deltas(
            index, "thinking_delta", "thinking", reply.thinking, max(reply.rate, 1) * 2
        )
    else:
        written = ""
        writer.spend(min(writer.left, -(-len(reply.thinking) // 4)))
    signature = chain.sign(written)
    writer.content[index].update(thinking=written, signature=signature)
    delta = {"type": "signature_delta", "signature": signature}
    writer.put({"type": "content_block_delta", "index": index, "delta": delta})
    writer.close(index)


def _write_calls(writer: _Writer, reply: Reply, digest: str) -> None:
    for number, call in enumerate(reply.calls):
        if writer.left <= _MARKUP_TOKENS:
            writer.spend(max(writer.left, 0))
            return
        writer.spend(_MARKUP_TOKENS)
        name = hashlib.sha256(f"{digest}{number}".encode()).hexdigest()[:20]
        block: JsonDict = {
            "type": "tool_use",
            "id": f"toolu_{name}",
            "name": call.tool,
            "input": {},
        }
        index = writer.open(block)
        text = json.dumps(call.input, ensure_ascii=False)
        empty = {"type": "input_json_delta", "partial_json": ""}
        writer.put({"type": "content_block_delta", "index": index, "delta": empty})
        written = writer.deltas(index, "input_json_delta", "partial_json", text, reply.call_rate)
        writer.content[index]["input"] = call.input if written == text else {}
        writer.close(index)


def _message(
    envelope: Envelope, content: Sequence[JsonDict], stop: str | None, usage: JsonDict
) -> JsonDict:
    return {
        "id": envelope.message_id,
        "type": "message",
        "role": "assistant",
        "model": envelope.model,
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "stop_details": None,
        "usage": usage,
        "diagnostics": envelope.diagnostics,
    }
