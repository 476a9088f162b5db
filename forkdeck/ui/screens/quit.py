"""The quit dialog: lists the living forks and says what becomes of them."""

from __future__ import annotations

from forkdeck.model.state import DeckState
from forkdeck.store import selectors
from forkdeck.store.figures import plural
from forkdeck.ui.screens.dialog import Confirm


def fork_lines(state: DeckState, handles: list[str], limit: int = 12) -> list[str]:
    """Return one line a fork: number, state, name, and whether it has a worktree."""
    lines: list[str] = []
    for handle in handles[:limit]:
        fork = state.forks[handle]
        kind = "worktree" if fork.write else "read-only"
        lines.append(f"  {handle[1:]:>2}  {selectors.badge(state, handle):<5}  {fork.name}  {kind}")
    if len(handles) > limit:
        lines.append(f"  and {len(handles) - limit} more")
    return lines


def quit_dialog(state: DeckState, *, live: bool, title: str = "Quit ForkDeck?") -> Confirm:
    """Return the dialog for leaving a deck with this state.

    Args:
        state: What runs now.
        live: False for a replay: nothing runs, nothing is lost.
        title: The question.
    """
    if not live:
        return Confirm(title, ["This is a replay: nothing runs."], yes="quit", extra="ctrl+d")
    living = selectors.living(state)
    lines: list[str] = []
    if living:
        lines += [f"{plural(len(living), 'fork')} still at work:", *fork_lines(state, living), ""]
        lines.append(
            "They are stopped. Transcripts, partial reports and the work of write forks are saved."
        )
    if state.parent.turn.running:
        lines.append("The parent's turn is interrupted; what it wrote so far is saved.")
    if state.prompts:
        lines.append(f"{plural(len(state.prompts), 'queued prompt')} will not be sent.")
    if not lines:
        lines.append(
            "Nothing runs." if state.session.simulated else "Nothing runs. The session is saved."
        )
    session = state.session
    if session.simulated:
        lines += ["", "The demo's directory goes with it: its session is not kept."]
    elif session.session:
        lines += ["", f"forkdeck --resume {session.session} goes on from here."]
    return Confirm(title, lines, yes="stop, save, quit" if living else "quit", extra="ctrl+d")
