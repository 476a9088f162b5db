"""Every row of the benchmark, in the order it is printed."""

from __future__ import annotations

from tests.bench.figure import Row
from tests.bench.rows.abort import measure_abort, measure_kept, measure_orphans
from tests.bench.rows.commands import measure_commands
from tests.bench.rows.forks import measure_eight, measure_four
from tests.bench.rows.logs import measure_events, measure_transcript
from tests.bench.rows.memory import measure_fork_memory
from tests.bench.rows.start import measure_memory, measure_paint, measure_sdk
from tests.bench.rows.stream import measure_cpu, measure_keys
from tests.bench.rows.worktree import measure_create

ROWS = (
    Row("commands", "--version and --help", measure_commands),
    Row("paint", "first paint and the first typed character", measure_paint),
    Row("sdk", "the stall while the SDK is imported", measure_sdk),
    Row("idle", "memory of an idle deck", measure_memory),
    Row("eight", "8 forks at once: wall clock, launch, prefix, cache, cost", measure_eight),
    Row("four", "8 forks, 4 at a time", measure_four),
    Row("fork-memory", "memory per further fork of a large parent", measure_fork_memory),
    Row("abort", "abort one of 8: socket, processes, screen", measure_abort),
    Row("orphans", "processes left 1 s after SIGKILL", measure_orphans),
    Row("kept", "work in the log after SIGKILL", measure_kept),
    Row("keys", "key to screen while 9 streams run", measure_keys),
    Row("cpu", "processor time while 9 streams run", measure_cpu),
    Row("transcript", "a conversation of 100,000 lines", measure_transcript),
    Row("events", "a recording of 100,000 events", measure_events),
    Row("worktree", "making a write fork's worktree", measure_create),
)
