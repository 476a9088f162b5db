"""What turns, prompts and user messages do to the state. Called by the reducer.

A user message enters the history exactly as it is sent; what a person sees of it depends on
why it stands there. A message that carries reports marks those forks as delivered, once.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from forkdeck.model.events.turn import (
    HistoryCompacted,
    MessageAdded,
    PromptQueued,
    PromptWithdrawn,
    ShellRan,
    TurnEnded,
    TurnFamily,
    TurnStarted,
)
from forkdeck.model.ids import PARENT
from forkdeck.model.items import Item, ToolFacts
from forkdeck.model.state import DeckState, HistoryEntry, QueuedPrompt, RunState, TurnFacts
from forkdeck.store.changes import answer_items, at_rest, run_of, with_item, with_run
from forkdeck.store.compaction import reduce_compaction
from forkdeck.store.text import one_line

TITLE_LIMIT = 60
"""Characters of the first prompt that become the session's title."""


def reduce_turn(state: DeckState, event: TurnFamily) -> DeckState:
    """Return the state after an event of a turn."""
    match event:
        case PromptQueued():
            kept = tuple(prompt for prompt in state.prompts if prompt.prompt != event.prompt)
            return replace(state, prompts=(*kept, QueuedPrompt(event.prompt, event.text)))
        case PromptWithdrawn():
            kept = tuple(prompt for prompt in state.prompts if prompt.prompt != event.prompt)
            return replace(state, prompts=kept)
        case TurnStarted():
            run = run_of(state, event.run)
            # A compaction answers nothing: what failed before it can still be sent again.
            unanswered = event.source == "compact" and run.turn.resendable
            turn = TurnFacts(
                turn=event.turn, running=True, started_at_ms=event.at_ms, unanswered=unanswered
            )
            return with_run(state, replace(run, turn=turn))
        case TurnEnded():
            return _ended(state, event)
        case MessageAdded():
            return _added(state, event)
        case ShellRan():
            return _shell(state, event)
        case HistoryCompacted():
            return reduce_compaction(state, event)
        case _:
            assert_never(event)


def _ended(state: DeckState, event: TurnEnded) -> DeckState:
    run = run_of(state, event.run)
    remark = "interrupted" if event.outcome == "interrupted" else event.outcome
    run = at_rest(run, event.at_ms, remark)
    turn = replace(
        run.turn,
        turn=event.turn,
        running=False,
        outcome=event.outcome,
        reason=event.reason,
        remedy=event.remedy,
    )
    run = replace(run, turn=turn)
    if event.outcome == "failed":
        text = event.reason or "the turn failed"
        item = Item(
            kind="notice", at_ms=event.at_ms, text=text, severity="error", remedy=event.remedy
        )
        run = with_item(run, item)
    state = with_run(state, run)
    # A turn that is over waits for nobody; a fork's own requests end with the fork.
    if event.run == PARENT and any(ask.run == PARENT for ask in state.asks):
        state = replace(state, asks=tuple(ask for ask in state.asks if ask.run != PARENT))
    return state


def _added(state: DeckState, event: MessageAdded) -> DeckState:
    run = run_of(state, event.run)
    entry = HistoryEntry(
        role="assistant" if event.kind == "answer" else "user",
        kind=event.kind,
        message=event.message,
        inherited_blocks=event.inherited_blocks,
        turn=run.turn.turn,
    )
    fresh = _undelivered(state, event)
    if fresh:
        forks = dict(state.forks)
        for handle in fresh:
            forks[handle] = replace(forks[handle], delivered=True)
        state = replace(state, forks=forks)
    items = _items(state, run, event, fresh)
    run = replace(with_item(run, *items), history=run.history.appended(entry))
    state = with_run(state, run)
    if event.run != PARENT or event.kind == "answer":
        return state
    if event.kind == "prompt" and not state.session.title:
        title = one_line(event.text, TITLE_LIMIT)
        state = replace(state, session=replace(state.session, title=title))
    return replace(state, shell_notes=()) if state.shell_notes else state


def _undelivered(state: DeckState, event: MessageAdded) -> tuple[str, ...]:
    """Handles whose reports this message is the first to carry."""
    found = (state.forks.get(handle) for handle in dict.fromkeys(event.delivers))
    return tuple(fork.handle for fork in found if fork is not None and not fork.delivered)


def _items(
    state: DeckState, run: RunState, event: MessageAdded, fresh: tuple[str, ...]
) -> list[Item]:
    at_ms, text = event.at_ms, event.text
    items: list[Item] = []
    if fresh:
        shown = text if event.kind in ("notification", "tool_results") else ""
        items.append(Item(kind="delivery", at_ms=at_ms, text=shown, handles=fresh))
    match event.kind:
        case "prompt":
            items.append(Item(kind="you", at_ms=at_ms, text=text))
        case "directive":
            if event.inherited_blocks and not has_boundary(run):
                items.append(boundary_item(state, event.run, at_ms))
            items.append(Item(kind="task", at_ms=at_ms, text=text))
        case "seed":
            if not has_boundary(run):
                items.append(boundary_item(state, event.run, at_ms))
        case "notification":
            if not fresh and text:
                items.append(Item(kind="delivery", at_ms=at_ms, text=text))
        case "tool_results" | "summary":
            if not fresh and text:
                items.append(Item(kind="notice", at_ms=at_ms, text=text))
        case "answer":
            items.extend(answer_items(event.message, at_ms))
        case _:
            assert_never(event.kind)
    return items


def has_boundary(run: RunState) -> bool:
    """Tell whether a run's transcript already marks where its own part begins."""
    return any(item.kind == "boundary" for item in run.transcript)


def boundary_item(state: DeckState, run: str, at_ms: int) -> Item:
    """Return the item that ends what a fork inherited."""
    fork = state.forks.get(run)
    source = "parent" if fork is None or fork.from_run == PARENT else fork.from_run
    count = 0 if fork is None else fork.inherited_messages
    if not count:
        text = f"inherited from {source}"
    else:
        text = f"inherited from {source}, {count} message{'s' if count != 1 else ''}"
    return Item(kind="boundary", at_ms=at_ms, text=text)


def _shell(state: DeckState, event: ShellRan) -> DeckState:
    """Show a `!command` as an item whose text is the command and whose tool is its result."""
    exited = "killed" if event.exit_code is None else f"exit {event.exit_code}"
    facts = ToolFacts(
        call="",
        name="!",
        argument=event.command,
        started_at_ms=max(event.at_ms - event.duration_ms, 0),
        status="ok" if event.exit_code == 0 else "error",
        summary=exited,
        content=event.output,
        exit_code=event.exit_code,
        duration_ms=event.duration_ms,
    )
    item = Item(kind="shell", at_ms=event.at_ms, text=event.command, tool=facts)
    state = with_run(state, with_item(run_of(state, PARENT), item))
    note = f"The user ran a command ({exited}):\n$ {event.command}\n{event.output}"
    return replace(state, shell_notes=(*state.shell_notes, note))
