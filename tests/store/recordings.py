"""Sessions as they happen: made by a seeded script, numbered and timed, for folding and replay."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from forkdeck.model.events import Event
from forkdeck.model.events.fork import (
    BatchAdmitted,
    BatchEnded,
    ForkEnded,
    ForkQueued,
    ForkSaving,
    ForkSettled,
    ForkStarted,
    ForkStopped,
)
from forkdeck.model.events.session import HeadRecorded, SessionClosed, SessionOpened
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
from forkdeck.model.events.turn import MessageAdded, TurnEnded, TurnStarted
from forkdeck.model.events.work import WorkSaved, WorktreeChanged, WorktreeCreated, WorktreeRemoved
from forkdeck.model.raw import to_raw
from forkdeck.model.usage import Usage
from forkdeck.model.words import Outcome
from forkdeck.model.work import FileChange

DELTAS = (TextStreamed, ThinkingStreamed, CallStreamed, ToolProgressed)


def opened(**changes: Any) -> SessionOpened:
    facts: dict[str, Any] = {
        "format_version": 1,
        "app_version": "1.0",
        "session": "20261130-202200-1f3a9c",
        "started_at": "2026-11-30T20:22:00Z",
        "cwd": "/home/ada/orders",
        "project": "orders",
        "model": "claude-opus-5-5",
        "branch": "main",
    }
    return SessionOpened(**{**facts, **changes})


def user(text: str) -> Any:
    return to_raw({"role": "user", "content": [{"type": "text", "text": text}]})


def assistant(*blocks: Any) -> Any:
    content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    return to_raw({"role": "assistant", "content": content})


def numbered(events: list[Event], start: int = 1, step_ms: int = 10) -> list[Event]:
    return [
        replace(event, seq=start + index, at_ms=(start + index - 1) * step_ms)
        for index, event in enumerate(events)
    ]


class Script:
    """Makes a session: a parent turn that launches forks whose events interleave."""

    def __init__(self, seed: int, forks: int = 3, steps: int = 3, chunks: int = 4) -> None:
        self.random = random.Random(seed)
        self.forks, self.steps, self.chunks = forks, steps, chunks
        self._calls = 0

    def events(self) -> list[Event]:
        handles = [f"f{number}" for number in range(1, self.forks + 1)]
        found: list[Event] = [
            opened(),
            HeadRecorded(sha256="00" * 32, model="claude-opus-5-5", context_tokens=200_000),
            TurnStarted(turn=1),
            MessageAdded(kind="prompt", message=user("do it"), text="do it"),
            *self.step("p", 1, "end"),
            BatchAdmitted(
                batch="b1", tool="fork_join", call="c0", handles=tuple(handles), max_concurrency=4
            ),
        ]
        found += [
            ForkQueued(
                run=handle, batch="b1", index=index, name=f"task-{index}", task=f"task {index}",
                seed="before_call", from_run="p", depth=1, write=index % 2 == 0,
            )
            for index, handle in enumerate(handles)
        ]  # fmt: skip
        lanes = [self.fork(handle) for handle in handles]
        while lanes:
            lane = self.random.choice(lanes)
            found.append(lane.pop(0))
            if not lane:
                lanes.remove(lane)
        found += [
            BatchEnded(batch="b1"),
            MessageAdded(
                kind="tool_results", message=user("reports"), delivers=tuple(handles), text=""
            ),
            *self.step("p", 2, "end"),
            TurnEnded(turn=1, outcome="completed", reason="end_turn"),
            *(ForkSettled(run=handle) for handle in handles[::2]),
            SessionClosed(),
        ]
        return numbered(found)

    def fork(self, handle: str) -> list[Event]:
        ends: list[Outcome] = ["done", "done", "done", "partial", "failed", "aborted"]
        end = self.random.choice(ends)
        found: list[Event] = [
            ForkStarted(run=handle, from_run="p", inherited_messages=1, boundary=9),
            MessageAdded(run=handle, kind="directive", message=user("task"), text="task"),
        ]
        if self.random.random() < 0.5:
            found.append(
                WorktreeCreated(run=handle, path="/w", inside="/r", base="abc", level="sandboxed")
            )
        for number in range(1, self.steps + 1):
            found += self.step(handle, number, "tool" if number < self.steps else "end")
        if end == "aborted":
            found.append(ForkStopped(run=handle))
        change = FileChange(path="a.py", added=1, removed=0)
        found += [
            WorktreeChanged(run=handle, files=(change,)),
            ForkSaving(run=handle),
            WorkSaved(run=handle, ref=f"r/{handle}", commit="c", base="b", files=(change,)),
            WorktreeRemoved(run=handle),
            ForkEnded(run=handle, outcome=end, reason="end_turn", report=f"report {handle}"),
        ]
        return found

    def step(self, run: str, number: int, kind: str) -> list[Event]:
        chance = self.random.random
        found: list[Event] = [StepStarted(run=run, step=number)]
        if chance() < 0.2:
            found.append(RequestDelayed(run=run, reason="429", wait_ms=500))
        found.append(RequestSent(run=run, attempt=1, prefix_sha256="", positions=5))
        if chance() < 0.2:
            found += [*self.streamed(run), StepCut(run=run, reason="cut", attempt=1, resent=True)]
            found.append(RequestSent(run=run, attempt=2, prefix_sha256="", positions=5))
        self._calls += 1
        call = f"c{self._calls}"
        found += self.streamed(run)
        blocks: list[Any] = [f"answer {self._calls}"]
        if kind == "tool":
            blocks.append({"type": "tool_use", "id": call, "name": "bash", "input": {}})
        found += [
            MessageFinished(run=run, message=assistant(*blocks), stop_reason="end_turn"),
            UsageReported(
                run=run,
                usage=Usage(input_tokens=10, output_tokens=5, cache_read_input_tokens=90),
                model="m",
                cost_usd=Decimal(self.random.randrange(1, 10**6)).scaleb(-9),
            ),
            CacheJudged(
                run=run, verdict="HIT", read_tokens=90, expected_tokens=90, first_step=number == 1,
                saved_usd=Decimal("0.001"),
            ),
        ]  # fmt: skip
        if kind != "tool":
            return found
        ask = f"q{self._calls}"
        if chance() < 0.3:
            found += [
                ApprovalAsked(
                    run=run,
                    request=ask,
                    call=call,
                    tool="bash",
                    argument="ls",
                    cwd="/",
                    rule="none",
                ),
                ApprovalAnswered(run=run, request=ask, answer="once"),
            ]
        found += [
            ToolStarted(run=run, call=call, name="bash", input=to_raw({}), argument="ls"),
            ToolProgressed(run=run, call=call, tail="out"),
            ToolEnded(run=run, call=call, name="bash", status="ok", content="out"),
            MessageAdded(run=run, kind="tool_results", message=user("out")),
        ]
        return found

    def streamed(self, run: str) -> list[Event]:
        return [
            StreamOpened(run=run, message_id="m", ttft_ms=5),
            ThinkingStreamed(run=run, index=0, text="hm"),
            *(TextStreamed(run=run, index=1, text=f"word{n} ") for n in range(self.chunks)),
            CallStreamed(run=run, index=2, name="bash", text="{}"),
        ]
