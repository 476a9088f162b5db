"""Turns git's raw, numstat and patch output into a `WorkDiff`, and asks git for it.

The output describes files a model run made, so nothing in it is taken on trust: control
characters are made visible, hunks are followed by their own counts, sizes are capped and the cut
is told. Called by `forkdeck.worktrees.manager`, `save` and `apply`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final, Literal, TypeAlias

import msgspec

from forkdeck.model.work import DiffLine, FileChange, WorkDiff
from forkdeck.worktrees.git import HostGit
from forkdeck.worktrees.git_sandbox import GitSandbox
from forkdeck.worktrees.layout import Repo
from forkdeck.worktrees.scratch import ScratchRepo
from forkdeck.worktrees.scripts import COMPARE

DIFF_BYTES: Final = 2 << 20
"""Bytes of patch text that are read; what is beyond is told as cut."""

MAX_LINES: Final = 20_000
MAX_FILES: Final = 5_000
_MAX_COLUMNS: Final = 2_000

ChangeKind: TypeAlias = Literal["added", "modified", "deleted", "renamed", "mode"]

_HUNK: Final = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")

_OPENS: Final = frozenset(
    (
        ".envrc",
        ".gitattributes",
        ".gitmodules",
        ".mise.toml",
        ".pre-commit-config.yaml",
        ".tool-versions",
        "build.gradle",
        "cargo.toml",
        "cmakelists.txt",
        "conftest.py",
        "gemfile",
        "justfile",
        "makefile",
        "noxfile.py",
        "package.json",
        "pyproject.toml",
        "rakefile",
        "setup.cfg",
        "setup.py",
        "sitecustomize.py",
        "tox.ini",
        "vagrantfile",
    )
)
_OPENS_BELOW: Final = frozenset(
    (
        ".circleci",
        ".devcontainer",
        ".forkdeck",
        ".claude",
        ".github",
        ".githooks",
        ".gitlab",
        ".husky",
        ".idea",
        ".vscode",
    )
)

_VISIBLE: Final = {
    **{code: 0x2400 + code for code in range(0x20) if code != 0x09},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
    **dict.fromkeys((0x200E, 0x200F, 0x061C, *range(0xD800, 0xE000)), 0xFFFD),
}


class Entry(msgspec.Struct, frozen=True):
    """One line of git's raw format."""

    status: str
    old_mode: str
    new_mode: str
    path: bytes
    source: bytes = b""

    @property
    def name(self) -> str:
        """The path as the host's functions take it."""
        return os.fsdecode(self.path)


def visible(data: bytes) -> str:
    """Return bytes as text that does nothing to a terminal, at most 2,000 characters."""
    text = data.decode("utf-8", "replace").translate(_VISIBLE)
    return text if len(text) <= _MAX_COLUMNS else text[:_MAX_COLUMNS] + "…"


def parse_raw(data: bytes) -> list[Entry]:
    """Parse ``--raw -z`` output."""
    fields = iter(data.split(b"\0"))
    entries: list[Entry] = []
    for head in fields:
        if not head.startswith(b":"):
            continue
        old_mode, new_mode, _, _, status = head[1:].decode("ascii", "replace").split(" ")[:5]
        first = next(fields, b"")
        second = next(fields, b"") if status[:1] in ("R", "C") else b""
        entries.append(
            Entry(status[:1], old_mode, new_mode, second or first, first if second else b"")
        )
    return entries


def _counts(data: bytes) -> Iterator[tuple[int | None, int | None]]:
    fields = iter(data.split(b"\0"))
    for head in fields:
        added, separator, rest = head.partition(b"\t")
        if not separator:
            continue
        removed, _, path = rest.partition(b"\t")
        if not path:
            # A rename: its two paths follow as fields of their own.
            next(fields, b"")
            next(fields, b"")
        yield (
            int(added) if added.isdigit() else None,
            int(removed) if removed.isdigit() else None,
        )


def file_changes(raw: bytes, numstat: bytes) -> tuple[FileChange, ...]:
    """Return what changed per file, from git's raw and numstat formats of one comparison."""
    entries = parse_raw(raw)
    counts = list(_counts(numstat))
    counts += [(None, None)] * (len(entries) - len(counts))
    return tuple(
        FileChange(
            path=visible(entry.path),
            kind=_kind(entry, count),
            added=count[0],
            removed=count[1],
            warning=warning(entry),
        )
        for entry, count in list(zip(entries, counts, strict=False))[:MAX_FILES]
    )


