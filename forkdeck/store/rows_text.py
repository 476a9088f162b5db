"""Free text as rows: cleaning, line-local markdown, wrapping.

Called by the item and stream builders. Every logical line is styled by itself, so that a line
that is being streamed looks the same before and after it is finished.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from forkdeck.store.cells import cell_width, cut_end, split_cells, wrap
from forkdeck.store.rows_types import BLANK, Fill, Grid, Row, Span, Style
from forkdeck.store.text import plain_text

_INLINE: Final = re.compile(r"(\*\*[^*]+\*\*|`[^`]+`)")
_LIST: Final = re.compile(r"(\s*)([-*+]|\d{1,3}[.)])\s+(.*)")
_HEADING: Final = re.compile(r"#{1,6}\s+(.*)")
_MARKED: Final = frozenset("#-*+>`~0123456789 ")
_JOINERS: Final = re.compile("[\u200d\ufe0e\ufe0f]")
_TAB: Final = "    "


def clean(text: str) -> str:
    """Return outside text fit for rows: no control characters, tabs as blanks, no joiners.

    Emoji joiners and presentation selectors go: terminals do not agree on the width they make.
    """
    if text.isascii() and text.isprintable():
        return text
    joined = text if text.isascii() else _JOINERS.sub("", text)
    return plain_text(joined.replace("\r\n", "\n").replace("\t", _TAB))


def clean_line(text: str) -> str:
    """Return outside text as one clean line; line breaks become blanks."""
    return " ".join(clean(text).split("\n")).strip()


def inline_spans(line: str, style: Style = "text") -> list[Span]:
    """Return a line's spans with its code and bold marks resolved."""
    if "`" not in line and "**" not in line:
        return [(style, line)]
    spans: list[Span] = []
    for part in _INLINE.split(line):
        if part.startswith("**") and len(part) > 4:
            spans.append(("strong", part[2:-2]))
        elif part.startswith("`") and len(part) > 2:
            spans.append(("inline", part[1:-1]))
        elif part:
            spans.append((style, part))
    return spans


def wrap_spans(spans: Sequence[Span], cells: int) -> list[tuple[Span, ...]]:
    """Wrap styled text: rows of spans, each at most `cells` wide."""
    whole = "".join([text for _, text in spans])
    if cell_width(whole) <= cells:
        return [tuple(spans)]
    rows: list[tuple[Span, ...]] = []
    at = number = offset = 0
    for text in wrap(whole, cells):
        while not whole.startswith(text, at):
            at += 1
        # What ends before this row is never looked at again.
        while number < len(spans) and offset + len(spans[number][1]) <= at:
            offset += len(spans[number][1])
            number += 1
        rows.append(_slice(spans, number, offset, at, at + len(text)))
        at += len(text)
    return rows


def _slice(
    spans: Sequence[Span], number: int, offset: int, start: int, end: int
) -> tuple[Span, ...]:
    """Return the part from `start` to `end`; span `number` is the first, and begins at `offset`."""
    found: list[Span] = []
    while number < len(spans) and offset < end:
        style, text = spans[number]
        low, high = max(start - offset, 0), min(end - offset, len(text))
        if low < high:
            found.append((style, text[low:high]))
        offset += len(text)
        number += 1
    return tuple(found)


def hanging(
    label: Span, spans: Sequence[Span], grid: Grid, *, hang: int, left: int | None = None
) -> list[Row]:
    """Return wrapped rows beside a label of `hang` cells that starts at cell `left`."""
    start = grid.indent if left is None else left
    room = max(8, grid.width - start - hang - grid.right)
    style, text = label
    head = text + " " * max(0, hang - cell_width(text))
    rows: list[Row] = []
    for index, line in enumerate(wrap_spans(spans, room)):
        lead: tuple[Span, ...] = (
            (("text", " " * start), (style, head))
            if index == 0
            else (("text", " " * (start + hang)),)
        )
        rows.append(Row(lead + line))
    return rows


def flush_right(left: Sequence[Span], right: Sequence[Span], width: int) -> tuple[Span, ...]:
    """Return spans with `right` ending at cell `width`; `left` is cut to make room."""
    need = sum(cell_width(text) for _, text in right)
    room = width - need - (1 if need else 0)
    kept: list[Span] = []
    used = 0
    for style, text in left:
        cells = cell_width(text)
        if used + cells > room:
            kept.append((style, cut_end(text, room - used)))
            used += cell_width(kept[-1][1])
            break
        kept.append((style, text))
        used += cells
    gap = width - need - used
    if not need:
        return tuple(kept)
    return (*kept, ("text", " " * max(0, gap)), *right)


