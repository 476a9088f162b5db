"""What a finished session came to, for the ends of headless commands."""

from __future__ import annotations

from forkdeck.model.ids import PARENT
from forkdeck.model.prefix import message_blocks
from forkdeck.model.raw import from_raw
from forkdeck.model.state import DeckState
from forkdeck.store.selectors import cache_share, saved_usd, total_cost


def final_answer(state: DeckState) -> str:
    """Return the text of the parent's last finished answer, or an empty string."""
    for entry in reversed(list(state.parent.history)):
        if entry.role == "assistant":
            blocks = message_blocks(from_raw(entry.message))
            texts = [str(block["text"]) for block in blocks if block.get("type") == "text"]
            return "\n\n".join(text for text in texts if text.strip())
    return ""


def exit_code(state: DeckState) -> int:
    """Return 0 completed, 1 failed, 3 ended with a partial fork or a denied call."""
    if state.parent.turn.outcome != "completed":
        return 1
    unfinished = any(fork.status != "DONE" for fork in state.forks.values())
    denied = any(run.counters.denials for run in state.runs.values())
    return 3 if unfinished or denied else 0


def total_lines(state: DeckState) -> list[str]:
    """Return the totals: forks, cost, cache share, saving, wall clock."""
    done = sum(fork.status == "DONE" for fork in state.forks.values())
    lines = [f"forks      {len(state.forks)}, {done} done"]
    cost = total_cost(state)
    mark = f"  ({state.session.simulated})" if state.session.simulated else ""
    lines.append(f"cost       {f'${cost.usd:.4f}' if cost.known else '–'}{mark}")
    share = cache_share(state)
    lines.append(f"cache      {'–' if share is None else f'{share:.0%} of all input read'}")
    saved = saved_usd(state)
    lines.append(f"saved      {'–' if saved is None else f'${saved:.4f} by sharing one prefix'}")
    spans = [
        fork.ended_at_ms - fork.started_at_ms
        for fork in state.forks.values()
        if fork.ended_at_ms is not None and fork.started_at_ms is not None
    ]
    first = min(
        (f.started_at_ms for f in state.forks.values() if f.started_at_ms is not None), default=0
    )
    last = max(
        (f.ended_at_ms for f in state.forks.values() if f.ended_at_ms is not None), default=0
    )
    if spans:
        lines.append(
            f"wall       {(last - first) / 1000:.1f} s for all forks, the slowest took "
            f"{max(spans) / 1000:.1f} s"
        )
    if state.runs.get(PARENT):
        lines.append(f"session    {state.session.session}")
    return lines


def apply_hints(state: DeckState) -> list[str]:
    """Return the command that applies each fork's saved work."""
    return [
        f"forkdeck apply {state.session.session}/{fork.handle}"
        for fork in state.forks.values()
        if fork.work is not None and fork.work.applied_ref is None and not fork.work.discarded
    ]
