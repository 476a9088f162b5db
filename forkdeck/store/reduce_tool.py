"""What tool calls and the questions they raise do to the state. Called by the reducer."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from forkdeck.model.events.tool import (
    ApprovalAnswered,
    ApprovalAsked,
    ToolEnded,
    ToolFamily,
    ToolProgressed,
    ToolStarted,
)
from forkdeck.model.items import Item, ToolFacts
from forkdeck.model.state import Ask, Counters, DeckState
from forkdeck.store.changes import (
    has_ask,
    is_fork_tool,
    new_run,
    run_of,
    running_tool,
    with_fork,
    with_item,
    with_run,
    with_status,
)


def reduce_tool(state: DeckState, event: ToolFamily) -> DeckState:
    """Return the state after an event of a tool call or a request."""
    match event:
        case ToolStarted():
            run = run_of(state, event.run)
            facts = ToolFacts(
                call=event.call,
                name=event.name,
                argument=event.argument,
                started_at_ms=event.at_ms,
                view=event.view,
            )
            counters = replace(run.counters, tool_calls=run.counters.tool_calls + 1)
            others = tuple(tool for tool in run.tools if tool.call != event.call)
            return with_run(state, replace(run, tools=(*others, facts), counters=counters))
        case ToolProgressed():
            run = run_of(state, event.run)
            tools = tuple(
                replace(tool, tail=event.tail) if tool.call == event.call else tool
                for tool in run.tools
            )
            return with_run(state, replace(run, tools=tools)) if tools else state
        case ToolEnded():
            return _ended(state, event)
        case ApprovalAsked():
            return _asked(state, event)
        case ApprovalAnswered():
            return _answered(state, event)
        case _:
            assert_never(event)


def _ended(state: DeckState, event: ToolEnded) -> DeckState:
    run = run_of(state, event.run)
    started = running_tool(run, event.call)
    facts = ToolFacts(
        call=event.call,
        name=event.name,
        argument=event.path or "" if started is None else started.argument,
        started_at_ms=max(event.at_ms - event.duration_ms, 0)
        if started is None
        else started.started_at_ms,
        status=event.status,
        view=event.view or (None if started is None else started.view),
        summary=event.summary,
        content=event.content,
        patch=event.patch,
        path=event.path,
        added=event.added,
        removed=event.removed,
        exit_code=event.exit_code,
        duration_ms=event.duration_ms,
        spill=event.spill,
    )
    run = replace(
        run,
        tools=tuple(tool for tool in run.tools if tool.call != event.call),
        counters=_counted(run.counters, event),
    )
    if not _drawn_as_batch(state, event):
        run = with_item(run, Item(kind="tool", at_ms=event.at_ms, tool=facts))
    return with_run(state, run)


def _drawn_as_batch(state: DeckState, event: ToolEnded) -> bool:
    """A fork call that admitted forks is drawn as its batch; a refused one as a call."""
    return is_fork_tool(event.name) and any(
        batch.call == event.call and batch.run == event.run for batch in state.batches.values()
    )


def _counted(counters: Counters, event: ToolEnded) -> Counters:
    if event.status == "denied":
        return replace(counters, denials=counters.denials + 1)
    if event.status in ("error", "timeout"):
        return replace(counters, tool_errors=counters.tool_errors + 1)
    return counters


def _asked(state: DeckState, event: ApprovalAsked) -> DeckState:
    fork = state.forks.get(event.run)
    if fork is not None and fork.settled:
        return state
    others = tuple(ask for ask in state.asks if ask.event.request != event.request)
    ask = Ask(run=event.run, at_ms=event.at_ms, event=event)
    state = replace(state, asks=(*others, ask))
    if event.run not in state.runs:
        state = with_run(state, new_run(event.run))
    if fork is None:
        return state
    state = with_status(state, event.run, "ASK")
    fork = state.forks[event.run]
    return (
        state if fork.owed else with_fork(state, replace(fork, owed=True, owed_at_ms=event.at_ms))
    )


def _answered(state: DeckState, event: ApprovalAnswered) -> DeckState:
    ask = next((ask for ask in state.asks if ask.event.request == event.request), None)
    if ask is None:
        return state
    state = replace(state, asks=tuple(other for other in state.asks if other is not ask))
    fork = state.forks.get(ask.run)
    if fork is None or fork.settled or has_ask(state, ask.run):
        return state
    state = with_fork(state, replace(fork, owed=False, owed_at_ms=None))
    return with_status(state, ask.run, "RUN") if fork.status == "ASK" else state
