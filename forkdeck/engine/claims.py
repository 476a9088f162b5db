"""Claims of a fork's report against what the fork did: files, changes, commands, tests.

`ForkRunner` asks `named_files` first and looks at those files while the fork's view still
stands; `check` then compares. Pure functions over the fork's own state: what its source did
before the fork began is never counted as the fork's.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from forkdeck.model.items import ToolFacts
from forkdeck.model.state import RunState

MOST_CLAIMS: Final = 60
"""Claims of one report that are looked at; a longer list is cut, never guessed."""

MOST_CHARS: Final = 64_000
"""Characters of a report that are looked at."""

MOST_UNVERIFIED: Final = 12
"""Unverified claims that are named one by one."""

_FIELD = re.compile(
    r"^\s*(?:[-*#]+\s*)?\**(scope|result|key files|files changed|issues)\**\s*:\**[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_PATH = re.compile(
    r"(?<![\w/.:@-])(/?(?:[\w.+-]+/)*[\w+-][\w.+-]*\.[A-Za-z][A-Za-z0-9]{0,7})"
    r"(?::(\d{1,7}))?(?![\w/@])"
)
_CODE = re.compile(r"`([^`\n]{2,400})`")
_NONE = re.compile(r"\W*(?:none|no files?|nothing|n/a|-+)?\W*\Z", re.IGNORECASE)
_RAN = re.compile(
    r"\b(?:ran|executed|passe[sd]|pass|fail(?:s|ed)?|succeed(?:s|ed)|exit(?:s|ed)?"
    r"(?: with)?(?: code)? \d+|is (?:clean|green)|are (?:clean|green))\b",
    re.IGNORECASE,
)
_NOT_RAN = re.compile(
    r"\b(?:not|never|n't|should|would|could|can|may|must|to run|please|recommend\w*|suggest\w*"
    r"|consider|unless|if|without running|unable)\b|n't\b",
    re.IGNORECASE,
)
_GOOD = re.compile(
    r"\b(?:passe[sd]|pass|succeed(?:s|ed)|exit(?:s|ed)?(?: with)?(?: code)? 0|clean|green)\b",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"\b(?:fail(?:s|ed)?|exit(?:s|ed)?(?: with)?(?: code)? [1-9]\d*)\b", re.IGNORECASE
)
_TESTS = re.compile(
    r"\b(?:all |the |\d+ )?tests? (?:all )?(?:pass(?:es|ed)?|are green)\b", re.IGNORECASE
)
_RUNNERS = re.compile(
    r"(?:^|[\s/;&|])(?:pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|gradlew?"
    r"|mvn|(?:npm|yarn|pnpm|bun|cargo|go|make|just|dotnet|mix|deno|rake) (?:run )?test\w*)\b"
)
_COMMAND = re.compile(r"[A-Za-z_./~][\w./+-]*(?:\s+\S+)+\Z|[A-Za-z_][\w-]*\Z")
_FILE_TOOLS: Final = ("read", "edit", "write")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n")


@dataclass(frozen=True)
class FileFact:
    """What is known of a named file in the fork's own view.

    Attributes:
        exists: Whether it is there.
        lines: Its lines, or None when they were not counted.
    """

    exists: bool
    lines: int | None = None


@dataclass(frozen=True)
class Claims:
    """The result of a check.

    Attributes:
        checked: Claims that could be checked.
        unverified: What does not hold, in words.
    """

    checked: int
    unverified: tuple[str, ...]

    @property
    def verified(self) -> int:
        """How many claims hold."""
        return self.checked - len(self.unverified)


def named_files(report: str) -> list[tuple[str, int | None]]:
    """Return the files a report names, with the highest line it names in each, in order.

    Only ``Key files``, ``Files changed``, places like ``a.py:12`` and code in backticks count:
    a slash in a sentence is no claim.
    """
    report = report[:MOST_CHARS]
    found: dict[str, int | None] = {}
    fields = _fields(report)
    listed = "\n".join(fields.get(name, "") for name in ("key files", "files changed"))
    for path, line in _paths(listed):
        _note(found, path, line)
    for code in _CODE.findall(report):
        whole = _PATH.fullmatch(code.strip())
        if whole is not None:
            _note(found, whole[1], int(whole[2]) if whole[2] else None)
    for path, line in _paths(report):
        if line is not None:
            _note(found, path, line)
    return list(found.items())[:MOST_CLAIMS]


def check(
    report: str,
    run: RunState,
    *,
    write: bool,
    changed: Iterable[str],
    files: Mapping[str, FileFact],
    root: str = "",
) -> Claims:
    """Compare a report with what its fork did.

    Args:
        report: The report.
        run: The fork's conversation; its transcript holds the fork's own calls only.
        write: Whether it could change files.
        changed: Paths that differ from its base, relative to the root.
        files: What is known of the files `named_files` returned.
        root: The project root as the fork saw it; absolute paths are made relative to it.
    """
    report = report[:MOST_CHARS]
    real = {_relative(path, root) for path in changed}
    results = [
        *_changes(report, real, root, write=write),
        *_places(report, run, real, files, root),
        *_commands(report, run),
    ][:MOST_CLAIMS]
    return Claims(len(results), tuple(wrong for wrong in results if wrong))


def _changes(report: str, real: set[str], root: str, *, write: bool) -> list[str]:
    """Compare "Files changed" with the files that changed; an empty text is a claim that holds."""
    said = _fields(report).get("files changed")
    if said is None:
        return []
    named = list(dict.fromkeys(_relative(path, root) for path, _ in _paths(said)))
    if not named and _NONE.match(said.strip()):
        if not write:
            return []
        return [f"says no file changed, but {_list(sorted(real))} did" if real else ""]
    found = [
        "" if _same_file(path, real) else f"says {path} was changed, but it was not"
        for path in named
    ]
    silent = sorted(path for path in real if posixpath.basename(path) not in said)
    if named and silent:
        found.append(f"does not name {_list(silent)}, which changed")
    return found


def _places(
    report: str, run: RunState, real: set[str], files: Mapping[str, FileFact], root: str
) -> list[str]:
    """Check that named files exist; a bare name that is not found could be anything."""
    seen = {
        _relative(tool.path or tool.argument.partition(":")[0], root)
        for tool in _tools(run)
        if tool.name in _FILE_TOOLS and tool.status == "ok"
    }
    found: list[str] = []
    for path, line in named_files(report):
        fact, name = files.get(path), _relative(path, root)
        if fact is not None and fact.exists:
            past = line is not None and fact.lines is not None and line > fact.lines
            found.append(f"{path}:{line} is past the end ({fact.lines} lines)" if past else "")
        elif _same_file(name, real | seen):
            found.append("")
        elif fact is not None and "/" in name:
            found.append(f"names {path}, which does not exist")
    return found


def _commands(report: str, run: RunState) -> list[str]:
    """Check the commands a report says were run, and how they ended."""
    ran = [tool for tool in _tools(run) if tool.name == "bash"]
    found: dict[str, str] = {}
    for sentence in _SENTENCE.split(report):
        bare = _CODE.sub("", sentence)
        if not _RAN.search(bare) or _NOT_RAN.search(bare):
            continue
        named = False
        for code in _CODE.findall(sentence):
            command = " ".join(code.strip().removeprefix("$").split())
            if _COMMAND.match(command) and not _PATH.fullmatch(command):
                named = True
                found.setdefault(command, _command_fault(command, bare, ran))
        if not named and _TESTS.search(bare):
            found.setdefault("tests", _tests_fault(ran))
    return list(found.values())


def _command_fault(command: str, sentence: str, ran: Sequence[ToolFacts]) -> str:
    mine = [tool for tool in ran if command in " ".join(tool.argument.split())]
    mine = [tool for tool in mine if tool.status not in ("denied", None)]
    if not mine:
        return f"says `{command}` was run, but it was not"
    codes = {tool.exit_code for tool in mine}
    if _GOOD.search(sentence) and not _BAD.search(sentence) and 0 not in codes:
        return f"says `{command}` passed, but it {_ended(mine[-1])}"
    if _BAD.search(sentence) and not _GOOD.search(sentence) and codes == {0}:
        return f"says `{command}` failed, but it {_ended(mine[-1])}"
    return ""


def _tests_fault(ran: Sequence[ToolFacts]) -> str:
    tests = [tool for tool in ran if _RUNNERS.search(tool.argument)]
    if not tests:
        return "says that tests pass, but no test was run"
    last = tests[-1]
    return "" if last.exit_code == 0 else f"says that tests pass, but the last run {_ended(last)}"


def _ended(tool: ToolFacts) -> str:
    if tool.exit_code is None:
        return f"was {tool.status}" if tool.status == "aborted" else "did not end by itself"
    return f"ended with exit {tool.exit_code}"


def _tools(run: RunState) -> list[ToolFacts]:
    return [item.tool for item in run.transcript if item.tool is not None]


def _fields(report: str) -> dict[str, str]:
    """Return a report's fields by their name in lower case."""
    marks = list(_FIELD.finditer(report))
    ends = [*(mark.start() for mark in marks), len(report)][1:]
    return {
        mark[1].lower(): report[mark.end() : end] for mark, end in zip(marks, ends, strict=True)
    }


def _paths(text: str) -> list[tuple[str, int | None]]:
    found = [(match[1], int(match[2]) if match[2] else None) for match in _PATH.finditer(text)]
    return [(path.rstrip("."), line) for path, line in found if "//" not in path]


def _note(found: dict[str, int | None], path: str, line: int | None) -> None:
    known = found.get(path)
    found[path] = max(known or 0, line or 0) or None


def _relative(path: str, root: str) -> str:
    path = posixpath.normpath(path)
    if root and path.startswith(root.rstrip("/") + "/"):
        path = path[len(root.rstrip("/")) + 1 :]
    return path.removeprefix("./")


def _same_file(path: str, real: set[str]) -> bool:
    return any(_ends(each, path) for each in real)


def _ends(path: str, name: str) -> bool:
    """Whether `name` is `path`, or its last parts."""
    return path == name or path.endswith("/" + name)


def _list(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:5])
    return shown if len(paths) <= 5 else f"{shown} and {len(paths) - 5} more"
