"""The builder of cards: labelled fields and keys on a tint, with a bar at the left edge.

Used by the row builders of requests, plans, endings and stalls; it knows no state.
"""

from __future__ import annotations

from collections.abc import Sequence

from forkdeck.store.cells import cell_width
from forkdeck.store.rows_text import flush_right, wrap_spans
from forkdeck.store.rows_tools import VERB
from forkdeck.store.rows_types import Bar, Fill, Grid, Row, Span

Keys = Sequence[tuple[str, str]]


class Card:
    """Collects the rows of one card.

    Args:
        grid: Where text stands in the pane.
        fill: Its tint.
        bar: What its left edge says.
        compact: Whether the pane is too low for blank rows.
    """

    def __init__(self, grid: Grid, fill: Fill, bar: Bar, *, compact: bool) -> None:
        self._grid, self._compact = grid, compact
        self._fill: Fill = fill
        self._bar: Bar = bar
        self._start = 4 if grid.kind in ("fork", "zoom") else grid.indent
        self.rows: list[Row] = []
        self.room = max(8, grid.width - 2 - self._start - VERB)
        """Cells of a field's text."""
        self.wide = grid.width >= 48
        """Whether figures at the right edge have room for their words."""
        self.gap()

    def gap(self) -> None:
        """Add a blank row, where there is room for one."""
        if not self._compact:
            self._add(())

    def _add(self, spans: tuple[Span, ...]) -> None:
        self.rows.append(Row(spans, self._fill, self._bar))

    def field(self, label: Span, spans: Sequence[Span], right: Sequence[Span] = ()) -> None:
        """Add a labelled line that wraps; `right` stands on its first row."""
        grid = self._grid
        pad: Span = ("text", " " * self._start)
        edge = grid.width - 2
        need = sum(cell_width(text) for _, text in right)
        room = self.room
        lines = wrap_spans(list(spans), room)
        if need and len(lines) == 1:
            width = sum(cell_width(text) for _, text in lines[0])
            if width + need + 2 > room:
                lines, right = [*wrap_spans(list(spans), room)], ()
        elif need:
            right = ()
        for index, line in enumerate(lines):
            style, text = label if index == 0 else ("muted", "")
            head: list[Span] = [pad, (style, text.ljust(VERB))]
            self._add(flush_right([*head, *line], right if index == 0 else (), edge))

    def keys(self, keys: Keys) -> None:
        """Add the keys, on as many rows as they need."""
        room = self._grid.width - self._start - 1
        line: list[Span] = []
        used = 0
        for key, word in keys:
            need = cell_width(key) + 1 + cell_width(word)
            if line and used + 3 + need > room:
                self._add((("text", " " * self._start), *line))
                line, used = [], 0
            if line:
                line.append(("text", "   "))
                used += 3
            line += [("key", key), ("muted", f" {word}")]
            used += need
        if line:
            self._add((("text", " " * self._start), *line))

    def done(self) -> list[Row]:
        """Return the card's rows."""
        self.gap()
        return self.rows
