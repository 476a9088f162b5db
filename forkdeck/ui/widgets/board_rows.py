"""What the board shows, as plain lines: groups, rows, tiles and the heat strip.

Pure layout for `Board`; data comes from the deck's state. Order and selection are given, never
made here, so that nothing re-sorts under the cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from forkdeck.model.state import DeckState, RunState
from forkdeck.store import selectors
from forkdeck.store.cells import cell_width, cut_end, fit
from forkdeck.store.figures import plural
from forkdeck.store.flags import flags_of, pace_words, reason_words, slow_words
from forkdeck.store.rows_live import brief_delay
from forkdeck.store.rows_text import clean_line
from forkdeck.ui.widgets.line_widget import LineWidget, Spans, badge_spans, between, width_of
from forkdeck.ui.widgets.pane_header import (
    METRIC_CELLS,
    fitted_name,
    metric_spans,
    priced,
    slot_spans,
)

GROUPED_FROM = 13
"""From so many forks on the rows stand in groups, under a heat strip."""

_ACTIVITY = 12
"""Cells that what a fork does keeps beside its flags."""

WORDS_FROM = 44
"""Below this width a row has no room for the state's word; its glyph stays."""

_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("needs you", ("ASK",)),
    ("failed or slow", ("FAIL", "SLOW", "PART", "INTR")),
    ("unread", ("NEW",)),
    ("running", ("RUN", "START", "WAIT", "STOP", "SAVE", "PAUSE")),
    ("queued", ("QUE", "PLAN")),
    ("settled", ("DONE", "ABRT")),
)
_FOLD_ORDER = ("settled", "queued", "unread", "running")
"""Groups that may fold when the room is short; the others never do."""


class Line(NamedTuple):
    """One line of the board: what it stands for, and a key that tells whether it changed."""

    kind: str
    """``head``, ``columns``, ``heat``, ``group``, ``fork``, ``more``, ``tile`` or ``blank``."""
    handle: str = ""
    text: str = ""
    number: int = 0


def group_of(word: str) -> str:
    """Return the name of the group a badge word belongs to."""
    return next((name for name, words in _GROUPS if word in words), "settled")


def activity_spans(state: DeckState, handle: str, now_ms: int) -> Spans:
    """Return in a few words what a fork does, asks, or came to."""
    fork = state.forks[handle]
    run = state.runs.get(handle)
    if ask := selectors.open_ask(state, handle):
        return [("text", clean_line(f"{ask.event.tool} {ask.event.argument}"))]
    if fork.status == "DONE":
        words = plural(len(fork.report.split()), "word")
        changed = f", {plural(len(fork.files), 'file')} changed" if fork.files else ""
        return [("muted", f"report {words}{changed}")]
    if fork.settled:
        return [("muted", reason_words(fork, run) or "no reason was given")]
    if fork.slow is not None and fork.status not in ("STOP", "SAVE"):
        return [("warn", clean_line(slow_words(fork, now_ms)))]
    if run is not None and run.delay is not None:
        return [("muted", brief_delay(run.delay, now_ms))]
    if fork.status in ("QUE", "PLAN"):
        words = f"planned: {fork.task}" if fork.status == "PLAN" else "waits for a place"
        return [("muted", clean_line(words))]
    return _at_work(state, handle, run)


def _at_work(state: DeckState, handle: str, run: RunState | None) -> Spans:
    found = selectors.activity(state, handle)
    if run is not None and run.stream and found.verb in ("writes", "thinks"):
        said = selectors.partial_text(run)[-200:].rstrip().rsplit("\n", 1)[-1]
        return [("muted", f"{found.verb} "), ("note", clean_line(said))]
    return [("muted", clean_line(f"{found.verb} {found.argument}"))]


def row_columns(width: int, name: int) -> tuple[str, ...]:
    """Return the figures a row has room for: cache goes first, then tools, then cost."""
    lead = 13 if width >= WORDS_FROM else 8
    for names in (
        ("age", "tools", "cost", "cache"),
        ("age", "tools", "cost"),
        ("age", "cost"),
        ("age",),
    ):
        cells = sum(size for column, size in METRIC_CELLS if column in names)
        if width - lead - name - 2 - cells - 1 >= (20 if len(names) > 1 else 0):
            return names
    return ()


