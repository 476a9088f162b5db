"""Widths of text in terminal cells, and cutting text by them.

Pure functions over `unicodedata`; used by the transcript rows and by every widget that lays out
text itself. Text is expected to be neutralised already: a control character counts one cell,
because it stands on the screen as one replacement glyph.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

ELLIPSIS = "…"

_JOINERS = {0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF}


@lru_cache(maxsize=8192)
def char_width(char: str) -> int:
    """Return the cells of one character: 0 (combining, joiner), 1, or 2 (wide)."""
    code = ord(char)
    if code < 0x300:
        return 1
    if code in _JOINERS or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
        return 0
    if unicodedata.category(char) in ("Mn", "Me") or 0x1160 <= code <= 0x11FF:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cell_width(text: str) -> int:
    """Return the cells `text` takes."""
    if text.isascii():
        return len(text)
    return sum(map(char_width, text))


def split_cells(text: str, cells: int) -> tuple[str, str]:
    """Split `text` so that the first part takes at most `cells`; a wide character never breaks."""
    if cells <= 0:
        return "", text
    if text.isascii():
        return text[:cells], text[cells:]
    used = 0
    for index, char in enumerate(text):
        used += char_width(char)
        if used > cells:
            return text[:index], text[index:]
    return text, ""


def cut_end(text: str, cells: int, mark: str = ELLIPSIS) -> str:
    """Return `text`, or its beginning and `mark` when it takes more than `cells`."""
    if cells <= 0:
        return ""
    if cell_width(text) <= cells:
        return text
    return split_cells(text, cells - cell_width(mark))[0].rstrip() + mark if cells > 1 else mark


def cut_path(path: str, cells: int, mark: str = ELLIPSIS) -> str:
    """Return `path`, or its end cut at a separator: ``…/http/retry.py``."""
    if cell_width(path) <= cells:
        return path
    parts = path.split("/")
    for start in range(1, len(parts)):
        shorter = f"{mark}/" + "/".join(parts[start:])
        if cell_width(shorter) <= cells:
            return shorter
    return cut_end(parts[-1], cells, mark)


def fit(text: str, cells: int, mark: str = ELLIPSIS) -> str:
    """Return `text` cut or padded with blanks to exactly `cells`."""
    shown = cut_end(text, cells, mark)
    return shown + " " * (cells - cell_width(shown))


def wrap(text: str, cells: int) -> list[str]:
    """Break one logical line into rows of at most `cells`, at blanks where there are any.

    Blanks at a break are dropped; a word longer than a row is broken. Never returns an empty
    list, and never a row wider than `cells` unless one character alone is wider.
    """
    if cell_width(text) <= cells:
        return [text]
    if text.isascii() and text[0] != " ":
        return _ascii_rows(text, max(1, cells))
    return list(_rows(text, max(1, cells)))


def _ascii_rows(text: str, cells: int) -> list[str]:
    """Do what `_rows` does, by index alone: most text is ASCII, and a resize wraps all of it."""
    rows: list[str] = []
    start, end = 0, len(text)
    while end - start > cells:
        at = text.rfind(" ", start, start + cells + 1)
        if at <= start:
            at = start + cells
        rows.append(text[start:at].rstrip(" "))
        start = at
        while start < end and text[start] == " ":
            start += 1
    if start < end:
        rows.append(text[start:])
    return rows


def _rows(text: str, cells: int) -> Iterator[str]:
    # By index: a line of a megabyte must not be copied once for each of its rows.
    start, end = 0, len(text)
    while (stop := _fitting(text, start, cells)) < end:
        after = stop
        if stop == start:
            stop = after = start + 1
        elif text[stop] != " ":
            at = text.rfind(" ", start + 1, stop)
            if at > 0 and text[start:at].strip():
                stop, after = at, at + 1
        row = text[start:stop]
        yield row.rstrip(" ") or row
        start = after
        while start < end and text[start] == " ":
            start += 1
    if start < end:
        yield text[start:]


def _fitting(text: str, start: int, cells: int) -> int:
    """Return the end of what fits into `cells` from `start` on."""
    used = 0
    for index in range(start, len(text)):
        used += char_width(text[index])
        if used > cells:
            return index
    return len(text)
