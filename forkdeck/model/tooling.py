"""What tools are made of: their declaration, their result, and what they get to work with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from forkdeck.model.raw import JsonDict
from forkdeck.model.words import Access, ToolStatus

if TYPE_CHECKING:
    from forkdeck.model.ports import Workspace


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model sees it; part of the cached prefix, so never changed in a session."""

    name: str
    description: str
    input_schema: JsonDict

    def declaration(self) -> JsonDict:
        """Return the tool's entry of a request body."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
        }


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave: `content` for the model, the rest for the screen."""

    content: str
    status: ToolStatus = "ok"
    summary: str = ""
    exit_code: int | None = None
    path: str | None = None
    added: int | None = None
    removed: int | None = None
    patch: str = ""
    spill: str | None = None
    view: Access | None = None
    wants_work: bool = False
    """A look command failed because the file system is read-only; may be offered as work."""


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended and what it wrote (stdout and stderr as one stream)."""

    exit_code: int | None
    """None when it was killed by a time-out."""
    head: str
    """First 16 KiB, decoded with replacement."""
    tail: str
    """Last 32 KiB when there was more than the head holds, else empty."""
    total_bytes: int
    spill: Path | None = None
    """File with the output when it did not fit, up to 256 MiB."""
    spill_capped: bool = False
    timed_out: bool = False
    held_pipe: bool = False
    """A background process still held the output when the command had ended."""
    duration_ms: int = 0


class ReadMarks:
    """Which file contents a run has read: path inside the view → SHA-256 of its bytes."""

    def __init__(self, seen: dict[str, str] | None = None) -> None:
        self._seen = dict(seen or {})

    def note(self, path: str, sha256: str) -> None:
        """Remember that the run saw `path` with this content."""
        self._seen[path] = sha256

    def get(self, path: str) -> str | None:
        """Return the hash this run last saw at `path`, or None."""
        return self._seen.get(path)

    def copy(self) -> ReadMarks:
        """Return marks for a child that inherits what its parent has read."""
        return ReadMarks(self._seen)


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """What one call gets to work with."""

    workspace: Workspace
    marks: ReadMarks
    access: Access
    """The view the dispatcher granted; file tools use it for `resolve`."""
    progress: Callable[[str, int], None]
    """Called with the last lines and the byte count while output arrives."""
    spill_name: str
    """Basename for this call's spill file."""
