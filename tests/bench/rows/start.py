"""First paint, typed text, the SDK's stall and idle memory, beside a bare Textual app."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.figure import Figure, median
from tests.bench.keys import Typist
from tests.bench.place import FORKDECK, Place, make_place
from tests.bench.processes import rss_mb
from tests.bench.terminal import Terminal

_ROUNDS = 7
_BARE = [sys.executable, str(Path(__file__).parents[1] / "bare_app.py")]
# Both stand in the first frame: the page, and the prompt's footer to type into.
_PAINTED = rb"recent"
_BARE_PAINTED = rb"BARE"
_IDLE_S = 5.0
_DEAD_ENDPOINT = ("http://127.0.0.1:9", "no-token")
"""Credentials that are found, and an address nobody is at: nothing is sent in these rows."""


def measure_paint() -> Sequence[Figure]:
    """Start both apps in turns: spawn to first paint, then paint to the first typed character."""
    bare: list[float] = []
    own: list[float] = []
    typed: list[float] = []
    with make_place() as place:
        environment = place.environment(_DEAD_ENDPOINT)
        _paint(_BARE, _BARE_PAINTED, environment, place)
        _paint([FORKDECK], _PAINTED, environment, place)
        for _ in range(_ROUNDS):
            bare.append(_paint(_BARE, _BARE_PAINTED, environment, place)[0])
            painted, echoed = _paint([FORKDECK], _PAINTED, environment, place, type_after=True)
            own.append(painted)
            typed.append(echoed * 1000)
    detail: dict[str, object] = {
        "bare_s": round(median(bare), 3),
        "forkdeck_s": round(median(own), 3),
    }
    return [
        Figure("first paint / bare Textual app", 1.8, round(median(own) / median(bare), 2),
               detail=detail),
        Figure("typed text visible after paint", 50, round(median(typed), 1), "ms",
               detail={"worst_ms": round(max(typed), 1)}),
    ]  # fmt: skip


def _paint(
    command: Sequence[str],
    painted: bytes,
    environment: Mapping[str, str],
    place: Place,
    *,
    type_after: bool = False,
) -> tuple[float, float]:
    terminal = Terminal(command, environment, cwd=place.project)
    try:
        at = terminal.until_bytes(painted)
        echoed = 0.0
        if type_after:
            sent = terminal.send("ж")
            echoed = terminal.until_bytes("ж".encode()) - sent
        return at - terminal.started_at, echoed
    finally:
        terminal.close()


def measure_sdk() -> Sequence[Figure]:
    """Type on while the SDK is imported: the longest wait of a key is the stall."""
    stalls: list[float] = []
    waits: list[float] = []
    with make_place() as place:
        environment = place.environment(_DEAD_ENDPOINT)
        for _ in range(3):
            terminal = Terminal([FORKDECK], environment, cwd=place.project)
            try:
                terminal.until_bytes(_PAINTED)
                terminal.drain(1.0)
                typist = Typist(terminal)
                typist.type_once()
                # The import begins when no key came for 300 ms.
                terminal.drain(0.32)
                end = time.monotonic() + 2.5
                before = len(typist.waits_ms)
                while time.monotonic() < end:
                    typist.type_once()
                    terminal.drain(0.01)
                stalls.append(max(typist.waits_ms[before:]))
                waits.append(median(typist.waits_ms[before:]))
            finally:
                terminal.close()
    detail: dict[str, object] = {
        "all_ms": [round(stall) for stall in stalls],
        "median_key_ms": round(median(waits), 1),
    }
    return [Figure("the SDK import's one stall", 350, round(median(stalls)), "ms", detail=detail)]


def measure_memory() -> Sequence[Figure]:
    """Compare resident memory 5 s after the start, and with the SDK loaded."""
    with make_place() as place:
        environment = place.environment(_DEAD_ENDPOINT)
        bare = _settled(_BARE, _BARE_PAINTED, environment, place)
        own = _settled([FORKDECK], _PAINTED, environment, place)
        loaded = _settled([FORKDECK], _PAINTED, environment, place, type_first=True)
    detail: dict[str, object] = {"bare_mb": round(bare, 1), "forkdeck_mb": round(own, 1)}
    more: dict[str, object] = {"bare_mb": round(bare, 1), "forkdeck_mb": round(loaded, 1)}
    return [
        Figure("idle RSS / bare, before a request", 1.9, round(own / bare, 2), detail=detail),
        Figure("idle RSS / bare, with the SDK", 3.4, round(loaded / bare, 2), detail=more),
    ]


def _settled(
    command: Sequence[str],
    painted: bytes,
    environment: Mapping[str, str],
    place: Place,
    *,
    type_first: bool = False,
) -> float:
    terminal = Terminal(command, environment, cwd=place.project)
    try:
        terminal.until_bytes(painted)
        if type_first:
            terminal.send("x")
        terminal.drain(_IDLE_S)
        memory = rss_mb(terminal.pid)
        # On a busy machine the import takes longer: wait until nothing is added any more.
        for _ in range(10):
            terminal.drain(2)
            before, memory = memory, rss_mb(terminal.pid)
            if abs(memory - before) < 0.2:
                break
        return memory
    finally:
        terminal.close()
