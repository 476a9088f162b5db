"""Aborting one of eight running forks, and what SIGKILL of the app leaves behind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from forkdeck.model.state import DeckState
from forkdeck.sessionlog.reader import read_log
from forkdeck.store.reducer import fold
from tests.bench.figure import Figure, median
from tests.bench.live import open_app
from tests.bench.model import Model, run_model
from tests.bench.place import Place, make_place
from tests.bench.processes import until, with_argument
from tests.bench.scripts import HOLD_MS, SLEEP, answer, calls, fan_out, says, scenario
from tests.bench.terminal import Terminal

_SLEEPERS = 4
_WAITERS = 4
_ROUNDS = 3
_REPORT = "Scope: one part.\nResult: Finding of a finished fork, with file and line.\nIssues: none."


def _script() -> str:
    names = [f"sleeper{n}" for n in range(_SLEEPERS)] + [f"waiter{n}" for n in range(_WAITERS)]
    return scenario(
        [
            answer("parent", "^Go", [fan_out(names), says("Over.")]),
            answer(
                "fork", "^sleeper", [calls("bash", command=SLEEP, access="look"), says("Slept.")]
            ),
            answer("fork", "^waiter", [says("Never said.", ttft_ms=HOLD_MS)]),
        ]
    )


def measure_abort() -> Sequence[Figure]:
    """Abort forks that wait for the model, and forks whose command runs."""
    sockets: list[float] = []
    screens: list[float] = []
    processes: list[float] = []
    with make_place() as place:
        for _ in range(_ROUNDS):
            with run_model(place, _script()) as model, open_app(place, model, "Go") as terminal:
                _all_running(terminal, model)
                terminal.send("\t")
                terminal.drain(0.3)
                closed, shown = _abort_waiter(terminal, model)
                sockets.append(closed)
                screens.append(shown)
                processes.append(_abort_sleeper(terminal))
    return [
        Figure("abort one: its socket closed", 15, round(median(sockets), 1), "ms",
               detail={"all_ms": [round(value, 1) for value in sockets]}),
        Figure("abort one: its processes dead", 40, round(median(processes), 1), "ms",
               detail={"all_ms": [round(value, 1) for value in processes]}),
        Figure("abort one: the screen says so", 50, round(median(screens), 1), "ms",
               detail={"all_ms": [round(value, 1) for value in screens]}),
    ]  # fmt: skip


def _all_running(terminal: Terminal, model: Model) -> None:
    """Wait until four commands run and four requests are open."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        terminal.drain(0.1)
        waiting = [e for e in model.journal() if e["role"] == "fork" and e["ended_ms"] is None]
        if len(_sleeps()) == _SLEEPERS and len(waiting) == _WAITERS:
            terminal.drain(1.0)
            return
    raise TimeoutError(f"the eight forks do not run\n{terminal.screen_text()}")


def _sleeps() -> list[int]:
    """Return the processes that are the command itself, not a shell or a sandbox around it."""
    found: list[int] = []
    for pid in with_argument(SLEEP.partition(" ")[2]):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].rpartition(b"/")[2] == b"sleep":
            found.append(pid)
    return found


def _select(terminal: Terminal, number: int) -> None:
    """Go to a fork by its digit, in the deck's zone."""
    terminal.send(str(number))
    terminal.drain(0.6)


def _abort_waiter(terminal: Terminal, model: Model) -> tuple[float, float]:
    _select(terminal, _SLEEPERS + 1)
    before = [e["number"] for e in model.journal() if e["aborted"]]
    sent = terminal.send("x")
    shown = terminal.until_bytes(rb"STOP|ABRT", 5)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        gone = [e for e in model.journal() if e["aborted"] and e["number"] not in before]
        if gone:
            # The model's clock is this machine's monotonic clock, cut to whole milliseconds.
            return gone[0]["ended_ms"] - int(sent * 1000), (shown - sent) * 1000
        time.sleep(0.02)
    raise TimeoutError("the aborted fork's request stays open")


def _abort_sleeper(terminal: Terminal) -> float:
    _select(terminal, 1)
    before = _sleeps()
    roots = {pid: Path(f"/proc/{pid}") for pid in before}
    sent = terminal.send("x")
    if not until(lambda: any(not path.exists() for path in roots.values()), 5, 0.0005):
        raise TimeoutError("the aborted fork's command runs on")
    at = time.monotonic()
    terminal.drain(0.3)
    left = len(_sleeps())
    if left != len(before) - 1:
        raise RuntimeError(f"of {len(before)} commands {left} are left after one abort")
    return (at - sent) * 1000


def measure_orphans() -> Sequence[Figure]:
    """Kill the app while four commands run: what lives a second later?"""
    with (
        make_place() as place,
        run_model(place, _script()) as model,
        open_app(place, model, "Go") as terminal,
    ):
        _all_running(terminal, model)
        before = len(with_argument(SLEEP))
        terminal.kill()
        time.sleep(1.0)
        left = with_argument(SLEEP)
        detail: dict[str, object] = {"processes_before": before}
    return [Figure("orphans 1 s after SIGKILL", 0, len(left), detail=detail)]


def measure_kept() -> Sequence[Figure]:
    """Kill the app after two reports and eight findings: what does the log hold?"""
    names = ["done1", "done2", "busy1", "busy2", "busy3", "busy4"]
    script = scenario(
        [
            answer("parent", "^Go", [fan_out(names), says("Over.")]),
            answer("fork", "^done", [says(_REPORT)]),
            answer(
                "fork",
                "^busy",
                [
                    calls("read", path="tally/money.py"),
                    calls("read", path="tally/reader.py"),
                    says("Never said.", ttft_ms=HOLD_MS),
                ],
            ),
        ]
    )
    with (
        make_place() as place,
        run_model(place, script) as model,
        open_app(place, model, "Go") as terminal,
    ):
        end = time.monotonic() + 30
        while not _busy_alone(model):
            if time.monotonic() > end:
                raise TimeoutError(f"the forks do not get there\n{terminal.screen_text()}")
            terminal.drain(0.05)
        # Both reports were asked for and given; that is written before the forks count as ended.
        terminal.drain(0.3)
        terminal.kill()
        terminal.process.wait()
        state = _saved(place)
    findings = sum(
        item.kind == "tool" and item.tool is not None and item.tool.status == "ok"
        for handle in state.forks
        for item in state.runs[handle].transcript
    )
    reports = sum("Finding" in fork.report for fork in state.forks.values())
    detail: dict[str, object] = {"findings": findings, "reports": reports}
    return [
        Figure("work kept after SIGKILL, of 10", 10, findings + reports, "", ">=", detail=detail)
    ]


def _busy_alone(model: Model) -> bool:
    """Whether the four busy forks wait for the model, and nobody else does."""
    waiting = [e for e in model.journal() if e["role"] == "fork" and e["ended_ms"] is None]
    return len(waiting) == 4 and all(e["source"].endswith("round 3") for e in waiting)


def _saved(place: Place) -> DeckState:
    logs = sorted((place.state / "sessions").rglob("events.jsonl"))
    if len(logs) != 1:
        raise RuntimeError(f"there are {len(logs)} logs, not one")
    return fold(read_log(logs[0]).events)
