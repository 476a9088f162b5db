"""Items: the finished things a person sees in a transcript, in the order they happened."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from forkdeck.model.words import Access, Severity, ToolStatus

ItemKind: TypeAlias = Literal[
    "you", "text", "thinking", "tool", "task", "boundary", "report", "batch", "delivery",
    "cut", "shell", "steer", "notice",
]  # fmt: skip
"""`text` is the model's; `task` a fork's directive; `boundary` ends what was inherited."""


class ToolFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call, running (`status` None) or ended."""

    call: str
    name: str
    argument: str
    started_at_ms: int
    status: ToolStatus | None = None
    view: Access | None = None
    summary: str = ""
    content: str = ""
    patch: str = ""
    path: str | None = None
    added: int | None = None
    removed: int | None = None
    exit_code: int | None = None
    duration_ms: int = 0
    tail: str = ""
    """Last lines of a running call's output."""
    spill: str | None = None


class Item(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finished thing in a transcript."""

    kind: ItemKind
    at_ms: int
    text: str = ""
    tool: ToolFacts | None = None
    batch: str | None = None
    """For `batch` items: whose forks to draw."""
    handles: tuple[str, ...] = ()
    severity: Severity = "info"
    remedy: str = ""


class Chunk(msgspec.Struct, frozen=True):
    """A piece of the answer that is being streamed."""

    kind: Literal["text", "thinking", "call"]
    index: int
    text: str
    name: str = ""
