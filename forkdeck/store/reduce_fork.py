"""What batches and forks do to the state. Called by the reducer.

A fork's status comes from events alone; terminal states absorb, and only a resume leaves them.
What a fork owes the person opens when it ends (not when the person aborted it) or asks, and
closes by their reading or their answer.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from forkdeck.model.events.fork import (
    BatchAdmitted,
    BatchConfirmed,
    BatchDetached,
    BatchEnded,
    ClaimsChecked,
    ForkDelayed,
    ForkEnded,
    ForkFamily,
    ForkLimited,
    ForkQueued,
    ForkRecovered,
    ForkReopened,
    ForkSaving,
    ForkSettled,
    ForkSlowed,
    ForkStarted,
    ForkSteered,
    ForkStopped,
    LimitNeared,
)
from forkdeck.model.ids import is_handle
from forkdeck.model.items import Item
from forkdeck.model.shared_list import SharedList
from forkdeck.model.state import (
    BatchState,
    ClaimFacts,
    DeckState,
    Delay,
    ForkState,
    RunState,
    SlowFacts,
)
from forkdeck.model.words import STATUS_OF, Severity
from forkdeck.store.changes import (
    at_rest,
    fork_of,
    new_run,
    run_of,
    with_fork,
    with_item,
    with_run,
    with_status,
)
from forkdeck.store.reduce_turn import boundary_item, has_boundary

_MOST_TEXTS = 4
"""Texts in a row that may make up a partial report."""


def reduce_fork(state: DeckState, event: ForkFamily) -> DeckState:
    """Return the state after an event of a batch or a fork."""
    match event:
        case BatchAdmitted():
            return _admitted(state, event)
        case BatchConfirmed():
            return _confirmed(state, event)
        case LimitNeared():
            return _neared(state, event)
        case BatchEnded():
            batch = state.batches.get(event.batch)
            return state if batch is None else _with_batch(state, replace(batch, ended=True))
        case BatchDetached():
            batch = state.batches.get(event.batch)
            return state if batch is None else _with_batch(state, replace(batch, background=True))
        case ForkQueued():
            return _queued(state, event)
        case _:
            pass
    fork = fork_of(state, event.run)
    if fork is None:
        return state
    if event.run not in state.forks:
        state = with_fork(state, fork)
    match event:
        case ForkStarted():
            return _started(state, fork, event)
        case ForkDelayed():
            until_ms = None if event.wait_ms is None else event.at_ms + event.wait_ms
            run = run_of(state, event.run)
            if fork.settled:
                return with_run(state, run)
            delay = Delay(event.reason, until_ms, elsewhere=event.elsewhere, places=event.places)
            state = with_run(state, replace(run, delay=delay))
            # What waits for a place has not begun: it is queued.
            return with_status(state, event.run, "QUE" if event.places else "WAIT")
        case ForkLimited():
            return with_fork(
                state,
                replace(
                    fork,
                    max_turns=event.max_turns,
                    timeout_s=event.timeout_s,
                    budget_usd=event.budget_usd,
                    budget_tokens=event.budget_tokens,
                    near_limit="",
                ),
            )
        case ForkSteered():
            return _steered(state, fork, event)
        case ForkStopped():
            return with_status(state, event.run, "STOP")
        case ForkSaving():
            return with_status(state, event.run, "SAVE")
        case ForkEnded():
            return _ended(state, fork, event)
        case ForkSettled():
            return with_fork(state, replace(fork, owed=False, owed_at_ms=None))
        case ForkReopened():
            return _reopened(state, fork, event)
        case ForkSlowed():
            if fork.settled:
                return state
            slow = SlowFacts(event.clock, event.since_ms, event.what)
            return with_fork(state, replace(fork, slow=slow))
        case ForkRecovered():
            return with_fork(state, replace(fork, slow=None))
        case ClaimsChecked():
            claims = ClaimFacts(event.checked, event.verified, event.unverified)
            return with_fork(state, replace(fork, claims=claims))
        case _:
            assert_never(event)


def _with_batch(state: DeckState, batch: BatchState) -> DeckState:
    return replace(state, batches={**state.batches, batch.batch: batch})


def _admitted(state: DeckState, event: BatchAdmitted) -> DeckState:
    if event.batch in state.batches:
        return state
    batch = BatchState(
        batch=event.batch,
        tool=event.tool,
        run=event.run,
        call=event.call,
        handles=event.handles,
        max_concurrency=event.max_concurrency,
        background=event.background,
        prefix_tokens=event.prefix_tokens,
        estimate_usd=event.estimate_usd,
        base_commit=event.base_commit,
        dirty_files=event.dirty_files,
        plan=event.plan,
        planned=event.planned,
        admitted_at_ms=event.at_ms,
    )
    item = Item(kind="batch", at_ms=event.at_ms, batch=event.batch, handles=event.handles)
    state = with_run(state, with_item(run_of(state, event.run), item))
    return _with_batch(state, batch)


def _confirmed(state: DeckState, event: BatchConfirmed) -> DeckState:
    batch = state.batches.get(event.batch)
    if batch is None:
        return state
    state = _with_batch(state, replace(batch, planned=False))
    for handle in batch.handles:
        fork = state.forks.get(handle)
        if fork is not None and fork.status == "PLAN":
            state = with_fork(state, replace(fork, status="QUE", queued_at_ms=event.at_ms))
    return state


def _neared(state: DeckState, event: LimitNeared) -> DeckState:
    text = f"{round(event.share * 100)} % of {event.of} is used"
    item = Item(kind="notice", at_ms=event.at_ms, text=text, severity="warning")
    state = with_run(state, with_item(run_of(state, event.run), item))
    fork = state.forks.get(event.run)
    if fork is None:
        return replace(state, near_limit=event.of)
    return with_fork(state, replace(fork, near_limit=event.of))


def _queued(state: DeckState, event: ForkQueued) -> DeckState:
    if not is_handle(event.run):
        return state
    before = state.forks.get(event.run)
    if before is not None and before.batch:
        return state
    fork = ForkState(
        handle=event.run,
        batch=event.batch,
        index=event.index,
        name=event.name,
        task=event.task,
        seed=event.seed,
        from_run=event.from_run,
        depth=event.depth,
        write=event.write,
        queued_at_ms=event.at_ms,
        model=event.model,
        effort=event.effort,
        agent_type=event.agent_type,
        private=event.private,
        max_turns=event.max_turns,
        timeout_s=event.timeout_s,
        budget_usd=event.budget_usd,
        budget_tokens=event.budget_tokens,
        profile=event.profile,
        tools=event.tools,
        denied=event.denied,
        rules=event.rules,
        from_epoch=len(run_of(state, event.from_run).past),
        output_schema=event.output_schema,
        task_id=event.task_id,
        status="PLAN" if event.planned else "QUE",
    )
    if before is not None:
        # Its later events were read first: what they told stays.
        fork = _merged(before, fork)
    if event.run not in state.runs:
        state = with_run(state, new_run(event.run))
    return with_fork(state, fork)


def _merged(before: ForkState, queued: ForkState) -> ForkState:
    return replace(
        before,
        batch=queued.batch,
        index=queued.index,
        name=queued.name,
        task=queued.task,
        seed=queued.seed,
        from_run=queued.from_run,
        depth=queued.depth,
        write=queued.write,
        model=queued.model,
        effort=queued.effort,
        agent_type=queued.agent_type,
        private=queued.private,
        max_turns=queued.max_turns,
        timeout_s=queued.timeout_s,
        budget_usd=queued.budget_usd,
        budget_tokens=queued.budget_tokens,
        profile=queued.profile,
        tools=queued.tools,
        denied=queued.denied,
        rules=queued.rules,
        from_epoch=queued.from_epoch,
        output_schema=queued.output_schema,
        task_id=queued.task_id,
    )


def _started(state: DeckState, fork: ForkState, event: ForkStarted) -> DeckState:
    run = run_of(state, event.run)
    if fork.settled:
        return with_run(state, run)
    fork = replace(
        fork,
        from_run=event.from_run,
        boundary=event.boundary,
        inherited_messages=event.inherited_messages,
        inherited_tokens=event.inherited_tokens,
        started_at_ms=event.at_ms,
    )
    state = with_fork(state, fork)
    if not run.history and event.inherited_messages > 0 and event.from_run != event.run:
        # The entries are shared with the source, the list of them is the child's own.
        source = run_of(state, event.from_run)
        # A source that was compacted since the admission still gives what was frozen then.
        older = fork.from_epoch < len(source.past)
        history = source.past[fork.from_epoch] if older else source.history
        inherited = history.since(0)[: event.inherited_messages]
        run = replace(run, history=SharedList(inherited))
    if event.inherited_messages > 0 and not has_boundary(run):
        run = with_item(run, boundary_item(state, event.run, event.at_ms))
    state = with_run(state, replace(run, delay=None))
    return with_status(state, event.run, "START")


def _steered(state: DeckState, fork: ForkState, event: ForkSteered) -> DeckState:
    if not event.delivered:
        return with_fork(state, replace(fork, steering=(*fork.steering, event.text)))
    waiting = list(fork.steering)
    if event.text in waiting:
        waiting.remove(event.text)
    item = Item(kind="steer", at_ms=event.at_ms, text=event.text)
    state = with_run(state, with_item(run_of(state, event.run), item))
    return with_fork(state, replace(fork, steering=tuple(waiting)))


def _ended(state: DeckState, fork: ForkState, event: ForkEnded) -> DeckState:
    if fork.settled:
        return state
    owed = event.outcome != "aborted"
    fork = replace(
        fork,
        status=STATUS_OF[event.outcome],
        outcome=event.outcome,
        reason=event.reason,
        remedy=event.remedy,
        report=event.report,
        degraded=event.degraded,
        ended_at_ms=event.at_ms,
        owed=owed,
        owed_at_ms=event.at_ms if owed else None,
        slow=None,
    )
    run = at_rest(run_of(state, event.run), event.at_ms, event.outcome)
    if run.turn.running:
        run = replace(run, turn=replace(run.turn, running=False))
    run = _closed_with_report(run, event)
    if any(ask.run == event.run for ask in state.asks):
        state = replace(state, asks=tuple(ask for ask in state.asks if ask.run != event.run))
    return with_fork(with_run(state, run), fork)


def _closed_with_report(run: RunState, event: ForkEnded) -> RunState:
    """End a transcript with the report, and with the reason when it is not a good end.

    The fork's last text usually is its report: that item becomes the report, in place.
    """
    last = run.transcript[-1] if run.transcript else None
    if event.report:
        severity: Severity = "info" if event.outcome == "done" else "warning"
        report = Item(kind="report", at_ms=event.at_ms, text=event.report, severity=severity)
        run = _with_report(run, report)
    if event.outcome == "done":
        return run
    text = event.reason or event.outcome
    if last is not None and last.kind == "notice" and last.text == text:
        return run
    severity = "error" if event.outcome == "failed" else "warning"
    notice = Item(
        kind="notice", at_ms=event.at_ms, text=text, severity=severity, remedy=event.remedy
    )
    return with_item(run, notice)


def _with_report(run: RunState, report: Item) -> RunState:
    """Turn what was said last into the report, when it is the report; else add it.

    A partial report may be several texts in a row: the last of them becomes the report, and
    nothing is shown twice.
    """
    items = run.transcript.since(0)
    said = [place for place, item in enumerate(items) if item.kind in ("text", "cut")]
    wanted = report.text.split()
    for count in range(1, min(len(said), _MOST_TEXTS) + 1):
        if " ".join(items[place].text for place in said[-count:]).split() == wanted:
            place = said[-1]
            items[place] = replace(report, at_ms=items[place].at_ms, text=items[place].text)
            return replace(run, transcript=SharedList(items))
    return with_item(run, report)


def _reopened(state: DeckState, fork: ForkState, event: ForkReopened) -> DeckState:
    if not fork.settled:
        return state
    ran_ms = 0
    if fork.started_at_ms is not None and fork.ended_at_ms is not None:
        ran_ms = max(fork.ended_at_ms - fork.started_at_ms, 0)
    fork = replace(
        fork,
        status="START",
        outcome=None,
        reason="",
        remedy="",
        report="",
        degraded=False,
        started_at_ms=event.at_ms,
        ended_at_ms=None,
        ran_ms=fork.ran_ms + ran_ms,
        owed=False,
        owed_at_ms=None,
        delivered=False,
        near_limit="",
        claims=None,
        slow=None,
    )
    item = Item(kind="notice", at_ms=event.at_ms, text=event.reason)
    state = with_run(state, with_item(run_of(state, event.run), item))
    return with_fork(state, fork)
