"""Scripted stand-ins for everything an engine touches, and the suite-wide net over requests."""

from __future__ import annotations

import asyncio
import heapq
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from forkdeck.errors import ProviderError, StreamCut, ToolError, WorktreeError
from forkdeck.model.events import Event
from forkdeck.model.ports import EndpointFacts, ModelFacts
from forkdeck.model.prefix import first_difference, message_blocks, positions
from forkdeck.model.raw import JsonDict, to_raw
from forkdeck.model.stream import Completed, ModelRequest, Opened, StreamPart, TextPart
from forkdeck.model.tooling import ProcessResult, ToolContext, ToolResult
from forkdeck.model.usage import Usage
from forkdeck.model.work import AppliedWork, FileChange, Lease, RepoFacts, SavedWork, WorkDiff
from forkdeck.tools.registry import BUILTIN, all_specs


class VirtualClock:
    """Time that jumps to the next sleeper whenever the loop has nothing else to do.

    The loop says so itself: it is about to wait, no file descriptor is ready and no thread works
    for it. A busy machine changes nothing about when that is.
    """

    def __init__(self) -> None:
        self.ms = 0.0
        self.order = 0
        self.sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self.threads = 0
        self._watch(asyncio.get_running_loop())

    def monotonic_ms(self) -> int:
        return int(self.ms)

    def now(self) -> datetime:
        return datetime(2026, 11, 30, 20, 0, tzinfo=UTC) + timedelta(milliseconds=self.ms)

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self.order += 1
        heapq.heappush(self.sleepers, (self.ms + seconds * 1000, self.order, future))
        await future

    async def jump(self) -> None:
        """Let one sleeper wake, and return when the loop rests again."""
        if self.sleepers:
            await self.sleep((self.sleepers[0][0] - self.ms) / 1000)
        else:
            await asyncio.sleep(0.001)

    def _watch(self, loop: Any) -> None:
        wait, in_thread = loop._selector.select, loop.run_in_executor

        def select(timeout: float | None) -> Any:
            if timeout is not None and timeout <= 0:
                return wait(timeout)
            ready = wait(0)
            if ready or (not self.threads and self._wake_next()):
                return ready
            return wait(timeout)

        def run_in_executor(*args: Any) -> Any:
            future = in_thread(*args)
            self.threads += 1
            future.add_done_callback(self._thread_done)
            return future

        loop._selector.select, loop.run_in_executor = select, run_in_executor

    def _thread_done(self, _: object) -> None:
        self.threads -= 1

    def _wake_next(self) -> bool:
        """Jump to the next sleeper that still waits, if there is one."""
        while self.sleepers:
            until, _, future = heapq.heappop(self.sleepers)
            if not future.done():
                self.ms = max(self.ms, until)
                future.set_result(None)
                return True
        return False


