"""A scrolling sheet of rows with an optional cursor: start page, tables, help, dialogs.

Owned by the screens that fill it; it keeps only where it is scrolled to.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message
from textual.strip import Strip

from forkdeck.ui.lines import Row, Span
from forkdeck.ui.widgets.line_widget import LineWidget


class Sheet(LineWidget):
    """Paints rows; never wider than itself, scrolled by whole rows.

    Args:
        focusable: Whether it takes the focus, so that letters reach its screen.
        shade: The theme variable of its background.
    """

    class Clicked(Message):
        """The mouse was pressed on row `index`."""

        def __init__(self, sheet: Sheet, index: int) -> None:
            super().__init__()
            self.sheet = sheet
            self.index = index

    def __init__(
        self, *, id: str | None = None, focusable: bool = False, shade: str = "background"
    ) -> None:
        super().__init__(id=id, shade=shade)
        self.can_focus = focusable
        self.rows: Sequence[Row] = ()
        self.top = 0

    def show(self, rows: Sequence[Row]) -> None:
        """Replace the rows; the place is kept as far as there are rows."""
        if rows == self.rows:
            return
        self.rows = rows
        self._clamp()
        self.repaint()

    def scroll_rows(self, by: int) -> None:
        """Scroll by rows, not beyond the ends."""
        before = self.top
        self.top += by
        self._clamp()
        if self.top != before:
            self.repaint()

    def scroll_page(self, pages: int) -> None:
        """Scroll by pages less one row."""
        self.scroll_rows(pages * max(1, self.size.height - 1))

    def reveal(self, index: int) -> None:
        """Scroll so that row `index` is on screen."""
        height = max(1, self.size.height)
        if index < self.top:
            self.scroll_rows(index - self.top)
        elif index >= self.top + height:
            self.scroll_rows(index - self.top - height + 1)

    @property
    def at_end(self) -> bool:
        """Whether the last row is on screen."""
        return self.top + self.size.height >= len(self.rows)

    def _clamp(self) -> None:
        self.top = max(0, min(self.top, len(self.rows) - max(1, self.size.height)))

    def on_resize(self) -> None:
        """Stay within the rows."""
        self._clamp()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down by three rows."""
        event.stop()
        self.scroll_rows(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up by three rows."""
        event.stop()
        self.scroll_rows(-3)

    def on_click(self, event: events.Click) -> None:
        """Report the row."""
        self.post_message(self.Clicked(self, self.top + event.y))

    def render_line(self, y: int) -> Strip:
        """Paint one row."""
        index = self.top + y
        if not 0 <= index < len(self.rows):
            return self.blank()
        row = self.rows[index]
        spans: list[Span] = list(row.spans)
        before: list[Span] = []
        if row.fill_from:
            before, spans = _split(spans, row.fill_from)
        if row.bar:
            _, spans = _split(spans, 1)
            spans.insert(0, (f"bar-{row.bar}", self.marks.bar))
        if not before:
            return self.strip(spans, row.fill)
        width = self.size.width
        return Strip.join(
            [
                self.strip(before, "", row.fill_from),
                self.strip(spans, row.fill, max(1, width - 2 * row.fill_from)),
                self.blank(row.fill_from),
            ]
        ).adjust_cell_length(width, self.palette.style("text", self.shade))


def _split(spans: Sequence[Span], cells: int) -> tuple[list[Span], list[Span]]:
    """Split spans after `cells` narrow cells (margins are blanks, so no wide one breaks)."""
    head: list[Span] = []
    left = cells
    for index, (style, text) in enumerate(spans):
        if len(text) >= left:
            head.append((style, text[:left]))
            rest = text[left:]
            return head, [*([(style, rest)] if rest else []), *spans[index + 1 :]]
        head.append((style, text))
        left -= len(text)
    return [*head, ("text", " " * left)], []
