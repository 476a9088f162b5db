"""`DiffView`: a fork's changes, line by line, with its own scrolling.

Used by the diff screen. Data is a `WorkDiff`, read by the deck; nothing is run to draw it.
"""

from __future__ import annotations

from textual import events
from textual.strip import Strip

from forkdeck.model.work import DiffLine, WorkDiff
from forkdeck.store.rows_diff import diff_rows
from forkdeck.store.rows_types import Row
from forkdeck.ui.widgets.line_widget import LineWidget

_LEFT = 1


class DiffView(LineWidget, can_focus=True):
    """The lines of a diff: numbers, sign, tint over the full width, changed words darker."""

    def __init__(
        self, diff: WorkDiff | None = None, *, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: tuple[DiffLine, ...] = diff.lines if diff else ()
        self._truncated = bool(diff and diff.truncated)
        self._rows: list[Row] = []
        self._files: list[int] = []
        self._offset = 0

    def show(self, diff: WorkDiff) -> None:
        """Show another diff from its first line."""
        self._lines, self._truncated = diff.lines, diff.truncated
        self._offset = 0
        self._wrap()
        self.repaint()

    def on_resize(self) -> None:
        """Lay out for the new width."""
        self._wrap()
        self.repaint()

    def _wrap(self) -> None:
        width = self.size.width
        if not width:
            return
        rows: list[Row] = []
        self._files = []
        drawn = diff_rows(self._lines, width, _LEFT, self.row_glyphs)
        for line, row in zip(self._lines, drawn, strict=True):
            if line.kind in ("file", "hunk") and rows:
                before = self._lines[len(self._files) - 1] if self._files else None
                if line.kind == "file" or before is None or rows[-1].fill or rows[-1].spans:
                    rows.append(Row())
            if line.kind == "file":
                self._files.append(len(rows))
            rows.append(row)
        if self._truncated:
            note = "The diff is longer than is shown here; the saved work is whole."
            rows += [Row(), Row((("text", " " * _LEFT), ("warn", note)))]
        if not rows:
            rows = [Row((("text", " " * _LEFT), ("muted", "no changes")))]
        self._rows = rows
        self._offset = max(0, min(self._offset, len(rows) - self.size.height))

    @property
    def file_count(self) -> int:
        """How many files begin in the diff."""
        return len(self._files)

    @property
    def at_end(self) -> bool:
        """Whether the last row is on screen."""
        return self._offset + self.size.height >= len(self._rows)

    def to_file(self, index: int) -> None:
        """Show a file's first row at the top."""
        if 0 <= index < len(self._files):
            self._go(self._files[index])

    def scroll_lines(self, count: int) -> None:
        """Scroll by rows, down when positive."""
        self._go(self._offset + count)

    def scroll_page(self, count: int) -> None:
        """Scroll by pages, less two rows."""
        self._go(self._offset + count * max(1, self.size.height - 2))

    def to_start(self) -> None:
        """Show the first row."""
        self._go(0)

    def to_end(self) -> None:
        """Show the last row."""
        self._go(len(self._rows))

    def _go(self, row: int) -> None:
        row = max(0, min(row, len(self._rows) - self.size.height))
        if row != self._offset:
            self._offset = row
            self.repaint()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll with the wheel."""
        event.stop()
        self.scroll_lines(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll with the wheel."""
        event.stop()
        self.scroll_lines(-3)

    def text(self) -> list[str]:
        """Return every row's characters, for copying and for tests."""
        return [row.text for row in self._rows]

    def render_line(self, y: int) -> Strip:
        """Return one row of the diff."""
        index = self._offset + y
        if index >= len(self._rows):
            return self.blank()
        row = self._rows[index]
        strip = self.strip(row.spans, row.fill)
        if row.fill and row.fill_from:
            strip = Strip.join([self.blank(row.fill_from), strip.crop(row.fill_from)])
        return strip.apply_offsets(0, index)
