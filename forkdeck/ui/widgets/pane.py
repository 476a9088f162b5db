"""`Pane`: one run's transcript, live, with its header, its cards and its own scrolling.

Used for the parent, for live fork panes and for the zoom. Data comes from the deck's state
through `update_state`, which asks the terminal for the changed rows only; the pane never
changes its layout, however much is streamed into it.
"""

from __future__ import annotations

from typing import Literal

from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from forkdeck.model.ids import PARENT
from forkdeck.model.state import DeckState
from forkdeck.store.rows import RowBuffer
from forkdeck.store.rows_types import Grid
from forkdeck.ui.widgets.line_widget import Spans, between
from forkdeck.ui.widgets.pane_header import fork_header, parent_header, tile_foot
from forkdeck.ui.widgets.row_view import RowView

PaneKind = Literal["parent", "fork", "tile", "zoom"]

_DENSE = 10
"""Below this height a pane gives up its blank rows."""


class Pane(RowView, can_focus=True):
    """A transcript that follows its tail until the person scrolls away from it."""

    class LaidOut(Message):
        """The pane has another size: other rows are on screen."""

    def __init__(
        self,
        run: str = PARENT,
        *,
        kind: PaneKind | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        self.kind: PaneKind = kind or ("parent" if run == PARENT else "fork")
        shade = "background" if self.kind in ("parent", "zoom") else "surface"
        super().__init__(run, Grid(80, self.kind), id=id, classes=classes, shade=shade)
        self.run = run
        self.header = True
        """Whether row 0 is the header."""
        self._now_ms = 0
        self._mark: Literal["", "focus", "rest"] = ""
        self._head: tuple[Spans, str] = ([], "")
        self._foot: Spans = []

    # --- what is shown ----------------------------------------------------------------------

    def point_at(self, run: str, kind: PaneKind | None = None) -> None:
        """Show another run from its tail on; scroll and folds of the old one are forgotten."""
        if run == self.run and kind in (None, self.kind):
            return
        self.run = run
        if kind is not None:
            self.kind = kind
            self.shade = "background" if kind in ("parent", "zoom") else "surface"
        elif (run == PARENT) != (self.kind == "parent") and self.kind in ("parent", "fork"):
            self.kind = "parent" if run == PARENT else "fork"
        recorded = self._buffer.recorded
        self._buffer = RowBuffer(run, self._grid())
        self._buffer.recorded = recorded
        self._top, self._found = None, None
        self._strips.clear()
        self._buffer.compact = self._compact
        self._buffer.update(self._state, self._now_ms)
        self._renew()
        self.repaint()

    def update_state(self, state: DeckState, now_ms: int, *, recorded: bool = False) -> None:
        """Show a newer state; only rows that changed are painted again."""
        self._state, self._now_ms = state, now_ms
        if not self.size.width:
            return
        self._buffer.recorded = recorded
        self._buffer.compact = self._compact
        before, offset = len(self._buffer), self._offset
        first = self._buffer.update(state, now_ms)
        head, foot = self._head, self._foot
        self._renew()
        if head != self._head:
            self.repaint_row(0)
        if foot != self._foot:
            self.repaint_row(self.size.height - 1)
        if first is None:
            return
        total = len(self._buffer)
        if self._offset != offset:
            self._repaint_rows(0, self.body_height)
        else:
            last = min(max(total, before), self._offset + self.body_height)
            self._repaint_rows(first - self._offset, last - self._offset)

    def _repaint_rows(self, start: int, end: int) -> None:
        start, end = max(0, start), min(end, self.body_height)
        if start < end:
            self.refresh(Region(0, self.body_top + start, self.size.width, end - start))

    def _renew(self) -> None:
        super()._renew()
        self._head = self._make_header()
        self._foot = self._make_foot()

    def _make_header(self) -> tuple[Spans, str]:
        if not self.header:
            return [], ""
        fill = "selected" if self._mark == "focus" else "panel"
        if self.run == PARENT:
            return parent_header(self, self._state, focused=self._mark == "focus"), fill
        return fork_header(self, self._state, self._now_ms, focused=self._mark == "focus"), fill

    def _make_foot(self) -> Spans:
        width = self.size.width
        below = len(self._buffer) - self._offset - self.body_height
        if not self.following:
            text: Spans = [("muted", f"{below} rows below   "), ("key", "G"), ("muted", " follow")]
            return between([], text, width, margin=2)
        if self.kind == "zoom":
            return between([], [("muted", f"{self.marks.follow} following")], width, margin=1)
        if self.kind == "tile":
            return tile_foot(self, self._state, self._now_ms)
        return []

    # --- geometry ---------------------------------------------------------------------------

    @property
    def _compact(self) -> bool:
        return self.size.height < 14

    @property
    def body_top(self) -> int:
        """The first row of the transcript within the pane."""
        head = 1 if self.header else 0
        return head + (1 if head and self.size.height >= _DENSE else 0)

    @property
    def body_height(self) -> int:
        """Rows of the transcript that are visible at once."""
        height = self.size.height
        foot = 1 if height >= _DENSE or not self.following else 0
        return max(1, height - self.body_top - foot)

    def _grid(self) -> Grid:
        width = max(12, self.size.width)
        kind = "tile" if self.kind == "fork" and width < 44 else self.kind
        return Grid(width, kind, self.row_glyphs)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap again for the new width, keeping the row that was on top."""
        del event
        item = None if self._top is None else self._buffer.item_at(self._offset)
        self._buffer.compact = self._compact
        self._buffer.set_grid(self._grid(), self._state, self._now_ms)
        self._buffer.update(self._state, self._now_ms)
        if item is not None:
            self._top = self._buffer.item_start(item)
        self._strips.clear()
        self._renew()
        self.repaint()
        self.post_message(self.LaidOut())

    # --- focus and folds --------------------------------------------------------------------

    @property
    def selected(self) -> bool:
        """Whether the pane has the focus bar; the one selected fork's pane has it."""
        return self._mark == "focus"

    @selected.setter
    def selected(self, value: bool) -> None:
        self.set_mark("focus" if value else "")

    def set_mark(self, mark: Literal["", "focus", "rest"]) -> None:
        """Draw the header's bar as focus, as a cursor at rest, or not at all."""
        if mark != self._mark:
            self._mark = mark
            self._head = self._make_header()
            self.repaint_row(0)

    # --- painting ---------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """Return one row of the pane."""
        if y == 0 and self.header:
            spans, fill = self._head
            return self._barred(self.strip(spans, fill), fill)
        row = y - self.body_top
        if row < 0:
            return self.blank()
        if row >= self.body_height or y >= self.size.height:
            return self.strip(self._foot) if self._foot else self.blank()
        index = self._offset + row
        if index >= len(self._buffer):
            return self.blank()
        return self._selected(self._row_strip(index), index, y)

    def _barred(self, strip: Strip, fill: str) -> Strip:
        if not self._mark:
            return strip
        bar = self.palette.segments([(f"bar-{self._mark}", self.marks.bar)], fill)
        return Strip([*bar, *strip.crop(1)])

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """Return the container's width: content never decides the size."""
        del viewport
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the container's height: content never decides the size."""
        del viewport, width
        return container.height
