"""The shape of a drawn row: what the row builders make and the panes and line faces read.

A row is plain data without colours. Spans name *styles* and a row names its *fill* and *bar*;
the user interface turns the names into colours of the theme.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Style: TypeAlias = Literal[
    "text", "strong", "muted", "note", "rule", "live", "good", "bad", "warn", "ask", "key",
    "code", "inline", "heading", "title", "add-sign", "del-sign", "add-word", "del-word",
    "bad-strong", "warn-strong", "good-strong",
]  # fmt: skip
"""`note` is muted italic; `code` is highlighted when it is painted; `live` is what moves."""

Fill: TypeAlias = Literal["", "panel", "add", "del", "warn", "error", "selected"]
"""Background of a whole row, from its `fill_from` cell on."""

Bar: TypeAlias = Literal["", "focus", "rest", "warn", "error"]
"""What the left edge of a row says."""

Span: TypeAlias = tuple[str, str]
"""A `Style` and the text in it."""


class Row(NamedTuple):
    """One row of a pane, never wider than the width it was made for."""

    spans: tuple[Span, ...] = ()
    fill: Fill = ""
    bar: Bar = ""
    fill_from: int = 1
    """First cell of the fill: 1 beside the bar column, or where a code block begins."""

    @property
    def text(self) -> str:
        """The row's characters without any style."""
        return "".join([text for _, text in self.spans])


BLANK = Row()
"""An empty row."""


class Glyphs(NamedTuple):
    """The few characters the rows draw themselves."""

    branch: str = "├"
    corner: str = "└"
    rule: str = "─"
    folded: str = "+"
    opened: str = "−"
    minus: str = "−"
    good: str = "✓"
    cursor: str = "▌"
    spinner: str = "▖▘▝▗"
    """Frames, four a second; empty with reduced motion."""
    bullet: str = "•"


UNICODE_GLYPHS = Glyphs()
ASCII_GLYPHS = Glyphs(
    branch="|", corner="`", rule="-", opened="-", minus="-", good="+",
    cursor="_", spinner="", bullet="*",
)  # fmt: skip
"""The set for terminals without UTF-8 and for ``--ascii``."""


class Grid(NamedTuple):
    """Where text stands in a pane, in cells; `width` is the pane's own."""

    width: int
    kind: Literal["parent", "fork", "tile", "zoom"] = "parent"
    glyphs: Glyphs = UNICODE_GLYPHS
    preview: bool = True
    """Whether hits and the ends of failed output are shown under a folded call."""

    @property
    def left(self) -> int:
        """Cells before anything is drawn, the bar column among them."""
        return {"parent": 1, "fork": 4, "tile": 3, "zoom": 1}[self.kind]

    @property
    def label(self) -> int:
        """Cells of the role label; 0 where there is none."""
        return {"parent": 6, "fork": 0, "tile": 0, "zoom": 9}[self.kind]

    @property
    def right(self) -> int:
        """Cells kept free at the right edge."""
        return 1 if self.kind in ("parent", "zoom") else 2

    @property
    def indent(self) -> int:
        """The cell at which text begins."""
        return self.left + self.label

    @property
    def room(self) -> int:
        """Cells for text; at least 8, so that a narrow pane still wraps."""
        return max(8, self.width - self.indent - self.right)
