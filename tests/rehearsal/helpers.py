"""Helpers of the rehearsal tests: a manual clock, a client, small scenarios."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from forkdeck.providers.rehearsal.scenario import EMPTY, Scenario, load
from forkdeck.providers.rehearsal.server import RehearsalServer

SAMPLE = Path(str(files("forkdeck"))) / "sample"
MODEL = "claude-opus-5-5"
MARK = {"type": "ephemeral"}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": name, "input_schema": {"type": "object"}}


def call(ident: str, name: str = "read", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": ident, "name": name, "input": arguments}


def result(ident: str, words: str = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": ident, "content": words, **more}


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 4000, "messages": list(messages), **more}


def say(words: str = "Hello there.") -> Scenario:
    return load(f'name = "say"\n[[answer]]\n[[answer.round]]\ntext = "{words}"\n')


@asynccontextmanager
async def serving(
    scenario: Scenario = EMPTY, **more: Any
) -> AsyncGenerator[tuple[RehearsalServer, Any]]:
    """Run a server without waits; yields (server, client)."""
    import anthropic

    options: dict[str, Any] = {"speed": 0, **more}
    server = RehearsalServer(scenario, **options)
    await server.start()
    client = anthropic.AsyncAnthropic(
        auth_token=server.token, base_url=server.base_url, max_retries=0, timeout=20
    )
    try:
        yield server, client
    finally:
        await client.close()
        await server.stop()


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that only another task can tell."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - the journal has no event to wait for
            await asyncio.sleep(0.01)


async def raw(server: RehearsalServer, data: bytes, *, wait: float = 5) -> bytes:
    """Send bytes as they are and return all that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(data)
        await writer.drain()
        async with asyncio.timeout(wait):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def request_bytes(
    server: RehearsalServer,
    payload: bytes,
    *,
    path: str = "/v1/messages",
    method: str = "POST",
    close: bool = True,
    **headers: str | None,
) -> bytes:
    fields: dict[str, str | None] = {
        "host": f"127.0.0.1:{server.port}",
        "authorization": f"Bearer {server.token}",
        "anthropic-version": "2026-10-21",
        "content-length": str(len(payload)),
        "connection": "close" if close else "keep-alive",
    }
    fields |= {key.replace("_", "-"): value for key, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1"]
    lines += [f"{key}: {value}" for key, value in fields.items() if value is not None]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + payload
