"""Events of the whole session: opening, mode, rules, notices."""

from __future__ import annotations

from typing import TypeAlias

from forkdeck.model.events.base import Event
from forkdeck.model.words import Level, Mode, RuleKind, Severity


class SessionOpened(Event, frozen=True, kw_only=True, tag="session.opened"):
    """Line 1 of every log."""

    format_version: int
    app_version: str
    session: str
    started_at: str
    """Wall time, ISO 8601, UTC."""
    cwd: str
    project: str
    """Name shown for the directory: its last part."""
    model: str
    mode: Mode = "default"
    git_head: str | None = None
    branch: str | None = None
    dirty_files: int | None = None
    budget_usd: str | None = None
    simulated: str | None = None
    """Set when the model is scripted: the words to show, always."""
    title: str | None = None


class SessionResumed(Event, frozen=True, kw_only=True, tag="session.resumed"):
    """The session was opened again; the gap before it is idle, not time."""

    resumed_at: str


class SessionClosed(Event, frozen=True, kw_only=True, tag="session.closed"):
    """The session ended in good order."""

    reason: str = "quit"


class SessionRenamed(Event, frozen=True, kw_only=True, tag="session.renamed"):
    """The person gave the session a title."""

    title: str


class HeadRecorded(Event, frozen=True, kw_only=True, tag="head.recorded"):
    """The request head of a run; its raw text stands in ``heads/<sha256>.json``."""

    sha256: str
    model: str
    effort: str | None = None
    thinking: str | None = None
    context_tokens: int | None = None
    """The model's context window, when known."""
    head_tokens: int | None = None
    """Estimated tokens of system and tools."""
    thinking_from: int = 0
    """Messages of the history before this index are sent without their thinking."""
    endpoint: str = ""
    """Address of the endpoint: thinking is only valid where it was made."""
    account: str = ""
    """A mark of the account there, no secret; empty when it is not known."""


class EnforcementProbed(Event, frozen=True, kw_only=True, tag="enforcement.probed"):
    """What the operating system enforces in this session."""

    level: Level
    why: str = ""
    remedy: str = ""


class ModeChanged(Event, frozen=True, kw_only=True, tag="mode.changed"):
    """The approval mode changed, for the session or (``run`` a fork) for one fork."""

    mode: Mode


class BudgetChanged(Event, frozen=True, kw_only=True, tag="budget.changed"):
    """The session's budget in US dollars; None: no limit."""

    budget_usd: str | None


class RuleGranted(Event, frozen=True, kw_only=True, tag="rule.granted"):
    """A rule that holds from now on, in its text form, such as ``bash(pytest -q)``."""

    kind: RuleKind
    text: str
    scope: str
    """``session``, ``batch:<id>`` or a fork's handle."""


class NoticeRaised(Event, frozen=True, kw_only=True, tag="notice.raised"):
    """Something the person should know: what happened, what was kept, what to do."""

    severity: Severity
    what: str
    kept: str = ""
    remedy: str = ""


SessionFamily: TypeAlias = (
    SessionOpened
    | SessionResumed
    | SessionClosed
    | SessionRenamed
    | HeadRecorded
    | EnforcementProbed
    | ModeChanged
    | BudgetChanged
    | RuleGranted
    | NoticeRaised
)
"""The session's events."""
