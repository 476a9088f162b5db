"""The `grep` tool: lines that match a regular expression."""

from __future__ import annotations

import re
from typing import Final

from forkdeck.errors import ToolError
from forkdeck.model.raw import JsonDict, clean_text
from forkdeck.model.tooling import ToolContext, ToolResult, ToolSpec
from forkdeck.sandbox.files import in_thread
from forkdeck.sandbox.output import HEAD_BYTES, TAIL_BYTES
from forkdeck.tools import arguments as checks
from forkdeck.tools import paths
from forkdeck.tools.search import TIMEOUT_S, existing, joined, ripgrep, search
from forkdeck.tools.texts import text

MAX_HITS: Final = 200
MAX_COLUMNS: Final = 300

# The process runner shows the NUL behind a path as U+FFFD.
_LINE = re.compile(r"(?P<path>.*?)\ufffd(?P<number>\d+):(?P<text>.*)", re.DOTALL)

SPEC = ToolSpec(
    name="grep",
    description=text("grep"),
    input_schema={
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1},
            "path": {"type": "string", "minLength": 1},
            "glob": {"type": "string", "minLength": 1, "description": "such as *.py"},
            "ignore_case": {"type": "boolean"},
            "literal": {"type": "boolean", "description": "pattern is plain text"},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
)


class GrepTool:
    """Searches file contents, with ripgrep in the sandbox where both are there."""

    spec = SPEC
    effects = False

    def describe(self, arguments: JsonDict) -> str:
        """Return the pattern and where it is looked for."""
        where = arguments.get("path") or arguments.get("glob")
        pattern = str(arguments.get("pattern", ""))
        return f"{pattern} in {where}" if where else pattern

    async def run(self, arguments: JsonDict, context: ToolContext) -> ToolResult:
        """Return one hit a line, as ``path:number:text``.

        Raises:
            ToolError: The path or the pattern is wrong, or it took too long.
        """
        given = checks.check("grep", SPEC.input_schema, arguments)
        if "\0" in given["pattern"] or "\n" in given["pattern"]:
            raise ToolError("grep: pattern must be one line; it is matched line by line.")
        if "\0" in given.get("glob", ""):
            raise ToolError("grep: glob must not contain a NUL character.")
        path: str = given.get("path", ".")
        program = ripgrep() if context.workspace.level == "sandboxed" else None
        if program is not None:
            lines, more = await _with_ripgrep(program, path, given, context)
        else:
            lines, more = await _without(path, given, context)
        hits = f"{len(lines)}{'+' if more else ''} {'hit' if len(lines) == 1 else 'hits'}"
        if more:
            lines.append(f"[the first {len(lines)} hits; narrow the pattern, the path or the glob]")
        return ToolResult(content="\n".join(lines) or "no hits", summary=hits)


async def _without(path: str, given: JsonDict, context: ToolContext) -> tuple[list[str], bool]:
    request = {
        "mode": "grep",
        "pattern": given["pattern"],
        "glob": given.get("glob", ""),
        "ignore_case": given.get("ignore_case", False),
        "literal": given.get("literal", False),
    }
    found = await search(context.workspace, path, request, MAX_HITS)
    lines = [_line(joined(path, name), number, body) for name, number, body in found.items]
    return lines, found.more


async def _with_ripgrep(
    program: str, path: str, given: JsonDict, context: ToolContext
) -> tuple[list[str], bool]:
    workspace = context.workspace
    await in_thread(existing, workspace, path)
    command = [
        program, "--no-config", "--no-follow", "--no-messages", "--color=never", "--no-heading",
        "--with-filename", "--line-number", "--null", "--hidden", "--no-require-git",
        "--glob=!.git", "--sort=path", f"--max-columns={MAX_COLUMNS}", "--max-columns-preview",
    ]  # fmt: skip
    if "glob" in given:
        command.append(f"--glob={given['glob']}")
    if given.get("ignore_case"):
        command.append("--ignore-case")
    if given.get("literal"):
        command.append("--fixed-strings")
    command += ["-e", given["pattern"], "--", paths.key(workspace, path)]
    access = "fork" if context.access == "fork" else "look"
    result = await workspace.run(command, access=access, timeout_s=TIMEOUT_S, spill_name="")
    if result.timed_out:
        raise ToolError(f"The search took more than {TIMEOUT_S:.0f} s.", "Narrow the path.")
    if result.exit_code not in {0, 1} and "\ufffd" not in result.head:
        message = result.head.strip().splitlines()
        raise ToolError(f"grep: {message[-1] if message else 'ripgrep failed'}.")
    base = paths.key(workspace, path)
    cut = result.total_bytes > HEAD_BYTES + TAIL_BYTES
    # When something is left out in the middle, the head ends in a broken line.
    raw = result.head.split("\n")[:-1] if cut else (result.head + result.tail).split("\n")
    lines = [_shown(line, base, path) for line in raw if line]
    return lines[:MAX_HITS], cut or len(lines) > MAX_HITS


def _shown(line: str, base: str, path: str) -> str:
    match = _LINE.match(line)
    if match is None:
        return clean_text(line)
    name = match["path"].removeprefix(base).lstrip("/")
    return _line(joined(path, name), int(match["number"]), match["text"].rstrip("\r"))


def _line(name: str, number: int, body: str) -> str:
    return clean_text(f"{name}:{number}:{body}")
