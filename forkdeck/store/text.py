"""Text from outside, made safe to show: no control, direction or invisible characters.

Used by every face before a model's, a tool's, a file's or a transcript's text reaches a
terminal, a title, a notification or the clipboard. Pure functions.
"""

from __future__ import annotations

import re
from functools import cache

from forkdeck.store.cells import char_width

_C0 = "\x00-\x08\x0b-\x1f\x7f"
_OTHER = (
    "\x80-\x9f"  # C1: an 8-bit CSI is one of them
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff"
    "\U000e0000-\U000e0fff"  # tag characters and further selectors: text nobody sees
)
_KEEP_BOTH = re.compile(f"[{_C0}{_OTHER}]")
_KEEP_NEWLINE = re.compile(f"[{_C0}\t{_OTHER}]")
_KEEP_TAB = re.compile(f"[{_C0}\n{_OTHER}]")
_KEEP_NONE = re.compile(f"[{_C0}\t\n{_OTHER}]")
# Scripts stack up to four or five marks on a letter; a flood of them leaves its cell and row.
_MOST_MARKS = 8
_MAYBE_FLOOD = re.compile(f"[\u0300-\U000e01ef]{{{_MOST_MARKS + 1}}}")
_FLOOD_MARK = "\ufffd"
_SPACES = re.compile(r"[\s\u2028\u2029]+")


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def plain_text(text: str, *, newlines: bool = True, tabs: bool = True) -> str:
    r"""Return `text` with everything replaced that a terminal acts on or a reader cannot see.

    C0 controls become their pictures (``␛``); C1 controls, bidirectional marks, overrides and
    isolates, tag characters, zero-width characters and lone surrogates become U+FFFD. CRLF is
    one line end. Idempotent.

    Args:
        text: Any text.
        newlines: Keep ``\\n``; otherwise it is replaced like a control.
        tabs: Keep ``\t``; otherwise it is replaced like a control.
    """
    if newlines and "\r\n" in text:
        text = text.replace("\r\n", "\n")
    text = without_floods(text)
    if newlines:
        pattern = _KEEP_BOTH if tabs else _KEEP_NEWLINE
    else:
        pattern = _KEEP_TAB if tabs else _KEEP_NONE
    return pattern.sub(_shown, text)


def without_floods(text: str) -> str:
    """Return `text` with each run of more than eight characters without a width cut to eight.

    They all land in one cell, so no width limits them: a megabyte of them would be one row.
    """
    if text.isascii() or not _MAYBE_FLOOD.search(text):
        return text
    return _floods().sub(_cut_flood, text)


@cache
def _floods() -> re.Pattern[str]:
    """Return the pattern of a flood; made once, since it looks at every character there is."""
    ranges: list[list[int]] = []
    for code in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)):
        if char_width(chr(code)):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    some = "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)
    return re.compile(f"([{some}]{{{_MOST_MARKS}}})[{some}]+")


def _cut_flood(match: re.Match[str]) -> str:
    return match[1] + _FLOOD_MARK


def one_line(text: str, limit: int = 120) -> str:
    """Return `text` as one safe line of at most `limit` characters, cut with ``…``.

    Runs of white space, line ends included, become one space.
    """
    # A huge text is cut before it is looked at; white space can only make it shorter.
    spare = limit * 8
    cut = len(text) > spare
    line = _SPACES.sub(" ", text[:spare] if cut else text).strip()
    line = without_floods(_KEEP_NONE.sub(_shown, line))
    if len(line) > limit:
        return line[: max(limit - 1, 0)].rstrip() + "…" if limit > 0 else ""
    return line + "…" if cut and len(line) < limit else line
