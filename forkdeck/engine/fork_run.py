"""One fork from its place to its end: seed, directive, loop, report, saved work, outcome.

The supervisor runs `ForkRunner.run` in a task of its own. An abort cancels only the inner work;
what the fork had written and changed is kept on every way out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from forkdeck.engine.claim_look import look, settle
from forkdeck.engine.fork_start import ForkStarter
from forkdeck.engine.report_check import ASK_AGAIN, longest, problem
from forkdeck.engine.reports import shared_name, write_files
from forkdeck.engine.run import text_block
from forkdeck.engine.scopes import fork_limits
from forkdeck.engine.tree_guard import TreeGuard
from forkdeck.engine.work import saved_event
from forkdeck.errors import ContextTooLong, ForkDeckError, WorktreeError
from forkdeck.model.events.fork import ForkDelayed, ForkEnded, ForkSaving
from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.events.work import WorktreeKept, WorktreeRemoved
from forkdeck.model.raw import JsonDict
from forkdeck.model.words import Outcome
from forkdeck.sandbox.files import in_thread
from forkdeck.store.figures import limit_words

if TYPE_CHECKING:
    from forkdeck.engine.claims import FileFact
    from forkdeck.engine.durability import Durable
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.plans import Fork
    from forkdeck.engine.run import Run
    from forkdeck.engine.run_loop import LoopEnd, RunLoop
    from forkdeck.engine.time_watch import TimeWatch

LIMITED = "[limit] The person has changed your own limits; they are now: {limits}."


@dataclass(frozen=True)
class Ending:
    """How a fork ended, before its work was saved."""

    outcome: Outcome
    reason: str
    report: str = ""
    degraded: bool = False
    remedy: str = ""


class ForkRunner:
    """Runs forks.

    Args:
        parts: The deck's parts.
        durable: The hub with joined syncs.
        loop: Drives conversations.
        starter: Makes a fork's conversation and worktree.
        clock: Ends what runs at its time limit.
    """

    def __init__(
        self,
        parts: EngineParts,
        durable: Durable,
        loop: RunLoop,
        starter: ForkStarter,
        clock: TimeWatch,
    ) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._durable = durable
        self._loop = loop
        self._starter = starter
        self._clock = clock
        self._guard = TreeGuard(parts)

    async def run(self, fork: Fork) -> None:
        """Run a fork to its end; whatever happens inside, it ends with its event.

        Cancelling this call itself is for a dying process: the work is cancelled and not saved.
        """
        work: asyncio.Task[Ending] = asyncio.create_task(
            self._guarded(fork), name=f"work {fork.handle}"
        )
        fork.work = work  # pyright: ignore[reportAttributeAccessIssue] - a task of any result
        if fork.stopped:
            work.cancel()
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            raise
        ending = self._aborted(fork) if work.cancelled() else work.result()
        fork.work = None
        files = await self._named_files(fork, ending.report)
        await self._save(fork)
        await self._guard.end(fork.handle)
        self._check_claims(fork, ending.report, files)
        await self._durable.append(
            ForkEnded(
                run=fork.handle,
                outcome=ending.outcome,
                reason=ending.reason,
                report=ending.report,
                degraded=ending.degraded,
                remedy=ending.remedy,
            )
        )
        await self._write_files(fork.handle)

    async def _named_files(self, fork: Fork, report: str) -> dict[str, FileFact]:
        """Look at the files a report names while the fork's view stands; never an error."""
        if fork.run is None:
            return {}
        try:
            return await look(fork.run.workspace, report)
        except Exception:  # noqa: BLE001 - the door of every run task: a check must not cost the end
            return {}

    def _check_claims(self, fork: Fork, report: str, files: dict[str, FileFact]) -> None:
        """Say how the report compares with what the fork did; never an error."""
        if fork.run is None or not report.strip():
            return
        try:
            settle(self._hub, fork.handle, report, files, fork.run.workspace.root)
        except Exception as error:  # noqa: BLE001 - as above
            what = f"The report of {fork.handle} was not checked: {type(error).__name__}: {error}."
            self._hub.append(NoticeRaised(run=fork.handle, severity="warning", what=what))

    async def _guarded(self, fork: Fork) -> Ending:
        """Do the work; every failure becomes an ending."""
        try:
            return await self._work(fork)
        except ContextTooLong as error:
            text = self._partial(fork)
            return Ending("partial", "context", text, remedy=error.remedy or error.what)
        except ForkDeckError as error:
            return Ending("failed", error.what, self._partial(fork), remedy=error.remedy)
        except Exception as error:  # noqa: BLE001 - the door of every run task
            reason = f"an error inside ForkDeck: {type(error).__name__}: {error}"
            return Ending("failed", reason, self._partial(fork))

    async def _work(self, fork: Fork) -> Ending:
        await self._durable.ready()
        if self._hub.state.forks[fork.handle].write:
            self._guard.begin(fork.handle)
        run = await self._starter.start(fork)
        group, handle = fork.group, fork.handle
        if group is not None:
            await self._durable.sync()
            run.opened = lambda: group.opened(handle)
            await group.enter(handle, self._held(handle))
        else:
            await self._durable.sync()
        fork.watch = self._watching(fork, run)
        try:
            return await self._to_report(fork, run)
        finally:
            watch, fork.watch = fork.watch, None
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    def relimit(self, fork: Fork) -> None:
        """Let a fork that was started and is not over have its limits as the state has them."""
        run, state = fork.run, self._hub.state.forks[fork.handle]
        if run is None or state.settled:
            return
        run.limits = fork_limits(state, run.usd_before, run.tokens_before)
        now = limit_words(state.max_turns, state.timeout_s, state.budget_usd, state.budget_tokens)
        run.notes.append(LIMITED.format(limits=now))
        if fork.watch is not None and not fork.expired:
            run.stop = ""
            fork.watch.cancel()
            fork.watch = self._watching(fork, run)

    def _watching(self, fork: Fork, run: Run) -> asyncio.Task[None]:
        return asyncio.create_task(self._watch_time(fork, run), name=f"time {fork.handle}")

    async def _to_report(self, fork: Fork, run: Run) -> Ending:
        """Drive the run until it has a report, asking for it once more when it is none."""
        end = await self._loop.drive(run)
        if end.outcome != "done":
            return self._unfinished(run, end)
        logged = self._hub.state.forks[fork.handle].output_schema
        schema: JsonDict | None = json.loads(logged) if logged else None
        wrong = problem(end.text, schema)
        if not wrong:
            return Ending("done", end.reason, end.text)
        ask = run.user_message("notification", [text_block(ASK_AGAIN.format(problem=wrong))])
        run.take(ask, self._hub)
        await self._durable.sync()
        end = await self._loop.drive(run)
        if end.outcome == "done" and not problem(end.text, schema):
            return Ending("done", end.reason, end.text)
        if schema is not None:
            reason = f"no structured value: {problem(end.text, schema) or end.reason}"
            return Ending("failed", reason, end.text or longest(run.texts))
        return Ending("partial", "no report", longest(run.texts), degraded=True)

    def _unfinished(self, run: Run, end: LoopEnd) -> Ending:
        outcome: Literal["partial", "failed"] = "failed" if end.outcome == "failed" else "partial"
        return Ending(outcome, end.reason, end.text or longest(run.texts), remedy=end.remedy)

    def _aborted(self, fork: Fork) -> Ending:
        text = self._partial(fork)
        if fork.expired:
            return Ending("partial", fork.expired, text)
        return Ending("aborted", fork.stopped or "stopped", text)

    def _partial(self, fork: Fork) -> str:
        """Return what the fork had written: its last text, and what was being streamed."""
        run = fork.run
        if run is None:
            return ""
        last = run.texts[-1:] if run.texts else []
        return "\n\n".join([*last, *([run.partial] if run.partial.strip() else [])])

    async def _watch_time(self, fork: Fork, run: Run) -> None:
        """At a time limit end the current tool, after a grace the whole run."""
        over = await self._clock.until_over(run)
        if over and fork.work is not None:
            fork.expired = over
            fork.work.cancel()

    def _held(self, handle: str) -> Callable[[str, int], None]:
        def held(reason: str, wait_ms: int) -> None:
            self._hub.append(ForkDelayed(run=handle, reason=reason, wait_ms=wait_ms))

        return held

    async def _save(self, fork: Fork) -> None:
        """Save a write fork's work, then remove its worktree; a failed save keeps it."""
        worktrees = self._parts.worktrees
        if fork.lease is None or worktrees is None:
            return
        self._hub.append(ForkSaving(run=fork.handle))
        try:
            saved = await worktrees.save(fork.handle)
            if saved is not None:
                await self._durable.append(saved_event(fork.handle, saved))
            await worktrees.remove(fork.handle)
        except ForkDeckError as error:
            self._kept(fork, error)
        except Exception as error:  # noqa: BLE001 - the door of every run task: the directory stays
            self._kept(fork, WorktreeError(f"{type(error).__name__}: {error}"))
        else:
            fork.lease = None
            self._hub.append(WorktreeRemoved(run=fork.handle))

    def _kept(self, fork: Fork, error: ForkDeckError) -> None:
        path = fork.lease.path if fork.lease is not None else ""
        self._hub.append(WorktreeKept(run=fork.handle, path=path, why=error.what))
        self._hub.append(
            NoticeRaised(
                run=fork.handle,
                severity="error",
                what=f"The work of {fork.handle} could not be saved: {error.what}",
                kept=f"Its worktree stays at {path}.",
                remedy=error.remedy,
            )
        )

    async def _write_files(self, handle: str) -> None:
        try:
            await in_thread(write_files, self._parts.paths, self._hub.state, handle)
            if self._parts.share is not None:
                self._parts.share(shared_name(handle), self._parts.paths.report(handle))
            if self._parts.discard is not None:
                # A fork that goes on gets new ones; the report stays beside the log.
                await in_thread(self._parts.discard, handle)
        except OSError as error:
            self._hub.append(
                NoticeRaised(
                    run=handle,
                    severity="warning",
                    what=f"The report of {handle} could not be written: {error.strerror}.",
                    kept="The log holds all of it.",
                )
            )