class FakeSink:
    """Keeps events; can be told to have trouble."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.synced = 0
        self.trouble: str | None = None
        self.full = False
        self.closed = False

    def put(self, event: Event) -> None:
        assert not self.closed
        self.events.append(event)

    async def sync(self) -> None:
        await asyncio.sleep(0)
        self.synced = len(self.events)

    async def close(self) -> None:
        self.closed = True

    def of(self, kind: type[Event], run: str | None = None) -> list[Any]:
        return [e for e in self.events if isinstance(e, kind) and run in (None, e.run)]


class FakeGate:
    """Passes everyone; waits as a simple gate would."""

    def __init__(self) -> None:
        self.inside: set[str] = set()
        self.seen = 0
        self.width = self.most = 8

    async def enter(self, run: str, waiting: Callable[[str, int], None]) -> None:
        self.inside.add(run)
        self.seen = max(self.seen, len(self.inside))

    def leave(self, run: str) -> None:
        self.inside.remove(run)

    def succeeded(self) -> None:
        pass

    def wait_after(self, error: ProviderError, attempt: int) -> tuple[float, int | None] | None:
        if error.retry_after_s is not None:
            return error.retry_after_s, None
        if error.retryable and attempt < 5:
            return 2.0, 5
        return None


PRICE = (Decimal("5e-6"), Decimal("6.25e-6"), Decimal("0.5e-6"), Decimal("25e-6"))


class FakePrices:
    """One price for every model but `unpriced`; or none at all."""

    def __init__(
        self, context: int | None = 200_000, minimum: int = 10, *, priced: bool = True
    ) -> None:
        self.context = context
        self.minimum = minimum
        self.priced = priced

    def cost_usd(self, model: str, usage: Usage) -> tuple[Decimal | None, str]:
        price = self.per_token_usd(model)
        if price is None:
            return None, ""
        total = price[0] * usage.input_tokens + price[3] * usage.output_tokens
        total += price[1] * (usage.cache_creation_input_tokens or 0)
        return total + price[2] * (usage.cache_read_input_tokens or 0), "test"

    def read_saving_usd(self, model: str, read_tokens: int) -> Decimal | None:
        price = self.per_token_usd(model)
        return None if price is None else (price[0] - price[2]) * read_tokens

    def per_token_usd(self, model: str) -> tuple[Decimal, Decimal, Decimal, Decimal] | None:
        return PRICE if self.priced and model != "unpriced" else None

    def facts(self, model: str) -> ModelFacts:
        return ModelFacts(
            context_tokens=self.context,
            max_output_tokens=8_000,
            cache_minimum_tokens=self.minimum,
            thinking={"type": "adaptive"},
            effort="high",
        )


@dataclass
class Reply:
    """What a scripted model answers."""

    text: str = ""
    calls: Sequence[tuple[str, JsonDict]] = ()
    stop: str | None = None
    error: ProviderError | None = None
    cut: bool = False
    gate: asyncio.Event | None = None
    hold: asyncio.Event | None = None
    thinking: str = ""
    raw_calls: Sequence[JsonDict] = ()
    delay_s: float = 0.0


@dataclass
class Asked:
    """A request, as a script sees it."""

    run: str
    body: JsonDict
    number: int

    @property
    def last(self) -> list[JsonDict]:
        return message_blocks(self.body["messages"][-1])

    @property
    def results(self) -> list[JsonDict]:
        return [b for b in self.last if b["type"] == "tool_result"]

    @property
    def text(self) -> str:
        return "\n".join(str(b.get("text", "")) for b in self.last)


Script = Callable[[Asked], Reply]


@dataclass
class Net:
    """Every captured request must extend its run's last one; forks start with their parent's."""

    exempt: bool = False
    by_run: dict[str, list[JsonDict]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def take(self, request: ModelRequest) -> None:
        """Check a request; a fault is kept as well, for the engine may take it for its own."""
        try:
            self._check(request)
        except AssertionError as error:
            self.faults.append(str(error))
            raise

    def _check(self, request: ModelRequest) -> None:
        body = json.loads(json.dumps(request.body))
        mine = self.by_run.setdefault(request.run, [])
        assert marks(body) <= 4
        assert_valid(body)
        if not self.exempt:
            found = positions(body)
            if mine:
                at = first_difference(positions(mine[-1]), found)
                assert at is None, f"{request.run} changed position {at}"
        mine.append(body)


def marks(body: JsonDict) -> int:
    blocks = [*body["tools"], *body["system"]]
    for message in body["messages"]:
        blocks += message_blocks(message)
    return sum("cache_control" in block for block in blocks)


def assert_valid(body: JsonDict) -> None:
    """Check what the API checks: roles, and a result for every call in the next message."""
    messages = body["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
    calls: list[str] = []
    for message in messages:
        blocks = message_blocks(message)
        assert blocks
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if message["role"] == "user":
            assert results == calls
            assert [b["type"] for b in blocks[: len(results)]] == ["tool_result"] * len(results)
            calls = []
        else:
            calls = [b["id"] for b in blocks if b["type"] == "tool_use"]


class ScriptedProvider:
    """Answers by a script, with a cache that knows whole requests as prefixes."""

    def __init__(self, clock: VirtualClock, net: Net, cache_fields: bool = True) -> None:
        self.clock = clock
        self.net = net
        self.script: Script = lambda asked: Reply("done")
        self.cache_fields = cache_fields
        self.requests: list[ModelRequest] = []
        self.sent_ms: list[tuple[str, int]] = []
        self.cached: list[list[bytes]] = []
        self.open = 0
        self.closed = False
        self.calls = 0
        self.endpoint = EndpointFacts(
            base_url="http://127.0.0.1", name="scripted", account="aaaa", cache_fields=cache_fields
        )

    def endpoint_for(self, model: str) -> EndpointFacts:
        del model
        return self.endpoint

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        self.net.take(request)
        self.requests.append(request)
        self.sent_ms.append((request.run, self.clock.monotonic_ms()))
        number = sum(each.run == request.run for each in self.requests)
        reply = self.script(Asked(request.run, request.body, number))
        self.open += 1
        try:
            if reply.gate is not None:
                await reply.gate.wait()
            if reply.delay_s:
                await self.clock.sleep(reply.delay_s)
            if reply.error is not None and not reply.cut:
                raise reply.error
            found = positions(request.body)
            usage = self._usage(found)
            identity = f"msg_{len(self.requests)}"
            yield Opened(message_id=identity, model=request.body["model"], usage=usage)
            self.cached.append(found)
            for start in range(0, len(reply.text), 40):
                yield TextPart(0, reply.text[start : start + 40])
                await asyncio.sleep(0)
            if reply.hold is not None:
                await reply.hold.wait()
            if reply.cut:
                raise reply.error or StreamCut("the connection was reset")
            yield self._completed(reply, usage, identity)
        finally:
            self.open -= 1

    def _usage(self, found: list[bytes]) -> Usage:
        best = 0
        for known in self.cached:
            if first_difference(known, found) is None:
                best = max(best, sum(map(len, known)))
        total = sum(map(len, found))
        if not self.cache_fields:
            return Usage(input_tokens=total // 4, output_tokens=1)
        return Usage(
            input_tokens=3,
            output_tokens=1,
            cache_read_input_tokens=best // 4,
            cache_creation_input_tokens=(total - best) // 4,
        )

    def _completed(self, reply: Reply, usage: Usage, identity: str) -> Completed:
        content: list[JsonDict] = []
        if reply.thinking:
            content.append({"type": "thinking", "thinking": reply.thinking, "signature": "s" * 8})
        if reply.text:
            content.append({"type": "text", "text": reply.text})
        for name, arguments in reply.calls:
            self.calls += 1
            call = {"type": "tool_use", "id": f"toolu_{self.calls}", "name": name}
            content.append({**call, "input": arguments})
        content += reply.raw_calls
        stop = reply.stop or ("tool_use" if reply.calls or reply.raw_calls else "end_turn")
        return Completed(
            message=to_raw({"role": "assistant", "content": content}),
            stop_reason=stop,
            usage=Usage(
                input_tokens=usage.input_tokens,
                output_tokens=20,
                cache_read_input_tokens=usage.cache_read_input_tokens,
                cache_creation_input_tokens=usage.cache_creation_input_tokens,
            ),
            message_id=identity,
        )

    async def close(self) -> None:
        self.closed = True


class FakeWorkspace:
    """A machine of a few text files and commands that a test answers."""

    def __init__(self, level: str = "sandboxed") -> None:
        self.root = "/w"
        self.cwd = "/w"
        self.level: Any = level
        self.files: dict[str, bytes] = {"a.py": b"print(1)\n"}
        self.commands: list[tuple[str, str]] = []

    def resolve(self, path: str, *, write: bool = False) -> Path:
        if ".." in path:
            raise ToolError(f"{path} is outside.")
        return Path(self.root) / path

    async def read_bytes(self, path: str, limit: int) -> bytes:
        if path not in self.files:
            raise ToolError(f"There is no file {path}.")
        return self.files[path][: limit + 1]

    async def write_bytes(self, path: str, data: bytes) -> None:
        self.files[path] = data

    async def run(self, command: Any, *, access: Any, **_: Any) -> ProcessResult:
        self.commands.append((str(command), access))
        return ProcessResult(exit_code=0, head="out\n", tail="", total_bytes=4)


Behaviour = Callable[[JsonDict, ToolContext], Any]


class FakeTool:
    """A tool with a real declaration and scripted behaviour."""

    def __init__(self, tool: Any, log: list[tuple[str, str, str]]) -> None:
        self.spec = tool.spec
        self.effects = tool.effects
        self.behaviour: Behaviour | None = None
        self.log = log

    def describe(self, arguments: JsonDict) -> str:
        return " ".join(str(value) for value in arguments.values())

    async def run(self, arguments: JsonDict, context: ToolContext) -> ToolResult:
        self.log.append((context.spill_name, self.spec.name, context.access))
        if self.behaviour is not None:
            result = self.behaviour(arguments, context)
            if asyncio.iscoroutine(result):
                result = await result
            return result
        return ToolResult(content=f"{self.spec.name} says ok", view=context.access)


def fake_tools(log: list[tuple[str, str, str]]) -> dict[str, FakeTool]:
    return {tool.spec.name: FakeTool(tool, log) for tool in BUILTIN}


SPECS = all_specs()


class FakeTree:
    """The parent's tree at one time, as status lines."""

    def __init__(self, *lines: str) -> None:
        self.lines = frozenset(lines)

    def moved(self, later: FakeTree) -> tuple[str, ...]:
        return tuple(sorted(self.lines ^ later.lines))


