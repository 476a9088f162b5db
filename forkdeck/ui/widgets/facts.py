"""`Facts`: sections of label and figure, meters and sparklines, in one widget.

Used for the list column, the zoom's side column and the sheets. It is given `Section`s (made
from a state by `facts_of`) and draws them from the top; what does not fit is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.strip import Strip

from forkdeck.store.cells import cell_width, cut_end
from forkdeck.ui.glyphs import meter_cells, sparkline
from forkdeck.ui.widgets.line_widget import LineWidget, Spans, between, width_of

NEAR = 0.8
"""From this share of a limit on its meter warns."""


class Fact(NamedTuple):
    """One line of a section."""

    label: str = ""
    figure: Spans = []
    share: float | None = None
    """Draws a meter between label and figure."""
    values: tuple[float, ...] = ()
    """Draws a sparkline instead of the label."""
    style: str = "muted"
    """Style of the label."""
    limit: bool = False
    """The meter is the way to a limit: it warns when it is near."""
    handle: str = ""
    """The row of a fork; drawn selected when it is the widget's."""
    lead: Spans = []
    """Spans before the label."""
    action: str = ""
    """What a click on it does: an action of the screen."""


class Section(NamedTuple):
    """A titled group of facts."""

    title: str
    facts: tuple[Fact, ...] = ()
    right: Spans = []


class Facts(LineWidget):
    """Sections of facts; headed by panel rows in a column, by bold words in a side column."""

    ALLOW_SELECT = False
    DEFAULT_SHADE = "surface"

    def __init__(
        self, *, headed: bool = True, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.headed = headed
        """Whether titles stand in `panel` rows with a blank row below (else bold, close)."""
        self.selected = ""
        """The handle whose row is drawn selected."""
        self._sections: tuple[Section, ...] = ()
        self._rows: list[tuple[Spans, str, str]] = []
        self._handles: dict[int, str] = {}
        self._actions: dict[int, str] = {}

    def run_at(self, y: int) -> str:
        """Return the fork whose row is at `y`, or an empty string; for the mouse."""
        return self._handles.get(y, "")

    def action_at(self, y: int) -> str:
        """Return the action of the row at `y`, or an empty string; for the mouse."""
        return self._actions.get(y, "")

    def update_sections(self, sections: Sequence[Section], *, selected: str = "") -> None:
        """Show these sections; paints the rows that differ."""
        self._sections, self.selected = tuple(sections), selected
        self._relay()

    def on_resize(self) -> None:
        """Lay out for the new width."""
        self._relay()

    def _relay(self) -> None:
        before = self._rows
        self._rows = self._lay(self.size.width) if self.size.width else []
        if len(before) != len(self._rows):
            self.repaint()
            return
        for y, row in enumerate(self._rows):
            if row != before[y]:
                self.repaint_row(y)

    @property
    def wanted_height(self) -> int:
        """Rows that all sections need."""
        gaps = len(self._sections) * (2 if self.headed else 0) + max(0, len(self._sections) - 1)
        return sum(1 + len(section.facts) for section in self._sections) + gaps

    def _lay(self, width: int) -> list[tuple[Spans, str, str]]:
        rows: list[tuple[Spans, str, str]] = []
        self._handles, self._actions = {}, {}
        for section in self._sections:
            if rows:
                rows.append(([], "", ""))
            margin = 1 if self.headed else 2
            title: Spans = [("text", " " * margin), ("strong", section.title)]
            head = between(title, section.right, width, margin=margin)
            rows.append((head, "panel" if self.headed else "", ""))
            if self.headed and section.facts:
                rows.append(([], "", ""))
            metered = [fact for fact in section.facts if fact.share is not None]
            column = max((cell_width(fact.label) for fact in metered), default=0) + 1
            room = max((width_of(_figure_of(fact)) for fact in metered), default=0)
            for fact in section.facts:
                chosen = bool(fact.handle) and fact.handle == self.selected
                if fact.handle:
                    self._handles[len(rows)] = fact.handle
                if fact.action:
                    self._actions[len(rows)] = fact.action
                spans = self._fact(fact, width, column, room)
                rows.append((spans, "selected" if chosen else "", "rest" if chosen else ""))
        return rows

    def _fact(self, fact: Fact, width: int, column: int, room: int) -> Spans:
        margin = 2
        pad: Spans = [("text", " " * margin), *fact.lead]
        if fact.values:
            cells = width - 2 * margin - (width_of(fact.figure) + 3 if fact.figure else 0)
            cells -= cell_width(fact.label) + 2 if fact.label else 0
            label: Spans = [(fact.style, fact.label), ("text", "  ")] if fact.label else []
            values = list(fact.values[-max(1, cells) :])
            line = sparkline(values, ascii_only=self.options.ascii_only)
            return between([*pad, *label, ("live", line)], fact.figure, width, margin=margin)
        if fact.share is None:
            if not fact.figure:
                return [*pad, (fact.style, cut_end(fact.label, width - 2 * margin))]
            return between([*pad, (fact.style, fact.label)], fact.figure, width, margin=margin)
        near, figure = _is_near(fact), _figure_of(fact)
        gap = room + 1 if room else 0
        cells = min(30, width - 2 * margin - (column if fact.label else 0) - gap)
        if cells < 6:
            return between([*pad, (fact.style, fact.label)], figure, width, margin=margin)
        if not fact.label and not room:
            cells = width - 2 * margin
        part = meter_cells(min(1.0, fact.share), cells)
        meter: Spans = [
            ("warn" if near else "live", self.marks.meter * part),
            ("rule", self.marks.rest * (cells - part)),
        ]
        label = [(fact.style, fact.label.ljust(column))] if fact.label else []
        return between([*pad, *label, *meter], figure, width, margin=margin)

    def render_line(self, y: int) -> Strip:
        """Return one row."""
        if y >= len(self._rows):
            return self.blank()
        spans, fill, bar = self._rows[y]
        strip = self.strip(spans, fill)
        if bar:
            mark = self.palette.segments([(f"bar-{bar}", self.marks.bar)], fill)
            strip = Strip([*mark, *strip.crop(1)])
        return strip


def _is_near(fact: Fact) -> bool:
    return fact.limit and fact.share is not None and fact.share >= NEAR


def _figure_of(fact: Fact) -> Spans:
    return [("warn", "! "), *fact.figure] if _is_near(fact) and fact.figure else fact.figure
