"""`Board`: every fork of the deck in one widget, as rows or as tiles.

The number of widgets does not grow with the forks. Data comes through `update_state`; the
order and the selection are the screen's. It paints only the lines that changed.
"""

from __future__ import annotations

from typing import Literal

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.strip import Strip

from forkdeck.model.state import EMPTY, DeckState
from forkdeck.ui.widgets import board_rows
from forkdeck.ui.widgets.board_rows import GROUPED_FROM, Line
from forkdeck.ui.widgets.line_widget import LineWidget, Spans
from forkdeck.ui.widgets.pane_header import header_spans, name_cells

Density = Literal["rows", "tiles"]

_TILE_WIDTH = 44
_TILE_HEIGHT = 4


class Board(LineWidget, can_focus=True):
    """All forks, in the order it is given; never re-sorts, never hides who needs the person."""

    ALLOW_SELECT = False
    DEFAULT_SHADE = "surface"

    def __init__(
        self, *, density: Density = "rows", id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.sort = "by attention"
        """Words for the order, shown in the head."""
        self._focused_zone = True
        self._density: Density = density
        self._state: DeckState = EMPTY
        self._now_ms = 0
        self._chosen: str | None = None
        self._order: list[str] = []
        self._folded: frozenset[str] = frozenset()
        self._offset = 0
        self._tiles_free = False
        """Whether the tiles were scrolled away from the selected one."""
        self._lines: list[Line] = []
        self._painted: list[tuple[Spans, str, str]] = []

    @property
    def density(self) -> Density:
        """How forks are drawn."""
        return self._density

    @density.setter
    def density(self, value: Density) -> None:
        if value != self._density:
            self._density = value
            self._offset = 0
            self._relay()

    @property
    def focused_zone(self) -> bool:
        """Whether the cursor is the focus (`primary`) or at rest (`rule`)."""
        return self._focused_zone

    @focused_zone.setter
    def focused_zone(self, value: bool) -> None:
        if value != self._focused_zone:
            self._focused_zone = value
            self._relay()

    def scroll_lines(self, count: int) -> None:
        """Scroll by lines, down when positive; the selection stays where it is."""
        height = self.size.height
        if self._density == "tiles":
            self._tiles_free = True
            rows = -(-len(self._order) // self.columns)
            most = rows - max(1, (height - 1) // _TILE_HEIGHT)
            count = 1 if count > 0 else -1
        else:
            most = len(self._lines) - height
        offset = max(0, min(most, self._offset + count))
        if offset != self._offset:
            self._offset = offset
            self._relay()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll with the wheel."""
        event.stop()
        self.scroll_lines(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll with the wheel."""
        event.stop()
        self.scroll_lines(-3)

    def update_state(
        self, state: DeckState, now_ms: int, selected: str | None, order: list[str]
    ) -> None:
        """Show a newer state; `order` are the handles to show, `selected` the one with the bar."""
        moved = selected != self._chosen
        self._tiles_free = self._tiles_free and not moved
        self._state, self._now_ms, self._chosen = state, now_ms, selected
        self._order = [handle for handle in order if handle in state.forks]
        self._relay(follow=moved)

    def fold_group(self, handle: str, *, folded: bool) -> bool:
        """Fold or open the group a fork is in; False when that group never folds."""
        if handle not in self._state.forks or len(self._order) < GROUPED_FROM:
            return False
        name = board_rows.group_of(board_rows.selectors.badge(self._state, handle))
        if name in ("needs you", "failed or slow"):
            return False
        self._folded = self._folded | {name} if folded else self._folded - {name}
        self._relay()
        return True

    @property
    def visible_handles(self) -> list[str]:
        """The forks that can be moved to: those not folded away, in their order on screen."""
        if self._density == "tiles":
            return list(self._order)
        return [line.handle for line in self._lines if line.kind == "fork"]

    @property
    def wanted_height(self) -> int:
        """Rows the board needs to show everything as rows."""
        return len(self._order) + 1

    @property
    def columns(self) -> int:
        """Tiles beside each other; 1 with rows."""
        return max(1, self.size.width // _TILE_WIDTH) if self._density == "tiles" else 1

    def handle_at(self, x: int, y: int) -> str | None:
        """Return the fork drawn at a cell of this widget, for the mouse."""
        if self._density == "tiles":
            row, column = (
                (y - 1) // _TILE_HEIGHT + self._offset,
                x * self.columns // self.size.width,
            )
            index = row * self.columns + column
            return self._order[index] if y > 0 and index < len(self._order) else None
        index = y + self._offset if y else 0
        line = self._lines[index] if index < len(self._lines) else Line("blank")
        return line.handle or None

    # --- layout -----------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Lay out for the new size."""
        self._painted = []
        self._relay(follow=True)

    def palette_changed(self) -> None:
        """Paint everything again with the new colours."""
        self._painted = []

    def _relay(self, *, follow: bool = False) -> None:
        width, height = self.size
        if not width or not height:
            return
        if self._density == "tiles":
            self._scroll_tiles(height)
            painted = self._paint_tiles(width, height)
        else:
            heat = len(self._heat()) if len(self._order) >= GROUPED_FROM and height >= 24 else 0
            self._lines = board_rows.plan_lines(
                self._state, self._order, height, folded=self._folded, heat=heat, heads=height >= 14
            )
            self._scroll_rows(height, follow=follow)
            painted = self._paint_rows(width, height)
        before, self._painted = self._painted, painted
        if len(before) != len(painted):
            self.repaint()
            return
        changed = [y for y, line in enumerate(painted) if line != before[y]]
        self._refresh_runs(changed)

    def _refresh_runs(self, rows: list[int]) -> None:
        start = 0
        for index, y in enumerate(rows):
            last = index + 1 == len(rows) or rows[index + 1] != y + 1
            if last:
                self.refresh(Region(0, rows[start], self.size.width, y - rows[start] + 1))
                start = index + 1

    def _scroll_rows(self, height: int, *, follow: bool) -> None:
        most = max(0, len(self._lines) - height)
        self._offset = min(self._offset, most)
        if not follow:
            return
        for index, line in enumerate(self._lines):
            if line.kind == "fork" and line.handle == self._chosen:
                # The last row counts what is below, as long as anything is.
                last = self._offset + height - (1 if self._offset < most else 0)
                if index < self._offset + 2:
                    self._offset = max(0, index - 2)
                elif index >= last:
                    self._offset = min(most, index - height + 2)

    def _scroll_tiles(self, height: int) -> None:
        rows = max(1, (height - 1) // _TILE_HEIGHT)
        total = -(-len(self._order) // self.columns)
        at = self._order.index(self._chosen) // self.columns if self._chosen in self._order else 0
        if self._tiles_free:
            at = self._offset
        if at < self._offset:
            self._offset = at
        elif at >= self._offset + rows:
            self._offset = at - rows + 1
        self._offset = max(0, min(self._offset, total - rows))

    def _heat(self) -> list[Spans]:
        return board_rows.heat_lines(self, self._state, self._chosen, self.size.width)

    # --- painting ---------------------------------------------------------------------------

    def _paint_rows(self, width: int, height: int) -> list[tuple[Spans, str, str]]:
        name = name_cells(self._state, self._order)
        number = max([2, *(len(handle) - 1 for handle in self._order)])
        heat = self._heat() if any(line.kind == "heat" for line in self._lines) else []
        painted: list[tuple[Spans, str, str]] = []
        for y in range(height):
            # The head stays where it is while the rows scroll under it.
            index = 0 if y == 0 else y + self._offset
            line = self._lines[index] if index < len(self._lines) else Line("blank")
            if y == height - 1 and y and index + 1 < len(self._lines):
                line = self._below(index)
            painted.append(self._paint_line(line, (width, name, number), heat))
        return painted

    def _below(self, index: int) -> Line:
        """Return the line that counts the forks from line `index` on, folded ones too."""
        rest = self._lines[index:]
        count = sum(line.kind == "fork" for line in rest)
        count += sum(line.number for line in rest if line.kind == "more")
        return Line("more", number=count) if count else self._lines[index]

    def _paint_line(
        self, line: Line, layout: tuple[int, int, int], heat: list[Spans]
    ) -> tuple[Spans, str, str]:
        width, name, _ = layout
        match line.kind:
            case "head":
                sort = "grouped " + self.sort if len(self._order) >= GROUPED_FROM else self.sort
                above = sum(line.kind == "fork" for line in self._lines[1 : self._offset + 1])
                head = board_rows.head_spans(self, self._state, self._order, sort, above=above)
                return head, "panel", ""
            case "columns":
                return board_rows.column_heads(self, width, name), "", ""
            case "heat":
                return heat[line.number] if line.number < len(heat) else [], "", ""
            case "group":
                return [("text", " "), ("strong", line.text), ("muted", f" {line.number}")], "", ""
            case "more":
                return [("text", "    "), ("muted", f"+ {line.number} more")], "", ""
            case "fork":
                chosen = line.handle == self._chosen
                spans = board_rows.fork_row(
                    self, self._state, line.handle, self._now_ms, layout, selected=chosen
                )
                bar = ("focus" if self.focused_zone else "rest") if chosen else ""
                return spans, "selected" if chosen else "", bar
            case _:
                return [], "", ""

    def _paint_tiles(self, width: int, height: int) -> list[tuple[Spans, str, str]]:
        columns = self.columns
        cells = width // columns
        head = board_rows.head_spans(self, self._state, self._order, self.sort)
        painted: list[tuple[Spans, str, str]] = [(head, "panel", "")]
        self._lines = []
        for y in range(1, height):
            row, part = divmod(y - 1, _TILE_HEIGHT)
            start = (row + self._offset) * columns
            spans: Spans = []
            for handle in self._order[start : start + columns]:
                spans += self._tile_part(handle, part, cells)
            painted.append((spans, "", ""))
        return painted

    def _tile_part(self, handle: str, part: int, cells: int) -> Spans:
        state, now = self._state, self._now_ms
        if part == 0:
            chosen = handle == self._chosen
            inner = header_spans(self, state, handle, now, (cells - 1, 2), focused=chosen)
            fill = "selected" if chosen else "panel"
            bar = "bar-focus" if self.focused_zone else "bar-rest"
            if chosen:
                inner = [(bar, self.marks.bar), ("text", inner[0][1][1:]), *inner[1:]]
            return [*[(f"{style}@{fill}", text) for style, text in inner], ("text", " ")]
        if part == _TILE_HEIGHT - 1:
            return [("text", " " * cells)]
        spans = board_rows.tile_lines(self, state, handle, now, cells)[part - 1]
        used = sum(len(text) for _, text in spans)
        return [*spans, ("text", " " * max(0, cells - used))]

    def render_line(self, y: int) -> Strip:
        """Return one line of the board."""
        palette = self.palette
        if len(self._painted) != self.size.height:
            self._relay()
        if y >= len(self._painted):
            return self.blank()
        spans, fill, bar = self._painted[y]
        segments: list[Segment] = []
        for style, text in spans:
            name, _, own = style.partition("@")
            shade = own or ("selected" if style.endswith("@") else fill or self.shade)
            segments += palette.segments([(name, text)], shade)
        shade = fill or self.shade
        strip = Strip(segments).adjust_cell_length(self.size.width, palette.style("text", shade))
        if bar:
            mark = palette.segments([(f"bar-{bar}", self.marks.bar)], fill)
            strip = Strip([*mark, *strip.crop(1)])
        return strip