def _kind(entry: Entry, count: tuple[int | None, int | None]) -> ChangeKind:
    match entry.status:
        case "A":
            return "added"
        case "D":
            return "deleted"
        case "R" | "C":
            return "renamed"
        case "M" if entry.old_mode != entry.new_mode and count == (0, 0):
            return "mode"
        case _:
            return "modified"


def warning(entry: Entry) -> str:
    """Say why a changed file deserves a second look, or nothing."""
    if entry.status == "D":
        return ""
    if entry.new_mode == "120000":
        return "symlink"
    path = PurePosixPath(entry.path.decode("utf-8", "replace").lower())
    if path.name in _OPENS or path.suffix in (".code-workspace", ".pth"):
        return "runs on open"
    if any(part in _OPENS_BELOW for part in path.parts[:-1]):
        return "runs on open"
    if entry.new_mode == "100755" and entry.old_mode != "100755":
        return "executable"
    return ""


def diff_lines(patch: bytes, entries: list[Entry]) -> tuple[list[DiffLine], bool]:
    """Turn a patch into lines; returns them and whether some were left out.

    Sections of the patch stand in the order of `entries`; a change of type has two.
    """
    truncated = len(patch) >= DIFF_BYTES
    lines: list[DiffLine] = []
    names = _section_names(entries)
    old = new = old_left = new_left = 0
    for raw in patch.split(b"\n"):
        if len(lines) >= MAX_LINES:
            return lines, True
        mark, text = raw[:1], visible(raw[1:])
        if old_left > 0 or new_left > 0:
            if mark == b"+":
                lines.append(DiffLine("added", text, None, new))
                new, new_left = new + 1, new_left - 1
            elif mark == b"-":
                lines.append(DiffLine("removed", text, old, None))
                old, old_left = old + 1, old_left - 1
            elif mark == b"\\":
                lines.append(DiffLine("note", text.strip()))
            elif raw or not truncated:
                lines.append(DiffLine("context", text, old, new))
                old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
        elif mark == b"\\":
            lines.append(DiffLine("note", text.strip()))
        elif raw.startswith(b"diff --git "):
            lines.append(DiffLine("file", next(names, visible(raw[11:]))))
        elif (hunk := _HUNK.match(raw)) is not None:
            old, new = int(hunk[1]), int(hunk[3])
            old_left = int(hunk[2]) if hunk[2] else 1
            new_left = int(hunk[4]) if hunk[4] else 1
            lines.append(DiffLine("hunk", visible(raw)))
        elif raw and not raw.startswith((b"--- ", b"+++ ", b"index ", b"similarity ")):
            lines.append(DiffLine("note", visible(raw).strip()))
    return lines, truncated


def _section_names(entries: list[Entry]) -> Iterator[str]:
    for entry in entries:
        name = visible(entry.path)
        yield f"{visible(entry.source)} → {name}" if entry.source else name
        if entry.status == "T":
            yield name


def work_diff(base: str, commit: str, scratch: ScratchRepo) -> WorkDiff:
    """Read the results of a comparison script; blocking.

    Raises:
        WorktreeError: A result is missing or too long.
    """
    raw, numstat = scratch.read("raw"), scratch.read("numstat")
    entries = parse_raw(raw)
    lines, truncated = diff_lines(scratch.read("lines"), entries)
    return WorkDiff(
        base=base,
        commit=commit,
        files=file_changes(raw, numstat),
        lines=tuple(lines),
        truncated=truncated or len(entries) > MAX_FILES,
    )


async def compare(
    repo: Repo, base: str, commit: str, sandbox: GitSandbox, git: HostGit
) -> WorkDiff:
    """Return what changed from one commit to another.

    Raises:
        WorktreeError: A commit is missing, or git must not run here.
    """
    async with sandbox.scratch(repo, head=base) as scratch:
        values = {"BASE": base, "WORK": commit, "DIFF_BYTES": str(DIFF_BYTES)}
        await sandbox.run(scratch, COMPARE, repo=repo, values=values)
        return await git.thread(lambda: work_diff(base, commit, scratch))
