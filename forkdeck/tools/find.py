"""The `find` tool: files whose name matches a glob."""

from __future__ import annotations

from typing import Final

from forkdeck.errors import ToolError
from forkdeck.model.raw import JsonDict, clean_text
from forkdeck.model.tooling import ToolContext, ToolResult, ToolSpec
from forkdeck.tools import arguments as checks
from forkdeck.tools.search import joined, search
from forkdeck.tools.texts import text

MAX_FILES: Final = 500

SPEC = ToolSpec(
    name="find",
    description=text("find"),
    input_schema={
        "type": "object",
        "properties": {
            "glob": {"type": "string", "minLength": 1},
            "path": {"type": "string", "minLength": 1},
        },
        "required": ["glob"],
        "additionalProperties": False,
    },
)


class FindTool:
    """Finds files by name."""

    spec = SPEC
    effects = False

    def describe(self, arguments: JsonDict) -> str:
        """Return the glob and where it is looked for."""
        where = arguments.get("path")
        glob = str(arguments.get("glob", ""))
        return f"{glob} in {where}" if where else glob

    async def run(self, arguments: JsonDict, context: ToolContext) -> ToolResult:
        """Return one path a line.

        Raises:
            ToolError: The path is wrong, or it took too long.
        """
        given = checks.check("find", SPEC.input_schema, arguments)
        path: str = given.get("path", ".")
        glob: str = given["glob"]
        if "\0" in glob:
            raise ToolError("find: glob must not contain a NUL character.")
        found = await search(context.workspace, path, {"mode": "find", "glob": glob}, MAX_FILES)
        names = [_printable(joined(path, str(item[0]))) for item in found.items]
        count = f"{len(names)}{'+' if found.more else ''} {'file' if len(names) == 1 else 'files'}"
        if found.more:
            names.append(f"[the first {len(names)} files; narrow the glob or the path]")
        return ToolResult(content="\n".join(names) or "no files", summary=count)


def _printable(name: str) -> str:
    cleaned = clean_text(name)
    return cleaned if cleaned.isprintable() else ascii(cleaned)
