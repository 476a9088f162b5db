"""Loads a log in a fresh process and says how long each part took: the other half of `rows.logs`.

Run as ``python -m tests.bench.loads KIND LOG``; the answer is one line of JSON. Times are processor
seconds of this process: the work is computing alone, and a busy machine does not change them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from pathlib import Path

from forkdeck.model.ids import PARENT
from forkdeck.model.state import DeckState
from forkdeck.playback.deck import ReplayDeck
from forkdeck.providers.clock import SystemClock
from forkdeck.sessionlog.reader import read_log
from forkdeck.store.reducer import fold
from forkdeck.store.rows import RowBuffer
from forkdeck.store.rows_types import Grid
from tests.bench.processes import rss_mb

_WIDTH = 76


def transcript(log: Path) -> dict[str, object]:
    """Read, fold and wrap a long conversation, as a pane shows it."""
    # As the app does after its first paint.
    gc.collect()
    gc.freeze()
    before, started, wall = rss_mb(os.getpid()), time.process_time(), time.perf_counter()
    state = fold(read_log(log).events)
    folded = time.process_time()
    rows = RowBuffer(PARENT, Grid(_WIDTH, "parent"))
    rows.update(state, 0)
    done = time.process_time()
    lines = sum(item.text.count("\n") + 1 for item in state.parent.transcript)
    return {
        "load_s": done - started,
        "fold_s": folded - started,
        "wall_s": time.perf_counter() - wall,
        "memory_mb": rss_mb(os.getpid()) - before,
        "lines": lines,
        "rows": len(rows),
    }


async def replay(log: Path) -> dict[str, object]:
    """Open a recording as the deck does, wait until it is folded, and jump about in it."""
    gc.collect()
    gc.freeze()
    started, wall = time.process_time(), time.perf_counter()
    events = (await asyncio.to_thread(read_log, log)).events
    read = time.process_time()
    deck = ReplayDeck.open(events, clock=SystemClock(), title="bench")
    rows = RowBuffer(PARENT, Grid(_WIDTH, "parent"))
    rows.update(deck.state, 0)
    first = time.process_time()
    await deck.folded()
    folded = time.process_time()
    seeks = [await _seek(deck, rows, share) for share in (0.9, 0.1, 0.55, 0.999, 0.3, 0.0, 0.77)]
    await deck.close()
    return {
        "events": len(events),
        "read_s": read - started,
        "wall_s": time.perf_counter() - wall,
        "first_s": first - started,
        "fold_s": folded - first,
        "seeks_s": seeks,
    }


async def _seek(deck: ReplayDeck, rows: RowBuffer, share: float) -> float:
    started = time.process_time()
    deck.seek_ms(int(deck.facts.duration_ms * share))
    state: DeckState = deck.state
    rows.update(state, deck.now_ms())
    return time.process_time() - started


if __name__ == "__main__":
    path = Path(sys.argv[2])
    found = transcript(path) if sys.argv[1] == "transcript" else asyncio.run(replay(path))
    print(json.dumps(found))
