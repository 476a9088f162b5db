"""What each kind of event does to the state, with the values a person sees."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeVar

import pytest

from forkdeck.model.events import Event
from forkdeck.model.events.fork import (
    BatchAdmitted,
    BatchDetached,
    ForkDelayed,
    ForkEnded,
    ForkLimited,
    ForkQueued,
    ForkReopened,
    ForkSaving,
    ForkSettled,
    ForkStarted,
    ForkSteered,
    ForkStopped,
    LimitNeared,
)
from forkdeck.model.events.session import (
    BudgetChanged,
    EnforcementProbed,
    HeadRecorded,
    ModeChanged,
    NoticeRaised,
    SessionClosed,
    SessionRenamed,
    SessionResumed,
)
from forkdeck.model.events.step import (
    CacheJudged,
    CallStreamed,
    MessageFinished,
    RequestDelayed,
    RequestSent,
    StepCut,
    StepStarted,
    StreamOpened,
    TextStreamed,
    ThinkingStreamed,
    UsageReported,
)
from forkdeck.model.events.tool import (
    ApprovalAnswered,
    ApprovalAsked,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
)
from forkdeck.model.events.turn import (
    MessageAdded,
    PromptQueued,
    PromptWithdrawn,
    ShellRan,
    TurnEnded,
    TurnStarted,
)
from forkdeck.model.events.work import (
    ApplyStopped,
    SnapshotTaken,
    WorkApplied,
    WorkDiscarded,
    WorkSaved,
    WorktreeChanged,
    WorktreeCreated,
    WorktreeKept,
    WorktreeRemoved,
    WorkUndone,
)
from forkdeck.model.raw import from_raw, to_raw
from forkdeck.model.state import DeckState, UndoEntry
from forkdeck.model.usage import Usage
from forkdeck.model.work import FileChange
from forkdeck.store import selectors
from forkdeck.store.reducer import fold
from tests.store.recordings import assistant, numbered, opened, user

T = TypeVar("T")


def there(value: T | None) -> T:
    assert value is not None
    return value


def deck(*events: Event) -> DeckState:
    return fold(numbered([opened(), *events]))


def queued(handle: str = "f1", **changes: Any) -> ForkQueued:
    facts: dict[str, Any] = {
        "batch": "b", "index": 0, "name": "tests", "task": "run the tests", "seed": "before_call",
        "from_run": "p", "depth": 1,
    }  # fmt: skip
    return ForkQueued(run=handle, **{**facts, **changes})


def ask(handle: str = "f1", request: str = "q1") -> ApprovalAsked:
    return ApprovalAsked(
        run=handle, request=request, call="c", tool="bash", argument="rm x", cwd="/", rule="none"
    )


def ended(handle: str = "f1", outcome: Any = "done", **changes: Any) -> ForkEnded:
    return ForkEnded(run=handle, outcome=outcome, reason=changes.pop("reason", ""), **changes)


def started(handle: str = "f1", messages: int = 0) -> ForkStarted:
    return ForkStarted(run=handle, from_run="p", inherited_messages=messages, boundary=messages)


def sent(run: str = "f1") -> RequestSent:
    return RequestSent(run=run, attempt=1, prefix_sha256="", positions=3)


def kinds(state: DeckState, run: str = "p") -> list[str]:
    return [item.kind for item in state.runs[run].transcript]


def test_statuses_follow_the_events() -> None:
    life: list[tuple[Event, str, str]] = [
        (queued(), "QUE", "QUE"),
        (ForkDelayed(run="f1", reason="place"), "WAIT", "WAIT"),
        (started(), "START", "START"),
        (ForkDelayed(run="f1", reason="cache", wait_ms=5_000), "WAIT", "WAIT"),
        (sent(), "RUN", "RUN"),
        (RequestDelayed(run="f1", reason="429", wait_ms=18_000), "WAIT", "WAIT"),
        (StreamOpened(run="f1", message_id="m", ttft_ms=5), "RUN", "RUN"),
        (ask(), "ASK", "ASK"),
        (ask(request="q2"), "ASK", "ASK"),
        (ApprovalAnswered(run="f1", request="q1", answer="once"), "ASK", "ASK"),
        (sent(), "ASK", "ASK"),
        (ApprovalAnswered(run="f1", request="q2", answer="deny"), "RUN", "RUN"),
        (ForkStopped(run="f1"), "STOP", "STOP"),
        (sent(), "STOP", "STOP"),
        (ForkSaving(run="f1"), "SAVE", "SAVE"),
        (ForkStopped(run="f1"), "SAVE", "SAVE"),
        (ended(), "DONE", "NEW"),
        (sent(), "DONE", "NEW"),
        (ask(request="q3"), "DONE", "NEW"),
        (ended(outcome="failed"), "DONE", "NEW"),
        (ForkSettled(run="f1"), "DONE", "DONE"),
        (ForkReopened(run="f1"), "START", "START"),
        (sent(), "RUN", "RUN"),
    ]
    events: list[Event] = []
    for event, status, badge in life:
        events.append(event)
        state = deck(*events)
        assert (state.forks["f1"].status, selectors.badge(state, "f1")) == (status, badge), event
    assert deck(*events).asks == ()


@pytest.mark.parametrize(
    ("outcome", "badge", "owes"),
    [
        ("done", "NEW", True), ("partial", "PART", True), ("failed", "FAIL", True),
        ("interrupted", "INTR", True), ("aborted", "ABRT", False),
    ],
)  # fmt: skip
def test_what_is_owed_opens_at_the_end_and_closes_when_settled(
    outcome: Any, badge: str, owes: bool
) -> None:
    state = deck(queued(), started(), ended(outcome=outcome))
    assert selectors.badge(state, "f1") == badge
    assert state.forks["f1"].owed is owes
    assert state.forks["f1"].owed_at_ms == (30 if owes else None)
    settled = deck(queued(), started(), ended(outcome=outcome), ForkSettled(run="f1"))
    assert selectors.owed(settled) == []
    assert settled.forks["f1"].outcome == outcome


def test_an_ask_is_owed_since_it_came_until_its_answer() -> None:
    state = deck(queued(), started(), ask(), ask(request="q2"))
    assert (state.forks["f1"].owed, state.forks["f1"].owed_at_ms) == (True, 30)
    state = deck(
        queued(), started(), ask(), ApprovalAnswered(run="f1", request="q1", answer="once")
    )
    assert (state.forks["f1"].owed, state.forks["f1"].owed_at_ms) == (False, None)
    state = deck(queued(), started(), ask(), ended(outcome="aborted"))
    assert state.asks == ()
    assert not state.forks["f1"].owed


def test_a_finished_message_replaces_the_stream_and_its_text_wins() -> None:
    events: list[Event] = [
        StepStarted(step=1),
        sent("p"),
        StreamOpened(message_id="m", ttft_ms=9),
        ThinkingStreamed(index=0, text="hm"),
        TextStreamed(index=1, text="Hel"),
        TextStreamed(index=1, text="lo"),
        CallStreamed(index=2, name="bash", text='{"command'),
    ]
    state = deck(*events)
    assert [(c.kind, c.text) for c in state.parent.stream] == [
        ("thinking", "hm"), ("text", "Hel"), ("text", "lo"), ("call", '{"command'),
    ]  # fmt: skip
    assert not state.parent.requested
    message = assistant(
        {"type": "thinking", "thinking": "hm!", "signature": "s"},
        "Hello.",
        {"type": "tool_use", "id": "c", "name": "bash", "input": {}},
        {"type": "redacted_thinking", "data": "x"},
        "  ",
        "More.",
    )
    state = deck(*events, MessageFinished(message=message, stop_reason="tool_use", message_id="m"))
    parent = state.parent
    assert [(item.kind, item.text) for item in parent.transcript] == [
        ("thinking", "hm!"), ("text", "Hello."), ("text", "More."),
    ]  # fmt: skip
    assert len(parent.stream) == 0
    (entry,) = parent.history
    assert (entry.role, entry.kind, entry.stop_reason) == ("assistant", "answer", "tool_use")
    assert bytes(entry.message) == bytes(message)
    assert parent.counters.turns == 1


def test_a_cut_answer_stays_as_a_cut_item() -> None:
    state = deck(
        sent("p"),
        ThinkingStreamed(index=0, text="hm"),
        TextStreamed(index=1, text="Half an "),
        TextStreamed(index=1, text="answ"),
        CallStreamed(index=2, name="bash", text="{}"),
        StepCut(reason="connection", attempt=1, resent=True),
    )
    (item,) = state.parent.transcript
    assert (item.kind, item.text) == ("cut", "hm\n\nHalf an answ\n\nbash {}")
    assert item.remedy == "connection · resent"
    assert len(state.parent.stream) == 0
    assert state.parent.cut_attempts == 1
    assert len(state.parent.history) == 0
    assert deck(StepCut(reason="cut", attempt=3, resent=False)).parent.transcript[0].remedy == (
        "cut · not resent"
    )


def test_messages_are_drawn_by_why_they_stand_there() -> None:
    state = deck(
        MessageAdded(kind="prompt", message=user("do it"), text="do it"),
        BatchAdmitted(batch="b", tool="fork", call="c", handles=("f1",), max_concurrency=1),
        queued(),
        ForkStarted(run="f1", from_run="p", inherited_messages=1, boundary=9),
        MessageAdded(run="f1", kind="seed", message=user("seed")),
        MessageAdded(run="f1", kind="directive", message=user("task"), text="the task"),
        ended(report="the report"),
        MessageAdded(kind="tool_results", message=user("r"), text="", delivers=("f1",)),
        MessageAdded(kind="tool_results", message=user("r2"), delivers=("f1",)),
        MessageAdded(kind="notification", message=user("n"), text="again", delivers=("f1", "f7")),
    )
    assert kinds(state) == ["you", "batch", "delivery", "delivery"]
    assert state.parent.transcript[1].handles == ("f1",)
    assert state.parent.transcript[2].handles == ("f1",)
    assert state.parent.transcript[3].handles == ()
    assert kinds(state, "f1") == ["boundary", "task", "report"]
    assert state.runs["f1"].transcript[0].text == "inherited from parent, 1 message"
    assert state.session.title == "do it"
    assert [entry.kind for entry in state.parent.history] == [
        "prompt", "tool_results", "tool_results", "notification",
    ]  # fmt: skip


def test_a_childs_history_begins_with_its_parents_by_reference() -> None:
    before: list[Event] = [
        MessageAdded(kind="prompt", message=user("one"), text="one"),
        MessageFinished(message=assistant("two"), stop_reason="end_turn"),
        MessageAdded(kind="prompt", message=user("three"), text="three"),
    ]
    state = deck(
        *before,
        queued(),
        started(messages=2),
        MessageAdded(
            run="f1", kind="directive", message=user("three + task"), text="task",
            inherited_blocks=1,
        ),
        MessageFinished(message=assistant("four"), stop_reason="end_turn"),
        UsageReported(usage=Usage(input_tokens=7), model="m", cost_usd=Decimal("0.5")),
    )  # fmt: skip
    child, parent = state.runs["f1"], state.parent
    assert len(child.history) == 3
    assert child.history[0] is parent.history[0]
    assert child.history[1] is parent.history[1]
    assert child.history[2].inherited_blocks == 1
    assert len(parent.history) == 4
    assert kinds(state, "f1") == ["boundary", "task"]
    assert child.usage == Usage()
    assert child.cost.usd == 0
    assert child.counters.turns == 0
    assert from_raw(child.history[2].message)["content"][0]["text"] == "three + task"


def test_tools_run_and_end() -> None:
    start = ToolStarted(call="c", name="bash", input=to_raw({}), argument="pytest -q", view="look")
    state = deck(start, ToolProgressed(call="c", tail="....", total_bytes=4))
    (tool,) = state.parent.tools
    assert (tool.argument, tool.tail, tool.status, tool.started_at_ms) == (
        "pytest -q",
        "....",
        None,
        10,
    )
    end = ToolEnded(
        call="c", name="bash", status="error", content="boom", summary="exit 1", exit_code=1,
        duration_ms=1_200, spill="c.txt",
    )  # fmt: skip
    state = deck(start, ToolProgressed(call="c", tail="...."), end)
    assert state.parent.tools == ()
    (item,) = state.parent.transcript
    assert item.tool is not None
    assert (item.tool.argument, item.tool.view, item.tool.summary) == (
        "pytest -q",
        "look",
        "exit 1",
    )
    assert (item.tool.status, item.tool.tail, item.tool.spill) == ("error", "", "c.txt")
    denied = ToolEnded(call="d", name="edit", status="denied", content="no", path="a.py")
    state = deck(start, end, denied)
    counters = state.parent.counters
    assert (counters.tool_calls, counters.tool_errors, counters.denials) == (1, 1, 1)
    assert there(state.parent.transcript[1].tool).argument == "a.py"


def test_a_fork_call_is_drawn_as_its_batch_and_a_refused_one_as_a_call() -> None:
    start = ToolStarted(call="c", name="fork_join", input=to_raw({}), argument="2 tasks")
    admitted = BatchAdmitted(
        batch="b", tool="fork_join", call="c", handles=("f1", "f2"), max_concurrency=4
    )
    end = ToolEnded(call="c", name="fork_join", status="ok", content="reports")
    assert kinds(deck(start, admitted, end)) == ["batch"]
    refused = ToolEnded(call="c", name="fork_join", status="error", content="tasks: empty")
    assert kinds(deck(start, refused)) == ["tool"]


def test_a_turn_that_ends_leaves_nothing_open() -> None:
    state = deck(
        TurnStarted(turn=1),
        ToolStarted(call="c", name="bash", input=to_raw({}), argument="sleep 9"),
        ask("p"),
        TextStreamed(index=0, text="Half"),
        TurnEnded(turn=1, outcome="interrupted", reason="interrupted by the person"),
    )
    assert kinds(state) == ["cut", "tool"]
    assert there(state.parent.transcript[1].tool).status == "aborted"
    assert (state.parent.tools, state.asks, state.parent.turn.running) == ((), (), False)
    failed = deck(
        TurnStarted(turn=1), TurnEnded(turn=1, outcome="failed", reason="401", remedy="set a key")
    )
    (item,) = failed.parent.transcript
    assert (item.kind, item.text, item.remedy, item.severity) == (
        "notice", "401", "set a key", "error",
    )  # fmt: skip


def test_a_forks_last_text_becomes_its_report() -> None:
    text = MessageFinished(run="f1", message=assistant("The answer."), stop_reason="end_turn")
    same = deck(queued(), started(), text, ended(report="The answer.\n"))
    assert kinds(same, "f1") == ["report"]
    assert same.runs["f1"].transcript[0].at_ms == 30
    half = deck(
        queued(), started(), TextStreamed(run="f1", index=0, text="Half "),
        ToolStarted(run="f1", call="c", name="bash", input=to_raw({}), argument="ls"),
        ended(outcome="aborted", reason="stopped", report="Half"),
    )  # fmt: skip
    assert kinds(half, "f1") == ["report", "tool", "notice"]
    other = deck(queued(), started(), text, ended(report="Cut: The ans"))
    assert kinds(other, "f1") == ["text", "report"]
    failed = deck(
        queued(), started(), text, ended(outcome="failed", reason="429", remedy="wait", report="")
    )
    assert [(item.kind, item.text) for item in failed.runs["f1"].transcript] == [
        ("text", "The answer."), ("notice", "429"),
    ]  # fmt: skip
    both = deck(
        queued(), started(), TurnEnded(run="f1", turn=1, outcome="failed", reason="429"),
        ended(outcome="failed", reason="429"),
    )  # fmt: skip
    assert kinds(both, "f1") == ["notice"]


def test_usage_sums_and_the_context_is_the_last_request() -> None:
    def usage(fresh: int, read: int | None, cost: str | None, **more: Any) -> UsageReported:
        return UsageReported(
            usage=Usage(input_tokens=fresh, output_tokens=5, cache_read_input_tokens=read),
            model="m",
            cost_usd=None if cost is None else Decimal(cost),
            **more,
        )

    state = deck(usage(100, None, "0.1"), usage(10, 90, "0.2"))
    assert state.parent.usage == Usage(
        input_tokens=110, output_tokens=10, cache_read_input_tokens=90
    )
    assert state.parent.context_tokens == 105
    assert state.parent.cost.usd == Decimal("0.3")
    state = deck(usage(1, None, "0.1"), usage(1, None, None, at_least=True))
    assert not state.parent.cost.known
    assert state.parent.cost.usd == Decimal("0.1")


def test_a_fork_keeps_its_first_verdict_and_the_parent_its_last() -> None:
    def judged(run: str, verdict: Any, first: bool, saved: str | None) -> CacheJudged:
        return CacheJudged(
            run=run, verdict=verdict, read_tokens=1, expected_tokens=1, first_step=first,
            saved_usd=None if saved is None else Decimal(saved),
        )  # fmt: skip

    state = deck(
        queued(),
        judged("f1", "MISS", True, None),
        judged("f1", "HIT", False, "0.01"),
        judged("p", "COLD", False, None),
        judged("p", "HIT", False, None),
    )
    child, parent = state.runs["f1"].cache, state.parent.cache
    assert child is not None
    assert parent is not None
    assert (child.verdict, child.saved_usd) == ("MISS", Decimal("0.01"))
    assert (parent.verdict, parent.saved_usd) == ("HIT", None)
    assert selectors.saved_usd(state) == Decimal("0.01")


def test_session_facts() -> None:
    state = deck(
        HeadRecorded(sha256="ab", model="m2", effort="high", context_tokens=9),
        EnforcementProbed(level="sandboxed", why="bwrap", remedy=""),
        ModeChanged(mode="plan"),
        queued(),
        ModeChanged(run="f1", mode="auto"),
        BudgetChanged(budget_usd="2.50"),
        SessionRenamed(title="stars"),
        NoticeRaised(severity="warning", what="disk full", kept="all", remedy="free space"),
        SessionClosed(),
    )
    session = state.session
    assert (session.model, session.mode, session.title) == ("m2", "plan", "stars")
    assert (session.level, session.level_why, session.closed) == ("sandboxed", "bwrap", True)
    assert session.budget_usd == Decimal("2.50")
    assert state.forks["f1"].mode == "auto"
    assert state.parent.head is not None
    assert state.parent.head.context_tokens == 9
    assert state.notices[0].remedy == "free space"
    assert state.parent.transcript[0].text == "disk full\nall"
    again = deck(SessionClosed(), SessionResumed(resumed_at="2026-12-01T08:00:00Z"))
    assert not again.session.closed
    assert deck(BudgetChanged(budget_usd="much")).session.budget_usd is None


def test_prompts_wait_and_leave() -> None:
    state = deck(PromptQueued(prompt="a", text="one"), PromptQueued(prompt="b", text="two"))
    assert [prompt.text for prompt in state.prompts] == ["one", "two"]
    state = deck(
        PromptQueued(prompt="a", text="one"), PromptQueued(prompt="b", text="two"),
        PromptWithdrawn(prompt="a"), PromptWithdrawn(prompt="zz"),
    )  # fmt: skip
    assert [prompt.prompt for prompt in state.prompts] == ["b"]


def test_a_shell_command_is_shown_and_waits_for_the_next_message() -> None:
    ran = ShellRan(command="ls", output="a\nb", exit_code=0, duration_ms=5)
    state = deck(ran)
    (item,) = state.parent.transcript
    assert item.tool is not None
    assert (item.kind, item.text, item.tool.content, item.tool.summary) == (
        "shell", "ls", "a\nb", "exit 0",
    )  # fmt: skip
    assert state.shell_notes == ("The user ran a command (exit 0):\n$ ls\na\nb",)
    child = MessageAdded(run="f1", kind="directive", message=user("x"))
    assert len(deck(ran, child).shell_notes) == 1
    assert deck(ran, MessageAdded(kind="prompt", message=user("x"))).shell_notes == ()


def test_limits_of_the_person_take_the_place_of_all_four() -> None:
    """What is not given is lifted; a mark of an old limit says nothing of the new one."""
    near = LimitNeared(run="f1", limit="turns", of="5 turns", share=0.8)
    before = [queued(max_turns=5, timeout_s=60.0), near]
    assert deck(*before).forks["f1"].near_limit == "5 turns"
    fork = deck(*before, ForkLimited(run="f1", budget_usd="1", budget_tokens=9)).forks["f1"]
    assert (fork.max_turns, fork.timeout_s, fork.budget_usd, fork.budget_tokens) == (
        None, None, "1", 9,
    )  # fmt: skip
    assert fork.near_limit == ""


def test_steering_waits_and_is_delivered() -> None:
    steer = [ForkSteered(run="f1", text="a"), ForkSteered(run="f1", text="b")]
    assert deck(queued(), *steer).forks["f1"].steering == ("a", "b")
    state = deck(queued(), *steer, ForkSteered(run="f1", text="a", delivered=True))
    assert state.forks["f1"].steering == ("b",)
    assert kinds(state, "f1") == ["steer"]


FILES = (FileChange(path="a.py", added=1, removed=0), FileChange(path="b\x1b.py"))
SAVED = WorkSaved(run="f1", ref="r/f1", commit="c", base="b", files=FILES, commits=2, patch="p")


def test_worktrees_and_saved_work() -> None:
    made = WorktreeCreated(
        run="f1", path="/w", inside="/r", base="b", level="sandboxed", not_visible=3
    )
    state = deck(queued(), made, WorktreeChanged(run="f1", files=FILES[:1], watched=False))
    fork = state.forks["f1"]
    assert fork.worktree is not None
    assert (fork.worktree.inside, fork.worktree.not_visible, fork.worktree.exists) == (
        "/r",
        3,
        True,
    )
    assert (fork.files, fork.files_watched) == (FILES[:1], False)
    state = deck(queued(), made, SAVED, WorktreeRemoved(run="f1"))
    fork = state.forks["f1"]
    assert fork.worktree is not None
    assert fork.work is not None
    assert not fork.worktree.exists
    assert (fork.work.ref, fork.work.commits, fork.files) == ("r/f1", 2, FILES)
    kept = deck(queued(), made, WorktreeKept(run="f1", path="/w", why="disk full"))
    assert there(kept.forks["f1"].worktree).kept_why == "disk full"


def test_apply_undo_and_discard_can_be_taken_back_and_the_parent_is_told() -> None:
    applied = WorkApplied(run="f1", undo_ref="u/1", files=FILES)
    state = deck(queued(), SAVED, SnapshotTaken(ref="t/1", turn=1), applied)
    assert state.undo == (
        UndoEntry("turn", "p", "t/1", "turn 1"),
        UndoEntry("apply", "f1", "u/1", "apply of fork f1 (tests)"),
    )
    assert there(state.forks["f1"].work).applied_ref == "u/1"
    assert state.shell_notes == (
        "The user applied the work of fork f1 (tests) to the tree: a.py, b␛.py.",
    )
    undone = WorkUndone(run="f1", ref="u/1", what="apply", files=FILES[:1])
    state = deck(queued(), SAVED, SnapshotTaken(ref="t/1", turn=1), applied, undone)
    assert [entry.kind for entry in state.undo] == ["turn"]
    assert there(state.forks["f1"].work).applied_ref is None
    assert state.shell_notes[1] == (
        "The user took back the apply of fork f1 (tests); restored: a.py."
    )
    dropped = deck(queued(), SAVED, WorkDiscarded(run="f1", ref="r/f1"))
    assert there(dropped.forks["f1"].work).discarded
    back = deck(
        queued(), SAVED, WorkDiscarded(run="f1", ref="r/f1"),
        WorkUndone(run="f1", ref="r/f1", what="discard"),
    )  # fmt: skip
    assert not there(back.forks["f1"].work).discarded
    assert back.undo == ()
    refused = deck(queued(), SAVED, ApplyStopped(run="f1", what="conflict", conflicts=("a.py",)))
    assert there(refused.forks["f1"].work).conflicts == ("a.py",)
    retried = deck(
        queued(), SAVED, ApplyStopped(run="f1", what="conflict", conflicts=("a.py",)), applied
    )
    assert there(retried.forks["f1"].work).refused == ""


def test_a_reopened_fork_can_end_and_be_delivered_again() -> None:
    deliver = MessageAdded(kind="notification", message=user("x"), text="x", delivers=("f1",))
    first: list[Event] = [
        BatchAdmitted(batch="b", tool="user", call=None, handles=("f1",), max_concurrency=1),
        queued(), started(), ended(outcome="aborted", report="half"), deliver,
    ]  # fmt: skip
    assert selectors.pending_deliveries(deck(*first)) == []
    again = deck(*first, ForkReopened(run="f1"), sent(), ended(report="whole"))
    assert selectors.pending_deliveries(again) == ["f1"]
    assert again.forks["f1"].report == "whole"
    assert again.forks["f1"].started_at_ms == 60
    last = deck(*first, ForkReopened(run="f1"), sent(), ended(report="whole"), deliver, deliver)
    assert kinds(last) == ["batch", "delivery", "delivery", "delivery"]
    assert [item.handles for item in last.parent.transcript][1:] == [("f1",), ("f1",), ()]


def test_deliveries_that_wait() -> None:
    def batch(name: str, handle: str, tool: Any, background: bool, run: str = "p") -> Event:
        return BatchAdmitted(
            run=run, batch=name, tool=tool, call=name, handles=(handle,), max_concurrency=1,
            background=background,
        )  # fmt: skip

    events: list[Event] = [
        TurnStarted(turn=1),
        batch("b1", "f1", "fork_join", False),
        batch("b2", "f2", "fork", True),
        batch("b3", "f3", "user", False),
        batch("b4", "f4", "user", False),
        batch("b5", "f5", "fork", True, run="f2"),
        *(queued(f"f{n}", batch=f"b{n}", private=n == 4) for n in range(1, 6)),
        ended("f3"), ended("f1"), ended("f2"), ended("f4"), ended("f5"),
    ]  # fmt: skip
    assert selectors.pending_deliveries(deck(*events)) == ["f3", "f2"]
    assert selectors.pending_deliveries(deck(*events), "f2") == ["f5"]
    assert selectors.pending_deliveries(deck(*events, BatchDetached(batch="b1"))) == [
        "f3", "f1", "f2",
    ]  # fmt: skip
    over = TurnEnded(turn=1, outcome="interrupted")
    assert selectors.pending_deliveries(deck(*events, over)) == ["f3", "f1", "f2"]
