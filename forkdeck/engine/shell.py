"""The person's ``!command``: run as typed, in the work view, without a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forkdeck.errors import ToolError
from forkdeck.model.events.turn import ShellRan
from forkdeck.model.intents import IntentResult
from forkdeck.model.raw import clean_text

if TYPE_CHECKING:
    from forkdeck.engine.durability import Durable
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.run import Run
    from forkdeck.engine.work import Work

TIMEOUT_S = 600.0


class Shell:
    """Runs the person's commands.

    Args:
        parts: The deck's parts.
        durable: The hub with joined syncs.
        work: Keeps the tree before a change.
    """

    def __init__(self, parts: EngineParts, durable: Durable, work: Work) -> None:
        self._parts = parts
        self._durable = durable
        self._work = work

    async def run(self, run: Run, command: str) -> IntentResult:
        """Run a command; its output goes into the parent's next user message."""
        command = clean_text(command).strip()
        if not command:
            return IntentResult(ok=False, text="There is no command after the !.")
        await self._durable.ready()
        await self._work.before_effect(run)
        name = f"shell-{self._parts.hub.state.seq + 1}"
        try:
            done = await run.workspace.run(
                command, access="work", timeout_s=TIMEOUT_S, spill_name=name
            )
        except ToolError as error:
            return IntentResult(ok=False, text=str(error))
        output = done.head
        if done.tail:
            output += f"\n[… {done.total_bytes} bytes in all, cut here …]\n{done.tail}"
        if done.timed_out:
            output += f"\n[stopped after {TIMEOUT_S:g} s]"
        await self._durable.append(
            ShellRan(
                command=command,
                output=clean_text(output),
                exit_code=done.exit_code,
                duration_ms=done.duration_ms,
            )
        )
        return IntentResult(ok=True)
