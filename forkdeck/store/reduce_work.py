"""What worktrees and saved work do to the state. Called by the reducer.

What the person does with a fork's work changes the parent's tree, so a line about it waits for
the next user message of the parent; and `undo` holds what can be taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from forkdeck.model.events.work import (
    ApplyStopped,
    SnapshotTaken,
    WorkApplied,
    WorkDiscarded,
    WorkFamily,
    WorkSaved,
    WorktreeChanged,
    WorktreeCreated,
    WorktreeKept,
    WorktreeRemoved,
    WorkUndone,
)
from forkdeck.model.ids import PARENT
from forkdeck.model.state import DeckState, ForkState, UndoEntry, WorkFacts, WorktreeFacts
from forkdeck.model.work import FileChange
from forkdeck.store.changes import fork_of, with_fork
from forkdeck.store.text import one_line

_FILES_NAMED = 12


def reduce_work(state: DeckState, event: WorkFamily) -> DeckState:
    """Return the state after an event of a worktree or of saved work."""
    match event:
        case SnapshotTaken():
            return _undoable(state, UndoEntry("turn", event.run, event.ref, f"turn {event.turn}"))
        case WorkUndone():
            return _undone(state, event)
        case _:
            pass
    fork = fork_of(state, event.run)
    if fork is None:
        return state
    match event:
        case WorktreeCreated():
            facts = WorktreeFacts(
                path=event.path,
                inside=event.inside,
                base=event.base,
                level=event.level,
                dirty=event.dirty,
                not_visible=event.not_visible,
            )
            return with_fork(state, replace(fork, worktree=facts))
        case WorktreeChanged():
            fork = replace(fork, files=event.files, files_watched=event.watched)
            return with_fork(state, fork)
        case WorktreeRemoved():
            if fork.worktree is None:
                return state
            return with_fork(state, replace(fork, worktree=replace(fork.worktree, exists=False)))
        case WorktreeKept():
            if fork.worktree is None:
                return state
            kept = replace(fork.worktree, path=event.path, kept_why=event.why, exists=True)
            return with_fork(state, replace(fork, worktree=kept))
        case WorkSaved():
            work = WorkFacts(
                ref=event.ref,
                commit=event.commit,
                base=event.base,
                commits=event.commits,
                patch=event.patch,
            )
            return with_fork(state, replace(fork, work=work, files=event.files))
        case WorkApplied():
            work = replace(
                fork.work or _unknown_work(), applied_ref=event.undo_ref, discarded=False,
                refused="", conflicts=(),
            )  # fmt: skip
            state = with_fork(state, replace(fork, work=work))
            entry = UndoEntry("apply", event.run, event.undo_ref, f"apply of {_named(fork)}")
            text = f"The user applied the work of {_named(fork)} to the tree{_list(event.files)}."
            return _noted(_undoable(state, entry), text)
        case WorkDiscarded():
            work = replace(fork.work or _unknown_work(event.ref), discarded=True)
            state = with_fork(state, replace(fork, work=work))
            entry = UndoEntry("discard", event.run, event.ref, f"discard of {_named(fork)}")
            text = f"The user discarded the work of {_named(fork)}; it is not in the tree."
            return _noted(_undoable(state, entry), text)
        case ApplyStopped():
            work = replace(
                fork.work or _unknown_work(), refused=event.what, conflicts=event.conflicts
            )
            return with_fork(state, replace(fork, work=work))
        case _:
            assert_never(event)


def _unknown_work(ref: str = "") -> WorkFacts:
    return WorkFacts(ref=ref, commit="", base="")


def _named(fork: ForkState) -> str:
    name = one_line(fork.name, 40)
    return f"fork {fork.handle}" if name == fork.handle else f"fork {fork.handle} ({name})"


def _list(files: Sequence[FileChange]) -> str:
    if not files:
        return ""
    named = ", ".join(one_line(change.path, 200) for change in files[:_FILES_NAMED])
    more = len(files) - _FILES_NAMED
    return f": {named}" + (f" and {more} more" if more > 0 else "")


def _undoable(state: DeckState, entry: UndoEntry) -> DeckState:
    return replace(state, undo=(*state.undo, entry))


def _noted(state: DeckState, text: str) -> DeckState:
    return replace(state, shell_notes=(*state.shell_notes, text))


def _undone(state: DeckState, event: WorkUndone) -> DeckState:
    entry = _taken_back(state, event)
    if entry is not None:
        state = replace(state, undo=tuple(other for other in state.undo if other is not entry))
    fork = state.forks.get(event.run)
    if fork is not None and fork.work is not None and event.what in ("apply", "discard"):
        if event.what == "apply":
            work = replace(fork.work, applied_ref=None)
        else:
            work = replace(fork.work, discarded=False)
        state = with_fork(state, replace(fork, work=work))
    if entry is not None:
        label = entry.label
    elif fork is not None:
        label = f"{one_line(event.what, 20)} of {_named(fork)}"
    else:
        label = "a turn" if event.run == PARENT else one_line(event.what, 20)
    return _noted(state, f"The user took back the {label}{_restored(event.files)}.")


def _restored(files: Sequence[FileChange]) -> str:
    return f"; restored{_list(files)}" if files else ""


def _taken_back(state: DeckState, event: WorkUndone) -> UndoEntry | None:
    """Find what was undone: by its ref, else the newest of that kind and run."""
    same = [entry for entry in state.undo if entry.kind == event.what]
    exact = [entry for entry in same if entry.ref == event.ref]
    mine = exact or [entry for entry in same if entry.run == event.run]
    return mine[-1] if mine else None
