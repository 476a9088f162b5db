"""Tool calls and fan-outs as rows.

Called by the item and live builders. A call is one line: verb, argument, result flush right;
under it, when it is open, what it changed or wrote.
"""

from __future__ import annotations

import re
from typing import Final

from forkdeck.model.items import ToolFacts
from forkdeck.model.state import BatchState, DeckState, ForkState
from forkdeck.store.cells import cell_width, cut_end, cut_path, fit
from forkdeck.store.figures import clock, plural
from forkdeck.store.rows_diff import diff_rows, parse_patch
from forkdeck.store.rows_text import clean, clean_line, flush_right
from forkdeck.store.rows_types import Grid, Row, Span, Style

VERB: Final = 8
"""Cells of a tool's name, and of every label that hangs beside it."""

OPEN_ROWS: Final = 40
"""Most rows an opened call shows; the rest is counted."""

SHELL_ROWS: Final = 6
"""The same of a folded shell command of the person."""

_PATH_TOOLS: Final = frozenset(("read", "edit", "write", "ls"))
_HIT: Final = re.compile(r"([^:\s][^:]*):(\d+)[:-]\s?(.*)")
_FORK_TOOLS: Final = frozenset(("fork_join", "fork", "agent"))


def verb_of(name: str) -> str:
    """Return a tool's name for the verb column; never wider than its cells.

    ``fork_join`` is shown as ``fork``: it starts forks like its sisters, and is too long.
    """
    return cut_end("fork" if name == "fork_join" else clean_line(name), VERB - 1)


def result_spans(tool: ToolFacts, grid: Grid) -> list[Span]:
    """Return what a finished call came to, for the right edge."""
    if tool.status == "denied":
        return [("warn", "denied")]
    if tool.status == "aborted":
        return [("warn", "stopped")]
    if tool.status in ("error", "timeout"):
        return [
            (
                "bad",
                clean_line(tool.summary) or ("timed out" if tool.status == "timeout" else "failed"),
            )
        ]
    if tool.added or tool.removed:
        spans: list[Span] = [("good", f"+{tool.added or 0}")]
        if tool.removed:
            spans += [("text", " "), ("bad", f"{grid.glyphs.minus}{tool.removed}")]
        return spans
    summary = clean_line(tool.summary)
    good = tool.exit_code == 0 and "passed" in summary and "failed" not in summary
    return [("good" if good else "muted", summary)] if summary else []


