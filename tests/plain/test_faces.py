"""The faces without a screen: lines for people, lines for programs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given

from forkdeck.model.events import Event, UnknownEvent
from forkdeck.model.events.fork import BatchAdmitted, ClaimsChecked, ForkLimited, ForkStopped
from forkdeck.model.events.session import NoticeRaised, SessionClosed, SessionResumed
from forkdeck.model.events.step import (
    CacheJudged,
    MessageFinished,
    PaceChanged,
    RequestDelayed,
    StepCut,
    TextStreamed,
    UsageReported,
)
from forkdeck.model.events.tool import ToolEnded, ToolStarted
from forkdeck.model.events.turn import MessageAdded, TurnEnded
from forkdeck.model.raw import to_raw
from forkdeck.model.state import EMPTY
from forkdeck.plain.json_lines import JsonFace
from forkdeck.plain.lines import LineFace, clock_text
from forkdeck.sessionlog.codec import decode
from forkdeck.store.reducer import reduce
from tests.soak import laws
from tests.store.recordings import Script, assistant, numbered, opened, user
from tests.store.strategies import EVENT_TYPES, events_of
from tests.store.test_reducer import ask, ended, queued, started


def printed(*events: Event, color: bool = False) -> list[str]:
    out: list[str] = []
    face, state = LineFace(out.append, color), EMPTY
    for event in numbered([opened(), *events], step_ms=1_000):
        state = reduce(state, event)
        face.event(event, state)
    assert all(line.endswith("\n") for line in out)
    return "".join(out).splitlines()


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (8054, "HIT 8054 of 8054 tokens read"),
        (2000, "HIT 2000 of 8054 tokens read"),
        (8217, "HIT 8054 of 8054 tokens read (and 163 more behind them)"),
        (None, "HIT"),
    ],
)
def test_no_fork_reads_more_than_there_was(read: int | None, words: str) -> None:
    judged = CacheJudged(
        run="f1", verdict="HIT", read_tokens=read, expected_tokens=8054, first_step=True
    )
    assert printed(queued(), judged)[-1] == f"0:02 [f1 tests] CACHE {words}"


def test_fewer_requests_at_once_are_told_until_all_is_well() -> None:
    paces = [
        PaceChanged(width=4, most=9, reason="429"),
        PaceChanged(width=5, most=9),
        PaceChanged(width=9, most=9),
    ]
    assert printed(*paces)[-3:] == [
        "0:01 [parent] NOTE  4 of 9 requests at once, after a 429",
        "0:02 [parent] NOTE  5 of 9 requests at once, after a 429",
        "0:03 [parent] NOTE  9 requests at once again",
    ]


def test_a_refused_call_says_why() -> None:
    why = "fork_join: tasks holds 9 tasks; at most 8 go in one call."
    call = ToolEnded(call="c", name="fork_join", status="error", content=why, summary="refused")
    assert printed(call)[-1] == f"0:01 [parent] ERROR fork_join error refused {why}"

    rule = "bash: the profile x gives only bash(git log)."
    call = ToolEnded(call="c", name="bash", status="denied", content=rule, summary="denied")
    assert printed(call)[-1] == f"0:01 [parent] DENY  bash denied {rule}"


def test_lines_say_no_word_twice_and_nothing_that_is_not_so() -> None:
    cut = StepCut(run="f1", reason="The connection broke.", attempt=1, resent=True)
    assert printed(queued(), cut)[-1].endswith(
        "CUT   The connection broke. The step is sent again."
    )
    refusal = StepCut(run="f1", reason="refusal", attempt=1, resent=False)
    assert printed(queued(), refusal)[-1].endswith(
        "the model refused to answer; it is not asked again"
    )
    place = RequestDelayed(run="f1", reason="place", wait_ms=0)
    assert printed(queued(), place)[-1].endswith("WAIT  place")
    again = SessionResumed(resumed_at="2026-12-01T02:33:55.618082+00:00")
    assert printed(again)[-1].endswith("session resumed Tue 01 Dec 02:33 UTC")
    closed = printed(queued(), started(), ended(report="x", reason="end_turn"), SessionClosed())
    assert closed[-1].endswith("forks: 1 DONE"), "who reads lines has read them"
    claims = ClaimsChecked(run="f1", checked=6, verified=0)
    assert printed(queued(), claims)[-1].endswith("CHECK 0 of 6 claims confirmed")


def test_a_session_reads_like_this() -> None:
    lines = printed(
        MessageAdded(kind="prompt", message=user("count\nthe stars"), text="count\nthe stars"),
        BatchAdmitted(batch="b", tool="fork_join", call="c", handles=("f1",), max_concurrency=4),
        queued(write=True),
        started(messages=12),
        ToolStarted(run="f1", call="c", name="bash", input=to_raw({}), argument="pytest -q"),
        ToolEnded(run="f1", call="c", name="bash", status="ok", content="..", summary="exit 0"),
        RequestDelayed(run="f1", reason="429", wait_ms=18_000, message="slow down"),
        MessageFinished(run="f1", message=assistant("All pass."), stop_reason="end_turn"),
        ended(reason="end_turn", report="All pass."),
        TurnEnded(turn=1, outcome="failed", reason="401", remedy="Set a key."),
    )
    assert lines == [
        "0:00 [parent] OPEN  session 20261130-202200-1f3a9c · orders on main · claude-opus-5-5",
        "0:01 [parent] YOU   count",
        "0:01 [parent]       the stars",
        "0:02 [parent] FORK  1 fork by fork_join: f1",
        "0:03 [f1 tests] QUE   run the tests (write)",
        "0:04 [f1 tests] START 12 messages inherited",
        "0:05 [f1 tests] RUN   bash pytest -q",
        "0:06 [f1 tests] OK    bash exit 0",
        "0:07 [f1 tests] WAIT  429 18.0 s slow down",
        "0:08 [f1 tests] SAYS  All pass.",
        "0:09 [f1 tests] DONE  end_turn · 5.0 s · 1 tool · –",
        "0:10 [parent] ERROR turn failed: 401",
        "0:10 [parent]       Set a key.",
    ]


def test_waits_without_an_end_and_limits_by_the_person() -> None:
    """No time is told that is not known."""
    lines = printed(
        queued(),
        RequestDelayed(run="f1", reason="budget", wait_ms=0),
        ForkLimited(run="f1", max_turns=40, timeout_s=600),
    )
    assert lines[-2:] == [
        "0:02 [f1 tests] WAIT  budget",
        "0:03 [f1 tests] NOTE  limits by the person: 40 turns, 10m",
    ]


def test_a_report_that_was_not_said_before_is_written() -> None:
    text = MessageFinished(run="f1", message=assistant("See above."), stop_reason="end_turn")
    lines = printed(queued(), started(), text, ended(report="The long answer.", reason="end_turn"))
    assert lines[-1] == "0:04 [f1 tests] SAYS  The long answer."
    lines = printed(queued(), started(), ended(outcome="aborted", report="Half", reason="x"))
    assert lines[-1] == "0:03 [f1 tests] SAYS  Half"


def test_deltas_and_figures_make_no_lines() -> None:
    assert len(printed(TextStreamed(index=0, text="x"), UnknownEvent(name="n", line="{}"))) == 1
    quiet = UsageReported(usage=_usage(), model="m", cost_usd=None)
    assert len(printed(quiet)) == 1


def _usage():
    from forkdeck.model.usage import Usage

    return Usage(input_tokens=1)


def test_only_state_words_are_coloured_and_only_when_asked() -> None:
    plain = printed(queued(), started(), ended())
    coloured = printed(queued(), started(), ended(), color=True)
    assert "\x1b" not in "".join(plain)
    assert "\x1b[32mDONE \x1b[0m" in coloured[-1]
    assert [re.sub(r"\x1b\[[0-9]*m", "", line) for line in coloured] == plain


@pytest.mark.parametrize("evil", ["\x1b]0;owned\x07", "\x9b31m", "\u202etxt", "a\rb", "\x00"])
def test_hostile_text_cannot_act_or_hide(evil: str) -> None:
    events: list[Event] = [
        MessageAdded(kind="prompt", message=user("x"), text=evil),
        BatchAdmitted(batch=evil, tool="fork", call=evil, handles=(evil,), max_concurrency=1),
        queued(name=evil, task=evil),
        ToolStarted(run="f1", call="c", name=evil, input=to_raw({}), argument=evil),
        ToolEnded(run="f1", call="c", name=evil, status="error", content=evil),
        ask(),
        ForkStopped(run="f1", reason=evil, by=evil),
        MessageFinished(run=evil, message=assistant(evil), stop_reason=""),
        NoticeRaised(severity="error", what=evil, kept=evil, remedy=evil),
        ended(report=evil, reason=evil, remedy=evil),
    ]
    text = "\n".join(printed(*events))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)


@pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
def test_every_line_begins_with_a_time_for_every_event(kind: type[Event]) -> None:
    @laws(12)
    @given(events_of(kind))
    def check(event: Any) -> None:
        for line in printed(event):
            assert re.match(r"\d+:\d\d \[[^\n]*\] ?", line), line

    check()


def test_json_lines_are_the_logs_own() -> None:
    out: list[str] = []
    face, events = JsonFace(out.append), Script(1).events()
    for event in events:
        face.event(event, EMPTY)
    assert [decode(line.encode()) for line in out] == events
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in out)
    assert json.loads(out[0])["type"] == "session.opened"


def test_times() -> None:
    assert [clock_text(ms) for ms in (0, 999, 61_000, 3_600_000, 36_061_000, -5)] == [
        "0:00", "0:00", "1:01", "1:00:00", "10:01:01", "0:00",
    ]  # fmt: skip
