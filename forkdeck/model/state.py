"""The state of a deck: small frozen facts, folded from events by the reducer.

Values are replaced, never changed, so ``is`` tells what changed. Times are milliseconds of the
session's clock. Mappings are copied on write; treat them as read-only.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

import msgspec

from forkdeck.model.events.session import RuleGranted
from forkdeck.model.events.tool import ApprovalAsked
from forkdeck.model.ids import PARENT
from forkdeck.model.items import Chunk, Item, ToolFacts
from forkdeck.model.launching import LaunchPlan
from forkdeck.model.shared_list import SharedList
from forkdeck.model.usage import NO_COST, Cost, Usage
from forkdeck.model.words import (
    TERMINAL,
    ForkStatus,
    ForkTool,
    Level,
    MessageKind,
    Mode,
    Outcome,
    SeedMode,
    Severity,
    SlowClock,
    Verdict,
)
from forkdeck.model.work import FileChange


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a run's history, as it was or will be sent."""

    role: Literal["user", "assistant"]
    kind: MessageKind
    message: msgspec.Raw
    stop_reason: str = ""
    message_id: str = ""
    inherited_blocks: int = 0
    turn: int = 0
    """The turn it belongs to."""


class Delay(msgspec.Struct, frozen=True):
    """Why a run waits, and until when."""

    reason: str
    until_ms: int | None = None
    attempt: int = 1
    attempts: int | None = None
    message: str = ""
    elsewhere: int = 0
    """Places of the directory that other processes hold, when that is why."""
    places: int = 0
    """All places of the directory, likewise."""


class CacheFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The cache verdict of a run: of its first request, and the saving it brought."""

    verdict: Verdict
    read_tokens: int | None = None
    expected_tokens: int | None = None
    saved_usd: Decimal | None = None
    difference: str = ""
    written_tokens: int | None = None
    fresh_tokens: int | None = None


class HeadFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The recorded request head of a run."""

    sha256: str
    model: str
    effort: str | None = None
    thinking: str | None = None
    context_tokens: int | None = None
    head_tokens: int | None = None
    thinking_from: int = 0
    """Messages of the history before this index are sent without their thinking."""
    endpoint: str = ""
    account: str = ""


class TurnFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The turn a run is in, or its last one."""

    turn: int = 0
    running: bool = False
    started_at_ms: int = 0
    outcome: Literal["completed", "failed", "interrupted"] | None = None
    reason: str = ""
    remedy: str = ""
    unanswered: bool = False
    """It only compacts, or did, behind a turn that failed or was interrupted."""

    @property
    def resendable(self) -> bool:
        """Whether the turn that is over left something to be sent again."""
        ended_badly = self.outcome in ("failed", "interrupted")
        return not self.running and (ended_badly or self.unanswered)


class Counters(msgspec.Struct, frozen=True):
    """What a run did itself; ``turns`` counts steps."""

    turns: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    denials: int = 0


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """One agent conversation: the parent or a fork."""

    run: str
    transcript: SharedList[Item] = SharedList()
    history: SharedList[HistoryEntry] = SharedList()
    stream: SharedList[Chunk] = SharedList()
    """The answer that is being streamed; empty between answers."""
    tools: tuple[ToolFacts, ...] = ()
    """Calls that are running now, in start order."""
    turn: TurnFacts = TurnFacts()
    counters: Counters = Counters()
    usage: Usage = Usage()
    cost: Cost = NO_COST
    context_tokens: int | None = None
    """Prompt and answer of the last request: what the next one begins with."""
    cache: CacheFacts | None = None
    delay: Delay | None = None
    head: HeadFacts | None = None
    requested: bool = False
    """A request is out and has no byte yet."""
    cut_attempts: int = 0
    past: tuple[SharedList[HistoryEntry], ...] = ()
    """Histories before each compaction, oldest first: what forks admitted then start from."""
    sent_positions: int = 0
    """Positions of the last request that was sent; 0 when the next one extends none."""
    sent_sha256: str = ""
    """Their fingerprint: what a later process must find again before it goes on."""
    prompt_tokens: int | None = None
    """Prompt of the last request: what the next one should read from the cache."""


class WorktreeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A write fork's worktree."""

    path: str
    inside: str
    base: str
    level: Level
    dirty: bool = False
    not_visible: int = 0
    exists: bool = True
    kept_why: str = ""


class WorkFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A fork's saved work and what became of it."""

    ref: str
    commit: str
    base: str
    commits: int = 0
    patch: str | None = None
    applied_ref: str | None = None
    """The undo ref, while it is applied."""
    discarded: bool = False
    refused: str = ""
    """Why the last apply was refused."""
    conflicts: tuple[str, ...] = ()


class SlowFacts(msgspec.Struct, frozen=True):
    """Which stall clock says a fork is slow, since when, and on what."""

    clock: SlowClock
    since_ms: int
    what: str


class ClaimFacts(msgspec.Struct, frozen=True):
    """How a fork's report compares with what it did; the flag UNVERIFIED shows the rest."""

    checked: int
    verified: int
    unverified: tuple[str, ...] = ()