def fork_row(
    widget: LineWidget,
    state: DeckState,
    handle: str,
    now_ms: int,
    layout: tuple[int, int, int],
    *,
    selected: bool,
) -> Spans:
    """Return a fork's row; `layout` is (width, name cells, number cells)."""
    width, name, number = layout
    word = selectors.badge(state, handle)
    columns = priced(widget, row_columns(width, name))
    quiet = word in ("QUE", "PLAN", "ABRT") or (word == "DONE")
    style = "strong" if selected else "muted" if quiet else "text"
    left = slot_spans(handle, width=number)
    left += badge_spans(widget.badge(word), words=width >= WORDS_FROM)
    left += [(style, fitted_name(state, handle, name)), ("text", "  ")]
    right = metric_spans(state, handle, now_ms, columns)
    room = width - 1 - width_of(left) - width_of(right)
    told = ("MISS",) if "cache" in columns else ()
    flags = flag_spans(state, handle, room - _ACTIVITY, told)
    room -= width_of(flags)
    left += _cut_spans(activity_spans(state, handle, now_ms), max(0, room - 1))
    return between(left, [*flags, *right], width)


def flag_spans(state: DeckState, handle: str, room: int, told: tuple[str, ...] = ()) -> Spans:
    """Return a fork's flags, each with a gap before it, as many as `room` cells take.

    Those in `told` are left out: another column says it.
    """
    spans: Spans = []
    for text, warns in flags_of(state, handle):
        if text in told:
            continue
        shown = f"  {clean_line(text)}"
        if width_of(spans) + cell_width(shown) > room:
            break
        spans.append(("warn" if warns else "muted", shown))
    return spans


def _cut_spans(spans: Spans, room: int) -> Spans:
    kept: Spans = []
    for style, text in spans:
        shown = cut_end(text, room)
        kept.append((style, shown))
        room -= cell_width(shown)
    return kept


def column_heads(widget: LineWidget, width: int, name: int) -> Spans:
    """Return the heads of the figure columns."""
    columns = priced(widget, row_columns(width, name))
    right: Spans = [
        ("muted", f"{head:>{cells}}") for head, cells in METRIC_CELLS if head in columns
    ]
    return between([], right, width)


def places(state: DeckState) -> str:
    """Return how many places are taken, also by other processes while forks wait for those.

    Such as ``4 of 4`` or ``0 here, 2 elsewhere, of 2``; empty when there are none.
    """
    open_batches = [batch for batch in state.batches.values() if not batch.ended]
    if not open_batches:
        return ""
    most = max(batch.max_concurrency for batch in open_batches)
    taken = sum(
        fork.started_at_ms is not None and not fork.settled for fork in state.forks.values()
    )
    waits = (
        state.runs[handle].delay
        for handle, fork in state.forks.items()
        if fork.status == "QUE" and handle in state.runs
    )
    full = next((delay for delay in waits if delay is not None and delay.places), None)
    if full is not None:
        return f"{full.places - full.elsewhere} here, {full.elsewhere} elsewhere, of {full.places}"
    return f"{taken} of {most}" if most else ""


def head_spans(
    widget: LineWidget, state: DeckState, order: Sequence[str], sort: str, *, above: int = 0
) -> Spans:
    """Return the board's head: how many forks, in what order, how many above, and the places."""
    width = widget.size.width
    left: Spans = [("text", " "), ("strong", "forks"), ("muted", f" {len(order)}")]
    taken = places(state)
    right: Spans = [("muted", "places "), ("text", taken)] if taken else []
    ordered: Spans = [("muted", f"   {sort}")] if len(order) > 1 and width >= 40 else []
    if above:
        ordered.append(("muted", f"   {above} above"))
    if words := pace_words(state):
        gap: Spans = [("text", "   ")] if right else []
        whole = [("warn", words), *gap, *right]
        fits = width_of([*left, *ordered, *whole]) + 2 <= width
        right = whole if fits else [("warn", pace_words(state, short=True)), *gap, *right]
        # What holds the rows back is worth more than what orders them.
        if width_of([*left, *ordered, *right]) + 2 > width:
            ordered = []
    return between([*left, *ordered], right, width)


