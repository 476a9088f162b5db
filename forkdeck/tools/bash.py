"""The `bash` tool: one command in the view that the dispatcher granted."""

from __future__ import annotations

from typing import Final

from forkdeck.errors import ToolError
from forkdeck.model.raw import JsonDict, clean_text
from forkdeck.model.tooling import ProcessResult, ToolContext, ToolResult, ToolSpec
from forkdeck.model.words import Access
from forkdeck.sandbox.output import HEAD_BYTES, TAIL_BYTES
from forkdeck.sandbox.views import SHARED
from forkdeck.tools import arguments as checks
from forkdeck.tools.sanitise import sanitise
from forkdeck.tools.texts import text

DEFAULT_TIMEOUT_S: Final = 120
MAX_TIMEOUT_S: Final = 3600

MAX_COMMAND_BYTES: Final = 131_000
"""One argument of a program may be 128 KiB on Linux, its end included."""

_READ_ONLY_WORDS = ("Read-only file system", "Errno 30", "EROFS")

SPEC = ToolSpec(
    name="bash",
    description=text("bash"),
    input_schema={
        "type": "object",
        "properties": {
            "command": {"type": "string", "minLength": 1},
            "timeout_s": {"type": "number", "minimum": 1, "maximum": MAX_TIMEOUT_S},
            "access": {"type": "string", "enum": ["look", "work", "outside"]},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)


class BashTool:
    """Runs a command and returns what it wrote, bounded."""

    spec = SPEC
    effects = True

    def describe(self, arguments: JsonDict) -> str:
        """Return the command as it is."""
        return str(arguments.get("command", ""))

    async def run(self, arguments: JsonDict, context: ToolContext) -> ToolResult:
        """Run it in the granted view (`context.access`); cancellation kills all of it.

        Raises:
            SandboxError: The sandbox did not start; the command did not run.
            ToolDenied: This run has no such view.
            ToolError: The command cannot be run.
        """
        given = checks.check("bash", SPEC.input_schema, arguments)
        command: str = clean_text(given["command"])
        if "\0" in command:
            raise ToolError("bash: command must not contain a NUL character.")
        if not command.strip():
            raise ToolError("bash: command must not be blank.")
        if len(command.encode()) > MAX_COMMAND_BYTES:
            raise ToolError(
                "bash: command is longer than 128 KB; no system starts it.",
                "Put the long part into a file with write, and run that.",
            )
        timeout_s = float(given.get("timeout_s", DEFAULT_TIMEOUT_S))

        def progress(tail: str, total_bytes: int) -> None:
            context.progress(sanitise(tail), total_bytes)

        result = await context.workspace.run(
            command,
            access=context.access,
            timeout_s=timeout_s,
            spill_name=context.spill_name,
            progress=progress,
        )
        return _result(result, context.access, timeout_s)


def _result(result: ProcessResult, access: Access, timeout_s: float) -> ToolResult:
    exit_code = result.exit_code
    if exit_code is not None and exit_code < 0:
        # A signal, in the shell's own way of saying it.
        exit_code = 128 - exit_code
    body = _body(result)
    notes: list[str] = []
    if result.timed_out:
        notes.append(f"killed after {timeout_s:g} s (timeout_s)")
    elif exit_code is None:
        notes.append("killed: it wrote more than 256 MiB")
    elif result.spill_capped:
        notes.append("the whole output could not be kept")
    if result.held_pipe:
        notes.append("a background process still held the output and was ended with the command")
    failed = exit_code != 0
    wants_work = (
        access == "look"
        and failed
        and any(word in result.head or word in result.tail for word in _READ_ONLY_WORDS)
    )
    how = f"exit {exit_code}" if exit_code is not None else "killed"
    first = " · ".join([f"{access} view", how, *notes])
    status = "timeout" if result.timed_out else "error" if failed else "ok"
    return ToolResult(
        content=f"[{first}]\n{body}" if body else f"[{first} · no output]",
        status=status,
        summary=_summary(how, failed, body),
        exit_code=exit_code,
        spill=result.spill.name if result.spill is not None else None,
        view=access,
        wants_work=wants_work,
    )


def _summary(how: str, failed: bool, body: str) -> str:
    if failed:
        return how
    count = body.count("\n") + 1 if body else 0
    return "no output" if not count else f"{count} {'line' if count == 1 else 'lines'}"


def _body(result: ProcessResult) -> str:
    head = sanitise(clean_text(result.head))
    tail = sanitise(clean_text(result.tail))
    missing = result.total_bytes - HEAD_BYTES - TAIL_BYTES
    if not tail or missing <= 0:
        return (head + tail).rstrip("\n")
    where = f"; whole output: {SHARED}/{result.spill.name}" if result.spill is not None else ""
    return f"{head.rstrip()}\n… [{missing:,} bytes left out{where}] …\n{tail}".rstrip("\n")
