"""How a fork begins, or goes on: its worktree, its conversation, its directive.

`ForkRunner` calls it once per run of a fork. What it appends is waited for by the caller.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from forkdeck.config.rules import FORK_TOOLS, Rule
from forkdeck.engine.recorded import stands, take_recorded
from forkdeck.engine.repair import interrupted_results
from forkdeck.engine.run import Policy, Run, Slot, text_block
from forkdeck.engine.scopes import counted_tokens, fork_limits
from forkdeck.engine.templates import Templates
from forkdeck.engine.user_slot import first_blocks
from forkdeck.errors import SessionError, WorktreeError
from forkdeck.model.events.fork import ForkReopened, ForkStarted, ForkSteered
from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.events.turn import MessageAdded
from forkdeck.model.events.work import WorktreeCreated
from forkdeck.model.prefix import message_blocks
from forkdeck.model.raw import JsonDict, from_raw, to_raw
from forkdeck.model.tooling import ReadMarks
from forkdeck.model.work import Lease
from forkdeck.seeds.directive import directive_block
from forkdeck.seeds.policies import with_directive
from forkdeck.seeds.policy_words import Gives

if TYPE_CHECKING:
    from forkdeck.engine.heads import Heads
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.plans import Fork, ForkPlan
    from forkdeck.model.ports import Workspace, Worktrees
    from forkdeck.model.state import ForkState

RESUMED = (
    "[resume] You were stopped before you were done. Go on with your task from where you are; "
    "calls that were interrupted did not finish."
)
RESTORE_TIMEOUT_S = 120.0


class ForkStarter:
    """Makes the conversations of forks.

    Args:
        parts: The deck's parts.
        heads: Request heads.
        marks_of: Gives what a run has read so far, by its id.
    """

    def __init__(
        self, parts: EngineParts, heads: Heads, marks_of: Callable[[str], ReadMarks]
    ) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._heads = heads
        self._marks_of = marks_of
        self._templates = Templates(parts)
        self._burden_told = False

    async def start(self, fork: Fork) -> Run:
        """Return a fork's conversation, ready to be driven.

        Raises:
            WorktreeError: A write fork got no worktree.
            SessionError: Its head cannot be stored or read.
        """
        if fork.resume is not None:
            return await self._resume(fork, fork.resume)
        if fork.plan is None:
            raise SessionError(f"{fork.handle} was never started.", "Start a new fork.")
        return await self._begin(fork, fork.plan)

    async def _begin(self, fork: Fork, plan: ForkPlan) -> Run:
        hub = self._hub
        hub.append(
            ForkStarted(
                run=plan.handle,
                from_run=plan.source,
                inherited_messages=plan.seed.inherited_messages,
                boundary=plan.seed.boundary,
                inherited_tokens=plan.warmth.shared_tokens,
                place=fork.place,
            )
        )
        notice = ""
        if plan.write:
            workspace, notice = await self._worktree(fork, dirty=plan.dirty_base)
        else:
            workspace = self._parts.fork_workspace(plan.handle)
        await self._heads.record(plan.handle, plan.head, thinking_from=plan.thinking_from)
        run = Run(
            run=plan.handle,
            depth=plan.depth,
            head=plan.head,
            facts=plan.facts,
            workspace=workspace,
            policy=plan.policy,
            limits=fork_limits(hub.state.forks[plan.handle]),
            batch=plan.batch,
            marks=self._marks_of(plan.source).copy(),
            messages=list(plan.inherited),
            record=plan.record,
            source_record=plan.source_record,
            previous_message_id=plan.source_message_id,
            thinking_from=plan.thinking_from,
            shared_positions=len(plan.record),
            shared_marks=plan.shared_marks,
            warmth=replace(plan.warmth),
            started_ms=hub.now_ms(),
        )
        fork.run = run
        run.slot = self._slot(run)
        template = await self._templates.directive()
        self._templates.report()
        self._add_seed(run, plan, notice, template)
        return run

    def _add_seed(self, run: Run, plan: ForkPlan, notice: str, template: str | None) -> None:
        """Append the seed's own messages; the last one ends with the directive."""
        directive = directive_block(
            self._hub.state.forks[plan.handle],
            gives=self._gives(plan),
            notice=notice,
            persona=plan.persona,
            template=template,
            report="free" if plan.output_schema else self._parts.settings.forks.report,
        )
        if plan.output_schema is not None:
            schema = json.dumps(plan.output_schema)
            directive["text"] += f"\nYour last message is one JSON value of this shape: {schema}"
        messages = with_directive(plan.seed, directive)
        if plan.agent_type is not None:
            messages[0] = _introduced(messages[0], first_blocks(self._parts))
        for index, raw in enumerate(messages):
            last = index == len(messages) - 1
            event = MessageAdded(
                run=run.run,
                kind="directive" if last else "seed",
                message=raw,
                text=plan.task if last else "",
                inherited_blocks=plan.seed.inherited_blocks if last else 0,
            )
            run.take(event, self._hub)

    def _gives(self, plan: ForkPlan) -> Gives:
        """Return what the request declares and what is refused whatever the fork's own policy."""
        barred = {
            rule.tool for rule in self._parts.rules if rule.kind == "deny" and rule.inner is None
        }
        if plan.depth >= self._parts.settings.forks.max_depth:
            barred.update(FORK_TOOLS)
        declared = tuple(str(tool["name"]) for tool in plan.head.parts()["tools"])
        return Gives(declared, frozenset(barred))

    async def _worktree(self, fork: Fork, *, dirty: bool) -> tuple[Workspace, str]:
        """Create the worktree; returns the fork's view of it and the notice for the directive."""
        worktrees = self._parts.worktrees
        if worktrees is None:
            raise WorktreeError("There is no git here, so a write fork cannot start.")
        await self._tell_burden(worktrees)
        lease = await self._create(worktrees, fork, dirty=dirty)
        self._hub.append(
            WorktreeCreated(
                run=fork.handle,
                path=lease.path,
                inside=lease.inside,
                base=lease.base,
                level=lease.level,
                dirty=lease.dirty,
                not_visible=lease.not_visible,
            )
        )
        inherits = self._hub.state.forks[fork.handle].boundary > 0
        return worktrees.workspace(lease), worktree_notice(lease, inherits=inherits)

    async def _tell_burden(self, worktrees: Worktrees) -> None:
        """Say once, before the first worktree is made, that it is a big one."""
        if self._burden_told:
            return
        self._burden_told = True
        what = await worktrees.burden()
        if what:
            self._hub.append(
                NoticeRaised(
                    severity="warning",
                    what=what,
                    remedy="Prefer read-only forks, or few write forks at once.",
                )
            )

    async def _create(self, worktrees: Worktrees, fork: Fork, *, dirty: bool) -> Lease:
        """Create a worktree; an abort meanwhile waits for it, so that it can be removed again."""
        making = asyncio.create_task(
            worktrees.create(fork.handle, dirty=dirty), name=f"worktree {fork.handle}"
        )
        try:
            lease = await asyncio.shield(making)
        except asyncio.CancelledError:
            await asyncio.wait({making})
            if not making.cancelled() and making.exception() is None:
                fork.lease = making.result()
            raise
        fork.lease = lease
        return lease

    async def _resume(self, fork: Fork, text: str) -> Run:
        """Go on with a settled fork: the same messages, then what happened, then the person's."""
        hub, handle = self._hub, fork.handle
        state = hub.state.forks[handle]
        hub.append(ForkReopened(run=handle, reason="resumed"))
        run = fork.run or await self._rebuilt(fork, state)
        blocks = interrupted_results(run.messages)
        blocks.append(text_block(RESUMED))
        if state.write:
            run.workspace = await self._reopened_workspace(fork, state)
        else:
            # Its private directories went when it ended.
            run.workspace = self._parts.fork_workspace(handle)
        if text.strip():
            blocks.append(text_block(f"[message from the person]\n{text.strip()}"))
        run.stop, run.partial, run.steps, run.halted = "", "", 0, False
        run.started_ms = hub.now_ms()
        own = hub.state.runs[handle]
        run.usd_before, run.tokens_before = own.cost.usd, counted_tokens(own.usage)
        run.limits = fork_limits(state, run.usd_before, run.tokens_before)
        run.neared.clear()
        run.take(run.user_message("directive", blocks, text=text.strip() or "go on"), hub)
        fork.run = run
        return run

    async def _rebuilt(self, fork: Fork, state: ForkState) -> Run:
        """Make the run of a fork that an earlier process drove, from its log."""
        facts = self._hub.state.runs[fork.handle]
        if facts.head is None:
            raise SessionError(f"{fork.handle} has no request head.", "Start a new fork.")
        head = await self._heads.load(facts.head.sha256)
        run = Run(
            run=fork.handle,
            depth=state.depth,
            head=head,
            facts=self._parts.prices.facts(head.model),
            workspace=self._parts.fork_workspace(fork.handle),
            policy=Policy(
                "write" if state.write else "look",
                None if state.tools is None else frozenset(state.tools),
                frozenset(state.denied),
                state.profile or state.agent_type or "tools",
                tuple(map(Rule.from_log, state.rules)),
            ),
            limits=fork_limits(state),
            batch=state.batch,
        )
        take_recorded(run, facts, self._parts.provider.endpoint)
        if not stands(facts.head, run, self._parts.provider.endpoint):
            await self._heads.record(fork.handle, head, thinking_from=run.thinking_from)
        run.slot = self._slot(run)
        return run

    async def _reopened_workspace(self, fork: Fork, state: ForkState) -> Workspace:
        """Return the view of the worktree that still stands, or of a new one with its work."""
        worktrees = self._parts.worktrees
        old = state.worktree
        if worktrees is not None and old is not None and old.exists:
            fork.lease = await worktrees.reopen(fork.handle)
            return worktrees.workspace(fork.lease)
        workspace, _ = await self._worktree(fork, dirty=False)
        if state.work is not None:
            command = ["git", "read-tree", "--reset", "-u", state.work.commit]
            done = await workspace.run(
                command, access="fork", timeout_s=RESTORE_TIMEOUT_S, spill_name="restore"
            )
            if done.exit_code != 0:
                raise WorktreeError(
                    f"The saved work of {fork.handle} could not be restored: {done.head.strip()}",
                    f"It stays safe as {state.work.ref}.",
                )
        return workspace

    def _slot(self, run: Run) -> Callable[[], Slot]:
        """Deliver what the person said to this fork, at its next tool boundary."""

        def slot() -> Slot:
            fork = self._hub.state.forks.get(run.run)
            texts = fork.steering if fork is not None else ()
            for text in texts:
                self._hub.append(ForkSteered(run=run.run, text=text, delivered=True))
            return Slot(
                blocks=tuple(text_block(f"[message from the person]\n{text}") for text in texts)
            )

        return slot


def _introduced(message: msgspec.Raw, blocks: list[JsonDict]) -> msgspec.Raw:
    """Put what only a first message carries before it: a typed agent inherits no conversation."""
    first: JsonDict = from_raw(message)
    return to_raw({"role": "user", "content": [*blocks, *message_blocks(first)]})


def worktree_notice(lease: Lease, *, inherits: bool) -> str:
    """Return the words that tell a write fork where it works.

    Args:
        lease: Its worktree.
        inherits: Whether it has a conversation above it, with paths of its own.
    """
    lines = [
        f"Where you work: your own copy of the repository, seen at {lease.inside}, made from "
        f"commit {lease.base[:12]}{' plus uncommitted files' if lease.dirty else ''}."
    ]
    if inherits:
        lines[0] += (
            " Paths in the conversation above that lead elsewhere belong to the original; read "
            "files again before you change them."
        )
    if lease.not_visible:
        lines.append(f"{lease.not_visible} uncommitted files of the original are not in your copy.")
    return "\n".join(lines)
