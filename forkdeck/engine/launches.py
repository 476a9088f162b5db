"""Launches: admission of fork calls, the question about their plan, and who waits for what.

The dispatcher hands over the fork calls of one answer, the deck the person's. What is admitted
goes to the supervisor; what waits for a yes stands in PLAN until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from forkdeck.engine.admitted import batch_event, fork_event
from forkdeck.engine.dispatch import ForkResult
from forkdeck.engine.frozen import is_warm
from forkdeck.engine.launch import LaunchGroup
from forkdeck.engine.launch_plan import asks, joined, plan_text
from forkdeck.engine.plans import BatchPlan, Fork
from forkdeck.engine.report_check import check_schema
from forkdeck.engine.reports import batch_result
from forkdeck.engine.wishes import from_call
from forkdeck.errors import AdmissionRefused, ForkDeckError
from forkdeck.model.events.fork import BatchConfirmed, BatchDetached
from forkdeck.sandbox.files import in_thread
from forkdeck.store.plan_figures import warmth_words

if TYPE_CHECKING:
    from forkdeck.engine.admission import Admission, Launch
    from forkdeck.engine.approvals import Approvals, Refused
    from forkdeck.engine.dispatch import Call
    from forkdeck.engine.limits import Purse
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.profiles import Profiles
    from forkdeck.engine.run import Run
    from forkdeck.engine.step import Asker
    from forkdeck.engine.supervisor import Supervisor
    from forkdeck.engine.wishes import Wish
    from forkdeck.model.launching import LaunchPlan

MOVED = (
    "moved to background by the user: the forks go on, and their reports arrive as one "
    "notification. Do not launch them again."
)


class Launches:
    """Admits launches.

    Args:
        parts: The deck's parts.
        admission: Plans launches.
        profiles: Profiles and agent files, read before a launch is planned.
        approvals: Asks whether a launch may start.
        asker: Knows the last time to first token.
        purse: Sets aside what the forks need to begin and to report.
        supervisor: Owns the forks.
    """

    def __init__(
        self,
        parts: EngineParts,
        *,
        admission: Admission,
        profiles: Profiles,
        approvals: Approvals,
        asker: Asker,
        purse: Purse,
        supervisor: Supervisor,
    ) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._admission = admission
        self._profiles = profiles
        self._approvals = approvals
        self._asker = asker
        self._purse = purse
        self._supervisor = supervisor
        self._call_batch: dict[tuple[str, str], str] = {}
        self._notes: dict[str, tuple[str, ...]] = {}
        self._questions: set[asyncio.Task[ForkResult | None]] = set()
        self._open: dict[asyncio.Task[Refused | None], Sequence[str]] = {}
        self.waiting: list[str] = []
        supervisor.left_out = self._left_out

    async def launch(self, run: Run, calls: Sequence[Call]) -> Mapping[str, ForkResult]:
        """Admit the fork calls of one answer together and wait for those that wait."""
        results: dict[str, ForkResult] = {}
        wishes: list[Wish] = []
        for call in calls:
            try:
                wish = from_call(call, self._parts.settings.forks)
                for spec in wish.tasks:
                    await self._profiles.load(spec.profile, spec.agent_type)
                    if spec.output_schema is not None:
                        await in_thread(check_schema, spec.output_schema)
                wishes.append(wish)
            except AdmissionRefused as error:
                results[call.id] = _refused(error)
        try:
            launch = self._plan(run, wishes)
            self._purse.admit(launch.batches)
        except AdmissionRefused as error:
            return {**results, **{wish.call or "": _refused(error) for wish in wishes}}
        results.update({call: _refused(error) for call, error in launch.refused.items()})
        batches = launch.batches
        plan = joined(batches)
        why = self._why_ask(plan) if batches else ""
        self._admit(run, batches, planned=bool(why))
        if why:
            denied = await self._ask(run, batches, plan, why)
            if denied is not None:
                run.delivering.extend(each.handle for each in plan.forks)
                return {**results, **{batch.call or "": denied for batch in batches}}
        return {**results, **await self._settle(run, batches)}

    def start(self, run: Run, wish: Wish) -> tuple[tuple[str, ...], str]:
        """Admit what the person asked for.

        Returns:
            The handles, and the plan in one line: price, prefix, and whether it waits for a yes.

        Raises:
            AdmissionRefused: It is refused; nothing was started.
            SeedRefused: The conversation cannot give such a seed.
        """
        launch = self._plan(run, [wish])
        for error in launch.refused.values():
            raise error
        self._purse.admit(launch.batches)
        plan = joined(launch.batches)
        why = self._why_ask(plan)
        self._admit(run, launch.batches, planned=bool(why))
        if why:
            question = asyncio.create_task(
                self._ask(run, launch.batches, plan, why), name=f"plan of {plan.forks[0].handle}"
            )
            self._questions.add(question)
            question.add_done_callback(self._questions.discard)
        return tuple(each.handle for each in plan.forks), _one_line(plan, waits=bool(why))

    def stopped(self, run: Run, call: str) -> ForkResult:
        """Answer a call whose wait was cancelled: detach the parent's forks, stop a fork's."""
        batch = self._call_batch.get((run.run, call))
        if batch is None:
            return ForkResult("Aborted: the run was stopped before any fork started.", "aborted")
        if self._supervisor.done(batch).is_set():
            return self._result(run, batch)
        if not run.is_parent:
            for handle in self._hub.state.batches[batch].handles:
                self._supervisor.abort(handle, "its parent was stopped")
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

    async def close(self) -> None:
        """Take back the questions that are still open."""
        for question in list(self._questions):
            question.cancel()
        await asyncio.gather(*self._questions, return_exceptions=True)

    # --- inside ---------------------------------------------------------------------------

    def _plan(self, run: Run, wishes: Sequence[Wish]) -> Launch:
        """Plan a launch.

        Raises:
            AdmissionRefused: Nothing of it may start.
        """
        if self._parts.settings.forks.plan == "confirm" and not self._parts.attached:
            raise AdmissionRefused(
                "forks.plan is confirm: a person confirms every launch, and nobody is attached.",
                "Do the work yourself. For forks the person uses the deck (forkdeck without run), "
                "or sets forks.plan to auto or never.",
            )
        return self._admission.plan(run, wishes, plan_mode=self._approvals.mode(run) == "plan")

    def _why_ask(self, plan: LaunchPlan) -> str:
        settings = self._parts.settings.forks
        return asks(plan, settings.plan, settings.plan_above_usd) if self._parts.attached else ""

    def _admit(self, run: Run, batches: Sequence[BatchPlan], *, planned: bool) -> None:
        """Append the events of a launch; queue its forks, unless they wait for a yes."""
        for batch in batches:
            if batch.call is not None:
                self._call_batch[run.run, batch.call] = batch.batch
            self._notes[batch.batch] = batch.notes
            self._hub.append(batch_event(run, batch, self._hub.state.session, planned=planned))
            for plan in batch.plans:
                self._hub.append(fork_event(plan, planned=planned))
        if planned:
            for fork in self._forks(batches):
                self._supervisor.plan_ahead(fork)
        else:
            self._start(run, batches)

    def _start(self, run: Run, batches: Sequence[BatchPlan]) -> None:
        """Queue the forks of a launch in groups of equal prefixes, those left out excepted."""
        forks = [
            fork for fork in self._forks(batches) if not self._hub.state.forks[fork.handle].settled
        ]
        keys = {fork.handle: _key(fork) for fork in forks}
        groups: dict[tuple[str, str], LaunchGroup] = {}
        for fork in forks:
            key = keys[fork.handle]
            if key not in groups:
                alone = sum(each == key for each in keys.values()) == 1
                groups[key] = self._group(run, fork, alone=alone)
            fork.group = groups[key]
        self._supervisor.enqueue(forks)

    def _forks(self, batches: Sequence[BatchPlan]) -> list[Fork]:
        return [
            Fork(
                handle=plan.handle,
                batch=batch.batch,
                depth=plan.depth,
                max_concurrency=batch.max_concurrency,
                plan=plan,
            )
            for batch in batches
            for plan in batch.plans
        ]

    def _group(self, run: Run, fork: Fork, *, alone: bool) -> LaunchGroup:
        """Make a launch group; a source that is being answered leads it."""
        model = run.head.model if fork.plan is None else fork.plan.head.model
        endpoint = self._parts.provider.endpoint_for(model)
        warm = fork.plan is not None and is_warm(fork.plan, self._hub.now_ms(), endpoint)
        # Where nothing is cached, or nobody can tell, there is nothing to wait for.
        group = LaunchGroup(
            self._parts.clock,
            self._parts.rng,
            warm=alone or warm or not endpoint.caches,
            last_ttft_ms=self._asker.last_ttft_ms,
        )
        state = self._hub.state.runs.get(run.run)
        if state is not None and state.requested:
            group.follow(run.run)
            run.watch_opening(lambda: group.opened(run.run))
        return group

    async def _ask(
        self, run: Run, batches: Sequence[BatchPlan], plan: LaunchPlan, why: str
    ) -> ForkResult | None:
        """Ask whether a launch may start, and start it; the result is the refusal, or None."""
        call, tool = batches[0].call or "", batches[0].tool
        question = asyncio.create_task(
            self._approvals.confirm(run, call, tool, plan_text(plan), plan=plan, why=why)
        )
        handles = [each.handle for each in plan.forks]
        self._open[question] = handles
        try:
            refused = await question
        except asyncio.CancelledError:
            question.cancel()
            await asyncio.gather(question, return_exceptions=True)
            self._supervisor.drop(handles, "the launch was not confirmed")
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            return ForkResult("The person took all forks out of the plan.", "denied")
        finally:
            self._open.pop(question, None)
        if refused is not None:
            self._supervisor.drop(handles, refused.reason)
            return ForkResult(refused.reason, "denied")
        for batch in batches:
            self._hub.append(BatchConfirmed(run=run.run, batch=batch.batch))
        self._supervisor.unplan(handles)
        self._start(run, batches)
        return None

    def _left_out(self) -> None:
        """Take a question back when the person has stopped every fork it asks about."""
        forks = self._hub.state.forks
        for question, handles in self._open.items():
            if all(forks[handle].settled for handle in handles):
                question.cancel()

    async def _settle(self, run: Run, batches: Sequence[BatchPlan]) -> dict[str, ForkResult]:
        """Answer the calls of background batches, and wait for the others."""
        results = {each.call or "": _background(each) for each in batches if each.background}
        waiting = [batch for batch in batches if not batch.background]
        names = [batch.batch for batch in waiting]
        self.waiting += names
        try:
            for name in names:
                await self._supervisor.done(name).wait()
            for batch in waiting:
                results[batch.call or ""] = self._result(run, batch.batch)
        finally:
            self.waiting = [name for name in self.waiting if name not in names]
        return results

    def _result(self, run: Run, batch: str) -> ForkResult:
        """Return a settled batch's reports; sending them is their delivery."""
        handles = self._hub.state.batches[batch].handles
        notes = self._notes.get(batch, ())
        text, error = batch_result(self._hub.state, handles, self._parts.settings.forks, notes)
        run.delivering.extend(handles)
        done = sum(self._hub.state.forks[each].outcome == "done" for each in handles)
        summary = f"{done} of {len(handles)} done"
        return ForkResult(text, "error" if error else "ok", summary)


def _key(fork: Fork) -> tuple[str, str]:
    plan = fork.plan
    return ("", "") if plan is None else (plan.head.sha256, plan.seed.mode)


def _one_line(plan: LaunchPlan, *, waits: bool) -> str:
    price = "price not known"
    if plan.low_usd is not None and plan.high_usd is not None:
        price = f"${plan.low_usd} to ${plan.high_usd}"
    parts = [", ".join(each.handle for each in plan.forks), price]
    if plan.prefix_tokens is not None and (warmth := warmth_words(plan, plan.forks)):
        parts.append(f"prefix {plan.prefix_tokens:,} tokens, {warmth}")
    if waits:
        parts.append("its plan waits for your answer")
    return " · ".join(parts)


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
