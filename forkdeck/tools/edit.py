"""The `edit` tool: replaces text that occurs exactly once in a file that was read."""

from __future__ import annotations

from forkdeck.errors import ToolError
from forkdeck.model.raw import JsonDict, clean_text
from forkdeck.model.tooling import ToolContext, ToolResult, ToolSpec
from forkdeck.sandbox.files import in_thread
from forkdeck.tools import arguments as checks
from forkdeck.tools import encodings, paths
from forkdeck.tools.patches import patch
from forkdeck.tools.texts import text

SPEC = ToolSpec(
    name="edit",
    description=text("edit"),
    input_schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "old": {"type": "string", "minLength": 1},
            "new": {"type": "string"},
            "replace_all": {"type": "boolean"},
        },
        "required": ["path", "old", "new"],
        "additionalProperties": False,
    },
)


class EditTool:
    """Replaces text in a file, atomically, keeping mode, encoding, BOM and line ends."""

    spec = SPEC
    effects = True

    def describe(self, arguments: JsonDict) -> str:
        """Return the path."""
        return str(arguments.get("path", ""))

    async def run(self, arguments: JsonDict, context: ToolContext) -> ToolResult:
        """Replace and return the counts.

        Raises:
            ToolError: The text is missing or not unique, or the file was not read as it is now.
        """
        given = checks.check("edit", SPEC.input_schema, arguments)
        path: str = given["path"]
        workspace = context.workspace
        await in_thread(workspace.resolve, path, write=True)
        data = await paths.load(workspace, path)
        key = paths.key(workspace, path)
        require_read(path, context.marks.get(key), paths.sha256(data))
        decoded = encodings.decode(data)
        if decoded is None:
            raise ToolError(f"{path} is binary; edit changes text only.")
        before = decoded.text
        after, count = _replaced(path, decoded, given)
        fresh = decoded.encode(after)
        await workspace.write_bytes(path, fresh)
        context.marks.note(key, paths.sha256(fresh))
        shown = paths.shown(workspace, path)
        change = await in_thread(patch, shown, before, after)
        places = "1 place" if count == 1 else f"{count} places"
        return ToolResult(
            content=f"Edited {path}: {places}, {change.summary} lines.",
            summary=change.summary,
            path=shown,
            added=change.added,
            removed=change.removed,
            patch=change.text,
        )


def require_read(path: str, seen: str | None, now: str) -> None:
    """Refuse a change of a file that this run has not read as it is now.

    Raises:
        ToolError: It was not read, or it changed since.
    """
    if seen is None:
        raise ToolError(f"{path} was not read in this run.", "Read it first, then try again.")
    if seen != now:
        raise ToolError(
            f"{path} changed since this run last read it.",
            "Read it again, then make the change against what it says now.",
        )


def _replaced(path: str, decoded: encodings.Decoded, given: JsonDict) -> tuple[str, int]:
    old, new = clean_text(given["old"]), clean_text(given["new"])
    if decoded.newline != "mixed":
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if old == new:
        raise ToolError("edit: old and new are the same; nothing would change.")
    count = decoded.text.count(old)
    if count == 0:
        raise ToolError(f"edit: old does not occur in {path}.", _hint(decoded.text, old))
    if count > 1 and not given.get("replace_all", False):
        raise ToolError(
            f"edit: old occurs {count} times in {path} (lines {_places(decoded.text, old)}).",
            "Give more lines around it so that it is unique, or set replace_all.",
        )
    return decoded.text.replace(old, new), count


def _places(text: str, old: str) -> str:
    numbers: list[str] = []
    at = text.find(old)
    while at >= 0 and len(numbers) < 5:
        numbers.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + len(old))
    return ", ".join(numbers) + (", …" if at >= 0 else "")


def _hint(text: str, old: str) -> str:
    first = old.strip().split("\n", 1)[0].strip()
    for number, line in enumerate(text.split("\n"), start=1):
        if first and first in line:
            return f"Its first line stands in line {number}: compare the spaces and what follows."
    return "Read the file again and copy the text exactly, without the line numbers."
