"""Eight forks against the rehearsal model: wall clock, prefix, cache, cost.

The parent reads for two turns, then fans out; each fork asks four times and runs three tools.
All times are the model's own: from the end of the answer that called `fork_join` to the parent's
next request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from tests.bench.deck import open_deck
from tests.bench.figure import Figure, median
from tests.bench.model import JournalEntry, run_model
from tests.bench.place import make_place

_ROUNDS = 3
_COMMANDS_MS = 2 * 50
"""What a fork's two commands take by themselves."""
_FIRST = ("Read the code.", "Read the tests and the rules.")
_READ, _WRITE = 0.1, 1.25
"""Price of a cached and of a newly cached token against a fresh one."""


@dataclass(frozen=True)
class FanOut:
    """The journal of one fan-out."""

    call: JournalEntry
    """The parent's request whose answer called the forks."""
    after: JournalEntry
    """The parent's next request."""
    children: Sequence[JournalEntry]

    @property
    def wall_ms(self) -> float:
        """From the call to the parent's next request."""
        return self.after["received_ms"] - self.call["ended_ms"]

    @property
    def launch_ms(self) -> float:
        """From the call to the first child's request."""
        return min(entry["received_ms"] for entry in self.children) - self.call["ended_ms"]

    @property
    def firsts(self) -> list[JournalEntry]:
        """The first request of each fork."""
        found: dict[str, JournalEntry] = {}
        for entry in self.children:
            found.setdefault(entry["handle"], entry)
        return list(found.values())

    @property
    def spread_ms(self) -> float:
        """From the first to the last of the first requests."""
        times = [entry["received_ms"] for entry in self.firsts]
        return max(times) - min(times)

    @property
    def ideal_ms(self) -> float:
        """What one fork takes without any overhead: the model's answers and the commands."""
        spans = [
            sum(e["ended_ms"] - e["received_ms"] for e in self.children if e["handle"] == name)
            for name in {entry["handle"] for entry in self.children}
        ]
        return median(spans) + _COMMANDS_MS

    @property
    def fork_ms(self) -> list[float]:
        """What each fork took, from its first request to its last answer."""
        spans: list[float] = []
        for first in self.firsts:
            own = [entry for entry in self.children if entry["handle"] == first["handle"]]
            spans.append(max(entry["ended_ms"] for entry in own) - first["received_ms"])
        return spans


def _fan_out(prompt: str) -> FanOut:
    scenario = files("forkdeck.providers.rehearsal") / "scenarios" / "bench.toml"
    with (
        make_place() as place,
        run_model(place, scenario.read_text(encoding="utf-8")) as model,
        open_deck(place, model, ["bash(sleep 0.05)"]) as deck,
    ):
        for text in _FIRST:
            deck.prompt(text)
        done = deck.prompt(prompt)
        if done["forks"] != ["DONE"] * 8:
            raise RuntimeError(f"the forks ended as {done['forks']}")
        journal = model.journal()
    parent = [entry for entry in journal if entry["role"] == "parent"]
    children = [entry for entry in journal if entry["role"] == "fork"]
    if len(children) != 32:
        raise RuntimeError(f"the forks sent {len(children)} requests, not 32")
    return FanOut(parent[-2], parent[-1], children)


def measure_eight() -> Sequence[Figure]:
    """Fan out to eight at once."""
    runs = [_fan_out("Fan out to eight forks.") for _ in range(_ROUNDS)]
    ratios = [run.wall_ms / max(run.fork_ms) for run in runs]
    detail: dict[str, object] = {
        "wall_ms": [run.wall_ms for run in runs],
        "slowest_fork_ms": [max(run.fork_ms) for run in runs],
        "wall_over_ideal": round(median([run.wall_ms / run.ideal_ms for run in runs]), 3),
        "spread_of_first_requests_ms": median([run.spread_ms for run in runs]),
    }
    launches = [run.launch_ms for run in runs]
    return [
        Figure("8 forks, wall / slowest fork", 1.05, round(median(ratios), 3), detail=detail),
        Figure("call to first child request", 50, median(launches), "ms",
               detail={"all_ms": launches}),
        *_prefix(runs[0]),
    ]  # fmt: skip


def measure_four() -> Sequence[Figure]:
    """Fan out to eight, four at a time: two waves are the ideal."""
    runs = [_fan_out("Fan out at four.") for _ in range(_ROUNDS)]
    ratios = [run.wall_ms / (2 * run.ideal_ms) for run in runs]
    detail: dict[str, object] = {
        "wall_ms": [run.wall_ms for run in runs],
        "ideal_ms": [2 * run.ideal_ms for run in runs],
    }
    return [Figure("8 forks at 4, wall / ideal", 1.04, round(median(ratios), 3), detail=detail)]


def _prefix(run: FanOut) -> list[Figure]:
    """Compare positions and tokens of the children with the parent's last request."""
    wanted = run.call["digests"]
    shares = [_shared(wanted, entry["digests"]) / len(wanted) for entry in run.firsts]
    read = sum(_tokens(entry, "cache_read_input_tokens") for entry in run.firsts)
    total = sum(_all_tokens(entry) for entry in run.firsts)
    cost = sum(_cost(entry) for entry in run.children)
    uncached = sum(_all_tokens(entry) for entry in run.children)
    every = sum(_tokens(entry, "cache_read_input_tokens") for entry in run.children)
    least = [_tokens(e, "cache_read_input_tokens") / _all_tokens(e) for e in run.firsts]
    return [
        Figure("child's prefix equal to the parent's", 100, round(100 * min(shares), 1), "%",
               ">=", detail={"positions": len(wanted)}),
        Figure("cache read, first request of all 8", 95, round(100 * read / total, 1), "%", ">=",
               detail={"least": round(100 * min(least), 1), "tokens": total,
                       "read_of_all_requests": round(100 * every / uncached, 1)}),
        Figure("input cost of children / uncached", 0.15, round(cost / uncached, 4),
               detail={"tokens": uncached}),
    ]  # fmt: skip


def _shared(left: Sequence[str], right: Sequence[str]) -> int:
    count = 0
    for mine, theirs in zip(left, right, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _tokens(entry: JournalEntry, kind: str) -> int:
    return int(entry["usage"].get(kind) or 0)


def _all_tokens(entry: JournalEntry) -> int:
    kinds = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(_tokens(entry, kind) for kind in kinds)


def _cost(entry: JournalEntry) -> float:
    return (
        _tokens(entry, "input_tokens")
        + _WRITE * _tokens(entry, "cache_creation_input_tokens")
        + _READ * _tokens(entry, "cache_read_input_tokens")
    )
