"""Events of batches and forks."""

from __future__ import annotations

from typing import TypeAlias

from forkdeck.model.events.base import Event
from forkdeck.model.words import ForkTool, Outcome, SeedMode


class BatchAdmitted(Event, frozen=True, kw_only=True, tag="batch.admitted"):
    """The forks of one call were admitted; ``run`` is the run that asked."""

    batch: str
    tool: ForkTool
    call: str | None
    """The API's tool_use id; None for the person's ``/fork``."""
    handles: tuple[str, ...]
    max_concurrency: int
    background: bool = False
    prefix_tokens: int | None = None
    estimate_usd: tuple[str, str] | None = None
    """Lower and upper price, as decimal strings."""
    base_commit: str | None = None
    dirty_files: int | None = None


class BatchEnded(Event, frozen=True, kw_only=True, tag="batch.ended"):
    """Every fork of a batch has settled."""

    batch: str


class BatchDetached(Event, frozen=True, kw_only=True, tag="batch.detached"):
    """A waiting batch goes on in the background; its call was answered."""

    batch: str


class ForkQueued(Event, frozen=True, kw_only=True, tag="fork.queued"):
    """A fork has its handle (``run``) and waits for a place."""

    batch: str
    index: int
    """Its place among the batch's tasks, 0-based: reports return in this order."""
    name: str
    task: str
    seed: SeedMode
    from_run: str
    depth: int
    write: bool = False
    model: str | None = None
    """Only when overridden."""
    effort: str | None = None
    agent_type: str | None = None
    private: bool = False
    max_turns: int | None = None
    timeout_s: float | None = None
    budget_usd: str | None = None


class ForkStarted(Event, frozen=True, kw_only=True, tag="fork.started"):
    """A fork has a place and its seed; its own messages follow.

    Its history begins with the first ``inherited_messages`` messages of ``from_run``.
    """

    from_run: str
    inherited_messages: int
    boundary: int
    """Positions inherited in all; what lies before is never the fork's own."""
    inherited_tokens: int | None = None
    place: int | None = None


class ForkDelayed(Event, frozen=True, kw_only=True, tag="fork.delayed"):
    """A fork waits before its first request: for the leader's cache, or a place."""

    reason: str
    wait_ms: int | None = None


class ForkSteered(Event, frozen=True, kw_only=True, tag="fork.steered"):
    """The person's message to a fork; it is delivered at the next tool boundary."""

    text: str
    delivered: bool = False


class ForkStopped(Event, frozen=True, kw_only=True, tag="fork.stopped"):
    """A stop was asked for; what runs is being ended."""

    by: str = "person"
    reason: str = ""


class ForkSaving(Event, frozen=True, kw_only=True, tag="fork.saving"):
    """A write fork's work is being saved, before its worktree is removed."""


class ForkEnded(Event, frozen=True, kw_only=True, tag="fork.ended"):
    """A fork is over; terminal states absorb."""

    outcome: Outcome
    reason: str
    """A stop reason, a limit's name or an error's words."""
    report: str = ""
    """The report, or the partial text of an unfinished fork."""
    degraded: bool = False
    """The report was empty or a pointer; the longest own text stands in."""
    remedy: str = ""


class ForkSettled(Event, frozen=True, kw_only=True, tag="fork.settled"):
    """The person has read, answered or dismissed what the fork owed."""

    how: str = "read"


class ForkReopened(Event, frozen=True, kw_only=True, tag="fork.reopened"):
    """A settled fork was resumed or continued in a new run; its own messages follow."""

    reason: str = "resume"


ForkFamily: TypeAlias = (
    BatchAdmitted
    | BatchEnded
    | BatchDetached
    | ForkQueued
    | ForkStarted
    | ForkDelayed
    | ForkSteered
    | ForkStopped
    | ForkSaving
    | ForkEnded
    | ForkSettled
    | ForkReopened
)
"""The forks' events."""
