"""The request head: model, tools, system, thinking and effort, built once and kept as text.

It is the first part of every request's cached prefix, so it holds no time, no directory, no git
state and no id, and children use the very object their parent uses.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

from forkdeck.errors import LogFormatError
from forkdeck.model.ports import ModelFacts
from forkdeck.model.raw import JsonDict
from forkdeck.model.tooling import ToolSpec
from forkdeck.seeds.texts import text

_NAMES = {
    "model": "model",
    "system": "system prompt",
    "tools": "tool list",
    "thinking": "thinking",
    "output_config": "effort",
}


class RequestHead:
    """An immutable request head; equal heads have equal `text`."""

    def __init__(self, body: JsonDict) -> None:
        self._body = body

    @cached_property
    def text(self) -> str:
        """The head as JSON, in the order it is sent: what is stored and hashed."""
        return json.dumps(self._body, ensure_ascii=True, separators=(",", ":"))

    @cached_property
    def sha256(self) -> str:
        """SHA-256 (hex) of `text`."""
        return hashlib.sha256(self.text.encode("ascii")).hexdigest()

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self._body["model"])

    @property
    def effort(self) -> str | None:
        """The effort that is sent, or None for the model's default."""
        config: JsonDict = self._body.get("output_config") or {}
        return config.get("effort")

    @property
    def thinking(self) -> str | None:
        """The type of thinking that is sent, or None."""
        config: JsonDict = self._body.get("thinking") or {}
        return config.get("type")

    @property
    def estimated_tokens(self) -> int:
        """Rough tokens of tools and system, four characters each."""
        return (len(self.text) + 3) // 4

    def parts(self) -> JsonDict:
        """Return a shallow copy of the head's request fields; their values are shared."""
        return dict(self._body)

    def changes(self, other: RequestHead) -> frozenset[str]:
        """Return what another head has otherwise, by the names that a person reads."""
        if other is self:
            return frozenset()
        mine, theirs = self.parts(), other.parts()
        return frozenset(name for key, name in _NAMES.items() if mine.get(key) != theirs.get(key))

    @classmethod
    def from_text(cls, stored: str) -> RequestHead:
        """Return the head that was stored as `stored`.

        Raises:
            LogFormatError: It is no request head.
        """
        try:
            body: Any = json.loads(stored)
        except ValueError as error:
            raise LogFormatError(f"The stored request head is not JSON: {error}.") from error
        if not isinstance(body, dict) or "model" not in body:
            raise LogFormatError("The stored request head has no model.")
        return cls(cast("JsonDict", body))


def build_head(
    model: str,
    specs: Sequence[ToolSpec],
    facts: ModelFacts,
    *,
    effort: str | None = None,
    thinking: bool = True,
    system: str | None = None,
) -> RequestHead:
    """Build a head.

    Args:
        model: The model's name.
        specs: The tools in their fixed order.
        facts: What the model takes; its default effort is left out, being the default.
        effort: An effort other than the default, or None.
        thinking: Whether the endpoint takes the thinking parameter.
        system: Another system prompt than the built-in one (typed agents only).
    """
    body: JsonDict = {"model": model}
    if thinking and facts.thinking is not None:
        body["thinking"] = facts.thinking
    if effort is not None and effort != facts.effort:
        body["output_config"] = {"effort": effort}
    body["tools"] = [spec.declaration() for spec in specs]
    body["system"] = [{"type": "text", "text": system or text("system")}]
    return RequestHead(body)
