"""Logs of released versions fold to the state they always folded to; they are never made anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from forkdeck.model.state import DeckState, RunState
from forkdeck.sessionlog.reader import read_log
from forkdeck.store import selectors
from forkdeck.store.reducer import fold

SESSIONS = Path(__file__).parents[1] / "sessions"
LOGS = sorted(SESSIONS.glob("*/events.jsonl"))


def described(state: DeckState) -> str:
    """Say in words what a deck would show, one fact a line."""
    lines = list(session_lines(state))
    for handle in state.forks:
        lines += fork_lines(state, handle)
    for run in state.runs.values():
        lines += run_lines(run)
    return "\n".join(lines) + "\n"


def session_lines(state: DeckState) -> Iterator[str]:
    facts, cost = state.session, selectors.total_cost(state)
    counts = " ".join(f"{word}:{number}" for word, number in selectors.counts(state))
    yield f"session {facts.session} · {facts.title} · {facts.project}/{facts.branch}"
    yield f"model {facts.model} · mode {facts.mode} · {facts.level} · budget {facts.budget_usd}"
    yield (
        f"cost {cost.usd} known={cost.known} saved={selectors.saved_usd(state)}"
        f" cache={selectors.cache_share(state):.4f}"
    )
    yield f"counts {counts}"
    yield f"order {' '.join(selectors.attention_order(state))}"
    yield f"owed {' '.join(selectors.owed(state))}"
    yield f"living {' '.join(selectors.living(state))}"
    yield f"pending {' '.join(selectors.pending_deliveries(state))}"
    yield from (f"prompt {prompt.text}" for prompt in state.prompts)
    yield from (f"note {note!r}" for note in state.shell_notes)
    yield from (f"rule {rule.kind} {rule.text} {rule.scope}" for rule in state.rules)
    yield from (f"undo {entry.kind} {entry.run} {entry.label}" for entry in state.undo)
    yield from (f"notice {notice.severity} {notice.what}" for notice in state.notices)
    for batch in state.batches.values():
        yield (
            f"batch {batch.batch} {batch.tool} {batch.run} background={batch.background}"
            f" ended={batch.ended} {' '.join(batch.handles)}"
        )


def fork_lines(state: DeckState, handle: str) -> Iterator[str]:
    fork, doing = state.forks[handle], selectors.activity(state, handle)
    figures = selectors.metrics(state, handle, state.at_ms)
    yield (
        f"fork {handle} {fork.name} {fork.status}/{selectors.badge(state, handle)}"
        f" owed={fork.owed_at_ms} age={figures.age_ms} tools={figures.tools}"
        f" cost={figures.cost.usd if figures.cost_known else None}"
        f" doing={doing.verb}|{doing.argument}|{doing.since_ms}"
    )
    yield from (f"  steering {text}" for text in fork.steering)
    if fork.work is not None:
        yield (
            f"  work {fork.work.ref} applied={fork.work.applied_ref}"
            f" discarded={fork.work.discarded} refused={fork.work.refused!r}"
            f" files={len(fork.files)}"
        )
    if fork.worktree is not None:
        tree = fork.worktree
        yield f"  worktree {tree.inside} exists={tree.exists} {tree.kept_why}".rstrip()


def run_lines(run: RunState) -> Iterator[str]:
    history = " ".join(entry.kind for entry in run.history)
    yield (
        f"run {run.run} turns={run.counters.turns} history=[{history}]"
        f" context={run.context_tokens} stream={len(run.stream)}"
    )
    for item in run.transcript:
        parts = [f"  {item.at_ms:>5} {item.kind}"]
        if item.tool is not None:
            parts += [item.tool.name, item.tool.argument, str(item.tool.status)]
        parts += [repr(item.text), *item.handles]
        if item.remedy:
            parts.append(f"({item.remedy})")
        yield " ".join(parts)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.parent.name)
def test_an_old_log_folds_to_its_golden_state(log: Path) -> None:
    contents = read_log(log)
    assert contents.notes == ()
    expected = (log.parent / "state.txt").read_text()
    assert described(fold(contents.events)) == expected


def test_the_first_log_holds_every_status_that_an_event_can_give() -> None:
    state = fold(read_log(SESSIONS / "hand-made-v1" / "events.jsonl").events)
    assert {fork.status for fork in state.forks.values()} == {
        "QUE", "START", "WAIT", "RUN", "ASK", "STOP", "SAVE",
        "DONE", "PART", "FAIL", "ABRT", "INTR",
    }  # fmt: skip