class ForkState(msgspec.Struct, frozen=True, kw_only=True):
    """One fork beside its run's conversation (``state.runs[handle]``)."""

    handle: str
    batch: str
    index: int
    name: str
    task: str
    seed: SeedMode
    from_run: str
    depth: int
    write: bool
    queued_at_ms: int
    status: ForkStatus = "QUE"
    model: str | None = None
    effort: str | None = None
    agent_type: str | None = None
    private: bool = False
    max_turns: int | None = None
    timeout_s: float | None = None
    budget_usd: str | None = None
    budget_tokens: int | None = None
    profile: str | None = None
    tools: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    output_schema: str = ""
    near_limit: str = ""
    """The limit of which 80 % is used, in words."""
    started_at_ms: int | None = None
    ended_at_ms: int | None = None
    ran_ms: int = 0
    """Time it ran before it was resumed, all earlier runs together."""
    boundary: int = 0
    inherited_messages: int = 0
    inherited_tokens: int | None = None
    outcome: Outcome | None = None
    reason: str = ""
    remedy: str = ""
    report: str = ""
    degraded: bool = False
    owed: bool = False
    """It needs the person: ASK, FAIL, PART, INTR, or a DONE nobody has read (NEW)."""
    owed_at_ms: int | None = None
    delivered: bool = False
    steering: tuple[str, ...] = ()
    """Messages that wait for the next tool boundary."""
    mode: Mode | None = None
    worktree: WorktreeFacts | None = None
    files: tuple[FileChange, ...] = ()
    files_watched: bool = True
    work: WorkFacts | None = None
    slow: SlowFacts | None = None
    """Set while it makes no headway; never a reason to act by itself."""
    claims: ClaimFacts | None = None
    """None until its report was checked."""
    from_epoch: int = 0
    """Compactions its source had behind it when this fork was admitted."""
    task_id: str = ""
    """The task's id in its call; `name` is made unique in the session, this is not."""

    @property
    def settled(self) -> bool:
        """Whether the fork is in a terminal state."""
        return self.status in TERMINAL


class BatchState(msgspec.Struct, frozen=True, kw_only=True):
    """The forks of one call."""

    batch: str
    tool: ForkTool
    run: str
    call: str | None
    handles: tuple[str, ...]
    max_concurrency: int
    background: bool
    ended: bool = False
    prefix_tokens: int | None = None
    estimate_usd: tuple[str, str] | None = None
    base_commit: str | None = None
    dirty_files: int | None = None
    plan: LaunchPlan | None = None
    planned: bool = False
    """Its plan is being asked about; its forks stand in PLAN."""
    admitted_at_ms: int = 0


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A parked request of a run."""

    run: str
    at_ms: int
    event: ApprovalAsked


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Something the person should know."""

    at_ms: int
    severity: Severity
    what: str
    kept: str = ""
    remedy: str = ""


class Pace(msgspec.Struct, frozen=True):
    """How many requests may be at the endpoint at once now, and when all is well."""

    width: int
    most: int
    reason: str = ""
    """Why it was halved last."""


class QueuedPrompt(msgspec.Struct, frozen=True):
    """A prompt that waits for the parent's turn to end."""

    prompt: str
    text: str


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the whole session."""

    session: str = ""
    title: str = ""
    started_at: str = ""
    cwd: str = ""
    project: str = ""
    branch: str | None = None
    git_head: str | None = None
    dirty_files: int | None = None
    model: str = ""
    mode: Mode = "default"
    budget_usd: Decimal | None = None
    simulated: str | None = None
    level: Level | None = None
    level_why: str = ""
    level_remedy: str = ""
    closed: bool = False
    format_version: int = 0


class UndoEntry(msgspec.Struct, frozen=True):
    """Something ``u`` can take back, newest last."""

    kind: Literal["apply", "discard", "turn"]
    run: str
    ref: str
    label: str


class DeckState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a deck shows; the value of a reducer's fold."""

    session: SessionFacts = SessionFacts()
    runs: Mapping[str, RunState] = msgspec.field(default_factory=dict[str, RunState])
    forks: Mapping[str, ForkState] = msgspec.field(default_factory=dict[str, ForkState])
    """By handle, in order of admission."""
    batches: Mapping[str, BatchState] = msgspec.field(default_factory=dict[str, BatchState])
    asks: tuple[Ask, ...] = ()
    """Open requests, oldest first."""
    prompts: tuple[QueuedPrompt, ...] = ()
    shell_notes: tuple[str, ...] = ()
    """Texts that go into the next user slot of the parent: shell output, applies."""
    rules: tuple[RuleGranted, ...] = ()
    notices: tuple[Notice, ...] = ()
    undo: tuple[UndoEntry, ...] = ()
    pace: Pace | None = None
    """Set once the endpoint asked for fewer requests at a time."""
    near_limit: str = ""
    """The session's limit of which 80 % is used, in words."""
    seq: int = 0
    at_ms: int = 0

    @property
    def parent(self) -> RunState:
        """The parent conversation; an empty one before the session opened."""
        return self.runs.get(PARENT) or RunState(run=PARENT)


EMPTY = DeckState()
"""The state before any event."""
