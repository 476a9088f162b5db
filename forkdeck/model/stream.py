"""What a provider yields while one request is answered; not events, they have no run."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from forkdeck.model.raw import JsonDict
from forkdeck.model.usage import Usage


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request, ready to be sent.

    ``body`` is the Messages API body with its cache marks, keys in the order they are sent;
    the provider adds nothing that belongs to the prefix.
    """

    run: str
    body: JsonDict
    previous_message_id: str | None = None
    """For the endpoint's own diagnosis of a cache miss."""


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """``message_start``: the prefix is cached from now on, the input is billed."""

    message_id: str
    model: str
    usage: Usage | None
    """None when the endpoint told no usage."""
    cache_miss_reason: str | None = None


class TextPart(msgspec.Struct, frozen=True):
    """Joined text deltas of one content block."""

    index: int
    text: str


class ThinkingPart(msgspec.Struct, frozen=True):
    """Joined thinking deltas."""

    index: int
    text: str


class CallPart(msgspec.Struct, frozen=True):
    """Joined deltas of a tool call's input; not parsed."""

    index: int
    name: str
    text: str


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """``message_stop`` with a stop reason: the turn is valid, its tools may run."""

    message: msgspec.Raw
    """The assistant message ``{"role", "content"}`` in arrival order, to be resent as it is."""
    stop_reason: str
    usage: Usage | None
    message_id: str
    refusal: str | None = None
    unreadable_calls: tuple[str, ...] = ()
    """Ids of tool_use blocks whose input was cut off: never run, answered with an error."""


StreamPart: TypeAlias = Opened | TextPart | ThinkingPart | CallPart | Completed
"""What `Provider.stream` yields, `Opened` first and `Completed` last."""
