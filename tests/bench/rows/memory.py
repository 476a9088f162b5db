"""Memory per further fork beside a parent of 100,000 tokens.

Eight forks stand waiting for their first token; what the last six added is divided by six, so
that what the first ones load once is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.bench.deck import Deck, open_deck
from tests.bench.figure import Figure
from tests.bench.model import Model, run_model
from tests.bench.place import make_place
from tests.bench.scripts import HOLD_MS, answer, prose, says, scenario

_FEW, _ALL = 2, 8
_TOKENS = 100_000


def measure_fork_memory() -> Sequence[Figure]:
    """Start forks of a large parent and compare resident memory."""
    script = scenario(
        [
            answer("parent", "^Keep", [says("Kept.")]),
            answer("fork", ".", [says("Never said.", ttft_ms=HOLD_MS)]),
        ]
    )
    with (
        make_place() as place,
        run_model(place, script) as model,
        open_deck(place, model, []) as deck,
    ):
        for part in range(4):
            deck.prompt(f"Keep this in mind.\n{prose(_TOKENS // 4, part)}")
        alone = deck.ask({"rss": True})["rss_mb"]
        few = _waiting(deck, model, 0, _FEW)
        most = _waiting(deck, model, _FEW, _ALL)
    each = (most - few) / (_ALL - _FEW)
    detail: dict[str, object] = {
        "parent_alone_mb": round(alone, 1),
        "with_2_mb": round(few, 1),
        "with_8_mb": round(most, 1),
    }
    return [Figure("memory per further fork", 1.2, round(each, 2), "MB", detail=detail)]


def _waiting(deck: Deck, model: Model, before: int, count: int) -> float:
    """Start forks up to `count`, wait until all their requests are out, return the memory."""
    for number in range(before, count):
        done = deck.ask({"fork": f"part {number} of the work"})
        if not done["ok"]:
            raise RuntimeError(done["text"])
    model.until("status", count)
    time.sleep(0.5)
    answer_now = deck.ask({"rss": True})
    if answer_now["living"] != count:
        raise RuntimeError(f"{answer_now['living']} forks live, not {count}")
    return float(answer_now["rss_mb"])
