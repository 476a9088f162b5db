"""Rows put together from a left and a right part, and small pieces that screens share.

Pure. Texts given here are already one-line data; `outside` neutralises what came from outside.
A sheet paints the rows; spans, fills and bars are named as its palette names them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from forkdeck.store.cells import cell_width, cut_end, wrap

Span: TypeAlias = tuple[str, str]
"""A style's name and a text without line breaks."""


class Row(NamedTuple):
    """One row of a sheet."""

    spans: tuple[Span, ...] = ()
    fill: str = ""
    """Background of the whole row, from `fill_from` on."""
    bar: str = ""
    """What the edge says: ``focus``, ``rest``, ``warn`` or ``error``; drawn in cell `fill_from`."""
    fill_from: int = 0

    @property
    def text(self) -> str:
        """The characters without style."""
        return "".join(text for _, text in self.spans)


BLANK = Row()


def outside(text: str) -> str:
    """Return `text` from outside as one line without control, format or bidi characters."""
    if text.isascii() and text.isprintable():
        return text
    flat = text.replace("\t", " ").replace("\n", " ")
    return "".join(char if unicodedata.category(char)[0] != "C" else "\ufffd" for char in flat)


def width_of(spans: Iterable[Span]) -> int:
    """Return the cells of `spans`."""
    return sum(cell_width(text) for _, text in spans)


def clip(spans: Sequence[Span], width: int) -> list[Span]:
    """Return `spans` cut with ``…`` to at most `width` cells."""
    kept: list[Span] = []
    left = width
    for style, text in spans:
        if left <= 0:
            break
        shown = cut_end(text, left)
        kept.append((style, shown))
        left -= cell_width(shown)
        if shown != text:
            break
    return kept


def line(
    left: Sequence[Span],
    right: Sequence[Span] = (),
    *,
    width: int,
    fill: str = "",
    bar: str = "",
    margin: int = 0,
) -> Row:
    """Return one row: `left` from cell `margin`, `right` flush with the edge less `margin`.

    The right part is kept whole as long as it fits at all; the left part is cut.
    """
    room = max(1, width - 2 * margin)
    tail = clip(right, room)
    gap = 2 if tail else 0
    head = clip(left, max(0, room - width_of(tail) - gap))
    blank = room - width_of(head) - width_of(tail)
    spans: list[Span] = []
    if margin:
        spans.append(("text", " " * margin))
    spans += [*head, ("text", " " * blank), *tail]
    return Row(spans=tuple(spans), fill=fill, bar=bar)


def rule(width: int, *, margin: int = 0, glyph: str = "─") -> Row:
    """Return a rule over the whole width less the margins."""
    return Row(spans=(("text", " " * margin), ("rule", glyph * max(1, width - 2 * margin))))


def wrapped(
    text: str,
    *,
    width: int,
    margin: int = 0,
    style: str = "text",
    fill: str = "",
    bar: str = "",
) -> list[Row]:
    """Return `text` from outside as wrapped rows; its own line breaks are kept."""
    room = max(8, width - 2 * margin)
    pad: Span = ("text", " " * margin)
    rows: list[Row] = []
    for logical in text.split("\n"):
        rows += [
            Row(spans=(pad, (style, part)), fill=fill, bar=bar)
            for part in wrap(outside(logical), room)
        ]
    return rows


def shifted(row: Row, by: int) -> Row:
    """Return `row` moved `by` cells to the right."""
    return row._replace(spans=(("text", " " * by), *row.spans), fill_from=row.fill_from + by)


def beside(left: Sequence[Row], right: Sequence[Row], *, at: int) -> list[Row]:
    """Return two blocks side by side, the right one from cell `at` on."""
    rows: list[Row] = []
    for index in range(max(len(left), len(right))):
        first = list(left[index].spans) if index < len(left) else []
        second = right[index].spans if index < len(right) else ()
        first = clip(first, at)
        pad = at - width_of(first)
        rows.append(Row(spans=(*first, ("text", " " * pad), *second)))
    return rows