def heat_lines(
    widget: LineWidget, state: DeckState, selected: str | None, width: int
) -> list[Spans]:
    """Return the heat strip: two cells a fork in order of admission, numbers every five."""
    handles = list(state.forks)
    lines: list[Spans] = []
    per = max(5, (width - 4) // 2 // 5 * 5)
    for start in range(0, len(handles), per):
        part = handles[start : start + per]
        marks: Spans = [("text", "   ")]
        for handle in part:
            found = widget.badge(selectors.badge(state, handle))
            style = "ask" if found.style == "chip-ask" else found.style
            marks.append((f"{style}@" if handle == selected else style, f"{found.glyph} "))
        lines.append(marks)
        numbers = ""
        for index in range(len(part)):
            number = start + index + 1
            if index == 0 or number % 5 == 0:
                numbers = numbers.ljust(index * 2) + str(number)
        lines.append([("text", "   "), ("muted", cut_end(numbers, width - 4))])
    return lines


def plan_lines(
    state: DeckState,
    order: Sequence[str],
    height: int,
    *,
    folded: frozenset[str],
    heat: int,
    heads: bool,
) -> list[Line]:
    """Return the board's lines for `height` rows; folds what may fold when room is short.

    ASK, FAIL, SLOW, PART and INTR are always among them.
    """
    lines: list[Line] = [Line("head")]
    if len(order) < GROUPED_FROM:
        if heads and height >= len(order) + 3:
            lines.append(Line("columns"))
        return lines + [Line("fork", handle) for handle in order]
    groups: dict[str, list[str]] = {}
    for handle in order:
        groups.setdefault(group_of(selectors.badge(state, handle)), []).append(handle)
    shown = {name: (0 if name in folded else len(members)) for name, members in groups.items()}
    lines += [Line("blank")] * (1 if heat else 0) + [
        Line("heat", number=row) for row in range(heat)
    ]
    lines += [Line("blank")] * (1 if heat else 0)
    fixed = len(lines)
    spread = height >= len(order) + 2 * len(groups) + fixed
    room = height - fixed
    for name in _FOLD_ORDER:
        over = _rows_of(groups, shown, spread=spread) - room
        if over <= 0 or name not in groups or name in folded:
            continue
        shown[name] = max(1, shown[name] - over - 1) if shown[name] > 2 else shown[name]
    first = True
    for name, _ in _GROUPS:
        if name not in groups:
            continue
        members = groups[name]
        if spread and not first:
            lines.append(Line("blank"))
        lines.append(Line("group", text=name, number=len(members)))
        first = False
        lines += [Line("fork", handle) for handle in members[: shown[name]]]
        if shown[name] < len(members):
            lines.append(Line("more", text=name, number=len(members) - shown[name]))
    return lines


def _rows_of(groups: dict[str, list[str]], shown: dict[str, int], *, spread: bool) -> int:
    total = 0
    for name, members in groups.items():
        total += 1 + shown[name] + (1 if shown[name] < len(members) else 0) + (1 if spread else 0)
    return total


def tile_lines(
    widget: LineWidget, state: DeckState, handle: str, now_ms: int, width: int
) -> list[Spans]:
    """Return the two lines under a tile's header: what it does, and the last thing it said."""
    doing = activity_spans(state, handle, now_ms)
    last = ""
    run = state.runs.get(handle)
    if run is not None and run.stream and state.forks[handle].slow is None:
        doing = [("muted", doing[0][1].strip())]
    if run is not None:
        said = selectors.partial_text(run).strip()
        last = clean_line(said[-400:].rsplit("\n", 1)[-1])
    room = max(4, width - 6)
    del widget
    flags = flag_spans(state, handle, room - _ACTIVITY)
    doing = _cut_spans(doing, room - width_of(flags))
    gap = room - width_of(doing) - width_of(flags)
    return [
        [("text", "    "), *doing, ("text", " " * gap), *flags],
        [("text", "    "), ("note", fit(last, room))],
    ]
