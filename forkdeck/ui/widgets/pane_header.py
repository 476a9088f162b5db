"""The header row of a pane and the last row of a tile.

Pure layout for `Pane` and `Board`: slot, badge, name, note, and the metrics that fit.
"""

from __future__ import annotations

from forkdeck.model.state import DeckState, ForkState
from forkdeck.store import selectors
from forkdeck.store.cells import cell_width, cut_end, fit
from forkdeck.store.flags import flags_of
from forkdeck.store.rows_text import clean_line
from forkdeck.ui import formats
from forkdeck.ui.widgets.line_widget import LineWidget, Spans, badge_spans, between, width_of

METRIC_CELLS = (("age", 6), ("tools", 5), ("cost", 7), ("cache", 5))
"""Columns of a fork's figures, left to right, with their widths."""


def slot_spans(handle: str, *, width: int = 2) -> Spans:
    """Return the number of a fork, right-aligned after the bar column."""
    return [("text", " "), ("muted", f"{handle[1:]:>{width}}"), ("text", " ")]


def priced(widget: LineWidget, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns to draw: without what is about money where the person wants none."""
    if widget.options.costs:
        return columns
    return tuple(name for name in columns if name not in ("cost", "cache"))


def metric_spans(state: DeckState, handle: str, now_ms: int, columns: tuple[str, ...]) -> Spans:
    """Return a fork's figures in fixed columns; what is not known is ``–``."""
    found = selectors.metrics(state, handle, now_ms)
    fork = state.forks.get(handle)
    queued = fork is not None and fork.started_at_ms is None
    miss = found.cache_share is not None and found.cache_share < 0.5
    run = state.runs.get(handle)
    missed = run is not None and run.cache is not None and run.cache.verdict == "MISS"
    texts = {
        "age": ("muted", formats.UNKNOWN if queued else formats.duration(found.age_ms)),
        "tools": ("muted", formats.UNKNOWN if queued else formats.tools(found.tools)),
        "cost": ("text", formats.cost(found.cost, known=found.cost_known)),
        "cache": ("warn" if missed or miss else "muted", formats.percent(found.cache_share)),
    }
    spans: Spans = []
    for name, cells in METRIC_CELLS:
        if name in columns:
            style, text = texts[name]
            spans.append((style, f"{text:>{cells}}"))
    return spans


def parent_header(widget: LineWidget, state: DeckState, *, focused: bool) -> Spans:
    """Return the parent pane's header: its name and how full its context is."""
    run = state.parent
    right: Spans = []
    if run.context_tokens is not None:
        right = [("muted", f"{formats.tokens(run.context_tokens)} context")]
    del focused
    return between([("text", " "), ("strong", "parent")], right, widget.size.width)


def note_of(fork: ForkState) -> str:
    """Return what kind of fork it is, in one or two words."""
    if fork.agent_type:
        return clean_line(fork.agent_type)
    return "worktree" if fork.write else "read-only"


def fork_header(
    widget: LineWidget, state: DeckState, now_ms: int, *, focused: bool, number_width: int = 2
) -> Spans:
    """Return a fork pane's header, with as many figures as its width takes."""
    handle = getattr(widget, "run", "")
    return header_spans(
        widget, state, handle, now_ms, (widget.size.width, number_width), focused=focused
    )


def header_spans(
    widget: LineWidget,
    state: DeckState,
    handle: str,
    now_ms: int,
    widths: tuple[int, int],
    *,
    focused: bool,
) -> Spans:
    """Return the header of one fork in `widths[0]` cells, its number in `widths[1]`."""
    width, number_width = widths
    fork = state.forks.get(handle)
    if fork is None:
        return [("text", " "), ("muted", "no such fork")]
    word = selectors.badge(state, handle)
    name = clean_line(fork.name)
    left = slot_spans(handle, width=number_width)
    left += badge_spans(widget.badge(word), words=width >= 34)
    quiet = word in ("QUE", "PLAN")
    style = "strong" if focused else "muted" if quiet else "text"
    used = width_of(left)
    columns = priced(widget, _columns(width - used - min(14, cell_width(name)) - 1))
    right = metric_spans(state, handle, now_ms, columns)
    room = width - 1 - used - width_of(right)
    shown = cut_end(name, max(4, min(room - 1, 32)))
    left.append((style, shown))
    note = note_of(fork)
    if room - cell_width(shown) >= cell_width(note) + 4:
        left.append(("muted", f"  {note}"))
    for text, warns in flags_of(state, handle):
        if width_of(left) + cell_width(text) + 3 + width_of(right) < width:
            left.append(("warn" if warns else "muted", f"   {clean_line(text)}"))
    if getattr(widget, "kind", "") == "zoom" and fork.worktree is not None:
        left.append(("muted", f"   from {clean_line(fork.worktree.base)[:7]}"))
    return between(left, right, width)


def _columns(room: int) -> tuple[str, ...]:
    for names in (
        ("age", "tools", "cost", "cache"),
        ("age", "tools", "cost"),
        ("age", "cost"),
        ("age",),
    ):
        if sum(cells for name, cells in METRIC_CELLS if name in names) <= room:
            return names
    return ()


def tile_foot(widget: LineWidget, state: DeckState, now_ms: int) -> Spans:
    """Return a tile's last row: that it follows, and the figures its header had no room for."""
    handle = getattr(widget, "run", "")
    if handle not in state.forks:
        return []
    found = selectors.metrics(state, handle, now_ms)
    mark, width = widget.marks.follow, widget.size.width
    spans: Spans = [("text", "   "), ("muted", f"{mark} follow")]
    parts = [formats.plural(found.tools, "tool")]
    if found.cache_share is not None and widget.options.costs:
        parts.append(f"{formats.percent(found.cache_share)} cache")
    for part in parts:
        # A figure that does not fit is left out, never cut.
        if width_of(spans) + 3 + cell_width(part) < width:
            spans.append(("muted", f"   {part}"))
    return between(spans, [], width)


def name_cells(state: DeckState, handles: list[str], most: int = 14) -> int:
    """Return how wide the name column of these forks is."""
    names = [clean_line(state.forks[handle].name) for handle in handles if handle in state.forks]
    return min(most, max([11, *(cell_width(name) for name in names)]))


def fitted_name(state: DeckState, handle: str, cells: int) -> str:
    """Return a fork's name, padded or cut to `cells`."""
    return fit(clean_line(state.forks[handle].name), cells)
