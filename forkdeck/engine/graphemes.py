"""Cutting text where a reader would: never inside a character that several code points make."""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"
_SELECTORS = range(0xFE00, 0xFE10)
_SKIN = range(0x1F3FB, 0x1F400)
_FLAG = range(0x1F1E6, 0x1F200)
_TAGS = range(0xE0020, 0xE0080)
_FURTHEST = 64
"""Longest cluster that is kept whole; a longer one is hostile text and may be cut."""


def _extends(text: str, index: int) -> bool:
    """Tell whether the code point at `index` belongs to the one before it."""
    char = text[index]
    code = ord(char)
    if char == _JOINER or code in _SELECTORS or code in _SKIN or code in _TAGS:
        return True
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Mc"):
        return True
    previous = text[index - 1]
    if previous == _JOINER or (previous == "\r" and char == "\n"):
        return True
    if code in _FLAG and ord(previous) in _FLAG:
        run = 0
        while run < index and ord(text[index - 1 - run]) in _FLAG:
            run += 1
        return run % 2 == 1
    return False


def cut_before(text: str, index: int) -> int:
    """Return the last boundary between characters at or before `index`."""
    start = index
    while 0 < index < len(text) and start - index < _FURTHEST and _extends(text, index):
        index -= 1
    return index


def cut_after(text: str, index: int) -> int:
    """Return the first boundary between characters at or after `index`."""
    start = index
    while 0 < index < len(text) and index - start < _FURTHEST and _extends(text, index):
        index += 1
    return index
