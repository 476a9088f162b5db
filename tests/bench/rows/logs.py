"""Long logs: a transcript of 100,000 lines, and a recording of 100,000 events."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from tests.bench.figure import Figure, median
from tests.bench.place import FORKDECK, Place, make_place
from tests.bench.recordings import conversation, session, write_log
from tests.bench.terminal import Terminal

_ROOT = Path(__file__).parents[3]
_LINES = 100_000
_EVENTS = 100_000
_ROUNDS = 3


def _load(kind: str, log: Path, place: Place) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.loads", kind, str(log)],
        env={**place.environment(), "PYTHONPATH": str(_ROOT)}, cwd=_ROOT,
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return cast("dict[str, Any]", json.loads(done.stdout))


def measure_transcript() -> Sequence[Figure]:
    """Read, fold and wrap a conversation of 100,000 lines."""
    with make_place() as place:
        log = place.base / "long.jsonl"
        write_log(log, conversation(_LINES))
        runs = [_load("transcript", log, place) for _ in range(_ROUNDS)]
    detail: dict[str, object] = {
        "lines": runs[0]["lines"],
        "rows": runs[0]["rows"],
        "read_and_fold_s": round(median([run["fold_s"] for run in runs]), 3),
        "wall_s": round(median([run["wall_s"] for run in runs]), 3),
    }
    loads = [run["load_s"] for run in runs]
    memory = [run["memory_mb"] for run in runs]
    return [
        Figure("100,000-line transcript, load", 0.3, round(median(loads), 3), "s", detail=detail),
        Figure("100,000-line transcript, memory", 60, round(median(memory), 1), "MB"),
    ]


def measure_events() -> Sequence[Figure]:
    """Open a recording of 100,000 events, fold it whole, jump about in it."""
    with make_place() as place:
        log = place.base / "many.jsonl"
        count = write_log(log, session(_EVENTS))
        runs = [_load("replay", log, place) for _ in range(_ROUNDS)]
        screens = [_screen(log, place) for _ in range(_ROUNDS)]
    seeks = [seek for run in runs for seek in run["seeks_s"]]
    detail: dict[str, object] = {
        "events": count,
        "read_s": round(median([run["read_s"] for run in runs]), 3),
        "wall_of_all_s": round(median([run["wall_s"] for run in runs]), 3),
        "command_to_deck_s": round(median(screens), 3),
    }
    return [
        Figure("100,000 events, first frame", 0.35,
               round(median([run["first_s"] for run in runs]), 3), "s", detail=detail),
        Figure("100,000 events, whole fold", 1.0,
               round(median([run["fold_s"] for run in runs]), 3), "s"),
        Figure("100,000 events, seek", 0.1, round(max(seeks), 3), "s",
               detail={"median_s": round(median(seeks), 3)}),
    ]  # fmt: skip


def _screen(log: Path, place: Place) -> float:
    """Return the seconds from the command to the deck with the recording on the screen."""
    terminal = Terminal([FORKDECK, "replay", str(log)], place.environment(), cwd=place.project)
    try:
        return terminal.until_bytes(rb"REPLAY", 30) - terminal.started_at
    finally:
        terminal.close()
