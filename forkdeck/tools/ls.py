"""The `ls` tool: the entries of a directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from forkdeck.errors import ToolError
from forkdeck.model.ports import Workspace
from forkdeck.model.raw import JsonDict, clean_text
from forkdeck.model.tooling import ToolContext, ToolResult, ToolSpec
from forkdeck.sandbox.files import in_thread
from forkdeck.tools import arguments as checks
from forkdeck.tools import paths
from forkdeck.tools.texts import text

MAX_ENTRIES: Final = 500

SPEC = ToolSpec(
    name="ls",
    description=text("ls"),
    input_schema={
        "type": "object",
        "properties": {"path": {"type": "string", "minLength": 1}},
        "required": [],
        "additionalProperties": False,
    },
)


class LsTool:
    """Lists a directory."""

    spec = SPEC
    effects = False

    def describe(self, arguments: JsonDict) -> str:
        """Return the directory."""
        return str(arguments.get("path") or ".")

    async def run(self, arguments: JsonDict, context: ToolContext) -> ToolResult:
        """Return one entry a line: directories end in ``/``, links show their target.

        Raises:
            ToolError: It is no directory, or may not be read.
        """
        given = checks.check("ls", SPEC.input_schema, arguments)
        path: str = given.get("path", ".")
        lines, total = await in_thread(_list, context.workspace, path)
        if total > len(lines):
            lines.append(f"[{len(lines)} of {total} entries; use find with a pattern]")
        unit = "entry" if total == 1 else "entries"
        return ToolResult(
            content="\n".join(lines) or "(the directory is empty)",
            summary=f"{total} {unit}",
            path=paths.shown(context.workspace, path),
        )


def _list(workspace: Workspace, path: str) -> tuple[list[str], int]:
    host = workspace.resolve(path)
    try:
        with os.scandir(host) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except NotADirectoryError as error:
        raise ToolError(f"{path} is a file.", "Use read to see what is in it.") from error
    except FileNotFoundError as error:
        raise ToolError(f"{path} does not exist.") from error
    except OSError as error:
        raise ToolError(f"{path} cannot be listed: {error.strerror}.") from error
    return [_line(entry) for entry in entries[:MAX_ENTRIES]], len(entries)


def _line(entry: os.DirEntry[str]) -> str:
    name = clean_text(entry.name)
    if not name.isprintable():
        # A line break in a name would look like two entries.
        name = ascii(name)
    try:
        if entry.is_symlink():
            return f"{name} -> {clean_text(str(Path(entry.path).readlink()))!s}"
        if entry.is_dir():
            return f"{name}/"
        return f"{name}  {entry.stat(follow_symlinks=False).st_size:,} bytes"
    except OSError:
        return name
