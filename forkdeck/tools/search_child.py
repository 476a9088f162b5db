"""Searches files in a process of its own, so that a bad pattern can be killed.

Run by `tools.search` where ripgrep or the sandbox is missing. A regular expression that never ends
would hold the interpreter's lock, and with it the whole application; here it holds only this
process. The request comes as JSON on stdin; results go to stdout as one JSON value a line, and
stay under `OUTPUT_BYTES`. Links are never followed; ``.gitignore`` files are honoured.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec

from forkdeck.errors import ToolError
from forkdeck.sandbox.files import read_limited

OUTPUT_BYTES = 44 * 1024
"""How much is written at most; the reader keeps 48 KiB."""

_FILE_BYTES = 8 * 1024 * 1024
_LINE_CHARACTERS = 300


def main() -> None:
    """Read the request, search, print; exit code 2 with a message for a bad pattern."""
    request: dict[str, Any] = json.loads(sys.stdin.read())
    try:
        matches = _matcher(request)
    except re.error as error:
        sys.stdout.write(f"the pattern is no regular expression: {error}")
        raise SystemExit(2) from error
    base = Path(request["host"])
    size = 0
    for index, item in enumerate(matches(base)):
        line = json.dumps(item) + "\n"
        size += len(line)
        if index >= request["limit"] or size > OUTPUT_BYTES:
            sys.stdout.write('["more"]\n')
            break
        sys.stdout.write(line)


def _matcher(request: dict[str, Any]) -> Callable[[Path], Iterator[list[Any]]]:
    glob: str = request.get("glob") or ""
    accepts = _globber(glob)
    if request["mode"] == "find":

        def find(base: Path) -> Iterator[list[Any]]:
            for name in _files(base):
                if accepts(name):
                    yield [name]

        return find
    text: str = request["pattern"]
    flags = re.IGNORECASE if request.get("ignore_case") else 0
    pattern = re.compile(re.escape(text) if request.get("literal") else text, flags)

    def grep(base: Path) -> Iterator[list[Any]]:
        names = [""] if base.is_file() else _files(base)
        for name in names:
            if name and not accepts(name):
                continue
            yield from _hits(base / name if name else base, name, pattern)

    return grep


def _hits(host: Path, name: str, pattern: re.Pattern[str]) -> Iterator[list[Any]]:
    try:
        data = read_limited(host, _FILE_BYTES, as_seen=True)
    except ToolError:
        return
    if b"\0" in data[:8192] or len(data) > _FILE_BYTES:
        return
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), start=1):
        if pattern.search(line.rstrip("\r")):
            yield [name, number, line.rstrip("\r")[:_LINE_CHARACTERS]]


def _globber(glob: str) -> Callable[[str], bool]:
    pattern = GitIgnoreSpec.from_lines([glob if glob.startswith("/") else f"/{glob}"])

    def accepts(name: str) -> bool:
        if not glob:
            return True
        if "/" not in glob:
            return fnmatch.fnmatchcase(name.rpartition("/")[2], glob)
        return pattern.match_file(name)

    return accepts


def _files(base: Path) -> Iterator[str]:
    """Yield files below `base`, relative, in path order, without what git ignores."""
    stack: list[tuple[str, tuple[tuple[str, GitIgnoreSpec], ...]]] = [("", _above(base))]
    while stack:
        directory, rules = stack.pop()
        own = _rules(base / directory / ".gitignore")
        if own is not None:
            rules = (*rules, (directory, own))
        try:
            with os.scandir(base / directory) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        deeper: list[tuple[str, tuple[tuple[str, GitIgnoreSpec], ...]]] = []
        for entry in entries:
            name = f"{directory}/{entry.name}" if directory else entry.name
            is_directory = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or _ignored(name, is_directory, rules):
                continue
            if is_directory:
                deeper.append((name, rules))
            elif entry.is_file(follow_symlinks=False):
                yield name
        stack.extend(reversed(deeper))


def _rules(path: Path) -> GitIgnoreSpec | None:
    try:
        data = read_limited(path, 1024 * 1024)
        return GitIgnoreSpec.from_lines(data.decode("utf-8", "replace").splitlines())
    except (ToolError, ValueError):
        return None


def _above(base: Path) -> tuple[tuple[str, GitIgnoreSpec], ...]:
    """Return the rules of directories above `base`, up to the repository's root."""
    found: list[tuple[str, GitIgnoreSpec]] = []
    prefix = ""
    at = base
    while not (at / ".git").exists() and at.parent != at:
        at = at.parent
        prefix = "../" + prefix
        rules = _rules(at / ".gitignore")
        if rules is not None:
            found.append((prefix, rules))
    inside = (at / ".git").exists()
    return (
        tuple((os.path.relpath(base / prefix, base), rules) for prefix, rules in reversed(found))
        if inside
        else ()
    )


def _ignored(name: str, is_directory: bool, rules: tuple[tuple[str, GitIgnoreSpec], ...]) -> bool:
    ignored = False
    for directory, spec in rules:
        relative = _relative(name, directory) + ("/" if is_directory else "")
        verdict = spec.check_file(relative).include
        if verdict is not None:
            ignored = verdict
    return ignored


def _relative(name: str, directory: str) -> str:
    return name if not directory else os.path.relpath(name, directory)


if __name__ == "__main__":
    main()
