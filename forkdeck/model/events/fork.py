"""Events of batches and forks."""

from __future__ import annotations

from typing import TypeAlias

from forkdeck.model.events.base import Event
from forkdeck.model.launching import LaunchPlan
from forkdeck.model.words import ForkTool, Outcome, SeedMode, SlowClock


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
    plan: LaunchPlan | None = None
    """What it will do and cost, as it was known at admission."""
    planned: bool = False
    """Its forks wait in PLAN until the person has answered."""


class BatchConfirmed(Event, frozen=True, kw_only=True, tag="batch.confirmed"):
    """The plan of a batch was answered with yes: its forks go into the queue."""

    batch: str


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
    budget_tokens: int | None = None
    profile: str | None = None
    tools: tuple[str, ...] | None = None
    """Tools it may call; None: all of them."""
    denied: tuple[str, ...] = ()
    """Tools it may not call."""
    rules: tuple[str, ...] = ()
    """Its profile's rules on arguments, such as ``allow bash(pytest)``."""
    output_schema: str = ""
    """JSON schema of its report, as JSON text; empty: none."""
    planned: bool = False
    """It waits in PLAN until the person has answered."""
    task_id: str = ""
    """The task's id in its call, which the report repeats; empty in old logs: `name` it was."""


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
    elsewhere: int = 0
    """Of the reason ``place``: places that other processes hold."""
    places: int = 0
    """Likewise: all there are."""


class LimitNeared(Event, frozen=True, kw_only=True, tag="limit.neared"):
    """A run has used 80 % of one of its limits, or the rest carries no other step; told once.

    ``run`` is the fork, or the parent when a limit of the whole session is meant.
    """

    limit: str
    """Name of the limit, such as ``turns`` or ``batch budget``."""
    of: str
    """The limit in words, such as ``200 turns``."""
    share: float = 0.8
    """Part of it that is used, 0 to 1."""


class ForkLimited(Event, frozen=True, kw_only=True, tag="fork.limited"):
    """The person gave a fork other limits: all four as they are now, None is no limit."""

    max_turns: int | None = None
    timeout_s: float | None = None
    budget_usd: str | None = None
    budget_tokens: int | None = None


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


class ForkSlowed(Event, frozen=True, kw_only=True, tag="fork.slowed"):
    """A fork makes no headway by one of the stall clocks; nothing is done about it."""

    clock: SlowClock
    since_ms: int
    """Session time from which that clock runs."""
    what: str
    """What is slow, in words: the tool and its argument, the repeated call or error."""


class ForkRecovered(Event, frozen=True, kw_only=True, tag="fork.recovered"):
    """What made a fork slow is over."""


class ClaimsChecked(Event, frozen=True, kw_only=True, tag="claims.checked"):
    """What a fork's report claims was compared with what the fork really did."""

    checked: int
    """Claims that could be checked."""
    verified: int
    unverified: tuple[str, ...] = ()
    """Each claim that does not hold, and what is known instead."""


ForkFamily: TypeAlias = (
    BatchAdmitted
    | BatchConfirmed
    | BatchEnded
    | BatchDetached
    | ForkQueued
    | ForkStarted
    | ForkDelayed
    | LimitNeared
    | ForkLimited
    | ForkSteered
    | ForkStopped
    | ForkSaving
    | ForkEnded
    | ForkSettled
    | ForkReopened
    | ForkSlowed
    | ForkRecovered
    | ClaimsChecked
)
"""The forks' events."""
