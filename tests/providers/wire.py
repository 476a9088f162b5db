"""Credentials, mock transports and whole answers for the provider's tests."""

from __future__ import annotations

import json
from typing import Any

import httpx2

from forkdeck.providers.client import AnthropicProvider
from forkdeck.providers.credentials import Credentials
from tests.providers.support import KEY, request


def credentials(tmp_path: Any, **variables: str) -> Credentials:
    given = {"ANTHROPIC_API_KEY": KEY, **variables}
    return Credentials.take(given, tmp_path)


def answering(
    status: int = 200, body: bytes | str | dict[str, Any] = b"", **headers: str
) -> tuple[httpx2.MockTransport, list[httpx2.Request]]:
    seen: list[httpx2.Request] = []

    def handler(asked: httpx2.Request) -> httpx2.Response:
        seen.append(asked)
        kind = {"content-type": "text/event-stream" if status == 200 else "application/json"}
        more = {name.replace("_", "-"): text for name, text in headers.items()}
        data = json.dumps(body) if isinstance(body, dict) else body
        return httpx2.Response(status, content=data, headers={**kind, **more})

    return httpx2.MockTransport(handler), seen


async def collect(
    provider: AnthropicProvider, asked: Any = None, into: list[Any] | None = None
) -> list[Any]:
    """Read an answer to its end and close; `into` also keeps what came before an error."""
    parts: list[Any] = [] if into is None else into
    try:
        async for part in provider.stream(asked or request()):
            parts.append(part)
        return parts
    finally:
        await provider.close()
