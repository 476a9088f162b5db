"""The tool calls of one answer: what runs together, what waits, and a result for every call.

`RunLoop` hands over the calls; files and commands go to the tools, fork calls to the launcher
that the deck sets, questions to `Approvals`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from forkdeck.engine.approvals import Granted
from forkdeck.errors import ToolDenied, ToolError
from forkdeck.model.events import Event
from forkdeck.model.events.tool import ToolEnded, ToolProgressed, ToolStarted
from forkdeck.model.raw import JsonDict, clean_text, to_raw
from forkdeck.model.tooling import ToolContext, ToolResult
from forkdeck.model.words import Access, ToolStatus

if TYPE_CHECKING:
    from forkdeck.engine.approvals import Approvals
    from forkdeck.engine.durability import Durable
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.run import Run
    from forkdeck.model.ports import Tool

TOGETHER = frozenset(("read", "grep", "find", "ls"))
FORKING = frozenset(("fork_join", "fork", "agent"))


@dataclass(frozen=True)
class Call:
    """One tool call of an answer."""

    id: str
    name: str
    arguments: JsonDict
    broken: bool = False
    """Its input is no JSON object: it must not run."""
    edited: bool = False
    """Whether the person edited it before it ran."""


@dataclass(frozen=True)
class ForkResult:
    """What a fork call gave.

    Attributes:
        text: For the model.
        status: How the call ended.
        summary: In a few words, for the screen.
    """

    text: str
    status: ToolStatus = "ok"
    summary: str = ""


class Launcher(Protocol):
    """Takes all fork calls of one answer as one launch."""

    async def launch(self, run: Run, calls: Sequence[Call]) -> Mapping[str, ForkResult]:
        """Return a result per call id, when each is settled or in the background."""
        ...

    def stopped(self, run: Run, call: str) -> ForkResult:
        """Return the result of a call whose wait was cancelled.

        The parent's forks go on in the background; those of a fork are stopped with it.
        """
        ...

    def describe(self, call: Call) -> str:
        """Return a fork call in one line."""
        ...


class Effects(Protocol):
    """Told before the first effect of a parent's turn."""

    async def before_effect(self, run: Run) -> None:
        """Keep what is about to change."""
        ...


