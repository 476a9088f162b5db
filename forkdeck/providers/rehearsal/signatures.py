"""Signed thinking: proof that a replayed thinking block stands where it was written.

The server signs every thinking block over everything before it and checks replayed ones, as
current models do. Called by the checks (verify) and by the answer (sign).

A block's signature names the thinking block before it, so that leaving out a *leading run* of
thinking is legal and any other removal is not. The key is fixed: it catches a client's
mistakes, not an attacker, and a saved session must stay valid when the server starts again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from forkdeck.model.raw import JsonDict
from forkdeck.providers.rehearsal.faults import STRANGER
from forkdeck.providers.rehearsal.positions import blocks_of

_KEY: Final = b"forkdeck rehearsal: catches mistakes, keeps no secret"
_NONE: Final = "-" * 16
KINDS: Final = ("thinking", "redacted_thinking")
"""Block types that are bound to what stands before them."""


@dataclass(frozen=True)
class Fault:
    """A thinking block that does not stand where it was written."""

    message: int
    block: int
    why: str
    foreign: bool
    """Another model's block: dropped in silence instead of refused."""


class Chain:
    """The state of signing at one place of a conversation; grows with every block."""

    def __init__(self, body: JsonDict) -> None:
        tools = sorted(body.get("tools") or (), key=lambda tool: str(tool.get("name")))
        head = [[_bare(tool) for tool in tools], [_bare(b) for b in blocks_of(body.get("system"))]]
        self._model = hashlib.sha256(str(body["model"]).encode()).hexdigest()[:8]
        self._before = hashlib.sha256(_bytes(head))
        self._last = _NONE
        self._first = True

    def add(self, role: str, block: JsonDict) -> None:
        """Go past a block that is no thinking; one that a fault put in was not there to sign."""
        if block == STRANGER:
            return
        self._before.update(_bytes([role, _bare(block)]))

    def sign(self, text: str) -> str:
        """Return the signature of a new thinking block at this place, and go past it."""
        mac = self._mac(text, self._last)
        signature = self._pack(self._last, mac)
        self._last, self._first = mac[:16], False
        return signature

    def verify(self, text: str, signature: str) -> tuple[str, bool]:
        """Check a replayed thinking block at this place, and go past it.

        Returns:
            (why it is wrong or "", whether it is another model's block).
        """
        parts = _unpack(signature)
        if parts is None:
            return "Invalid `signature` in `thinking` block", False
        model, previous, mac = parts
        if model != self._model:
            return "the block belongs to another model", True
        told = self._mac(text, previous)
        if not hmac.compare_digest(mac, told):
            return (
                "`thinking` or `redacted_thinking` blocks cannot be modified, nor anything before "
                "them. These blocks must remain as they were in the original response"
            ), False
        if not self._first and previous != self._last:
            return "a thinking block before this one was removed", False
        self._last, self._first = mac[:16], False
        return "", False

    def _mac(self, text: str, previous: str) -> str:
        before = self._before.hexdigest()
        return hmac.new(_KEY, _bytes([before, previous, text]), hashlib.sha256).hexdigest()

    def _pack(self, previous: str, mac: str) -> str:
        return base64.b64encode(f"fd1.{self._model}.{previous}.{mac}".encode()).decode()


def _unpack(signature: str) -> tuple[str, str, str] | None:
    try:
        parts = base64.b64decode(signature, validate=True).decode("ascii").split(".")
    except ValueError:
        return None
    if len(parts) != 4 or parts[0] != "fd1":
        return None
    return parts[1], parts[2], parts[3]


def _bare(block: JsonDict) -> JsonDict:
    return {key: value for key, value in block.items() if key != "cache_control"}


def _bytes(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.encode("ascii")


def walk(body: JsonDict) -> tuple[Chain, Sequence[Fault]]:
    """Check every thinking block of a request.

    Returns:
        The chain at the end of the request, ready to sign the answer, and what was wrong.
    """
    chain = Chain(body)
    wrong: list[Fault] = []
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(blocks_of(message["content"])):
            if block.get("type") not in KINDS:
                chain.add(str(message["role"]), block)
                continue
            text = str(block.get("thinking", block.get("data", "")))
            why, foreign = chain.verify(text, str(block.get("signature", "")))
            if why:
                wrong.append(Fault(number, index, why, foreign))
    return chain, wrong
