"""How long ``--version`` and ``--help`` take, beside an interpreter that does nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.bench.figure import Figure, median
from tests.bench.place import FORKDECK, make_place, run_timed

_ROUNDS = 9


def measure_commands() -> Sequence[Figure]:
    """Time the three in turns, so that the machine's load meets all alike."""
    commands = {
        "pass": [sys.executable, "-c", "pass"],
        "--version": [FORKDECK, "--version"],
        "--help": [FORKDECK, "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    with make_place() as place:
        for command in commands.values():
            run_timed(command, place)
        for _ in range(_ROUNDS):
            for name, command in commands.items():
                times[name].append(run_timed(command, place))
    floor = median(times["pass"])
    version, help_ = median(times["--version"]), median(times["--help"])
    floor_detail: dict[str, object] = {"floor_s": round(floor, 4)}
    return [
        Figure("--version", 0.10, round(version, 4), "s", detail=floor_detail),
        Figure("--help", 0.15, round(help_, 4), "s", detail=floor_detail),
        Figure("--version / python -c pass", 8, round(version / floor, 2), detail=floor_detail),
        Figure("--help / python -c pass", 8, round(help_ / floor, 2), detail=floor_detail),
    ]
