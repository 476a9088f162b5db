"""Orders, sums and figures; what is not known is None."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from forkdeck.model.events import Event
from forkdeck.model.events.fork import ForkDelayed, ForkSaving, ForkSettled
from forkdeck.model.events.step import (
    CallStreamed,
    RequestDelayed,
    TextStreamed,
    ThinkingStreamed,
    UsageReported,
)
from forkdeck.model.events.tool import ToolStarted
from forkdeck.model.events.turn import TurnStarted
from forkdeck.model.raw import to_raw
from forkdeck.model.state import EMPTY
from forkdeck.model.usage import Usage
from forkdeck.store import selectors
from forkdeck.store.selectors import Activity
from tests.store.test_reducer import ask, deck, ended, queued, sent, started


def usage(run: str, cost: str | None, read: int | None = None) -> UsageReported:
    return UsageReported(
        run=run,
        usage=Usage(input_tokens=10, output_tokens=1, cache_read_input_tokens=read),
        model="m",
        cost_usd=None if cost is None else Decimal(cost),
    )


def crowd():
    events: list[Event] = [queued(f"f{n}") for n in range(1, 10)]
    events += [
        ended("f1"),
        ForkSettled(run="f1"),
        ended("f2"),
        ended("f3", "failed"),
        ended("f4", "partial"),
        ended("f5", "aborted"),
        started("f6"),
        sent("f6"),
        started("f7"),
        ask("f7"),
        ForkDelayed(run="f8", reason="cache"),
        ended("f9", "failed"),
        ForkSettled(run="f9"),
    ]
    return deck(*events)


def test_counts_stand_in_attention_order_without_zeros() -> None:
    assert selectors.counts(crowd()) == [
        ("ASK", 1), ("FAIL", 2), ("PART", 1), ("NEW", 1), ("WAIT", 1), ("RUN", 1), ("DONE", 1),
        ("ABRT", 1),
    ]  # fmt: skip
    assert selectors.counts(EMPTY) == []


def test_attention_owed_and_living() -> None:
    state = crowd()
    assert selectors.attention_order(state) == [
        "f7", "f3", "f4", "f2", "f8", "f6", "f1", "f5", "f9",
    ]  # fmt: skip
    assert selectors.owed(state) == ["f2", "f3", "f4", "f7"]
    assert selectors.living(state) == ["f6", "f7", "f8"]
    assert selectors.badge(state, "f99") == ""


def test_totals_count_parent_and_forks_once() -> None:
    state = deck(queued(), usage("p", "0.10", 90), usage("f1", "0.05", None), usage("f1", "0.05"))
    assert selectors.total_cost(state).usd == Decimal("0.20")
    assert selectors.total_usage(state).input_tokens == 30
    assert selectors.cache_share(state) == pytest.approx(0.9)
    assert selectors.saved_usd(state) is None
    assert selectors.cache_share(deck(usage("p", "0.1"))) is None
    assert selectors.cache_share(EMPTY) is None


def test_what_is_not_known_is_not_zero() -> None:
    state = deck(queued(), started(), usage("p", None))
    child = selectors.metrics(state, "f1", 500)
    assert (child.age_ms, child.tools, child.cost_known, child.cache_share) == (480, 0, False, None)
    parent = selectors.metrics(state, "p", 500)
    assert (parent.age_ms, parent.cost_known) == (None, False)
    state = deck(queued(), started(), usage("f1", "0.05", 90), ended())
    child = selectors.metrics(state, "f1", 99_999)
    assert (child.age_ms, child.cost_known) == (20, True)
    assert child.cost.usd == Decimal("0.05")
    assert child.cache_share == pytest.approx(0.9)
    assert selectors.metrics(deck(TurnStarted(turn=1)), "p", 60).age_ms == 50
    assert selectors.metrics(deck(queued()), "f1", 60).age_ms == 50


TOOL = ToolStarted(run="f1", call="c", name="bash", input=to_raw({}), argument="pytest -q")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], Activity("queued", "", 10)),
        ([started()], Activity("starts", "", 20)),
        ([started(), sent()], Activity("asks model")),
        ([started(), RequestDelayed(run="f1", reason="429", wait_ms=9)], Activity("waits", "429")),
        ([started(), ThinkingStreamed(run="f1", index=0, text="h")], Activity("thinks")),
        ([started(), TextStreamed(run="f1", index=0, text="h")], Activity("writes")),
        (
            [started(), CallStreamed(run="f1", index=0, name="edit", text="h")],
            Activity("calls", "edit"),
        ),
        ([started(), TOOL], Activity("bash", "pytest -q", 30)),
        ([started(), TOOL, ask()], Activity("asks", "bash rm x", 40)),
        ([started(), TOOL, ForkSaving(run="f1")], Activity("saves")),
        ([started(), ended(outcome="partial", reason="budget")], Activity("partial", "budget", 30)),
    ],
)
def test_activity(events: list[Any], expected: Activity) -> None:
    assert selectors.activity(deck(queued(), *events), "f1") == expected


def test_activity_of_the_parent() -> None:
    assert selectors.activity(EMPTY, "p") == Activity("idle")
    assert selectors.activity(deck(TurnStarted(turn=1)), "p") == Activity("works", "", 10)
