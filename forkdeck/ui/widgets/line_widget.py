"""The base of every widget here: one strip per row from named spans, no layout on change.

Owns palette lookup, padding to the width and the reading of the app's drawing options. The
widgets above it give rows; nothing here knows what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from rich.segment import Segment
from textual.app import App
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from forkdeck.store.cells import cell_width, cut_end
from forkdeck.store.rows_types import Glyphs
from forkdeck.ui import glyphs
from forkdeck.ui.widgets.paint import Palette

Spans = list[tuple[str, str]]


class DrawOptions:
    """How all widgets of one app draw; set once by the app, before anything is painted."""

    ascii_only: bool = False
    motion: bool = True
    colour: bool = True
    costs: bool = True
    """Whether every fork shows its cost and cache share, and the title the total."""
    divider: bool = False
    """Draw ``│`` between columns: without colour and in high contrast."""


class LineWidget(Widget):
    """A widget that paints rows of spans; its size never follows from its content."""

    DEFAULT_SHADE = "background"
    DEFAULT_CSS = """
    LineWidget { width: 1fr; height: 1fr; background: $background; }
    """

    def __init__(
        self, *, id: str | None = None, classes: str | None = None, shade: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.shade = shade or self.DEFAULT_SHADE
        self._palette: Palette | None = None
        self._palette_of: object = None

    @property
    def _host(self) -> App[object]:
        # Textual leaves the type of an app's result open here.
        return cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType]

    @property
    def options(self) -> DrawOptions:
        """The app's drawing options; defaults when the app has none."""
        found = getattr(self._host, "draw_options", None)
        return found if isinstance(found, DrawOptions) else _DEFAULTS

    @property
    def palette(self) -> Palette:
        """Styles of the current theme."""
        variables = self._host.theme_variables
        if self._palette is None or variables is not self._palette_of:
            self._palette_of = variables
            colour = self.options.colour and not self._host.no_color
            ascii_only = self.options.ascii_only
            self._palette = Palette(variables, colour=colour, ascii_only=ascii_only)
            self.palette_changed()
        return self._palette

    def palette_changed(self) -> None:
        """Forget painted strips; called when the theme's variables are new."""

    @property
    def row_glyphs(self) -> Glyphs:
        """Characters the transcript rows draw."""
        return glyphs.row_glyphs(ascii_only=self.options.ascii_only, motion=self.options.motion)

    @property
    def marks(self) -> glyphs.Marks:
        """Characters this widget draws itself."""
        return glyphs.marks(ascii_only=self.options.ascii_only)

    def badge(self, word: str) -> glyphs.Badge:
        """Return a state's badge in the app's character set."""
        return glyphs.badge(word, ascii_only=self.options.ascii_only)

    def strip(self, spans: Iterable[tuple[str, str]], fill: str = "", width: int = 0) -> Strip:
        """Return one row, padded or cut to `width` (this widget's own when 0)."""
        shade = fill or self.shade
        cells = width or self.size.width
        segments = self.palette.segments(spans, shade)
        return Strip(segments).adjust_cell_length(cells, self.palette.style("text", shade))

    def blank(self, width: int = 0) -> Strip:
        """Return an empty row of the widget's shade."""
        cells = width or self.size.width
        return Strip([Segment(" " * cells, self.palette.style("text", self.shade))], cells)

    def render_line(self, y: int) -> Strip:
        """Return an empty row; every widget with something to show replaces it."""
        del y
        return self.blank()

    def repaint(self) -> None:
        """Paint everything again; keeps the style caches a bare refresh would clear."""
        width, height = self.size
        if width and height:
            self.refresh(Region(0, 0, width, height))

    def repaint_row(self, y: int) -> None:
        """Paint one row again."""
        self.refresh(Region(0, y, self.size.width, 1))


class Gap(LineWidget):
    """The blank column between two panes; a line where shades cannot part them."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Gap { width: 1; }
    """

    def render_line(self, y: int) -> Strip:
        """Return one cell."""
        del y
        contrast = self.palette.colour_of("surface") == self.palette.colour_of("background")
        if self.options.divider or contrast or not self.palette.has_colour:
            return self.strip([("rule", self.marks.divider)])
        return self.blank()


_DEFAULTS = DrawOptions()


def width_of(spans: Iterable[tuple[str, str]]) -> int:
    """Return the cells of spans."""
    return sum(cell_width(text) for _, text in spans)


def between(left: Spans, right: Spans, width: int, *, margin: int = 1) -> Spans:
    """Return one line: `left`, then `right` ending `margin` cells before the edge.

    What does not fit is cut from the end of `left`; the right side is never cut.
    """
    room = max(0, width - margin - width_of(right) - (1 if right else 0))
    kept: Spans = []
    used = 0
    for style, text in left:
        shown = cut_end(text, room - used)
        if shown:
            kept.append((style, shown))
            used += cell_width(shown)
        if shown != text:
            break
    gap = width - margin - used - width_of(right)
    return [*kept, ("text", " " * max(0, gap)), *right]


def badge_spans(badge: glyphs.Badge, *, words: bool = True) -> Spans:
    """Return a badge of nine cells, or of four without its word (`words` false)."""
    if not words:
        chip = badge.style == "chip-ask"
        return [(badge.style, f" {badge.glyph} "), ("text", " ")] if chip else [
            ("text", " "), (badge.style, badge.glyph), ("text", "  "),
        ]  # fmt: skip
    if badge.style == "chip-ask":
        return [(badge.style, f" {badge.glyph} {badge.word:<4}"), ("text", "  ")]
    return [("text", " "), (badge.style, f"{badge.glyph} {badge.word:<5}"), ("text", " ")]
