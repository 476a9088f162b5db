"""Diffs as rows: numbers, sign, tint, and the words that changed.

Called for patch previews in a transcript and for the diff view. Data comes from unified diff
text or from a `WorkDiff`'s lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from forkdeck.model.work import DiffLine
from forkdeck.store.cells import cell_width, cut_end
from forkdeck.store.rows_text import clean, clean_line
from forkdeck.store.rows_types import Glyphs, Row, Span, Style

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")
_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")


def parse_patch(patch: str) -> list[DiffLine]:
    """Return the lines of a unified diff; what is no diff becomes notes."""
    lines: list[DiffLine] = []
    old = new = 0
    inside = False
    for raw in patch.split("\n"):
        if found := _HUNK.match(raw):
            old, new, inside = int(found[1]), int(found[2]), True
            lines.append(DiffLine("hunk", found[3], old, new))
        elif not inside or raw.startswith(("diff ", "--- ", "+++ ", "index ")):
            inside = False if raw.startswith("diff ") else inside
        elif raw.startswith("+"):
            lines.append(DiffLine("added", raw[1:], None, new))
            new += 1
        elif raw.startswith("-"):
            lines.append(DiffLine("removed", raw[1:], old, None))
            old += 1
        elif raw.startswith(" ") or not raw:
            lines.append(DiffLine("context", raw[1:], old, new))
            old, new = old + 1, new + 1
        else:
            lines.append(DiffLine("note", raw.lstrip("\\ ")))
    while lines and lines[-1].kind == "context" and not lines[-1].text:
        lines.pop()
    return lines


def changed_part(old: str, new: str) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the ranges of two lines that differ, at word borders; None when all of it does."""
    left, right = _WORD.findall(old), _WORD.findall(new)
    limit = min(len(left), len(right))
    head = 0
    while head < limit and left[head] == right[head]:
        head += 1
    tail = 0
    while tail < limit - head and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    shared = sum(len(word.strip()) for word in left[:head] + left[len(left) - tail :])
    if shared * 10 < max(len(old.strip()), len(new.strip())):
        return None
    start = sum(map(len, left[:head]))
    after = sum(map(len, left[len(left) - tail :]))
    return (start, len(old) - after), (start, len(new) - after)


def _marks(lines: Sequence[DiffLine]) -> dict[int, tuple[int, int]]:
    """Pair removed with added lines of a block, in order, and mark what changed in each."""
    marks: dict[int, tuple[int, int]] = {}
    index = 0
    while index < len(lines):
        if lines[index].kind != "removed":
            index += 1
            continue
        start = index
        while index < len(lines) and lines[index].kind == "removed":
            index += 1
        middle = index
        while index < len(lines) and lines[index].kind == "added":
            index += 1
        for at in range(min(middle - start, index - middle)):
            old, new = start + at, middle + at
            if found := changed_part(clean(lines[old].text), clean(lines[new].text)):
                marks[old], marks[new] = found
    return marks


def number_width(lines: Sequence[DiffLine]) -> int:
    """Return the cells a line number needs, at least 3."""
    top = max((max(line.old or 0, line.new or 0) for line in lines), default=0)
    return max(3, len(str(top)))


def diff_rows(
    lines: Sequence[DiffLine], width: int, left: int, glyphs: Glyphs, *, right: int = 1
) -> list[Row]:
    """Return one row per diff line, cut at `width`; tints run from `left` to the edge."""
    marks = _marks(lines)
    digits = number_width(lines)
    return [
        _diff_row(line, marks.get(index), digits, (width, left, right), glyphs)
        for index, line in enumerate(lines)
    ]


def _diff_row(
    line: DiffLine,
    mark: tuple[int, int] | None,
    digits: int,
    place: tuple[int, int, int],
    glyphs: Glyphs,
) -> Row:
    width, left, right = place
    pad: Span = ("text", " " * left)
    room = max(4, width - left - right)
    if line.kind in ("file", "hunk", "note"):
        text = clean_line(line.text)
        style: Style = "strong" if line.kind == "file" else "muted"
        if line.kind == "hunk":
            text = _place(line.old, text)
        return Row((pad, (style, cut_end(text, room))))
    old = str(line.old) if line.old is not None and line.kind != "added" else ""
    new = str(line.new) if line.new is not None and line.kind != "removed" else ""
    numbers = f"{old:>{digits}} {new:>{digits}} "
    text = clean(line.text).replace("\n", " ")
    shown = cut_end(text, max(1, room - len(numbers) - 2))
    if line.kind == "context":
        return Row((pad, ("muted", numbers), ("text", "  "), ("code", shown)))
    added = line.kind == "added"
    sign: Span = ("add-sign", "+ ") if added else ("del-sign", f"{glyphs.minus} ")
    word: Style = "add-word" if added else "del-word"
    body = _marked(shown, mark, word) if mark else [("code", shown)]
    spans = (pad, ("muted", numbers), sign, *body)
    return Row(spans, "add" if added else "del", "", left)


def _place(old: int | None, text: str) -> str:
    """Return where a hunk begins and what it is in; a raw ``@@`` header gives both."""
    raw = _HUNK.match(text)
    if raw is not None:
        old, text = int(raw[1]), raw[3]
    return (f"{old}  {text}" if old is not None else text).rstrip()


def _marked(text: str, mark: tuple[int, int], style: Style) -> list[Span]:
    start, end = mark
    parts: list[Span] = [("code", text[:start]), (style, text[start:end]), ("code", text[end:])]
    return [part for part in parts if cell_width(part[1])]
