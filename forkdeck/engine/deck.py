"""The live deck: what a user interface talks to. It composes the engine and routes intents.

The command line opens it from `EngineParts`. State goes out through the hub, intents come in here
and are answered in words; nothing but events changes the state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import assert_never

from forkdeck.engine.admission import Admission
from forkdeck.engine.approvals import Approvals
from forkdeck.engine.compaction import Compactor
from forkdeck.engine.completion import complete_path
from forkdeck.engine.conversation import Conversation
from forkdeck.engine.dispatch import Dispatcher
from forkdeck.engine.durability import Durable
from forkdeck.engine.fork_run import ForkRunner
from forkdeck.engine.fork_start import ForkStarter
from forkdeck.engine.forking import Forking
from forkdeck.engine.heads import Heads
from forkdeck.engine.launches import Launches
from forkdeck.engine.limits import Limits, Purse
from forkdeck.engine.marks import Marks
from forkdeck.engine.parts import EngineParts
from forkdeck.engine.places import Places, leases
from forkdeck.engine.profiles import Profiles
from forkdeck.engine.reaping import Reaper
from forkdeck.engine.recorded import stands, take_recorded
from forkdeck.engine.reopening import reopen
from forkdeck.engine.run import Policy, Run
from forkdeck.engine.run_loop import RunLoop
from forkdeck.engine.session_facts import SessionFactsKeeper, tell_unpriced_budget
from forkdeck.engine.shell import Shell
from forkdeck.engine.stalls import Stalls
from forkdeck.engine.step import Asker
from forkdeck.engine.supervisor import Supervisor
from forkdeck.engine.time_watch import TimeWatch
from forkdeck.engine.work import Work
from forkdeck.errors import ForkDeckError
from forkdeck.model.events.fork import ForkSettled
from forkdeck.model.events.session import EnforcementProbed, SessionClosed
from forkdeck.model.ids import PARENT
from forkdeck.model.intents import (
    AbortAll,
    AbortFork,
    AnswerRequest,
    ApplyWork,
    CancelTool,
    CompactParent,
    DiscardWork,
    Intent,
    IntentResult,
    InterruptParent,
    NoteTyping,
    RenameSession,
    ResendTurn,
    ResumeFork,
    RunShell,
    SendPrompt,
    SetBudget,
    SetLimits,
    SetMode,
    SetModel,
    SettleFork,
    StartFork,
    SteerFork,
    TrustProject,
    UndoLast,
    WithdrawPrompt,
)
from forkdeck.model.ports import Capabilities, Transport
from forkdeck.model.state import DeckState
from forkdeck.model.tooling import ReadMarks
from forkdeck.model.work import WorkDiff
from forkdeck.sandbox.files import in_thread
from forkdeck.sessionlog.catalogue import write_summary
from forkdeck.store.selectors import living


class LiveDeck:
    """A running session; implements `Deck`. Use `open`.

    Args:
        parts: What it is made of.
        run: The parent's conversation.
        heads: Its request heads.
    """

    def __init__(self, parts: EngineParts, run: Run, heads: Heads) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._durable = Durable(parts.hub, parts.clock)
        self._approvals = Approvals(parts)
        self._dispatcher = Dispatcher(parts, self._durable, self._approvals)
        asker = Asker(parts, self._durable)
        purse = Purse(parts)
        marks = Marks(parts.hub, purse)
        clock = TimeWatch(parts.clock, purse, marks)
        loop = RunLoop(parts, self._durable, asker, self._dispatcher, purse, marks)
        profiles = Profiles(parts)
        self._places = Places(
            parts.places and leases(parts.places, parts.opened.cwd),
            parts.settings.forks.max_per_directory,
            parts.paths.directory,
        )
        self._reaper = Reaper(parts)
        self._supervisor = Supervisor(
            parts,
            places=self._places,
            runner=ForkRunner(
                parts, self._durable, loop, ForkStarter(parts, heads, self._marks_of), clock
            ),
            purse=purse,
            reaper=self._reaper,
        )
        self._launches = Launches(
            parts,
            admission=Admission(parts, heads, profiles),
            profiles=profiles,
            approvals=self._approvals,
            asker=asker,
            purse=purse,
            supervisor=self._supervisor,
        )
        self._work = Work(parts, self._durable)
        self._dispatcher.launcher = self._launches
        self._dispatcher.effects = self._work
        self._conversation = Conversation(
            parts,
            self._durable,
            loop,
            purse,
            clock,
            run,
            lambda: self._launches.waiting,
            Compactor(parts, self._durable, asker, purse, heads, run),
        )
        self._stalls = Stalls(parts.hub, parts.clock, parts.settings.stalls)
        self._supervisor.settled = self._settled
        self._forking = Forking(parts, self._supervisor, self._launches, run)
        self._shell = Shell(parts, self._durable, self._work)
        self._facts = SessionFactsKeeper(parts, self._durable, heads, run)
        self._changed = asyncio.Event()
        self._conversation.changed = self._changed.set
        self._unsubscribe = parts.hub.subscribe(self._note_change)
        self._closed: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, parts: EngineParts, *, resume: bool = False) -> LiveDeck:
        """Open a session: a new one from `parts.opened`, or one whose log was folded already.

        Raises:
            SessionError: The request head cannot be stored or read.
        """
        hub = parts.hub
        heads = Heads(parts)
        if not resume:
            hub.append(parts.opened)
        enforcement = parts.enforcement
        hub.append(
            EnforcementProbed(
                level=enforcement.level, why=enforcement.why, remedy=enforcement.remedy
            )
        )
        recorded = hub.state.parent.head if resume else None
        stored = parts.head is None and recorded is not None
        head = await heads.load(recorded.sha256) if stored and recorded else heads.first()
        run = Run(
            run=PARENT,
            depth=0,
            head=head,
            facts=parts.prices.facts(head.model),
            workspace=parts.parent_workspace,
            policy=Policy(),
            limits=Limits(),
            started_ms=hub.now_ms(),
        )
        take_recorded(run, hub.state.parent, parts.provider.endpoint)
        if not stands(recorded, run, parts.provider.endpoint):
            await heads.record(PARENT, head, thinking_from=run.thinking_from)
        await tell_unpriced_budget(parts, head.model)
        deck = cls(parts, run, heads)
        if resume:
            await reopen(parts, run)
        deck._work.watch()
        deck._reaper.look_around(deck._places)
        await hub.sync()
        return deck

    # --- the port -------------------------------------------------------------------------

    @property
    def state(self) -> DeckState:
        """The state now."""
        return self._hub.state

    @property
    def capabilities(self) -> Capabilities:
        """What this deck can do."""
        return Capabilities(worktrees=self._parts.worktrees is not None)

    @property
    def transport(self) -> Transport | None:
        """None: a live deck has no transport."""
        return None

    @property
    def trouble(self) -> str:
        """Why lines of the session's log are not on the disk yet, or an empty string."""
        return self._hub.trouble or ""

    def now_ms(self) -> int:
        """The session's clock."""
        return self._hub.now_ms()

    def subscribe(self, wake: Callable[[bool], None]) -> Callable[[], None]:
        """Call `wake(urgent)` after every change; returns how to stop that."""
        return self._hub.subscribe(wake)

    async def submit(self, intent: Intent) -> IntentResult:
        """Do what the person asks; refusals are results, not exceptions."""
        if self._closed is not None:
            return IntentResult(ok=False, text="The session is closed.")
        if self._hub.trouble is not None and isinstance(
            intent, SendPrompt | StartFork | RunShell | CompactParent
        ):
            why = f"Nothing new starts: the session log cannot be written ({self._hub.trouble})."
            return IntentResult(ok=False, text=why)
        try:
            return await self._route(intent)
        except ForkDeckError as error:
            return IntentResult(ok=False, text=str(error))

    async def diff(self, handle: str) -> WorkDiff:
        """Return a fork's changes against its base.

        Raises:
            WorktreeError: There are none, or they cannot be read.
        """
        return await self._work.diff(handle)

    async def complete_path(self, prefix: str, limit: int = 20) -> Sequence[str]:
        """Return project files that begin like `prefix`."""
        return await complete_path(self._parts.parent_workspace, prefix, limit)

    async def idle(self) -> None:
        """Return when the parent is idle, no fork lives and no wake is due."""
        while self._conversation.busy or self._supervisor.busy or self._conversation.wake_due:
            self._changed.clear()
            await self._changed.wait()

    async def close(self) -> None:
        """End the session: stop and save every fork, flush the log. Safe to call twice."""
        if self._closed is None:
            self._closed = asyncio.create_task(self._close(), name="close")
        await asyncio.shield(self._closed)

    # --- inside ---------------------------------------------------------------------------

    async def _close(self) -> None:
        await self._conversation.close()
        await self._launches.close()
        await self._supervisor.close()
        await self._stalls.close()
        await self._approvals.close()
        if self._parts.worktrees is not None:
            await self._parts.worktrees.close()
        await self._parts.provider.close()
        self._unsubscribe()
        await self._durable.append(SessionClosed())
        await self._hub.close()
        with suppress(OSError):
            # Only a quicker list: it is made anew from the log when it is missing.
            await in_thread(write_summary, self._parts.paths, self._hub.state)

    async def _route(self, intent: Intent) -> IntentResult:  # noqa: C901, PLR0911, PLR0912 - one line per intent
        match intent:
            case SendPrompt():
                return await self._conversation.prompt(intent.text)
            case WithdrawPrompt():
                return self._conversation.withdraw(intent.prompt)
            case NoteTyping():
                self._conversation.typing = intent.typing
                self._conversation.settled()
                return IntentResult(ok=True)
            case RunShell():
                return await self._shell.run(self._conversation.run, intent.command)
            case InterruptParent():
                return await self._conversation.interrupt()
            case ResendTurn():
                return self._conversation.resend()
            case CompactParent():
                return self._conversation.compact(intent.hint)
            case StartFork():
                return self._forking.start(intent)
            case AbortFork():
                return self._forking.abort(intent.handle)
            case AbortAll():
                return self._forking.abort_all()
            case CancelTool():
                return self._cancel_tool(intent.run)
            case SteerFork():
                return await self._forking.steer(intent.handle, intent.text)
            case ResumeFork():
                return await self._forking.resume(intent.handle, intent.text)
            case AnswerRequest():
                return self._answer(intent)
            case SettleFork():
                return self._settle(intent)
            case SetMode():
                return self._facts.set_mode(intent.mode, intent.handle)
            case SetModel():
                return await self._facts.set_model(intent, busy=self._conversation.busy)
            case SetBudget():
                return self._facts.set_budget(intent.budget_usd)
            case SetLimits():
                return self._forking.limit(intent)
            case ApplyWork():
                return await self._work.apply(intent.handle, intent.method)
            case UndoLast():
                return await self._undo(intent.handle)
            case DiscardWork():
                return await self._work.discard(intent.handle)
            case RenameSession():
                return self._facts.rename(intent.title)
            case TrustProject():
                return await self._facts.trust()
            case _:
                assert_never(intent)

    async def _undo(self, handle: str | None) -> IntentResult:
        """Undo the last act; on a fork without one, an abort is undone by going on."""
        fork = self._hub.state.forks.get(handle) if handle else None
        if fork is not None and self._work.last(handle) is None and fork.status == "ABRT":
            return await self._forking.resume(fork.handle, "")
        return await self._work.undo(handle)

    def _cancel_tool(self, name: str) -> IntentResult:
        fork = self._supervisor.forks.get(name)
        run = self._conversation.run if name == PARENT else fork.run if fork else None
        count = run.cancel_calls("by the person") if run is not None else 0
        if not count:
            return IntentResult(ok=False, text=f"{name} runs no tool now.")
        return IntentResult(ok=True, text=f"cancelled {count} call{'s' if count != 1 else ''}")

    def _answer(self, intent: AnswerRequest) -> IntentResult:
        if intent.edited is not None and intent.answer == "once":
            why = self._approvals.answer_edited(intent.request, intent.edited)
            return IntentResult(ok=not why, text=why)
        if not self._approvals.answer(intent.request, intent.answer, intent.reason):
            return IntentResult(ok=False, text="That request is not open any more.")
        return IntentResult(ok=True)

    def _settle(self, intent: SettleFork) -> IntentResult:
        fork = self._hub.state.forks.get(intent.handle)
        if fork is None:
            return IntentResult(ok=False, text=f"There is no fork {intent.handle}.")
        if fork.owed and fork.settled:
            self._hub.append(ForkSettled(run=intent.handle, how=intent.how))
        return IntentResult(ok=True)

    def _marks_of(self, name: str) -> ReadMarks:
        fork = self._supervisor.forks.get(name)
        if name == PARENT or fork is None or fork.run is None:
            return self._conversation.run.marks
        return fork.run.marks

    def _settled(self) -> None:
        self._conversation.settled()
        self._changed.set()

    def _note_change(self, urgent: bool) -> None:
        if urgent:
            self._changed.set()

    @property
    def living(self) -> list[str]:
        """Handles of forks that are not over."""
        return living(self.state)
