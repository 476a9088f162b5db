"""Logs that are made for measuring: a long conversation, and a session of many events."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from forkdeck.model.events import FORMAT_VERSION, Event
from forkdeck.model.events.fork import BatchAdmitted, BatchEnded, ForkEnded, ForkQueued, ForkStarted
from forkdeck.model.events.session import SessionOpened
from forkdeck.model.events.step import (
    MessageFinished,
    RequestSent,
    StepStarted,
    StreamOpened,
    TextStreamed,
    UsageReported,
)
from forkdeck.model.events.tool import ToolEnded, ToolStarted
from forkdeck.model.events.turn import MessageAdded, TurnEnded, TurnStarted
from forkdeck.model.ids import PARENT, handle
from forkdeck.model.raw import to_raw
from forkdeck.model.usage import Usage
from forkdeck.sessionlog.codec import encode
from tests.bench.scripts import prose

_FORKS = 8
_DELTAS = 24
_STEP_MS = 6
_LINE = 64


def write_log(path: Path, events: Iterator[Event]) -> int:
    """Number events, space them in time and write them; returns how many."""
    count = 0
    with path.open("wb") as file:
        for event in events:
            count += 1
            file.write(encode(replace(event, seq=count, at_ms=count * _STEP_MS)) + b"\n")
    return count


def conversation(lines: int) -> Iterator[Event]:
    """Return a parent's conversation whose answers have `lines` lines in all.

    Lines are of code's length, so that each is one row of a pane.
    """
    yield _opened()
    text = [line[:_LINE] for line in prose(60_000, 1).split("\n")]
    each = 100
    for number in range(lines // each):
        start = (number * 37) % (len(text) - each)
        yield TurnStarted(turn=number + 1)
        yield MessageAdded(kind="prompt", message=_user("go on"), text="go on")
        yield MessageFinished(
            message=_assistant("\n".join(text[start : start + each])), stop_reason="end_turn"
        )
        yield TurnEnded(turn=number + 1, outcome="completed", reason="end_turn")


def session(events: int) -> Iterator[Event]:
    """Return a session of at least `events` events: batches of eight forks that interleave."""
    chance = random.Random(7)
    text = prose(20_000, 2)
    made, batch = 1, 0
    yield _opened()
    while made < events:
        for event in _batch(batch, text, chance):
            made += 1
            yield event
        batch += 1


def _batch(number: int, text: str, chance: random.Random) -> Iterator[Event]:
    handles = [handle(number * _FORKS + index + 1) for index in range(_FORKS)]
    name = f"b{number + 1}"
    yield TurnStarted(turn=number + 1)
    yield MessageAdded(kind="prompt", message=_user("fan out"), text="fan out")
    yield from _step(PARENT, number * 100, text, tool="")
    yield BatchAdmitted(
        batch=name, tool="fork_join", call="c0", handles=tuple(handles), max_concurrency=_FORKS
    )
    for index, each in enumerate(handles):
        yield ForkQueued(
            run=each, batch=name, index=index, name=f"part-{index}", task=f"part {index}",
            seed="before_call", from_run=PARENT, depth=1, write=False,
        )  # fmt: skip
    lanes = [_fork(each, number * 100 + index, text) for index, each in enumerate(handles)]
    while lanes:
        lane = chance.choice(lanes)
        event = next(lane, None)
        if event is None:
            lanes.remove(lane)
        else:
            yield event
    yield BatchEnded(batch=name)
    yield MessageAdded(kind="tool_results", message=_user("reports"), delivers=tuple(handles))
    yield TurnEnded(turn=number + 1, outcome="completed", reason="end_turn")


def _fork(run: str, seed: int, text: str) -> Iterator[Event]:
    yield ForkStarted(run=run, from_run=PARENT, inherited_messages=1, boundary=1)
    yield MessageAdded(run=run, kind="directive", message=_user("task"), text="task")
    for step in range(4):
        yield from _step(run, seed + step * 31, text, tool="read" if step < 3 else "")
    yield ForkEnded(run=run, outcome="done", reason="end_turn", report=text[:600])


def _step(run: str, seed: int, text: str, *, tool: str) -> Iterator[Event]:
    start = (seed * 997) % (len(text) - 4_000)
    said = text[start : start + _DELTAS * 40]
    call = f"c{seed}"
    yield StepStarted(run=run, step=1)
    yield RequestSent(run=run, attempt=1, prefix_sha256="", positions=5)
    yield StreamOpened(run=run, message_id="m", ttft_ms=500)
    for piece in range(_DELTAS):
        yield TextStreamed(run=run, index=0, text=said[piece * 40 : piece * 40 + 40])
    blocks: list[Any] = [{"type": "text", "text": said}]
    if tool:
        blocks.append({"type": "tool_use", "id": call, "name": tool, "input": {"path": "a.py"}})
    yield MessageFinished(
        run=run, message=to_raw({"role": "assistant", "content": blocks}),
        stop_reason="tool_use" if tool else "end_turn",
    )  # fmt: skip
    yield UsageReported(
        run=run, usage=Usage(input_tokens=9, output_tokens=240, cache_read_input_tokens=8_000),
        model="claude-opus-5-5", cost_usd=None,
    )  # fmt: skip
    if tool:
        yield ToolStarted(
            run=run, call=call, name=tool, input=to_raw({"path": "a.py"}), argument="a.py"
        )
        yield ToolEnded(run=run, call=call, name=tool, status="ok", content=text[start:][:2_000])
        yield MessageAdded(run=run, kind="tool_results", message=_user(text[start:][:2_000]))


def _opened() -> SessionOpened:
    return SessionOpened(
        format_version=FORMAT_VERSION, app_version="bench", session="20261130-202200-1f3a9c",
        started_at="2026-11-30T20:22:00Z", cwd="/nowhere", project="bench",
        model="claude-opus-5-5",
    )  # fmt: skip


def _user(text: str) -> Any:
    return to_raw({"role": "user", "content": [{"type": "text", "text": text}]})


def _assistant(text: str) -> Any:
    return to_raw({"role": "assistant", "content": [{"type": "text", "text": text}]})