class Dispatcher:
    """Runs calls and makes their results.

    Args:
        parts: The deck's parts.
        durable: The hub with joined syncs.
        approvals: Decides whether a call may run.
    """

    def __init__(self, parts: EngineParts, durable: Durable, approvals: Approvals) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._durable = durable
        self._approvals = approvals
        self.launcher: Launcher | None = None
        self.effects: Effects | None = None

    async def run_calls(self, run: Run, blocks: Sequence[JsonDict]) -> list[JsonDict]:
        """Run the calls of one answer and return their results in call order.

        When cancelled, the results that exist and "aborted" for the others enter the history as
        one message, and the cancellation goes on.
        """
        calls = [parse(block) for block in blocks]
        results: dict[str, JsonDict] = {}
        try:
            for kind, group in grouped(calls):
                await self._durable.ready()
                if run.stop:
                    # The clock ended what ran; what stands behind it must not begin.
                    results.update(self._too_late(run, group))
                elif kind == "forks":
                    results.update(await self._launch(run, group))
                else:
                    await self._together(run, group, results)
        except asyncio.CancelledError:
            self._close(run, calls, results)
            raise
        return [results[call.id] for call in calls]

    def refuse(self, run: Run, blocks: Sequence[JsonDict], why: str) -> list[JsonDict]:
        """Return an error result for each call; none of them runs."""
        return [
            self._ended(run, call, ToolResult(content=why, status="denied"))
            for call in map(parse, blocks)
        ]

    def _too_late(self, run: Run, group: Sequence[Call]) -> dict[str, JsonDict]:
        """Answer calls that come after a time limit."""
        late = ToolResult(content=f"Not run: the {run.stop} limit is reached.", status="denied")
        return {call.id: self._ended(run, call, late) for call in group}

    async def _together(
        self, run: Run, group: Sequence[Call], results: dict[str, JsonDict]
    ) -> None:
        """Run calls side by side; each stores its result, also when another is cancelled."""

        async def one(call: Call) -> None:
            results[call.id] = await self._one(run, call)

        if len(group) == 1:
            await one(group[0])
            return
        tasks = [asyncio.create_task(one(call), name=f"{run.run} {call.id}") for call in group]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _launch(self, run: Run, group: Sequence[Call]) -> Mapping[str, JsonDict]:
        """Hand the sound calls to the launcher together; the others are answered here."""
        results: dict[str, JsonDict] = {}
        sound: list[Call] = []
        for call in group:
            why = self._approvals.forbidden(run, call.name)
            if call.broken:
                results[call.id] = self._ended(run, call, _broken_result())
            elif why is not None or self.launcher is None:
                denied = ToolResult(content=why or "Forks are switched off.", status="denied")
                results[call.id] = self._ended(run, call, denied)
            else:
                sound.append(call)
        if not sound or self.launcher is None:
            return results
        for call in sound:
            self._start_event(run, call)
        began = self._parts.clock.monotonic_ms()
        given = await self.launcher.launch(run, sound)
        for call in sound:
            duration_ms = self._parts.clock.monotonic_ms() - began
            results[call.id] = self._forked(run, call, given[call.id], duration_ms)
        return results

    def _forked(self, run: Run, call: Call, given: ForkResult, duration_ms: int) -> JsonDict:
        result = ToolResult(content=given.text, status=given.status, summary=given.summary)
        self._end_event(run, call, result, duration_ms)
        return self._block(call, result)

    def _close(self, run: Run, calls: Sequence[Call], results: dict[str, JsonDict]) -> None:
        open_calls = {tool.call for tool in self._hub.state.runs[run.run].tools}
        for call in calls:
            if call.id in results:
                continue
            text = "Aborted: the run was stopped before this call had a result."
            if call.name in FORKING and call.id in open_calls and self.launcher is not None:
                results[call.id] = self._forked(run, call, self.launcher.stopped(run, call.id), 0)
            else:
                results[call.id] = result_block(call.id, text, error=True)
        blocks = [results[call.id] for call in calls]
        run.take(run.results_message(blocks), self._hub)

    async def _one(self, run: Run, call: Call) -> JsonDict:
        tool = self._parts.tools.get(call.name)
        if call.broken:
            return self._ended(run, call, _broken_result())
        if tool is None:
            known = ", ".join(spec.name for spec in self._parts.specs)
            text = f"There is no tool {call.name!r}. Use one of {known}."
            return self._ended(run, call, ToolResult(content=text, status="error"))
        allowed = await self._approvals.settle(run, call.id, tool, call.arguments)
        if not isinstance(allowed, Granted):
            denied = ToolResult(content=allowed.reason, status="denied", summary=allowed.summary)
            return self._ended(run, call, denied)
        call = _as_edited(call, allowed)
        result = await self._run(run, call, tool, allowed.access)
        if result.wants_work and allowed.access == "look":
            again = await self._approvals.offer_work(run, call.id, tool, call.arguments)
            if isinstance(again, Granted):
                call = _as_edited(call, again)
                result = await self._run(run, call, tool, again.access)
        return self._block(call, result)

    async def _run(self, run: Run, call: Call, tool: Tool, access: Access) -> ToolResult:
        """Run a tool once, with its events."""
        changes = tool.effects and access != "look"
        if changes and self.effects is not None:
            await self.effects.before_effect(run)
        started = self._started(run, call, access)
        if changes:
            await self._durable.append(started)
        else:
            self._hub.append(started)
        began = self._parts.clock.monotonic_ms()
        try:
            result = await self._guarded(run, call, tool, access)
        except asyncio.CancelledError:
            text = "Aborted: the run was stopped."
            result = ToolResult(content=text, status="aborted", view=access)
            self._end_event(run, call, result, self._parts.clock.monotonic_ms() - began)
            raise
        self._end_event(run, call, result, self._parts.clock.monotonic_ms() - began)
        if changes:
            await self._durable.sync()
        return result

    async def _guarded(self, run: Run, call: Call, tool: Tool, access: Access) -> ToolResult:
        """Run a tool in a task of its own, so that it can be cancelled alone."""

        def progress(tail: str, total: int) -> None:
            self._hub.append(
                ToolProgressed(run=run.run, call=call.id, tail=clean_text(tail), total_bytes=total)
            )

        context = ToolContext(
            workspace=run.workspace,
            marks=run.marks,
            access=access,
            progress=progress,
            spill_name=f"{run.run}-{_safe(call.id)}",
        )
        task = asyncio.ensure_future(tool.run(call.arguments, context))
        run.calls[call.id] = task
        try:
            return await task
        except asyncio.CancelledError:
            why = run.cancelled.pop(call.id, None)
            current = asyncio.current_task()
            if why is None or (current is not None and current.cancelling()):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                raise
            text = f"This call was cancelled: {why}. The run goes on."
            return ToolResult(content=text, status="aborted", view=access)
        except ToolDenied as error:
            return ToolResult(content=str(error), status="denied", view=access)
        except ToolError as error:
            return ToolResult(content=str(error), status="error", view=access)
        except Exception as error:  # noqa: BLE001 - the door of every tool call
            text = f"The tool failed inside: {type(error).__name__}: {error}"
            return ToolResult(content=text, status="error", view=access)
        finally:
            run.calls.pop(call.id, None)

    def _ended(self, run: Run, call: Call, result: ToolResult) -> JsonDict:
        """End a call that never ran."""
        self._start_event(run, call, result.view)
        self._end_event(run, call, result, 0)
        return self._block(call, result)

    def _start_event(self, run: Run, call: Call, view: Access | None = None) -> Event:
        return self._hub.append(self._started(run, call, view))

    def _started(self, run: Run, call: Call, view: Access | None) -> ToolStarted:
        tool = self._parts.tools.get(call.name)
        argument = ""
        if tool is not None:
            argument = tool.describe(call.arguments)
        elif call.name in FORKING and self.launcher is not None:
            argument = self.launcher.describe(call)
        return ToolStarted(
            run=run.run,
            call=call.id,
            name=call.name,
            input=to_raw(call.arguments),
            argument=clean_text(argument),
            view=view,
        )

    def _end_event(self, run: Run, call: Call, result: ToolResult, duration_ms: int) -> None:
        self._hub.append(
            ToolEnded(
                run=run.run,
                call=call.id,
                name=call.name,
                status=result.status,
                content=clean_text(result.content),
                summary=result.summary,
                duration_ms=duration_ms,
                view=result.view,
                exit_code=result.exit_code,
                path=result.path,
                added=result.added,
                removed=result.removed,
                patch=clean_text(result.patch),
                spill=result.spill,
            )
        )

    def _block(self, call: Call, result: ToolResult) -> JsonDict:
        text = result.content
        if call.edited:
            command = str(call.arguments.get("command", ""))
            text = f"[The person edited the command; this ran instead: {command}]\n{text}"
        return result_block(call.id, text, error=result.status != "ok")


