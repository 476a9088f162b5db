"""Events of tool calls and of the questions they raise."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from forkdeck.model.events.base import Event
from forkdeck.model.launching import LaunchPlan
from forkdeck.model.words import Access, Answer, ToolStatus


class ToolStarted(Event, frozen=True, kw_only=True, tag="tool.started"):
    """A tool call begins; logged and synced before a call with effects runs."""

    call: str
    """The API's tool_use id."""
    name: str
    input: msgspec.Raw
    argument: str
    """The call in one line, as a person reads it: a path, a pattern, a command."""
    view: Access | None = None


class ToolProgressed(Event, frozen=True, kw_only=True, tag="tool.progressed"):
    """A running call wrote output: its last lines, and how much in all."""

    call: str
    tail: str
    total_bytes: int = 0


class ToolEnded(Event, frozen=True, kw_only=True, tag="tool.ended"):
    """A tool call ended; ``content`` is the text the model gets."""

    call: str
    name: str
    status: ToolStatus
    content: str
    summary: str = ""
    """The result in a few words, such as ``120 lines`` or ``exit 1``."""
    duration_ms: int = 0
    view: Access | None = None
    exit_code: int | None = None
    path: str | None = None
    """The file that was read or changed, relative to the run's root."""
    added: int | None = None
    removed: int | None = None
    patch: str = ""
    """Unified diff of an edit or write, capped; for the screen only."""
    spill: str | None = None
    """Name of the file in ``spill/`` that holds the whole output."""


class ApprovalAsked(Event, frozen=True, kw_only=True, tag="approval.asked"):
    """A call is parked until the person answers; it holds no place at the endpoint."""

    request: str
    call: str
    tool: str
    argument: str
    """The whole argument; the screen escapes it and folds long ones."""
    cwd: str
    rule: str
    """Why it asks: the rule that asks, or that none allows it."""
    grant: str | None = None
    """Text of the rule that ``a`` and ``A`` would grant; None: cannot be granted."""
    view: Access | None = None
    note: str = ""
    """What else to know: the view, the network, what leaves the sandbox."""
    plan: LaunchPlan | None = None
    """The launch this asks about; None for a tool call."""


class ApprovalAnswered(Event, frozen=True, kw_only=True, tag="approval.answered"):
    """A parked request was answered."""

    request: str
    answer: Answer
    reason: str = ""
    by: str = "person"
    """``person``, ``rule``, ``scripted person``, ``nobody`` (no one attached) or ``abort``."""
    edited: str | None = None
    """The command that runs instead of the one that was asked for."""


ToolFamily: TypeAlias = ToolStarted | ToolProgressed | ToolEnded | ApprovalAsked | ApprovalAnswered
"""The tools' events."""
