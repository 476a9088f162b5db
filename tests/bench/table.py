"""Every row of the benchmark, in the order it is printed."""

from __future__ import annotations

from tests.bench.figure import Row
from tests.bench.rows.commands import measure_commands
from tests.bench.rows.forks import measure_eight, measure_four
from tests.bench.rows.memory import measure_fork_memory
from tests.bench.rows.start import measure_memory, measure_paint, measure_sdk

ROWS = (
    Row("commands", "--version and --help", measure_commands),
    Row("paint", "first paint and the first typed character", measure_paint),
    Row("sdk", "the stall while the SDK is imported", measure_sdk),
    Row("idle", "memory of an idle deck", measure_memory),
    Row("eight", "8 forks at once: wall clock, launch, prefix, cache, cost", measure_eight),
    Row("four", "8 forks, 4 at a time", measure_four),
    Row("fork-memory", "memory per further fork of a large parent", measure_fork_memory),
)
