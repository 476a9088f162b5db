"""One running conversation, parent or fork: what the engine holds of it beside the folded state.

`RunLoop`, `Asker` and `Dispatcher` work on a `Run`; its messages are decoded once and shared by
reference between a parent and its forks, so they must never be changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from forkdeck.config.rules import Rule
from forkdeck.engine.limits import Limits
from forkdeck.model.events.turn import MessageAdded
from forkdeck.model.ids import PARENT
from forkdeck.model.ports import ModelFacts, Workspace
from forkdeck.model.raw import JsonDict, from_raw, to_raw
from forkdeck.model.thinking import stripped
from forkdeck.model.tooling import ReadMarks
from forkdeck.model.words import MessageKind
from forkdeck.seeds.head import RequestHead
from forkdeck.seeds.request import block_count
from forkdeck.store.hub import Hub


@dataclass(frozen=True)
class Slot:
    """Text that goes into the next user message of a run, and the forks it delivers."""

    blocks: tuple[JsonDict, ...] = ()
    delivers: tuple[str, ...] = ()
    shown: str = ""


@dataclass(frozen=True)
class Policy:
    """What a run may do, narrower than the session's rules.

    Attributes:
        kind: ``parent``, ``look`` (a read-only fork) or ``write`` (a fork with its own worktree).
        tools: Names of the tools it may call; None: all of them.
        denied: Names of tools it may not call, from a profile.
        name: Whose rule this is, for refusals.
        rules: Rules of a profile on arguments: a call of a tool with `allow` rules must match
            one of them, and one that matches a `deny` rule is refused.
    """

    kind: Literal["parent", "look", "write"] = "parent"
    tools: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()
    name: str = ""
    rules: tuple[Rule, ...] = ()


@dataclass(eq=False)
class PrefixUse:
    """When a cached prefix was last used; one object for all runs whose requests begin with it.

    Every use gives the cached entry its whole life again, so a child that waited long may still
    find it warm because a sibling has read it meanwhile.
    """

    at_ms: int | None = None


@dataclass
class Warmth:
    """What a run's next request should find in the endpoint's cache."""

    tokens: int | None = None
    """Prompt tokens of the request it extends; None when not known."""
    use: PrefixUse = field(default_factory=PrefixUse)
    """When that prefix was last sent by anyone; the entry lives five minutes from then."""
    cold: str = ""
    """Why nothing can be expected, when that is known beforehand."""
    shared_tokens: int | None = None
    """Of `tokens`, what was inherited; the first step's saving is capped by it."""
    overrides: frozenset[str] = frozenset()
    """Request parameters that alone make it cold: ``effort``, ``thinking``. An endpoint that does
    not take them gets what its source has sent."""

    @property
    def at_ms(self) -> int | None:
        """When the prefix was last used; None when it never was."""
        return self.use.at_ms


@dataclass(frozen=True)
class Sent:
    """A request that is out: what others may share of it.

    Attributes:
        record: Its positions.
        mark: Index of its last message block, which carries a mark.
    """

    record: Sequence[bytes]
    mark: int


