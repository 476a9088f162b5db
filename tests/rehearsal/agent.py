"""A minimal agent loop for the scenario tests: the real SDK, the real tools, no engine.

It forks as the product does: the child gets everything before the call, and the directive as a
block added to the last user message.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

from forkdeck.errors import PathRefused, ToolError
from forkdeck.model.state import ForkState
from forkdeck.model.tooling import ProcessResult, ReadMarks, ToolContext
from forkdeck.model.words import Level
from forkdeck.seeds.directive import directive_block
from forkdeck.seeds.policy_words import Gives
from forkdeck.tools import registry
from tests.rehearsal.helpers import MARK, assistant, text, user

MODEL = "claude-opus-5-5"
SYSTEM = [text("You are a careful coding agent. " * 40, cache_control=MARK)]
THINKING = {"type": "adaptive", "display": "summarized"}


class PlainWorkspace:
    """A directory without a sandbox; commands run in it as they are."""

    level: Level = "tool-policy only"

    def __init__(self, root: Path) -> None:
        self.root = self.cwd = str(root.resolve())

    def resolve(self, path: str, *, write: bool = False) -> Path:
        found = (Path(self.cwd) / path).resolve()
        if not found.is_relative_to(self.root):
            raise PathRefused(f"{path} is outside.")
        return found

    async def read_bytes(self, path: str, limit: int) -> bytes:
        try:
            return self.resolve(path).read_bytes()[: limit + 1]
        except OSError as error:
            raise ToolError(str(error)) from error

    async def write_bytes(self, path: str, data: bytes) -> None:
        self.resolve(path).write_bytes(data)

    async def run(self, command: Any, **_: Any) -> ProcessResult:
        done = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-c", command],
            cwd=self.cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return ProcessResult(
            exit_code=done.returncode,
            head=done.stdout.decode("utf-8", "replace"),
            tail="",
            total_bytes=len(done.stdout),
        )


class Agent:
    """One run: a history, a workspace, and everything its tools answered."""

    def __init__(self, client: Any, workspace: PlainWorkspace, retry_s: float = 0) -> None:
        self.client = client
        self.workspace = workspace
        self.retry_s = retry_s
        self.messages: list[dict[str, Any]] = []
        self.marks = ReadMarks()
        self.parent_mark: int | None = None
        self.calls: list[tuple[str, dict[str, Any], str, bool]] = []
        self.first_usage: Any = None
        self.waits: list[str] = []
        self.children: dict[str, Agent] = {}
        self.deny = ""

    async def step(self) -> Any:
        import anthropic

        while True:
            try:
                return await self.client.messages.create(
                    model=MODEL,
                    max_tokens=8000,
                    system=SYSTEM,
                    tools=[spec.declaration() for spec in registry.all_specs()],
                    thinking=THINKING,
                    messages=self._marked(),
                )
            except anthropic.RateLimitError as error:
                self.waits.append(error.response.headers["retry-after"])
                await asyncio.sleep(self.retry_s)

    def _marked(self) -> list[dict[str, Any]]:
        """Mark the last block, and the block where the parent's last request ended."""
        marked = [{**entry, "content": list(entry["content"])} for entry in self.messages]
        marked[-1]["content"][-1] = {**marked[-1]["content"][-1], "cache_control": MARK}
        if self.parent_mark is not None:
            at = self.parent_mark
            for entry in marked:
                if at < len(entry["content"]):
                    entry["content"][at] = {**entry["content"][at], "cache_control": MARK}
                    break
                at -= len(entry["content"])
        return marked

    async def run(self, *blocks: dict[str, Any]) -> str:
        self.messages.append(user(*blocks))
        return await self.go()

    async def go(self) -> str:
        for _ in range(20):
            message = await self.step()
            self.first_usage = self.first_usage or message.usage
            before = list(self.messages)
            self.messages.append(assistant(*[block.to_dict() for block in message.content]))
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                return "\n".join(b.text for b in message.content if b.type == "text")
            results = [await self._answer(call, before) for call in calls]
            self.messages.append(user(*results))
        raise AssertionError("it never ends")

    async def _answer(self, call: Any, before: list[dict[str, Any]]) -> dict[str, Any]:
        if call.name == "fork_join":
            content, error = await self._forks(call.input["tasks"], before), False
        else:
            content, error = await self._tool(call)
        self.calls.append((call.name, call.input, content, error))
        return {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": content,
            "is_error": error,
        }

    async def _tool(self, call: Any) -> tuple[str, bool]:
        if self.deny and self.deny in str(call.input):
            return "Denied by the person.", True
        tool = registry.by_name(call.name)
        assert tool is not None, call.name
        context = ToolContext(
            workspace=self.workspace,
            marks=self.marks,
            access=call.input.get("access", "fork"),
            progress=lambda tail, count: None,
            spill_name="spill",
        )
        try:
            result = await tool.run(call.input, context)
        except ToolError as error:
            return str(error), True
        return result.content, False

    async def _forks(self, tasks: list[dict[str, Any]], before: list[dict[str, Any]]) -> str:
        mark = sum(len(entry["content"]) for entry in before) - 1
        runs = []
        for number, task in enumerate(tasks, 1):
            place = self.workspace
            if task.get("write"):
                copy = Path(f"{self.workspace.root}-f{number}")
                shutil.copytree(self.workspace.root, copy)
                place = PlainWorkspace(copy)
            child = Agent(self.client, place, self.retry_s)
            child.marks, child.parent_mark, child.deny = self.marks.copy(), mark, self.deny
            fork = ForkState(
                handle=f"f{number}",
                name=task["id"],
                batch="b1",
                index=number - 1,
                seed="before_call",
                from_run="p",
                depth=1,
                queued_at_ms=0,
                boundary=mark + 1,
                task=task["task"],
                write=bool(task.get("write")),
            )
            seen = tuple(spec.name for spec in registry.all_specs())
            words = directive_block(fork, gives=Gives(seen))
            last = {**before[-1], "content": [*before[-1]["content"], words]}
            child.messages = [*before[:-1], last]
            self.children[task["id"]] = child
            runs.append(child.go())
        reports = await asyncio.gather(*runs)
        pairs = zip(tasks, reports, strict=True)
        return "\n\n".join(f"<fork {task['id']}>\n{report}\n</fork>" for task, report in pairs)