class TextFlow:
    """Turns the logical lines of one text into rows; keeps whether a code fence is open."""

    __slots__ = ("_after", "_blank", "_grid", "_lead", "_style", "fenced")

    def __init__(self, grid: Grid, label: Span | None = None, style: Style = "text") -> None:
        self._grid = grid
        self._style: Style = style
        pad = " " * grid.indent
        self._after: tuple[Span, ...] = (("text", pad),)
        self._lead = self._after
        if label is not None and grid.label:
            name = label[1] + " " * max(0, grid.label - cell_width(label[1]))
            self._lead = (("text", " " * grid.left), (label[0], name))
        self.fenced = False
        self._blank = True

    def copy(self) -> TextFlow:
        """Return a flow in the same state, to draw a line that may still grow."""
        other = TextFlow(self._grid, None, self._style)
        other._lead, other.fenced, other._blank = self._lead, self.fenced, self._blank
        return other

    def lines(self, lines: Iterable[str]) -> list[Row]:
        """Return the rows of finished lines, in order."""
        rows: list[Row] = []
        room, pad, style = self._grid.room, self._after[0][1], self._style
        for line in lines:
            if (
                not self.fenced
                and line
                and line[0] not in _MARKED
                and self._lead is self._after
                and line.isascii()
                and "`" not in line
                and "**" not in line
            ):
                # The common line of a long transcript, kept free of calls.
                if len(line) <= room:
                    rows.append(Row(((style, pad + line),)))
                else:
                    rows += [Row(((style, pad + part),)) for part in wrap(line, room)]
                self._blank = False
            else:
                self._line(line, rows)
        return rows

    def _line(self, line: str, rows: list[Row]) -> None:
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            self.fenced = not self.fenced
            return
        if self.fenced:
            self._code(line, rows)
            return
        if not bare:
            if not self._blank:
                rows.append(BLANK)
            self._blank = True
            return
        self._blank = False
        grid, lead = self._grid, self._lead
        self._lead = self._after
        if heading := _HEADING.fullmatch(bare):
            self._put(rows, lead, [("heading", heading[1].replace("**", ""))], 0)
        elif bare in ("---", "***", "___"):
            rows.append(Row((*lead, ("rule", grid.glyphs.rule * grid.room))))
        elif found := _LIST.fullmatch(line):
            mark = grid.glyphs.bullet if found[2] in "-*+" else found[2].rstrip(".)")
            deep = min(len(found[1]), 8)
            self._put(rows, lead, inline_spans(found[3], self._style), deep, mark)
        elif bare.startswith("> "):
            self._put(rows, lead, inline_spans(bare[2:], "muted"), 2)
        else:
            deep = min(len(line) - len(line.lstrip(" ")), 8)
            self._put(rows, lead, inline_spans(line.strip(" "), self._style), deep)

    def _put(
        self, rows: list[Row], lead: tuple[Span, ...], spans: list[Span], deep: int, mark: str = ""
    ) -> None:
        room = self._grid.room
        hang = deep + (cell_width(mark) + 2 if mark else 0)
        if hang > room // 2:
            hang, deep, mark = 0, 0, ""
        for index, line in enumerate(wrap_spans(spans, room - hang)):
            first = index == 0
            head = lead if first else self._after
            if mark and first:
                head = (*head, ("muted", " " * deep + mark + "  "))
            elif hang:
                head = (*head, ("text", " " * hang))
            rows.append(Row(head + line))

    def _code(self, line: str, rows: list[Row]) -> None:
        grid = self._grid
        lead, self._lead = self._lead, self._after
        room = max(4, grid.room - 2)
        rest = line.rstrip()
        self._blank = False
        while True:
            part, rest = split_cells(rest, room)
            if not part and rest:
                part, rest = rest[0], rest[1:]
            rows.append(Row((*lead, ("code", " " + part)), "panel", "", grid.indent))
            lead = self._after
            if not rest:
                return


def text_rows(text: str, grid: Grid, label: Span | None = None, style: Style = "text") -> list[Row]:
    """Return the rows of a finished text."""
    rows = TextFlow(grid, label, style).lines(clean(text).strip("\n").split("\n"))
    while rows and rows[-1] is BLANK:
        rows.pop()
    return rows


def filled(rows: Iterable[Row], fill: Fill) -> list[Row]:
    """Return the rows with another background."""
    return [row._replace(fill=fill) for row in rows]
