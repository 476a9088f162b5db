"""A manual clock, streams as text, and a tiny local server that breaks in every way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from forkdeck.model.stream import ModelRequest
from forkdeck.providers.sse import SseDecoder

HERE = Path(__file__).parent
KEY = "sk-ant-api03-SECRETSECRETSECRET"


class ManualClock:
    """Time that moves only when it is told to."""

    def __init__(self) -> None:
        self.ms = 1_000
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []

    def monotonic_ms(self) -> int:
        return self.ms

    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC) + timedelta(milliseconds=self.ms)

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.ms + round(seconds * 1000), future))
        await future

    @property
    def sleeping(self) -> int:
        return sum(not future.done() for _, future in self._sleepers)

    async def advance(self, ms: int) -> None:
        target = self.ms + ms
        while True:
            await settle()
            due = sorted(
                (at, n) for n, (at, f) in enumerate(self._sleepers) if at <= target and not f.done()
            )
            if not due:
                break
            at, number = due[0]
            self.ms = max(self.ms, at)
            self._sleepers[number][1].set_result(None)
        self.ms = target
        await settle()


async def settle(rounds: int = 12) -> None:
    """Let everything run that can run without time."""
    for _ in range(rounds):
        await asyncio.sleep(0)


def request(**body: Any) -> ModelRequest:
    base = {
        "model": "claude-opus-5-5",
        "max_tokens": 64,
        "system": [{"type": "text", "text": "s"}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }
    return ModelRequest(run="p", body={**base, **body})


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def start(usage: Any = None, **fields: Any) -> dict[str, Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    if usage is None:
        usage = {"input_tokens": 10, "output_tokens": 1}
    if usage != "none":
        message["usage"] = usage
    return event("message_start", message={**message, **fields})


def block(index: int, **fields: Any) -> dict[str, Any]:
    return event("content_block_start", index=index, content_block=fields)


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return event("content_block_delta", index=index, delta={"type": kind, **fields})


def stop(index: int) -> dict[str, Any]:
    return event("content_block_stop", index=index)


def finish(
    reason: str | None = "end_turn", usage: Any = None, **fields: Any
) -> list[dict[str, Any]]:
    found = event("message_delta", delta={"stop_reason": reason, **fields})
    found["usage"] = {"output_tokens": 5} if usage is None else usage
    return [found, event("message_stop")]


def text_answer(text: str = "hello") -> list[dict[str, Any]]:
    return [
        start(),
        block(0, type="text", text=""),
        delta(0, "text_delta", text=text),
        stop(0),
        *finish(),
    ]


def sse(events: list[dict[str, Any]], *, named: bool = True) -> bytes:
    lines = []
    for one in events:
        name = f"event: {one['type']}\n" if named else ""
        lines.append(f"{name}data: {json.dumps(one)}\n\n")
    return "".join(lines).encode()


def events_of(data: bytes, chunk: int = 10**9) -> list[dict[str, Any] | None]:
    """Decode a whole capture; None stands for data that is no JSON."""
    decoder = SseDecoder()
    records = []
    for at in range(0, len(data), chunk):
        records += decoder.feed(data[at : at + chunk])
    records += decoder.end()
    found: list[dict[str, Any] | None] = []
    for record in records:
        try:
            found.append(json.loads(record.data))
        except ValueError:
            found.append(None)
    return found


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]


@asynccontextmanager
async def local_server(handler: Handler):
    """Serve `handler(reader, writer, body)` on a local port; yields the address."""
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            await handler(reader, writer, await reader.readexactly(length))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"