def _as_edited(call: Call, allowed: Granted) -> Call:
    """Return the call with the command that the person put in place of the asked one."""
    if allowed.edited is None:
        return call
    return replace(call, arguments={**call.arguments, "command": allowed.edited}, edited=True)


def parse(block: JsonDict) -> Call:
    """Return the call of a tool_use block."""
    arguments: Any = block.get("input")
    if not isinstance(arguments, dict):
        return Call(str(block["id"]), str(block.get("name")), {}, broken=True)
    return Call(str(block["id"]), str(block.get("name")), cast("JsonDict", arguments))


def grouped(calls: Sequence[Call]) -> list[tuple[Literal["tools", "forks"], list[Call]]]:
    """Split calls into groups that run one after the other.

    Neighbouring read, grep, find and ls calls run together; others alone; all fork calls are one
    group at the place of the first.
    """
    groups: list[tuple[Literal["tools", "forks"], list[Call]]] = []
    forks = [call for call in calls if call.name in FORKING]
    joinable = False
    for call in calls:
        if call.name in FORKING:
            if call is forks[0]:
                groups.append(("forks", forks))
                joinable = False
            continue
        together = call.name in TOGETHER
        if together and joinable:
            groups[-1][1].append(call)
        else:
            groups.append(("tools", [call]))
        joinable = together
    return groups


def result_block(call: str, text: str, *, error: bool = False) -> JsonDict:
    """Return a tool_result block; an empty text is said to be empty."""
    block: JsonDict = {
        "type": "tool_result",
        "tool_use_id": call,
        "content": clean_text(text) or "(no output)",
    }
    if error:
        block["is_error"] = True
    return block


def _broken_result() -> ToolResult:
    text = "Not run: the call's input is not a JSON object. Send the call again, whole."
    return ToolResult(content=text, status="error")


def _safe(name: str) -> str:
    return "".join(char if char.isalnum() or char in "_-" else "_" for char in name)[:64]
