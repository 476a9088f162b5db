"""`Timeline`: the lanes of a replay, parent and forks on one clock.

Draws `Lane`s (made once from the recording's end state and its marks) and the playhead. What
is not yet played is drawn in `rule`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from textual.strip import Strip

from forkdeck.model.ids import PARENT
from forkdeck.model.state import DeckState
from forkdeck.store import selectors
from forkdeck.store.rows_text import clean_line
from forkdeck.ui import formats
from forkdeck.ui.glyphs import Marks
from forkdeck.ui.widgets.line_widget import LineWidget, Spans, between
from forkdeck.ui.widgets.pane_header import name_cells

Phase = Literal["work", "ask", "wait", "idle"]


_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200)


class Stretch(NamedTuple):
    """A run's phase from one instant of the session to another, in milliseconds."""

    phase: Phase
    start_ms: int
    end_ms: int


class Lane(NamedTuple):
    """One run's row of the timeline."""

    run: str
    name: str
    stretches: tuple[Stretch, ...]
    end: str = ""
    """The badge word it ended with, or empty."""
    cost: str = ""


def lanes_of(state: DeckState, duration_ms: int) -> list[Lane]:
    """Return a lane per run from a recording's last state: when it waited, worked, ended."""
    parent = state.parent
    lanes = [
        Lane(
            PARENT, "parent", (Stretch("work", 0, duration_ms),), "",
            formats.cost(parent.cost, known=parent.usage.prompt_tokens > 0),
        )
    ]  # fmt: skip
    for handle, fork in state.forks.items():
        end = duration_ms if fork.ended_at_ms is None else fork.ended_at_ms
        start = end if fork.started_at_ms is None else fork.started_at_ms
        stretches = [Stretch("wait", fork.queued_at_ms, start)] if start > fork.queued_at_ms else []
        if end > start:
            stretches.append(Stretch("work", start, end))
        found = selectors.metrics(state, handle, duration_ms)
        word = selectors.badge(state, handle) if fork.settled else ""
        cost = formats.cost(found.cost, known=found.cost_known)
        lanes.append(Lane(handle, clean_line(fork.name), tuple(stretches), word, cost))
    return lanes


