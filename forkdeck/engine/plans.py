"""Values of an admitted launch: each fork's plan, each batch, and the fork while it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forkdeck.engine.limits import Limits
from forkdeck.engine.run import Policy, Run, Warmth
from forkdeck.model.launching import LaunchPlan
from forkdeck.model.ports import ModelFacts, Seed
from forkdeck.model.raw import JsonDict
from forkdeck.model.words import ForkTool
from forkdeck.seeds.head import RequestHead

if TYPE_CHECKING:
    from forkdeck.engine.launch import LaunchGroup
    from forkdeck.model.work import Lease


@dataclass(frozen=True, kw_only=True)
class ForkPlan:
    """How one fork will be started; frozen at admission.

    Attributes:
        handle: Its handle.
        batch: Its batch.
        index: Its place among the batch's tasks.
        name: Shown name, unique in the session.
        task_id: The task's id in its call.
        task: The task's text.
        seed: What it starts from; shared by all children of the launch with this mode.
        head: Its request head; the parent's own object unless overridden.
        facts: What is known of its model.
        source: The run it was forked from.
        inherited: Decoded messages it takes whole, shared by reference.
        record: Positions that its first request must begin with.
        source_record: All positions of the source's request, to name a difference.
        source_message_id: The source's last answer, for the endpoint's own diagnosis.
        thinking_from: Inherited messages before this index come without their thinking.
        shared_marks: Flat block indexes the parent marked, and the end of the shared tail.
        warmth: What its first request should find in the cache.
        policy: What it may do.
        limits: Its limits.
        depth: Its depth, at least 1.
        dirty_base: Whether a write fork starts from a snapshot of the parent's tree.
        persona: Who it should be, put into the directive.
        profile: Name of its profile.
        output_schema: JSON schema of its report, or None.
        model: The overriding model, or None.
        effort: The overriding effort, or None.
        agent_type: Name of the agent file of a typed agent.
        private: Whether its report stays with the person.
    """

    handle: str
    batch: str
    index: int
    name: str
    task_id: str
    task: str
    seed: Seed
    head: RequestHead
    facts: ModelFacts
    source: str
    inherited: tuple[JsonDict, ...]
    record: tuple[bytes, ...]
    source_record: Sequence[bytes] = ()
    source_message_id: str | None = None
    thinking_from: int = 0
    shared_marks: tuple[int, ...]
    warmth: Warmth
    policy: Policy
    limits: Limits
    depth: int
    dirty_base: bool = False
    persona: str = ""
    profile: str | None = None
    output_schema: JsonDict | None = None
    model: str | None = None
    effort: str | None = None
    agent_type: str | None = None
    private: bool = False

    @property
    def write(self) -> bool:
        """Whether it gets a worktree of its own."""
        return self.policy.kind == "write"


@dataclass(frozen=True, kw_only=True)
class BatchPlan:
    """The forks of one call.

    Attributes:
        batch: Its id.
        tool: Who asked.
        call: The API's tool_use id, or None.
        plans: Its forks in input order.
        max_concurrency: How many of them run at once.
        background: Whether nobody waits for it.
        notes: What to tell the caller: accepted and ignored arguments, lost caches.
        prefix_tokens: Tokens of the shared prefix, or None.
        plan: What it will do and cost.
    """

    batch: str
    tool: ForkTool
    call: str | None
    plans: tuple[ForkPlan, ...]
    max_concurrency: int
    background: bool
    notes: tuple[str, ...] = ()
    prefix_tokens: int | None = None
    plan: LaunchPlan | None = None


@dataclass(eq=False)
class Fork:
    """A fork while it lives, or is kept to be resumed.

    Attributes:
        plan: How it was started; None for one that an earlier process started.
        handle: Its handle.
        batch: Its batch.
        depth: Its depth.
        max_concurrency: Its batch's limit.
        group: Its launch group.
        run: Its conversation, once it was started.
        task: The task that owns it.
        work: The part of it that an abort cancels.
        watch: The task that ends it at its time limits, while it is driven.
        stopped: Who stopped it, or an empty string.
        expired: The time limit that is over with its grace, or an empty string.
        place: The concurrency place it holds.
        lease: Its worktree.
        resume: Text of the person on a resume; None on a first start.
    """

    handle: str
    batch: str
    depth: int
    max_concurrency: int
    group: LaunchGroup | None = None
    plan: ForkPlan | None = None
    run: Run | None = None
    task: asyncio.Task[None] | None = None
    work: asyncio.Task[object] | None = None
    watch: asyncio.Task[None] | None = None
    stopped: str = ""
    expired: str = ""
    place: int | None = None
    lease: Lease | None = None
    resume: str | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)
