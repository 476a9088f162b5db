"""Unified diffs of edits, for the screen: capped, and never slow."""

from __future__ import annotations

import difflib
from typing import Final

import msgspec

MAX_LINES: Final = 400
MAX_CHARACTERS: Final = 24_000
_MAX_REGION = 4000


class Patch(msgspec.Struct, frozen=True):
    """A change of one file.

    Args:
        text: Unified diff, capped with a visible mark.
        added: Lines added.
        removed: Lines removed.
    """

    text: str
    added: int
    removed: int

    @property
    def summary(self) -> str:
        """The counts as the screen shows them, such as ``+41 −6``."""
        return f"+{self.added} −{self.removed}"


def patch(name: str, old: str, new: str) -> Patch:
    """Return the difference of two texts; blocking for large ones.

    Args:
        name: Path shown in the header.
        old: Text before.
        new: Text after.
    """
    before, after = _lines(old), _lines(new)
    start, end = _common(before, after)
    # Only what differs goes through the slow comparison, with three lines around it.
    first = max(start - 3, 0)
    last_before = min(len(before) - end + 3, len(before))
    last_after = min(len(after) - end + 3, len(after))
    changed_before, changed_after = before[first:last_before], after[first:last_after]
    header = [f"--- a/{name}", f"+++ b/{name}"]
    if len(changed_before) + len(changed_after) > _MAX_REGION:
        removed, added = len(before) - start - end, len(after) - start - end
        note = f"[{removed} lines replaced by {added}; too many to show]"
        return Patch("\n".join([*header, note]), added, removed)
    lines = list(difflib.unified_diff(changed_before, changed_after, lineterm="", n=3))[2:]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    shifted = [_shift(line, first) if line.startswith("@@") else line for line in lines]
    return Patch(_capped(header + shifted), added, removed)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    elif lines:
        # A missing final line break is a difference that must show.
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _common(before: list[str], after: list[str]) -> tuple[int, int]:
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and before[start] == after[start]:
        start += 1
    end = 0
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return start, end


def _shift(hunk: str, lines: int) -> str:
    """Move a hunk header down by the lines that were left out in front."""
    parts = hunk.split(" ")
    for position in (1, 2):
        sign, numbers = parts[position][0], parts[position][1:].split(",")
        numbers[0] = str(int(numbers[0]) + lines)
        parts[position] = sign + ",".join(numbers)
    return " ".join(parts)


def _capped(lines: list[str]) -> str:
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if len(kept) >= MAX_LINES or size > MAX_CHARACTERS:
            kept.append(f"[{len(lines) - len(kept)} more lines of this patch]")
            break
        kept.append(line)
    return "\n".join(kept)
