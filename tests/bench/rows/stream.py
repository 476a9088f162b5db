"""Keys and processor time while the parent and eight forks stream at once."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tests.bench.figure import Figure, median, percentile
from tests.bench.keys import Typist
from tests.bench.live import open_app
from tests.bench.model import run_model
from tests.bench.place import make_place
from tests.bench.processes import cpu_seconds
from tests.bench.scripts import answer, fan_out, prose, says, scenario
from tests.bench.terminal import Terminal

_STREAMS = 9
_NAMES = [f"lane{number}" for number in range(1, _STREAMS)]
_CPU_S = 8.0
_KEYS_S = 14.0


@contextmanager
def _streaming(tokens_per_s: int, seconds: float) -> Generator[Terminal]:
    """Bring the app to where all nine stream, each at its share of the rate."""
    rate = tokens_per_s / _STREAMS
    lanes = [
        answer("fork", f"^{name}", [says(prose(round(rate * seconds), number))])
        for number, name in enumerate(_NAMES, 1)
    ]
    parent = answer(
        "parent",
        "^Go",
        [fan_out(_NAMES, background=True), says(prose(round(rate * seconds), 0))],
    )
    with (
        make_place() as place,
        run_model(place, scenario([parent, *lanes], rate=rate)) as model,
        open_app(place, model, "Go") as terminal,
    ):
        end = time.monotonic() + 30
        while sum(_streams(entry) for entry in model.journal()) < _STREAMS:
            if time.monotonic() > end:
                raise TimeoutError(f"the nine do not stream\n{terminal.screen_text()}")
            terminal.drain(0.1)
        terminal.drain(2.0)
        yield terminal
        left = sum(_streams(entry) for entry in model.journal())
        if left < _STREAMS:
            raise RuntimeError(f"only {left} of {_STREAMS} streamed to the end of the measuring")


def _streams(entry: dict[str, object]) -> bool:
    return (
        entry["first_byte_ms"] is not None
        and entry["ended_ms"] is None
        and entry["stop_reason"] == "end_turn"
    )


def measure_keys() -> Sequence[Figure]:
    """Type into the prompt at 2000 tokens a second in total."""
    with _streaming(2000, _KEYS_S + 12) as terminal:
        typist = Typist(terminal)
        typist.type_for(_KEYS_S, 0.1)
    waits = typist.waits_ms
    detail: dict[str, object] = {"keys": len(waits), "p99_ms": round(percentile(waits, 0.99), 1)}
    return [
        Figure("key to screen, 9 streams, p50", 8, round(median(waits), 1), "ms", detail=detail),
        Figure("key to screen, 9 streams, p95", 20, round(percentile(waits, 0.95), 1), "ms"),
        Figure("key to screen, 9 streams, max", 50, round(max(waits), 1), "ms"),
    ]


def measure_cpu() -> Sequence[Figure]:
    """Let it stream without a key and look at the app's processor time."""
    figures: list[Figure] = []
    for rate, limit in ((500, 20), (2000, 35)):
        with _streaming(rate, _CPU_S + 12) as terminal:
            read, started = terminal.bytes_read, time.monotonic()
            used = cpu_seconds(terminal.pid)
            terminal.drain(_CPU_S)
            span = time.monotonic() - started
            share = 100 * (cpu_seconds(terminal.pid) - used) / span
            detail: dict[str, object] = {
                "kB_per_s": round((terminal.bytes_read - read) / span / 1e3)
            }
        name = f"processor at {rate} tokens/s in 9 streams"
        figures.append(Figure(name, limit, round(share, 1), "%", detail=detail))
    return figures