class FakeWorktrees:
    """Worktrees that only remember; saving can be made to fail."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.fail_save = False
        self.fail_create = False
        self.spaces: dict[str, FakeWorkspace] = {}
        self.conflict = False
        self.heavy = ""
        self.changed: Any = None
        self.unwatched: dict[str, str] = {}
        self.trees: list[FakeTree] = []

    async def parent_state(self) -> FakeTree | None:
        return self.trees.pop(0) if self.trees else None

    async def inspect(self) -> RepoFacts:
        return RepoFacts(kind="ok", root="/w", head="c0ffee")

    async def burden(self) -> str:
        return self.heavy

    async def create(self, handle: str, *, dirty: bool = False) -> Lease:
        await asyncio.sleep(0)
        if self.fail_create:
            raise WorktreeError("git refused.")
        self.log.append(f"create {handle}")
        return Lease(
            handle=handle, path=f"/wt/{handle}", inside="/w", base="c0ffee", base_ref="r",
            level="sandboxed", dirty=dirty, not_visible=2,
        )  # fmt: skip

    async def reopen(self, handle: str) -> Lease:
        self.log.append(f"reopen {handle}")
        return Lease(
            handle=handle, path=f"/wt/{handle}", inside="/w", base="c0ffee", base_ref="r",
            level="sandboxed",
        )  # fmt: skip

    def workspace(self, lease: Lease) -> FakeWorkspace:
        return self.spaces.setdefault(lease.handle, FakeWorkspace())

    async def save(self, handle: str) -> SavedWork | None:
        await asyncio.sleep(0)
        if self.fail_save:
            raise WorktreeError("the disk is full.", "Make room.")
        self.log.append(f"save {handle}")
        return SavedWork(
            ref=f"refs/forkdeck/s/{handle}/work/1", commit="beef", base="c0ffee",
            files=(FileChange("a.py"),),
        )  # fmt: skip

    async def remove(self, handle: str) -> None:
        self.log.append(f"remove {handle}")

    async def diff(self, base: str, commit: str) -> WorkDiff:
        return WorkDiff(base=base, commit=commit)

    async def live_diff(self, handle: str) -> WorkDiff:
        return WorkDiff(base="live", commit=handle)

    async def apply(self, work: SavedWork, *, method: str = "patch") -> AppliedWork:
        if self.conflict:
            from forkdeck.errors import ApplyRefused

            raise ApplyRefused("It conflicts.", "Look at it.", ["a.py"])
        self.log.append(f"apply {work.ref}")
        return AppliedWork(undo_ref="refs/undo/1", files=work.files)

    async def undo(self, ref: str) -> AppliedWork:
        self.log.append(f"undo {ref}")
        return AppliedWork(undo_ref=ref, files=())

    async def snapshot(self, turn: int) -> str | None:
        self.log.append(f"snapshot {turn}")
        return f"refs/parent/{turn}"

    def watch(self, changed: Any) -> None:
        self.changed = changed

    async def entries(self) -> Sequence[Any]:
        return ()

    async def close(self) -> None:
        self.log.append("close")
