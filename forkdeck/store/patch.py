"""Reads a unified diff, as git writes it, into a `WorkDiff` that can be drawn.

Called wherever a fork's changes come as a patch: from git, or from a patch file beside a log.
Pure and total: text that is no diff becomes notes. The text stays as it is; whoever draws it
neutralises it.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from forkdeck.model.work import DiffLine, FileChange, WorkDiff

LINES_LIMIT = 20_000
"""How many lines a diff holds at most; behind them it is marked as truncated."""

_Change: TypeAlias = Literal["added", "modified", "deleted", "renamed", "mode"]
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_QUOTED = re.compile(r'\\([abtnvfr"\\]|[0-7]{3})')
_ESCAPES = {
    "a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92,
}  # fmt: skip
_CHANGES: tuple[tuple[str, _Change], ...] = (
    ("new file mode ", "added"),
    ("deleted file mode ", "deleted"),
    ("rename to ", "renamed"),
    ("new mode ", "mode"),
)


class _File:
    """One file of the diff while it is read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.kind: _Change = "modified"
        self.mode = ""
        self.binary = False
        self.added = 0
        self.removed = 0

    def change(self) -> FileChange:
        warning = ""
        if self.mode == "120000":
            warning = "symlink"
        elif self.mode == "100755":
            warning = "executable"
        if self.kind == "mode" and (self.added or self.removed):
            self.kind = "modified"
        return FileChange(
            path=self.path,
            kind=self.kind,
            added=None if self.binary else self.added,
            removed=None if self.binary else self.removed,
            warning=warning,
        )


class _Reader:
    def __init__(self, limit: int) -> None:
        self.files: list[_File] = []
        self.lines: list[DiffLine] = []
        self.truncated = False
        self._limit = limit
        self._old = self._new = 0
        self._old_left = self._new_left = 0

    def read(self, line: str) -> None:
        if self._old_left > 0 or self._new_left > 0:
            self._body(line)
        elif line.startswith("diff --git "):
            self.files.append(_File(_path_of(line[len("diff --git ") :])))
            self._add(DiffLine("file", self.files[-1].path))
        elif match := _HUNK.match(line):
            self._old, self._new = int(match[1]), int(match[3])
            self._old_left = int(match[2]) if match[2] is not None else 1
            self._new_left = int(match[4]) if match[4] is not None else 1
            self._add(DiffLine("hunk", line))
        elif line.startswith("\\"):
            self._add(DiffLine("note", line[1:].strip()))
        else:
            self._header(line)

    def _body(self, line: str) -> None:
        mark, text = line[:1], line[1:]
        file = self.files[-1] if self.files else None
        if mark == "+":
            self._add(DiffLine("added", text, None, self._new))
            self._new, self._new_left = self._new + 1, self._new_left - 1
            if file is not None:
                file.added += 1
        elif mark == "-":
            self._add(DiffLine("removed", text, self._old, None))
            self._old, self._old_left = self._old + 1, self._old_left - 1
            if file is not None:
                file.removed += 1
        elif mark == "\\":
            self._add(DiffLine("note", text.strip()))
        else:
            self._add(DiffLine("context", text, self._old, self._new))
            self._old, self._old_left = self._old + 1, self._old_left - 1
            self._new, self._new_left = self._new + 1, self._new_left - 1

    def _header(self, line: str) -> None:
        file = self.files[-1] if self.files else None
        if file is None:
            if line.strip():
                self._add(DiffLine("note", line))
            return
        for start, kind in _CHANGES:
            if line.startswith(start):
                file.kind = kind
                if kind == "renamed":
                    file.path = _unquoted(line[len(start) :])
                else:
                    file.mode = line[len(start) :].strip()
                return
        if line.startswith(("GIT binary patch", "Binary files ")):
            file.binary = True
            self._add(DiffLine("note", "binary file"))
        elif line.startswith("+++ ") and line != "+++ /dev/null":
            file.path = _without_side(_unquoted(line[4:].rstrip("\t")))
        elif line.startswith("rename from "):
            self._add(DiffLine("note", f"renamed from {_unquoted(line[12:])}"))

    def _add(self, line: DiffLine) -> None:
        if len(self.lines) < self._limit:
            self.lines.append(line)
        else:
            self.truncated = True


def parse_patch(
    text: str, *, base: str = "", commit: str = "", limit: int = LINES_LIMIT
) -> WorkDiff:
    """Return a unified diff as lines and file changes.

    Args:
        text: What ``git diff`` printed, or a patch file.
        base: Commit that the diff starts from, as shown.
        commit: Commit that it leads to.
        limit: How many lines to keep; the counts of the files are whole in any case.
    """
    reader = _Reader(limit)
    for line in text.removesuffix("\n").split("\n"):
        reader.read(line)
    return WorkDiff(
        base=base,
        commit=commit,
        files=tuple(file.change() for file in reader.files),
        lines=tuple(reader.lines),
        truncated=reader.truncated,
    )


def _path_of(pair: str) -> str:
    """Return the path in ``a/path b/path``, either side possibly quoted."""
    if pair.endswith('"'):
        start = pair.rfind(' "', 0, len(pair) - 1)
        return _without_side(_unquoted(pair[start + 1 :]))
    # Without a rename both sides are equal, so the middle is known even with spaces in names.
    middle = len(pair) // 2
    if pair[middle : middle + 1] == " " and pair[2:middle] == pair[middle + 3 :]:
        return pair[middle + 3 :]
    return _without_side(pair.rpartition(" b/")[2] if " b/" in pair else pair)


def _without_side(path: str) -> str:
    return path[2:] if path[:2] in ("a/", "b/") else path


def _unquoted(path: str) -> str:
    if not (len(path) >= 2 and path[0] == path[-1] == '"'):
        return path

    def plain(match: re.Match[str]) -> str:
        code = match[1]
        # Octal escapes are bytes of the name: kept as Latin-1 here, decoded as a whole below.
        return chr(_ESCAPES[code] if code in _ESCAPES else int(code, 8) & 0xFF)

    body = path[1:-1]
    if not body.isascii():
        return body
    return _QUOTED.sub(plain, body).encode("latin-1").decode("utf-8", "replace")
