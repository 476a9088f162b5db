"""Laws of the reducer that hold for any events, and for sessions as they happen."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from forkdeck.model.events import Event, UnknownEvent
from forkdeck.model.events.fork import ForkEnded, ForkReopened
from forkdeck.model.events.step import TextStreamed, UsageReported
from forkdeck.model.events.turn import MessageAdded
from forkdeck.model.shared_list import SharedList
from forkdeck.model.state import EMPTY, DeckState
from forkdeck.store import selectors
from forkdeck.store.reducer import fold, reduce
from tests.soak import laws
from tests.store.recordings import DELTAS, Script, numbered, opened
from tests.store.strategies import EVENT_TYPES, any_event, events_of

LAWS = laws(200)
EVENTS = st.lists(any_event(), max_size=40)


def ask_everything(state: DeckState) -> None:
    """Every selector answers on any state."""
    selectors.attention_order(state)
    selectors.counts(state)
    selectors.owed(state)
    selectors.living(state)
    selectors.total_cost(state)
    selectors.total_usage(state)
    selectors.saved_usd(state)
    selectors.cache_share(state)
    selectors.pending_deliveries(state)
    for run in [*state.runs, *state.forks, "p", "f9"]:
        selectors.activity(state, run)
        selectors.metrics(state, run, 99)
        selectors.badge(state, run)
        selectors.open_ask(state, run)
        selectors.partial_text(state.runs.get(run) or state.parent)


@LAWS
@given(EVENTS)
def test_any_events_in_any_order_fold(events: list[Event]) -> None:
    state = EMPTY
    for event in events:
        state = reduce(state, event)
        ask_everything(state)


@pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
def test_every_event_meets_an_empty_and_a_full_state(kind: type[Event]) -> None:
    full = fold(Script(1).events())

    @laws(15)
    @given(events_of(kind))
    def check(event: Event) -> None:
        ask_everything(reduce(EMPTY, event))
        ask_everything(reduce(full, event))

    check()


@LAWS
@given(EVENTS, st.integers(0, 40))
def test_a_split_fold_equals_the_whole(events: list[Event], cut: int) -> None:
    assert fold(events[cut:], fold(events[:cut])) == fold(events)


@LAWS
@given(EVENTS, any_event(), any_event())
def test_an_old_state_stays_true(events: list[Event], one: Event, other: Event) -> None:
    """A state that is continued twice gives what it gives alone, and does not change."""
    state, again = fold(events), fold(events)
    first = reduce(state, one)
    second = reduce(state, other)
    assert state == again
    assert first == fold([*events, one])
    assert second == fold([*events, other])


@LAWS
@given(EVENTS)
def test_terminal_states_absorb(events: list[Event]) -> None:
    state = EMPTY
    for event in events:
        after = reduce(state, event)
        for handle, fork in state.forks.items():
            reopened = isinstance(event, ForkReopened) and event.run == handle
            if fork.settled and not reopened:
                now = after.forks[handle]
                assert (now.status, now.outcome, now.report) == (
                    fork.status, fork.outcome, fork.report,
                )  # fmt: skip
        state = after


@LAWS
@given(EVENTS)
def test_the_position_never_goes_back(events: list[Event]) -> None:
    state = EMPTY
    for event in events:
        after = reduce(state, event)
        assert after.seq == max(state.seq, event.seq)
        assert after.at_ms == max(state.at_ms, event.at_ms)
        state = after


@LAWS
@given(EVENTS)
def test_a_report_is_delivered_once_for_each_ending(events: list[Event]) -> None:
    state, deliveries, endings = EMPTY, {}, {}
    for event in events:
        before = state
        state = reduce(state, event)
        if isinstance(event, ForkReopened):
            fork = before.forks.get(event.run)
            endings[event.run] = endings.get(event.run, 1) + bool(fork and fork.settled)
        if isinstance(event, MessageAdded):
            for handle in state.forks:
                new = state.forks[handle].delivered and not before.forks[handle].delivered
                deliveries[handle] = deliveries.get(handle, 0) + new
    for handle, count in deliveries.items():
        assert count <= endings.get(handle, 1)


@pytest.mark.parametrize("seed", range(8))
def test_every_prefix_of_a_session_folds(seed: int) -> None:
    state = EMPTY
    for event in Script(seed).events():
        state = reduce(state, event)
        ask_everything(state)
    assert not selectors.living(state)
    assert state.session.closed
    assert all(fork.delivered for fork in state.forks.values())


@pytest.mark.parametrize("seed", range(8))
def test_costs_sum_exactly(seed: int) -> None:
    events = Script(seed, forks=6).events()
    expected = sum((e.cost_usd or 0 for e in events if isinstance(e, UsageReported)), Decimal(0))
    state = fold(events)
    assert selectors.total_cost(state).usd == expected
    assert selectors.total_cost(state).known
    usage = selectors.total_usage(state)
    reports = [event for event in events if isinstance(event, UsageReported)]
    assert usage.output_tokens == 5 * len(reports)
    assert usage.cache_share == pytest.approx(0.9)


def without_cut_text(state: DeckState) -> DeckState:
    """What was streamed of a broken answer stands only in its deltas."""
    runs = {}
    for name, run in state.runs.items():
        items = [replace(i, text="") if i.kind == "cut" else i for i in run.transcript]
        runs[name] = replace(run, transcript=SharedList(items))
    return replace(state, runs=runs)


@pytest.mark.parametrize("seed", range(12))
def test_a_log_without_its_deltas_folds_to_the_same_state(seed: int) -> None:
    events = Script(seed).events()
    lean = [event for event in events if not isinstance(event, DELTAS)]
    assert len(lean) < len(events)
    assert without_cut_text(fold(lean)) == without_cut_text(fold(events))


def test_an_unknown_event_changes_nothing_but_the_position() -> None:
    state = fold(Script(2).events())
    assert reduce(state, UnknownEvent(name="x", line="{}")) is state
    after = reduce(state, UnknownEvent(seq=state.seq + 1, at_ms=state.at_ms, name="x"))
    assert replace(after, seq=state.seq) == state


def test_a_fold_of_a_hundred_thousand_events_is_fast() -> None:
    """Ten microseconds an event on an idle machine; the bound allows for a busy one."""
    events = Script(3, forks=8, steps=40, chunks=300).events()
    assert len(events) > 95_000
    begin = time.process_time()
    state = fold(events)
    spent = time.process_time() - begin
    assert len(state.forks) == 8
    assert spent / len(events) < 30e-6


@pytest.mark.parametrize("usd", ["NaN", "sNaN", "Infinity", "1E+900000", "-1E+50"])
def test_money_that_is_none_counts_as_unknown(usd: str) -> None:
    event = UsageReported(usage=_usage(), model="m", cost_usd=Decimal(usd))
    state = fold(numbered([opened(), event, event]))
    assert selectors.total_cost(state).usd == 0
    assert not selectors.total_cost(state).known


def _usage():
    from forkdeck.model.usage import Usage

    return Usage(input_tokens=1)


def test_runs_that_are_no_handles_never_become_forks() -> None:
    events: list[Event] = [
        ForkEnded(run="../../etc", outcome="done", reason=""),
        ForkEnded(run="p", outcome="done", reason=""),
        TextStreamed(run="../../etc", index=0, text="x"),
    ]
    assert fold(events).forks == {}
