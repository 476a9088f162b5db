"""Events of a turn: one drain of input, and what enters a history."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from forkdeck.model.events.base import Event
from forkdeck.model.words import MessageKind


class PromptQueued(Event, frozen=True, kw_only=True, tag="prompt.queued"):
    """A prompt that waits until the parent's turn ends."""

    prompt: str
    """Id of the queued prompt."""
    text: str


class PromptWithdrawn(Event, frozen=True, kw_only=True, tag="prompt.withdrawn"):
    """A queued prompt left the queue: sent, or taken back by the person."""

    prompt: str
    why: Literal["sent", "taken back"] = "taken back"


class TurnStarted(Event, frozen=True, kw_only=True, tag="turn.started"):
    """A run begins to work on input."""

    turn: int
    source: Literal["prompt", "wake", "fork", "resend", "compact"] = "prompt"


class TurnEnded(Event, frozen=True, kw_only=True, tag="turn.ended"):
    """A run stopped working; ``reason`` is a stop reason or an error's words."""

    turn: int
    outcome: Literal["completed", "failed", "interrupted"]
    reason: str = ""
    remedy: str = ""


class MessageAdded(Event, frozen=True, kw_only=True, tag="message.added"):
    """A user message entered a run's history, exactly as it will be sent.

    Its ``delivers`` *is* the delivery of those forks' reports: a fork has at most one.
    """

    kind: MessageKind
    message: msgspec.Raw
    text: str = ""
    """What a person sees of it; empty when it is drawn from other events."""
    delivers: tuple[str, ...] = ()
    inherited_blocks: int = 0
    """Leading blocks that came from the parent's message (a seed's last message)."""


class ShellRan(Event, frozen=True, kw_only=True, tag="shell.ran"):
    """The person's ``!command`` ended; its output goes into the next user message."""

    command: str
    output: str
    exit_code: int | None
    duration_ms: int = 0


class HistoryCompacted(Event, frozen=True, kw_only=True, tag="history.compacted"):
    """A run's history was replaced by a summary and a kept tail without its thinking.

    The messages before stay in the log; forks that were admitted before keep their own seed.
    """

    message: msgspec.Raw
    """The user message with the summary: the first message from now on."""
    kept_from: int
    """Index, in the history before, of the first message that is kept whole."""
    kept_to: int
    """Index behind the last one; what follows (the summary's own answer) is left out."""
    before_tokens: int | None = None
    """Tokens of the context before, when known."""
    text: str = ""
    """The summary, as a person reads it."""


TurnFamily: TypeAlias = (
    PromptQueued
    | PromptWithdrawn
    | TurnStarted
    | TurnEnded
    | MessageAdded
    | ShellRan
    | HistoryCompacted
)
"""The turn's events."""
