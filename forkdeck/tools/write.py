"""The `write` tool: makes a file, or replaces one that was read."""

from __future__ import annotations

import os

from forkdeck.errors import ToolError
from forkdeck.model.ports import Workspace
from forkdeck.model.raw import JsonDict, clean_text
from forkdeck.model.tooling import ToolContext, ToolResult, ToolSpec
from forkdeck.sandbox.files import in_thread
from forkdeck.tools import arguments as checks
from forkdeck.tools import encodings, paths
from forkdeck.tools.edit import require_read
from forkdeck.tools.patches import patch
from forkdeck.tools.texts import text

SPEC = ToolSpec(
    name="write",
    description=text("write"),
    input_schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "content": {"type": "string"},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    },
)


class WriteTool:
    """Writes a whole file in one step."""

    spec = SPEC
    effects = True

    def describe(self, arguments: JsonDict) -> str:
        """Return the path."""
        return str(arguments.get("path", ""))

    async def run(self, arguments: JsonDict, context: ToolContext) -> ToolResult:
        """Write and return the counts.

        Raises:
            ToolError: The file exists and was not read as it is now, or cannot be written.
        """
        given = checks.check("write", SPEC.input_schema, arguments)
        path: str = given["path"]
        workspace = context.workspace
        key = paths.key(workspace, path)
        before: str | None = None
        if await in_thread(_exists, workspace, path):
            data = await paths.load(workspace, path)
            require_read(path, context.marks.get(key), paths.sha256(data))
            decoded = encodings.decode(data)
            before = decoded.text if decoded is not None else ""
        after = clean_text(given["content"])
        fresh = after.encode("utf-8")
        if len(fresh) > paths.FILE_LIMIT_BYTES:
            raise ToolError("write: content is larger than 16 MiB.", "Write it in parts with bash.")
        await workspace.write_bytes(path, fresh)
        context.marks.note(key, paths.sha256(fresh))
        shown = paths.shown(workspace, path)
        change = await in_thread(patch, shown, before or "", after)
        done = "Wrote" if before is None else "Replaced"
        return ToolResult(
            content=f"{done} {path} ({len(fresh):,} bytes, {change.summary} lines).",
            summary=change.summary,
            path=shown,
            added=change.added,
            removed=change.removed,
            patch=change.text,
        )


def _exists(workspace: Workspace, path: str) -> bool:
    host = workspace.resolve(path, write=True)
    if host.is_dir():
        raise ToolError(f"{path} is a directory.")
    return os.path.lexists(host)
