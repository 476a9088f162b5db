"""Supervision of forks: admission of a launch, the queue, places, aborts, and who waits for what.

The dispatcher hands over the fork calls of one answer, the deck the person's. Each fork lives in
a task of its own; one that fails never touches a sibling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from forkdeck.engine.admission import Launch, is_warm
from forkdeck.engine.dispatch import ForkResult
from forkdeck.engine.estimates import plan_text
from forkdeck.engine.launch import LaunchGroup
from forkdeck.engine.plans import BatchPlan, Fork
from forkdeck.engine.reports import batch_result
from forkdeck.engine.wishes import from_call
from forkdeck.errors import AdmissionRefused, ForkDeckError
from forkdeck.model.events.fork import (
    BatchAdmitted,
    BatchDetached,
    BatchEnded,
    ForkEnded,
    ForkQueued,
    ForkStopped,
)

if TYPE_CHECKING:
    from forkdeck.engine.admission import Admission
    from forkdeck.engine.approvals import Approvals
    from forkdeck.engine.dispatch import Call
    from forkdeck.engine.fork_run import ForkRunner
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.places import Places
    from forkdeck.engine.profiles import Profiles
    from forkdeck.engine.run import Run
    from forkdeck.engine.step import Asker
    from forkdeck.engine.wishes import Wish

MOVED = (
    "moved to background by the user: the forks go on, and their reports arrive as one "
    "notification. Do not launch them again."
)
_LOOK_AGAIN_S = 0.5


class Supervisor:
    """Owns every fork.

    Args:
        parts: The deck's parts.
        admission: Plans launches.
        profiles: Profiles and agent files, read before a launch is planned.
        approvals: Asks whether a costly launch may start.
        asker: Knows the last time to first token.
        places: Concurrency places of the working directory.
        runner: Runs one fork from its place to its end.
    """

    def __init__(
        self,
        parts: EngineParts,
        *,
        admission: Admission,
        profiles: Profiles,
        approvals: Approvals,
        asker: Asker,
        places: Places,
        runner: ForkRunner,
    ) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._admission = admission
        self._profiles = profiles
        self._approvals = approvals
        self._asker = asker
        self._places = places
        self._runner = runner
        self._queue: list[Fork] = []
        self._running: dict[str, Fork] = {}
        self._batch_done: dict[str, asyncio.Event] = {}
        self._call_batch: dict[tuple[str, str], str] = {}
        self._batch_notes: dict[str, tuple[str, ...]] = {}
        self._poll: asyncio.Task[None] | None = None
        self._closing = False
        self.waiting: list[str] = []
        self.forks: dict[str, Fork] = {}
        self.settled: Callable[[], None] = lambda: None

    # --- launches -------------------------------------------------------------------------

    async def launch(self, run: Run, calls: Sequence[Call]) -> Mapping[str, ForkResult]:
        """Admit the fork calls of one answer together and wait for those that wait."""
        results: dict[str, ForkResult] = {}
        wishes: list[Wish] = []
        for call in calls:
            try:
                wish = from_call(call, self._parts.settings.forks)
                for spec in wish.tasks:
                    await self._profiles.load(spec.profile, spec.agent_type)
                wishes.append(wish)
            except AdmissionRefused as error:
                results[call.id] = _refused(error)
        try:
            launch = self._plan(run, wishes)
        except AdmissionRefused as error:
            return {**results, **{wish.call or "": _refused(error) for wish in wishes}}
        results.update({call: _refused(error) for call, error in launch.refused.items()})
        denied = await self._confirm(run, launch.batches)
        if denied is not None:
            return {**results, **{batch.call or "": denied for batch in launch.batches}}
        self.admit(run, launch.batches)
        waiting = [batch for batch in launch.batches if not batch.background]
        for batch in launch.batches:
            if batch.background:
                results[batch.call or ""] = _background(batch)
        names = [batch.batch for batch in waiting]
        self.waiting += names
        try:
            for name in names:
                await self._batch_done[name].wait()
            for batch in waiting:
                results[batch.call or ""] = self._result(run, batch.batch)
        finally:
            self.waiting = [name for name in self.waiting if name not in names]
        return results

    def start(self, run: Run, wish: Wish) -> tuple[str, ...]:
        """Admit what the person asked for; returns the handles.

        Raises:
            AdmissionRefused: It is refused; nothing was started.
            SeedRefused: The conversation cannot give such a seed.
        """
        launch = self._plan(run, [wish])
        for error in launch.refused.values():
            raise error
        self.admit(run, launch.batches)
        return tuple(plan.handle for batch in launch.batches for plan in batch.plans)

    def stopped(self, run: Run, call: str) -> ForkResult:
        """Answer a call whose wait was cancelled: detach the parent's forks, stop a fork's."""
        batch = self._call_batch.get((run.run, call))
        if batch is None:
            return ForkResult("Aborted: the run was stopped before any fork started.", "aborted")
        if self._batch_done[batch].is_set():
            return self._result(run, batch)
        if not run.is_parent:
            for handle in self._hub.state.batches[batch].handles:
                self.abort(handle, "its parent was stopped")
            return ForkResult("Aborted: the run was stopped with its forks.", "aborted")
        self._hub.append(BatchDetached(run=run.run, batch=batch))
        return ForkResult(MOVED, summary="moved to background")

    def describe(self, call: Call) -> str:
        """Return a fork call in one line; takes any input."""
        tasks = call.arguments.get("tasks")
        if isinstance(tasks, list):
            return f"{len(tasks)} task{'s' if len(tasks) != 1 else ''}"  # pyright: ignore[reportUnknownArgumentType] - any JSON
        text = call.arguments.get("task") or call.arguments.get("prompt") or ""
        return " ".join(str(text).split())[:200]

    def admit(self, run: Run, batches: Sequence[BatchPlan]) -> None:
        """Append the events of a launch, queue its forks and start those that have a place."""
        groups: dict[tuple[str, str], LaunchGroup] = {}
        sizes: dict[tuple[str, str], int] = {}
        for plan in (plan for batch in batches for plan in batch.plans):
            key = (plan.head.sha256, plan.seed.mode)
            sizes[key] = sizes.get(key, 0) + 1
        for batch in batches:
            self._admit_batch(run, batch)
            for plan in batch.plans:
                key = (plan.head.sha256, plan.seed.mode)
                if key not in groups:
                    warm = sizes[key] == 1 or is_warm(plan, self._hub.now_ms())
                    groups[key] = self._group(run, warm=warm)
                fork = Fork(
                    handle=plan.handle,
                    batch=batch.batch,
                    depth=plan.depth,
                    max_concurrency=batch.max_concurrency,
                    group=groups[key],
                    plan=plan,
                )
                self._enqueue(fork)
        self.pump()

    def resume(self, fork: Fork) -> None:
        """Queue a settled fork again; it goes on in its own conversation."""
        if self._closing:
            return
        fork.done.clear()
        fork.stopped, fork.expired, fork.group = "", False, None
        self._enqueue(fork)
        self.pump()

    # --- aborts ---------------------------------------------------------------------------

    def abort(self, handle: str, reason: str = "", by: str = "person") -> bool:
        """Stop one fork; false when it is over or already being stopped."""
        fork = self.forks.get(handle)
        state = self._hub.state.forks.get(handle)
        if fork is None or state is None or state.settled or fork.stopped:
            return False
        if state.status == "SAVE":
            return False
        fork.stopped = reason or by
        self._hub.append(ForkStopped(run=handle, by=by, reason=reason))
        if fork in self._queue:
            self._queue.remove(fork)
            self._hub.append(
                ForkEnded(run=handle, outcome="aborted", reason=reason or "stopped while queued")
            )
            self._finished(fork)
        elif fork.work is not None:
            fork.work.cancel()
        return True

    def abort_all(self, reason: str = "", by: str = "person") -> tuple[str, ...]:
        """Stop every fork that lives; returns those that were stopped now."""
        return tuple(handle for handle in list(self.forks) if self.abort(handle, reason, by))

    async def close(self) -> None:
        """Stop and save every fork and wait for it."""
        self._closing = True
        self.abort_all("the session was closed", by="close")
        tasks = [fork.task for fork in self.forks.values() if fork.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._poll is not None:
            self._poll.cancel()
            await asyncio.gather(self._poll, return_exceptions=True)

    @property
    def busy(self) -> bool:
        """Whether a fork lives."""
        return bool(self._queue or self._running)

    # --- the queue ------------------------------------------------------------------------

    def pump(self) -> None:
        """Start queued forks, first in first out, as far as there are places."""
        for fork in list(self._queue):
            mine = sum(each.batch == fork.batch for each in self._running.values())
            if mine >= fork.max_concurrency:
                continue
            if fork.depth <= 1:
                fork.place = self._places.take()
                if fork.place is None:
                    self._look_again()
                    return
            self._queue.remove(fork)
            self._running[fork.handle] = fork
            fork.task = asyncio.create_task(self._run(fork), name=f"fork {fork.handle}")

    def _look_again(self) -> None:
        """Try again soon when other processes hold the places."""
        if self._places.full or (self._poll is not None and not self._poll.done()):
            return

        async def poll() -> None:
            await self._parts.clock.sleep(_LOOK_AGAIN_S)
            self._poll = None
            self.pump()

        self._poll = asyncio.create_task(poll(), name="places")

    async def _run(self, fork: Fork) -> None:
        try:
            await self._runner.run(fork)
        finally:
            self._running.pop(fork.handle, None)
            if fork.place is not None:
                self._places.give(fork.place)
                fork.place = None
            self._finished(fork)
            self.pump()

    def _finished(self, fork: Fork) -> None:
        if fork.group is not None:
            fork.group.left(fork.handle)
        fork.done.set()
        batch = self._hub.state.batches.get(fork.batch)
        if batch is not None and not batch.ended:
            forks = (self._hub.state.forks[handle] for handle in batch.handles)
            if all(each.settled for each in forks):
                self._hub.append(BatchEnded(run=batch.run, batch=batch.batch))
                self._batch_done.setdefault(batch.batch, asyncio.Event()).set()
        self.settled()

    def _enqueue(self, fork: Fork) -> None:
        self.forks[fork.handle] = fork
        self._queue.append(fork)

    # --- launches, inside -----------------------------------------------------------------

    def _plan(self, run: Run, wishes: Sequence[Wish]) -> Launch:
        return self._admission.plan(run, wishes, plan_mode=self._approvals.mode(run) == "plan")

    def _group(self, run: Run, *, warm: bool) -> LaunchGroup:
        """Make a launch group; a source that is being answered leads it."""
        group = LaunchGroup(
            self._parts.clock,
            self._parts.rng,
            warm=warm or not self._parts.provider.endpoint.cache_fields,
            last_ttft_ms=self._asker.last_ttft_ms,
        )
        state = self._hub.state.runs.get(run.run)
        if state is not None and state.requested:
            group.follow(run.run)
            run.watch_opening(lambda: group.opened(run.run))
        return group

    def _admit_batch(self, run: Run, batch: BatchPlan) -> None:
        self._batch_done[batch.batch] = asyncio.Event()
        if batch.call is not None:
            self._call_batch[run.run, batch.call] = batch.batch
        self._batch_notes[batch.batch] = batch.notes
        session = self._hub.state.session
        self._hub.append(
            BatchAdmitted(
                run=run.run,
                batch=batch.batch,
                tool=batch.tool,
                call=batch.call,
                handles=tuple(plan.handle for plan in batch.plans),
                max_concurrency=batch.max_concurrency,
                background=batch.background,
                prefix_tokens=batch.prefix_tokens,
                estimate_usd=batch.estimate_usd,
                base_commit=session.git_head,
                dirty_files=session.dirty_files,
            )
        )
        for plan in batch.plans:
            budget = plan.limits.budget_usd
            self._hub.append(
                ForkQueued(
                    run=plan.handle,
                    batch=batch.batch,
                    index=plan.index,
                    name=plan.name,
                    task=plan.task,
                    seed=plan.seed.mode,
                    from_run=plan.source,
                    depth=plan.depth,
                    write=plan.write,
                    model=plan.model,
                    effort=plan.effort,
                    agent_type=plan.agent_type,
                    private=plan.private,
                    max_turns=plan.limits.max_turns,
                    timeout_s=plan.limits.timeout_s,
                    budget_usd=None if budget is None else str(budget),
                )
            )

    async def _confirm(self, run: Run, batches: Sequence[BatchPlan]) -> ForkResult | None:
        """Ask before a costly launch, when someone can answer; None means it may start."""
        settings = self._parts.settings.forks
        if settings.plan == "never" or not self._parts.attached or not batches:
            return None
        plans = [plan for batch in batches for plan in batch.plans]
        highs = [batch.estimate_usd[1] for batch in batches if batch.estimate_usd]
        high = sum(map(float, highs))
        low = sum(float(batch.estimate_usd[0]) for batch in batches if batch.estimate_usd)
        if settings.plan == "auto" and (low + high) / 2 <= settings.plan_above_usd:
            return None
        text = plan_text(plans, (f"{low:.2f}", f"{high:.2f}") if highs else None)
        call, tool = batches[0].call or "", batches[0].tool
        refused = await self._approvals.confirm(run, call, tool, text)
        return None if refused is None else ForkResult(refused.reason, "denied")

    def _result(self, run: Run, batch: str) -> ForkResult:
        """Return a settled batch's reports; sending them is their delivery."""
        handles = self._hub.state.batches[batch].handles
        notes = self._batch_notes.get(batch, ())
        text, error = batch_result(self._hub.state, handles, self._parts.settings.forks, notes)
        run.delivering.extend(handles)
        done = sum(self._hub.state.forks[each].outcome == "done" for each in handles)
        summary = f"{done} of {len(handles)} done"
        return ForkResult(text, "error" if error else "ok", summary)


def _refused(error: ForkDeckError) -> ForkResult:
    return ForkResult(f"Nothing was started. {error}", "error", "refused")


def _background(batch: BatchPlan) -> ForkResult:
    names = ", ".join(f"{plan.handle} ({plan.name})" for plan in batch.plans)
    lines = [
        f"Started in the background: {names}. Their reports arrive as one notification. "
        "Do not guess their results and do not launch them again.",
        *batch.notes,
    ]
    return ForkResult("\n".join(lines), summary=f"{len(batch.plans)} in background")