class Timeline(LineWidget):
    """Lanes under a scale, with the playhead through all of them."""

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lanes: tuple[Lane, ...] = ()
        self._state: DeckState | None = None
        self._duration_ms = 0
        self._position_ms = 0
        self._selected = ""
        self._rows: list[tuple[Spans, str]] = []

    def update_lanes(self, lanes: Sequence[Lane], state: DeckState, duration_ms: int) -> None:
        """Show these lanes; `state` gives the names their width."""
        self._lanes, self._state, self._duration_ms = tuple(lanes), state, duration_ms
        self._relay()

    def update_position(self, position_ms: int, selected: str = "") -> None:
        """Move the playhead."""
        self._position_ms, self._selected = position_ms, selected
        self._relay()

    def on_resize(self) -> None:
        """Lay out for the new size."""
        self._relay()

    @property
    def wanted_height(self) -> int:
        """Rows for the head, the scale, every lane and the legend."""
        return len(self._lanes) + 3

    def _relay(self) -> None:
        width, height = self.size
        if not width or self._state is None or self._duration_ms <= 0:
            return
        before, self._rows = self._rows, self._lay(width, height)
        if len(before) != len(self._rows):
            self.repaint()
            return
        for y, row in enumerate(self._rows):
            if row != before[y]:
                self.repaint_row(y)

    def _lay(self, width: int, height: int) -> list[tuple[Spans, str]]:
        assert self._state is not None
        name = max(name_cells(self._state, list(self._state.forks)), 6)
        left = 4 + name + 2
        cells = max(10, width - left - 11)
        per_s = self._duration_ms / cells / 1000
        scale: Spans = [("muted", f"one cell is {per_s:.0f} s" if per_s >= 1 else "")]
        head = between([("text", " "), ("strong", "timeline")], scale, width)
        rows: list[tuple[Spans, str]] = [(head, "panel"), (self._scale(left, cells, width), "")]
        for lane in self._visible(height - 3):
            number = "" if lane.run == PARENT else lane.run[1:]
            chosen = lane.run == self._selected
            style = "strong" if chosen else "text"
            lead: Spans = [("muted", f" {number:>2} "), (style, f"{lane.name[:name]:<{name}}  ")]
            line = [*lead, *self._lane(lane, cells)]
            rows.append((between(line, [("muted", lane.cost)], width), ""))
        marks = self.marks
        legend: Spans = [
            ("text", " " * left), ("live", marks.meter), ("muted", " working   "),
            ("muted", f"{marks.wait} waiting   "), ("good", self.badge("NEW").glyph),
            ("muted", " report   "), ("bad", marks.times), ("muted", " failed"),
        ]  # fmt: skip
        rows.append((between(legend, [], width), ""))
        return rows

    def _visible(self, room: int) -> tuple[Lane, ...]:
        if len(self._lanes) <= room:
            return self._lanes
        at = next((i for i, lane in enumerate(self._lanes) if lane.run == self._selected), 0)
        start = max(0, min(at - room // 2, len(self._lanes) - room))
        return self._lanes[start : start + max(1, room)]

    def _cell(self, ms: int, cells: int) -> int:
        return max(0, min(cells - 1, ms * cells // self._duration_ms))

    def _scale(self, left: int, cells: int, width: int) -> Spans:
        text = [" "] * (cells + 8)
        least = 12 * self._duration_ms / cells / 1000
        head = self._cell(self._position_ms, cells)
        step = next((second for second in _STEPS_S if second >= least), _STEPS_S[-1])
        for second in range(0, self._duration_ms // 1000 + 1, step):
            label = formats.duration(second * 1000)
            at = self._cell(second * 1000, cells)
            if not at <= head < at + len(label):
                # A label under the playhead would be read without its digit.
                text[at : at + len(label)] = label
        text[head] = self.marks.follow
        line = "".join(text)
        before, after = line[:head], line[head + 1 :]
        spans: Spans = [
            ("text", " " * left), ("muted", before), ("text", self.marks.follow), ("muted", after),
        ]  # fmt: skip
        return between(spans, [], width)

    def _lane(self, lane: Lane, cells: int) -> Spans:
        marks = self.marks
        glyphs = {"work": marks.meter, "wait": marks.wait, "idle": marks.idle, "ask": marks.meter}
        shown: list[tuple[str, str]] = [("text", " ")] * (cells + 1)
        head = self._cell(self._position_ms, cells)
        for stretch in lane.stretches:
            first, last = self._cell(stretch.start_ms, cells), self._cell(stretch.end_ms, cells)
            for at in range(first, last + 1):
                played = at <= head
                style = {"work": "live", "ask": "warn"}.get(stretch.phase, "muted")
                shown[at] = (style if played else "rule", glyphs[stretch.phase])
        if lane.end and lane.stretches:
            at = self._cell(lane.stretches[-1].end_ms, cells)
            found = self.badge(lane.end)
            played = lane.stretches[-1].end_ms <= self._position_ms
            style = {"chip-ask": "ask"}.get(found.style, found.style)
            shown[min(cells, at + 1)] = (style if played else "rule", found.glyph)
        shown[head] = ("text", _playhead(marks, shown[head][1]))
        return _joined(shown)

    def render_line(self, y: int) -> Strip:
        """Return one row."""
        if y >= len(self._rows):
            return self.blank()
        spans, fill = self._rows[y]
        return self.strip(spans, fill)


def _playhead(marks: Marks, under: str) -> str:
    return marks.cross if under.strip() else marks.divider


def _joined(cells: Sequence[tuple[str, str]]) -> Spans:
    spans: Spans = []
    for style, text in cells:
        if spans and spans[-1][0] == style:
            spans[-1] = (style, spans[-1][1] + text)
        else:
            spans.append((style, text))
    return spans