@dataclass(eq=False)
class Run:
    """A conversation that is driven now.

    Attributes:
        run: Its id.
        depth: 0 for the parent, 1 for its forks.
        messages: Decoded messages in history order; neighbours may have one role.
        record: Canonical positions that its next request must extend.
        source_record: Positions of the request it was forked from, to name a difference.
        recorded: (positions, fingerprint) of the last request of an earlier process.
        flight: The request that is out now.
        thinking_from: Messages before this index are sent without their thinking.
        shared_positions: How many of them are the parent's.
        shared_marks: Flat block indexes to mark while no own request is out.
        previous_mark: Last block of the run's previous request.
        texts: Texts of its own answers, oldest first.
        partial: Text of the answer that is being streamed.
        calls: Running tool calls by call id; cancelling one ends only that tool.
        cancelled: Why a running call was cancelled, by call id.
        notes: Texts for its next user message.
        neared: Limits of which the run was told that 80 % is used.
        delivering: Forks whose reports stand in the results that are about to be sent.
        stop: A limit that was reached: the next step is the last one.
        usd_before: Money it had spent when it was resumed last; its budget counts from there.
        tokens_before: Tokens, likewise.
        halted: It was stopped; no other step may begin, even if a tool swallowed that.
    """

    run: str
    depth: int
    head: RequestHead
    facts: ModelFacts
    workspace: Workspace
    policy: Policy
    limits: Limits
    batch: str | None = None
    marks: ReadMarks = field(default_factory=ReadMarks)
    messages: list[JsonDict] = field(default_factory=list[JsonDict])
    record: Sequence[bytes] = ()
    source_record: Sequence[bytes] = ()
    recorded: tuple[int, str] | None = None
    flight: Sent | None = None
    thinking_from: int = 0
    shared_positions: int = 0
    shared_marks: tuple[int, ...] = ()
    previous_mark: int | None = None
    previous_message_id: str | None = None
    warmth: Warmth = field(default_factory=Warmth)
    steps: int = 0
    texts: list[str] = field(default_factory=list[str])
    partial: str = ""
    calls: dict[str, asyncio.Task[object]] = field(default_factory=dict[str, asyncio.Task[object]])
    cancelled: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])
    neared: set[str] = field(default_factory=set[str])
    delivering: list[str] = field(default_factory=list[str])
    stop: str = ""
    usd_before: Decimal = Decimal(0)
    tokens_before: int = 0
    halted: bool = False
    started_ms: int = 0
    opened: Callable[[], None] | None = None
    """Called once, at the first byte of its next answer."""
    slot: Callable[[], Slot] | None = None
    """Gives what else goes into its next user message."""
    pause: Callable[[], bool] | None = None
    """Asked between two steps whether the drive should end there."""

    @property
    def is_parent(self) -> bool:
        """Whether this is the parent conversation."""
        return self.run == PARENT

    @property
    def blocks(self) -> int:
        """Blocks in the messages now."""
        return block_count(self.messages)

    def estimated_tokens(self) -> int:
        """Rough tokens of the next prompt: what was measured, and four characters each beyond."""
        if self.warmth.tokens is None or self.previous_mark is None:
            return self.head.estimated_tokens + characters(self.messages) // 4
        return self.warmth.tokens + characters(self._unsent()) // 4

    def _unsent(self) -> list[JsonDict]:
        """Return the messages behind the last request."""
        start = 0
        for index, message in enumerate(self.messages):
            start += block_count([message])
            if self.previous_mark is not None and start > self.previous_mark + 1:
                return self.messages[index:]
        return []

    def watch_opening(self, opened: Callable[[], None]) -> None:
        """Call `opened` as well at the first byte of the answer that is asked for now."""
        before = self.opened

        def both() -> None:
            if before is not None:
                before()
            opened()

        self.opened = both

    def take(self, event: MessageAdded, hub: Hub) -> None:
        """Append a user message to the log, the state and the messages to be sent."""
        hub.append(event)
        self.messages.append(from_raw(event.message))

    def user_message(
        self,
        kind: MessageKind,
        blocks: Sequence[JsonDict],
        *,
        text: str = "",
        delivers: tuple[str, ...] = (),
    ) -> MessageAdded:
        """Make the event of a user message of this run."""
        return MessageAdded(
            run=self.run,
            kind=kind,
            message=to_raw({"role": "user", "content": list(blocks)}),
            text=text,
            delivers=delivers,
        )

    def results_message(
        self, blocks: Sequence[JsonDict], *, text: str = "", delivers: tuple[str, ...] = ()
    ) -> MessageAdded:
        """Make the event of the tool results of an answer.

        Whatever ends the calls, the reports that stand in their results are delivered by it.
        """
        delivers = (*self.delivering, *delivers)
        self.delivering.clear()
        return self.user_message("tool_results", blocks, text=text, delivers=delivers)

    def drop_thinking(self) -> None:
        """Leave all thinking out of what will be sent: another model cannot read it.

        The log keeps it; only the messages of this process change, whole messages that would be
        empty included, so the order of roles stays valid once neighbours are joined.
        """
        self.thinking_from = len(self.messages)
        self.messages[:] = map(stripped, self.messages)

    def cancel_calls(self, why: str) -> int:
        """Cancel the running tool calls only; returns how many there were."""
        running = [call for call, task in self.calls.items() if not task.done()]
        for call in running:
            self.cancelled[call] = why
            self.calls[call].cancel()
        return len(running)


def characters(messages: Sequence[JsonDict]) -> int:
    """Return the characters of messages, as what their tokens are estimated from."""
    return sum(len(str(message.get("content"))) for message in messages)


def text_block(text: str) -> JsonDict:
    """Return a text block."""
    return {"type": "text", "text": text}
