"""What a compaction does to a run: a summary takes the place of its older messages.

Called by the reducer. The engine reads the new history from the state, so what is sent next is
what a replay shows.
"""

from __future__ import annotations

from msgspec.structs import replace

from forkdeck.model.events.turn import HistoryCompacted
from forkdeck.model.items import Item
from forkdeck.model.prefix import message_blocks
from forkdeck.model.raw import to_raw
from forkdeck.model.shared_list import SharedList
from forkdeck.model.state import DeckState, HistoryEntry, RunState
from forkdeck.model.thinking import has_thinking, stripped
from forkdeck.store.changes import blocks_of, no_chunks, run_of, with_item, with_run


def reduce_compaction(state: DeckState, event: HistoryCompacted) -> DeckState:
    """Return the state behind a compaction.

    The kept messages lose their thinking, which is only valid behind the very messages it was
    written behind; one that holds nothing else is left out.
    """
    run = run_of(state, event.run)
    entries = run.history.since(0)
    start = max(0, event.kept_from)
    kept = [_stripped(entry) for entry in entries[start : max(start, event.kept_to)]]
    summary = HistoryEntry(role="user", kind="summary", message=event.message, turn=run.turn.turn)
    history = SharedList([summary, *(entry for entry in kept if entry is not None)])
    run = _told(run, event, dropped=min(start, len(entries)), kept=len(history) - 1)
    run = replace(
        run,
        history=history,
        head=None if run.head is None else replace(run.head, thinking_from=0),
        past=(*run.past, SharedList(entries)),
        stream=no_chunks(),
        context_tokens=None,
        sent_positions=0,
        sent_sha256="",
    )
    return with_run(state, run)


def _told(run: RunState, event: HistoryCompacted, *, dropped: int, kept: int) -> RunState:
    """Show where the conversation was compacted, and the summary, folded as thinking is."""
    items = run.transcript.since(0)
    if items and items[-1].kind == "text" and items[-1].text.strip() == event.text.strip():
        items.pop()
    text = f"compacted: a summary of {dropped} messages, {kept} kept"
    if event.before_tokens is not None:
        text += f", {event.before_tokens:,} tokens before"
    run = replace(run, transcript=SharedList(items))
    return with_item(
        run,
        Item(kind="boundary", at_ms=event.at_ms, text=text),
        Item(kind="thinking", at_ms=event.at_ms, text=event.text),
    )


def _stripped(entry: HistoryEntry) -> HistoryEntry | None:
    """Return an entry without thinking; as it is when it holds none, None when nothing is left."""
    if entry.role != "assistant":
        return entry
    message = {"role": entry.role, "content": blocks_of(entry.message)}
    if not has_thinking(message):
        return entry
    left = stripped(message)
    return replace(entry, message=to_raw(left)) if message_blocks(left) else None
