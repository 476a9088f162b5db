"""The `read` tool: numbered lines of a text file."""

from __future__ import annotations

from typing import Final

from forkdeck.errors import ToolError
from forkdeck.model.raw import JsonDict, clean_text
from forkdeck.model.tooling import ToolContext, ToolResult, ToolSpec
from forkdeck.tools import arguments as checks
from forkdeck.tools import encodings, paths
from forkdeck.tools.texts import text

MAX_LINES: Final = 2000
MAX_BYTES: Final = 50 * 1024
MAX_LINE_CHARACTERS: Final = 2000

_IMAGES = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a RIFF file (WebP or sound)"),
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "a program"),
)

SPEC = ToolSpec(
    name="read",
    description=text("read"),
    input_schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "offset": {"type": "integer", "minimum": 1, "description": "first line, from 1"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LINES},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)


class ReadTool:
    """Reads a text file and remembers that this run has seen it."""

    spec = SPEC
    effects = False

    def describe(self, arguments: JsonDict) -> str:
        """Return the path, and the range when one was asked for."""
        path = str(arguments.get("path", ""))
        offset = arguments.get("offset")
        return f"{path}:{offset}" if offset else path

    async def run(self, arguments: JsonDict, context: ToolContext) -> ToolResult:
        """Return numbered lines.

        Raises:
            ToolError: It cannot be read, is binary, or has no such line.
        """
        given = checks.check("read", SPEC.input_schema, arguments)
        path: str = given["path"]
        workspace = context.workspace
        data = await paths.load(workspace, path)
        decoded = encodings.decode(data)
        if decoded is None:
            raise _binary(path, data)
        context.marks.note(paths.key(workspace, path), paths.sha256(data))
        body = clean_text(decoded.text)
        lines = body.split("\n")
        if lines[-1] == "":
            lines.pop()
        content, count = _numbered(path, lines, given.get("offset", 1), given.get("limit"))
        if decoded.encoding == "latin-1":
            content += "\n[not valid UTF-8: shown, and kept by edit, as Latin-1]"
        elif decoded.encoding != "utf-8":
            content += f"\n[{decoded.encoding}, kept by edit]"
        unit = "line" if count == 1 else "lines"
        return ToolResult(
            content=content, summary=f"{count} {unit}", path=paths.shown(workspace, path)
        )


def _numbered(path: str, lines: list[str], offset: int, limit: int | None) -> tuple[str, int]:
    if not lines:
        return "(the file is empty)", 0
    if offset > len(lines):
        raise ToolError(f"{path} has {len(lines)} lines; there is no line {offset}.")
    first = offset - 1
    last = min(first + (limit or MAX_LINES), len(lines))
    out: list[str] = []
    size = 0
    for number in range(first, last):
        line = lines[number]
        if len(line) > MAX_LINE_CHARACTERS:
            line = f"{line[:MAX_LINE_CHARACTERS]}… [line of {len(line)} characters cut]"
        line = f"{number + 1:>6}\t{line}"
        size += len(line.encode("utf-8", "replace")) + 1
        if size > MAX_BYTES and out:
            break
        out.append(line)
    end = first + len(out)
    if end < len(lines):
        wanted = "" if limit is not None and end == last else f" (at most {MAX_LINES} lines, 50 KB)"
        out.append(f"[lines {offset}-{end} of {len(lines)}{wanted}; go on with offset={end + 1}]")
        return "\n".join(out), end - first
    return "\n".join(out), end - first


def _binary(path: str, data: bytes) -> ToolError:
    kind = next((word for mark, word in _IMAGES if data.startswith(mark)), "binary")
    return ToolError(
        f"{path} is {kind} ({len(data):,} bytes); read shows text only.",
        "Use bash (file, xxd, unzip -l, …) for facts about it.",
    )
