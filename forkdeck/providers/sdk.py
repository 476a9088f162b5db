"""The SDK's client, made late and with nothing from the environment but what was taken on purpose.

Used by `client` in a worker thread: the import is slow. Retries, redirects, logging and the SDK's
own look at the environment are switched off; signing in is left to it.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from forkdeck.providers.capabilities import Auth
from forkdeck.providers.credentials import DEFAULT_BASE_URL, Credentials

if TYPE_CHECKING:
    import anthropic
    import httpx2

LONGEST_REFUSAL_BYTES = 64 << 10
"""What is read of a refusal, as sent: compressed, it can still be a thousand times as much."""

_PREFIX = "ANTHROPIC_"
_LOGGERS = ("anthropic", "httpx2", "httpcore2")
_environment_lock = threading.Lock()


def make_client(
    credentials: Credentials,
    *,
    base_url: str | None,
    headers: Mapping[str, str],
    auth: Auth,
    read_timeout_s: float,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> anthropic.AsyncAnthropic:
    """Import the SDK and return a client; slow, so call it in a thread.

    Args:
        credentials: What to sign with.
        base_url: The endpoint; None: the profile's own, else the usual one.
        headers: Headers for every request, from the user's settings.
        auth: Which header carries an API key.
        read_timeout_s: Longest silence of the endpoint, in seconds.
        transport: Stands in for the network in tests.

    Raises:
        Exception: Whatever the SDK says about a broken profile; `classify` knows it.
    """
    import_sdk()
    import anthropic  # noqa: PLC0415 - a second of import time, and most commands never need it
    import httpx2  # noqa: PLC0415 - comes with it

    rehearsal = credentials.kind == "rehearsal"
    network: dict[str, Any] = {} if transport is None else {"transport": transport}
    http = anthropic.DefaultAsyncHttpxClient(
        # A redirect would carry the conversation to an address nobody chose.
        follow_redirects=False,
        # The loopback server is never reached through a proxy.
        trust_env=not rehearsal,
        timeout=httpx2.Timeout(read_timeout_s, connect=10.0),
        event_hooks={"response": [_shortener()]},
        **network,
    )
    with _environment(credentials.plain_values() if credentials.kind == "profile" else {}):
        return anthropic.AsyncAnthropic(
            http_client=http,
            max_retries=0,
            base_url=base_url,
            default_headers=_headers(credentials, auth, headers, anthropic.Omit()),
            **_signing(credentials, base_url),
        )


def _shortener() -> Callable[[httpx2.Response], Awaitable[None]]:
    """Return a hook that ends a refusal's body early: the SDK reads all of it into memory."""
    import httpx2  # noqa: PLC0415 - as above

    class Short(httpx2.AsyncByteStream):
        def __init__(self, whole: httpx2.AsyncByteStream) -> None:
            self._whole = whole

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = LONGEST_REFUSAL_BYTES
            async for piece in self._whole:
                yield piece[:left]
                left -= len(piece)
                if left <= 0:
                    return

        async def aclose(self) -> None:
            await self._whole.aclose()

    async def shorten(response: httpx2.Response) -> None:
        if not response.is_success and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = Short(response.stream)

    return shorten


def import_sdk() -> None:
    """Import the SDK; slow, so call it in a thread.

    What it brings lives as long as the process. It is kept out of every later collection, each
    of which would hold up keys for a tenth of a second, and none runs during the import.
    """
    silence()
    if "anthropic" in sys.modules:
        return
    collects = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module("anthropic")
    finally:
        if collects:
            gc.enable()
    gc.freeze()


def silence() -> None:
    """Keep the libraries' loggers off the screen, which draws on stderr."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            logger.addHandler(logging.NullHandler())
        logger.propagate = False


def _signing(credentials: Credentials, base_url: str | None) -> dict[str, Any]:
    match credentials.kind:
        case "rehearsal":
            return {"auth_token": credentials.rehearsal_token()}
        case "key":
            return {"api_key": credentials.get("ANTHROPIC_API_KEY")}
        case "token":
            return {"auth_token": credentials.get("ANTHROPIC_AUTH_TOKEN")}
        case "profile":
            return {"profile": credentials.profile}
        case "federation":
            return {"credentials": _federation(credentials, base_url or DEFAULT_BASE_URL)}
        case "none":
            return {}


def _federation(credentials: Credentials, base_url: str) -> Any:
    from anthropic.lib.credentials import (  # noqa: PLC0415 - as the SDK itself
        IdentityTokenFile,
        WorkloadIdentityCredentials,
    )

    path = credentials.get("ANTHROPIC_IDENTITY_TOKEN_FILE")
    token = credentials.get("ANTHROPIC_IDENTITY_TOKEN") or ""
    provider = WorkloadIdentityCredentials(
        identity_token_provider=IdentityTokenFile(path) if path else lambda: token,
        federation_rule_id=credentials.get("ANTHROPIC_FEDERATION_RULE_ID") or "",
        organization_id=credentials.get("ANTHROPIC_ORGANIZATION_ID") or "",
        service_account_id=credentials.get("ANTHROPIC_SERVICE_ACCOUNT_ID"),
        workspace_id=credentials.get("ANTHROPIC_WORKSPACE_ID"),
        scope=credentials.get("ANTHROPIC_SCOPE"),
    )
    provider.bind_base_url(base_url)
    return provider


def _headers(
    credentials: Credentials, auth: Auth, headers: Mapping[str, str], omit: Any
) -> dict[str, Any]:
    if credentials.kind == "rehearsal":
        return {}
    found = {**credentials.custom_headers(), **headers}
    key = credentials.get("ANTHROPIC_API_KEY") if credentials.kind == "key" else None
    if not key or auth == "bearer":
        return found
    # The SDK sends the key as a bearer token; many compatible endpoints read the older header.
    either = {"x-api-key": key}
    return {**either, **found} if auth == "both" else {"Authorization": omit, **either, **found}


@contextmanager
def _environment(values: Mapping[str, str]) -> Generator[None]:
    """Let the SDK see exactly `values` of its variables while a client is made."""
    with _environment_lock:
        before = {name: text for name, text in os.environ.items() if name.startswith(_PREFIX)}
        for name in before:
            del os.environ[name]
        os.environ.update(values)
        try:
            yield
        finally:
            for name in values:
                os.environ.pop(name, None)
            os.environ.update(before)