def running_spans(tool: ToolFacts, grid: Grid, now_ms: int) -> list[Span]:
    """Return the elapsed time of a running call, behind the spinner where there is one."""
    frames = grid.glyphs.spinner
    spin = frames[now_ms // 250 % len(frames)] + " " if frames else ""
    return [("live", spin + clock(now_ms - tool.started_at_ms))]


def tool_line(tool: ToolFacts, grid: Grid, *, now_ms: int, opened: bool | None = None) -> Row:
    """Return the one line of a call; `opened` draws the fold mark (None: nothing to fold)."""
    live = tool.status is None
    verb_style: Style = "live" if live else "muted"
    name = verb_of(tool.name)
    right = running_spans(tool, grid, now_ms) if live else result_spans(tool, grid)
    if grid.kind == "zoom":
        mark = " " if opened is None else grid.glyphs.opened if opened else grid.glyphs.folded
        lead: list[Span] = [("muted", f" {mark} "), (verb_style, name.ljust(7))]
        if not live and tool.duration_ms >= 1000:
            right = [*right, ("muted", f"{clock(tool.duration_ms):>7}")]
    else:
        lead = [("text", " " * grid.indent), (verb_style, name.ljust(VERB))]
    width = grid.width - grid.right
    room = width - sum(cell_width(text) for _, text in lead)
    need = sum(cell_width(text) for _, text in right)
    if right and room - need < 12:
        right, need = ([right[0]] if live else []), (need if live else 0)
    argument = clean_line(tool.argument)
    space = max(4, room - need - (2 if need else 0))
    cut = cut_path if tool.name in _PATH_TOOLS else cut_end
    return Row(flush_right([*lead, ("text", cut(argument, space))], right, width))


def tool_rows(tool: ToolFacts, grid: Grid, *, opened: bool, now_ms: int = 0) -> list[Row]:
    """Return a call's line and, when it is open or says much, what is under it."""
    foldable = bool(tool.patch or tool.content.strip()) and tool.status is not None
    rows = [tool_line(tool, grid, now_ms=now_ms, opened=opened if foldable else None)]
    if tool.status is None:
        return rows + _lines(tool.tail.strip("\n"), grid, 3, last=True)
    if opened and tool.patch:
        start = body_start(grid)
        lines = parse_patch(tool.patch)
        rows += diff_rows(lines[:OPEN_ROWS], grid.width, start, grid.glyphs, right=grid.right)
        return rows + _more(len(lines) - OPEN_ROWS, grid)
    if opened:
        return rows + _lines(tool.content.strip("\n"), grid, OPEN_ROWS)
    if tool.name == "!":
        return rows + _lines(tool.content.strip("\n"), grid, SHELL_ROWS)
    if not grid.preview:
        return rows
    if tool.status in ("error", "timeout"):
        return rows + _lines(tool.content.strip("\n"), grid, 3, last=True)
    if tool.name == "grep" and grid.kind != "parent":
        return rows + _hits(tool.content, grid, 3)
    return rows


def body_start(grid: Grid) -> int:
    """Return the cell at which what hangs under a call begins."""
    return grid.indent if grid.kind == "zoom" else grid.indent + VERB


def _more(count: int, grid: Grid) -> list[Row]:
    if count <= 0:
        return []
    return [Row((("text", " " * body_start(grid)), ("muted", f"{count} more")))]


def _lines(text: str, grid: Grid, limit: int, *, last: bool = False) -> list[Row]:
    if not text:
        return []
    lines = text.split("\n")
    shown = lines[-limit:] if last else lines[:limit]
    start = body_start(grid)
    room = max(4, grid.width - start - grid.right)
    rows = [
        Row((("text", " " * start), ("muted", cut_end(clean(line).rstrip(), room))))
        for line in shown
    ]
    return rows if last else rows + _more(len(lines) - limit, grid)


def _hits(content: str, grid: Grid, limit: int) -> list[Row]:
    found = [match for line in content.split("\n")[:200] if (match := _HIT.fullmatch(line.strip()))]
    if not found:
        return []
    start = body_start(grid)
    room = grid.width - start - grid.right
    places = [clean_line(f"{match[1]}:{match[2]}") for match in found[:limit]]
    column = min(max(map(cell_width, places)) + 4, max(12, room * 3 // 5))
    rows = [
        Row(
            (
                ("text", " " * start),
                ("muted", fit(cut_path(place, column - 2), column)),
                ("text", cut_end(clean_line(match[3]), max(1, room - column))),
            )
        )
        for place, match in zip(places, found, strict=False)
        if room > column
    ]
    return rows + _more(len(found) - limit, grid)


def batch_rows(batch: BatchState, state: DeckState, grid: Grid) -> list[Row]:
    """Return the drawing of a fan-out: its size, its price, and its forks as branches."""
    forks = [state.forks[handle] for handle in batch.handles if handle in state.forks]
    count = len(batch.handles)
    text = plural(count, "task")
    parts = [f", {batch.max_concurrency} at once"] if 0 < batch.max_concurrency < count else []
    if batch.base_commit:
        parts.append(f" from {clean_line(batch.base_commit)[:7]}")
    room = grid.width - grid.indent - grid.right - VERB - 20
    for part in parts:
        text += part if len(text) + len(part) <= room else ""
    right: list[Span] = []
    if batch.estimate_usd:
        low, high = batch.estimate_usd
        right = [("muted", f"est ${clean_line(low)}–{clean_line(high)}")]
    start = grid.indent
    lead: list[Span] = [("text", " " * start), ("muted", "fork".ljust(VERB)), ("text", text)]
    rows = [Row(flush_right(lead, right, grid.width - grid.right))]
    lines = [_branch(fork, forks) for fork in forks] if count <= 12 else _groups(forks)
    for index, (number, spans) in enumerate(lines):
        mark = grid.glyphs.corner if index == len(lines) - 1 else grid.glyphs.branch
        head: list[Span] = [("text", " " * start), ("rule", mark), ("text", f" {number}  ")]
        rows.append(Row(flush_right([*head, *spans], [], grid.width - grid.right)))
    return rows


def _branch(fork: ForkState, forks: list[ForkState]) -> tuple[str, list[Span]]:
    width = min(14, max(cell_width(clean_line(other.name)) for other in forks))
    kind = "worktree" if fork.write else "read-only"
    return f"{fork.handle[1:]:>2}", [
        ("text", fit(clean_line(fork.name), width)),
        ("muted", f"   {kind}"),
    ]


def _groups(forks: list[ForkState]) -> list[tuple[str, list[Span]]]:
    readers = sum(not fork.write for fork in forks)
    writers = len(forks) - readers
    groups: list[tuple[str, list[Span]]] = []
    if readers:
        groups.append((f"{readers:>2}", [("muted", "read-only")]))
    if writers:
        groups.append((f"{writers:>2}", [("muted", "worktree, one each")]))
    return groups


def is_fork_tool(name: str) -> bool:
    """Tell whether a tool starts forks, whose fan-out is drawn instead of its line."""
    return name in _FORK_TOOLS
