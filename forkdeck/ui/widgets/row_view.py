"""`RowView`: a scrolled window onto a row buffer, the half of a pane that knows no header.

Owns the scroll offset, the follow flag, the found row, folds and the painting of rows. `Pane`
adds what the rows belong to. It never sets a virtual size: scrolling is an offset of its own.
"""

from __future__ import annotations

from textual import events
from textual.geometry import Region
from textual.selection import Selection
from textual.strip import Strip

from forkdeck.model.state import EMPTY, DeckState
from forkdeck.store.cells import cell_width
from forkdeck.store.rows import RowBuffer
from forkdeck.store.rows_types import Grid, Row
from forkdeck.ui.widgets.line_widget import LineWidget

_CACHED = 1024


class RowView(LineWidget):
    """Rows of one run, from an offset on; follows the tail until it is scrolled away."""

    def __init__(
        self, run: str, grid: Grid, *, id: str | None, classes: str | None, shade: str
    ) -> None:
        super().__init__(id=id, classes=classes, shade=shade)
        self._state: DeckState = EMPTY
        self._top: int | None = None
        self._offset = 0
        self._found: int | None = None
        self._strips: dict[int, tuple[Row, bool, Strip]] = {}
        self._buffer = RowBuffer(run, grid)

    @property
    def body_top(self) -> int:
        """The first screen row of the transcript within the widget."""
        return 0

    @property
    def body_height(self) -> int:
        """Rows of the transcript that are visible at once."""
        return max(1, self.size.height - self.body_top)

    def _renew(self) -> None:
        last = max(0, len(self._buffer) - self.body_height)
        if self._top is not None and self._top >= last:
            self._top = None
        self._offset = last if self._top is None else self._top

    def palette_changed(self) -> None:
        """Forget painted rows."""
        self._strips.clear()

    # --- scrolling --------------------------------------------------------------------------

    @property
    def following(self) -> bool:
        """Whether the pane shows its tail and moves with it."""
        return self._top is None

    @property
    def at_end(self) -> bool:
        """Whether the last row is on screen: then a report was read, a card was seen."""
        return self._offset + self.body_height >= len(self._buffer)

    @property
    def card_visible(self) -> bool:
        """Whether a card is there and on screen to its last row."""
        return self._buffer.card_rows > 0 and self.at_end

    def scroll_lines(self, count: int) -> None:
        """Scroll by rows, down when positive; reaching the end follows again."""
        last = max(0, len(self._buffer) - self.body_height)
        self._go(max(0, min(last, self._offset + count)))

    def scroll_page(self, count: int) -> None:
        """Scroll by pages, less two rows, down when positive."""
        self.scroll_lines(count * max(1, self.body_height - 2))

    def to_start(self) -> None:
        """Show the first row."""
        self._go(0)

    def to_end(self) -> None:
        """Show the last row and follow it."""
        self._go(len(self._buffer))

    def to_turn(self, count: int) -> bool:
        """Go `count` turns on (back when negative); False when there is none."""
        starts = self._buffer.turn_starts()
        wanted = [
            row for row in starts if (row > self._offset if count > 0 else row < self._offset)
        ]
        if not wanted:
            return False
        self._go(
            wanted[min(count, len(wanted)) - 1] if count > 0 else wanted[max(count, -len(wanted))]
        )
        return True

    def _go(self, row: int) -> None:
        last = max(0, len(self._buffer) - self.body_height)
        top = None if row >= last else row
        if top == self._top and self._offset == (last if top is None else top):
            return
        self._top = top
        self._renew()
        self._repaint_body()

    def _repaint_body(self) -> None:
        width, height = self.size
        if width and height > self.body_top:
            self.refresh(Region(0, self.body_top, width, height - self.body_top))

    def find(self, text: str, *, back: bool = False) -> bool:
        """Show the next row that holds `text` (any case) and mark it; wraps around."""
        wanted, total = text.casefold(), len(self._buffer)
        if not wanted or not total:
            self._found = None
            self._repaint_body()
            return False
        start = self._offset - 1 if self._found is None else self._found
        step = -1 if back else 1
        for count in range(1, total + 1):
            row = (start + step * count) % total
            if wanted in self._buffer[row].text.casefold():
                self._found = row
                self._go(max(0, row - self.body_height // 3))
                self._repaint_body()
                return True
        return False

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll with the wheel."""
        event.stop()
        self.scroll_lines(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll with the wheel."""
        event.stop()
        self.scroll_lines(-3)

    # --- folds ------------------------------------------------------------------------------

    def fold(self, *, opened: bool | None = None) -> bool:
        """Open or fold every item, or (None) turn the last visible one that can be folded."""
        done = False
        if opened is not None:
            self._buffer.fold_all(opened=opened, state=self._state)
            done = True
        else:
            last = min(len(self._buffer), self._offset + self.body_height) - 1
            for row in range(last, self._offset - 1, -1):
                item = self._buffer.item_at(row)
                if item is not None and self._buffer.toggle(item, self._state):
                    done = True
                    break
        if done:
            self._strips.clear()
            self._renew()
            self._repaint_body()
        return done

    def fold_at(self, y: int) -> bool:
        """Open or fold the item at a screen row of this pane."""
        item = self._buffer.item_at(self._offset + y - self.body_top)
        if item is None or not self._buffer.toggle(item, self._state):
            return False
        self._strips.clear()
        self._renew()
        self._repaint_body()
        return True

    # --- painting ---------------------------------------------------------------------------

    def _row_strip(self, index: int) -> Strip:
        palette = self.palette
        row = self._buffer[index]
        cursor = index == self._buffer.cursor_row
        cached = self._strips.get(index)
        if cached is not None and cached[0] is row and cached[1] == cursor:
            return cached[2]
        spans = [*row.spans, ("live", self.row_glyphs.cursor)] if cursor else row.spans
        if row.fill and row.fill_from > 1:
            strip = self._tinted(row, row.fill_from)
        else:
            strip = self.strip(spans, row.fill)
        if row.bar:
            bar = palette.segments([(f"bar-{row.bar}", self.marks.bar)], row.fill)
            strip = Strip([*bar, *strip.crop(1)])
        # With its offsets once: the same strip keeps what Textual has cached of it.
        strip = strip.apply_offsets(0, index)
        if len(self._strips) > _CACHED:
            self._strips.clear()
        self._strips[index] = (row, cursor, strip)
        return strip

    def _tinted(self, row: Row, start: int) -> Strip:
        """A row whose fill begins beside its label and ends before the right margin."""
        width = self.size.width
        plain = self.strip(row.spans[:1] if row.spans else [])
        filled = self.strip(row.spans, row.fill)
        end = width - 1
        return Strip.join([plain.crop(0, start), filled.crop(start, end), self.blank(1)])

    def _selected(self, strip: Strip, index: int, y: int) -> Strip:
        plain = strip
        if index == self._found:
            strip = strip.apply_style(self.palette.style("key", "selected"))
        selection = self.text_selection
        span = None if selection is None else selection.get_span(index)
        if span is not None:
            start, end = span
            end = strip.cell_length if end == -1 else end
            style = self.screen.get_component_rich_style("screen--selection")
            marked = strip.crop(start, end).apply_style(style)
            strip = Strip.join([strip.crop(0, start), marked, strip.crop(end)])
        if not self.following and len(self._buffer) > self.body_height:
            strip = self._with_thumb(strip, y)
        return strip if strip is plain else strip.apply_offsets(0, index)

    def _with_thumb(self, strip: Strip, y: int) -> Strip:
        body, total = self.body_height, len(self._buffer)
        size = max(1, body * body // total)
        start = (body - size) * self._offset // max(1, total - body)
        row = y - self.body_top
        if not start <= row < start + size:
            return strip
        thumb = self.palette.segments([("rule", self.marks.thumb)], self.shade)
        return Strip.join([strip.crop(0, strip.cell_length - 1), Strip(thumb)])

    # --- selection --------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text, clamped to the rows there are now."""
        total = len(self._buffer)
        start, end = selection.start, selection.end
        first = 0 if start is None else max(0, start.y)
        last = total - 1 if end is None else min(total - 1, end.y)
        if first > last:
            return None
        lines = self._buffer.text(first, last + 1)
        if end is not None and end.y == last:
            lines[-1] = lines[-1][: max(0, end.x)]
        if start is not None and start.y == first:
            lines[0] = lines[0][max(0, start.x) :]
        return "\n".join(line.rstrip() for line in lines), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Paint the rows again with the selection on them."""
        del selection
        self._repaint_body()

    def text_of_selection(self) -> str | None:
        """Return what is selected in this pane, or None."""
        selection = self.text_selection
        found = None if selection is None else self.get_selection(selection)
        return found[0] if found else None

    def visible_text(self) -> str:
        """Return the transcript rows that are on screen, for the copy key."""
        lines = self._buffer.text(self._offset, self._offset + self.body_height)
        return "\n".join(line.rstrip() for line in lines).strip("\n")

    @property
    def longest(self) -> int:
        """Cells of the widest row, for tests: never more than the width."""
        rows = range(len(self._buffer))
        return max((cell_width(self._buffer[row].text) for row in rows), default=0)
