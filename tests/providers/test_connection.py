"""The provider against a real local server that misbehaves."""

from __future__ import annotations

import asyncio
import secrets
import socket
import struct
import time
import zlib
from contextlib import aclosing
from typing import Any

import pytest

from forkdeck import errors
from forkdeck.model.stream import Completed, TextPart
from forkdeck.providers.client import AnthropicProvider
from forkdeck.providers.credentials import Credentials
from tests.providers.support import (
    HEAD,
    block,
    chunked,
    delta,
    local_server,
    request,
    sse,
    start,
    text_answer,
)
from tests.providers.wire import collect


async def _cut_after(tmp_path: Any, ending: str) -> tuple[errors.ProviderError, list[Any]]:
    begun = sse([start(), block(0, type="text", text=""), delta(0, "text_delta", text="half")])

    async def handler(_reader: Any, writer: asyncio.StreamWriter, _body: bytes) -> None:
        if ending == "before":
            return
        writer.write(HEAD)
        if ending != "empty":
            writer.write(chunked(begun))
        await writer.drain()
        await asyncio.sleep(0.05)
        if ending == "reset":
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif ending in ("clean", "empty"):
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        elif ending == "silent":
            await asyncio.sleep(30)

    async with local_server(handler) as address:
        provider = AnthropicProvider(Credentials.for_rehearsal(address, "t"), read_timeout_s=0.4)
        parts: list[Any] = []
        with pytest.raises(errors.ProviderError) as caught:
            await collect(provider, into=parts)
    return caught.value, parts


@pytest.mark.parametrize("ending", ["reset", "clean", "short", "silent"])
async def test_connection_that_ends_in_the_middle(tmp_path, ending):
    error, parts = await _cut_after(tmp_path, ending)
    assert isinstance(error, errors.StreamCut)
    assert parts[-1] == TextPart(0, "half")


@pytest.mark.parametrize("ending", ["before", "empty"])
async def test_connection_that_ends_before_the_beginning(tmp_path, ending):
    error, parts = await _cut_after(tmp_path, ending)
    assert isinstance(error, errors.Unreachable)
    assert parts == []


async def test_refused_connection_is_said(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    provider = AnthropicProvider(Credentials.for_rehearsal(f"http://127.0.0.1:{port}", "t"))
    with pytest.raises(errors.Unreachable, match="refuses connections"):
        await collect(provider)


async def test_closing_closes_the_connection_at_once():
    gone = asyncio.Event()

    async def handler(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _body: bytes
    ) -> None:
        writer.write(HEAD + chunked(sse([start()])))
        await writer.drain()
        await reader.read(1)
        gone.set()

    async with local_server(handler) as address:
        provider = AnthropicProvider(Credentials.for_rehearsal(address, "t"))
        async with aclosing(provider.stream(request())) as parts:
            async for _ in parts:
                break
            begun = time.perf_counter()
        took_ms = (time.perf_counter() - begun) * 1000
        await asyncio.wait_for(gone.wait(), 1)
        assert took_ms < 100
        await provider.close()


async def test_cancelling_the_task_closes_the_connection():
    gone, opened = asyncio.Event(), asyncio.Event()

    async def handler(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _body: bytes
    ) -> None:
        writer.write(HEAD + chunked(sse([start()])))
        await writer.drain()
        await reader.read(1)
        gone.set()

    async with local_server(handler) as address:
        provider = AnthropicProvider(Credentials.for_rehearsal(address, "t"))

        async def run() -> None:
            async with aclosing(provider.stream(request())) as parts:
                async for _ in parts:
                    opened.set()

        task = asyncio.create_task(run())
        await asyncio.wait_for(opened.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 1)
        await provider.close()


async def test_connection_is_used_again_after_a_whole_answer():
    served = 0
    connections = 0

    async def handler(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _body: bytes
    ) -> None:
        nonlocal served, connections
        connections += 1
        while True:
            served += 1
            writer.write(HEAD + chunked(sse(text_answer())) + b"0\r\n\r\n")
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)

    async with local_server(handler) as address:
        provider = AnthropicProvider(Credentials.for_rehearsal(address, "t"))
        for _ in range(3):
            assert len([part async for part in provider.stream(request())]) == 3
        await provider.close()
    assert (served, connections) == (3, 1)


async def test_a_slow_end_of_the_connection_does_not_hold_the_answer():
    async def handler(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _body: bytes
    ) -> None:
        writer.write(HEAD + chunked(sse(text_answer())))
        await writer.drain()
        await asyncio.sleep(20)

    async with local_server(handler) as address:
        provider = AnthropicProvider(Credentials.for_rehearsal(address, "t"))
        await provider.warm_up()
        begun = time.perf_counter()
        parts = [part async for part in provider.stream(request())]
        assert time.perf_counter() - begun < 5
        assert isinstance(parts[-1], Completed)
        await provider.close()


@pytest.mark.parametrize("packed", [False, True])
async def test_a_refusal_that_never_ends_is_read_a_little(packed: bool):
    """The words at its begin are shown, and the connection is not used again."""
    sent = 0
    body = b'{"error": {"type": "invalid_request_error", "message": "too long'
    packer = zlib.compressobj(wbits=31)

    async def handler(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _body: bytes
    ) -> None:
        nonlocal sent
        encoding = b"content-encoding: gzip\r\n" if packed else b""
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
        writer.write(head + encoding + b"transfer-encoding: chunked\r\n\r\n")
        piece = body
        while sent < 64 << 20:
            data = packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) if packed else piece
            writer.write(chunked(data))
            await writer.drain()
            sent += len(data)
            piece = secrets.token_hex(1 << 15).encode()

    async with local_server(handler) as address:
        provider = AnthropicProvider(Credentials.for_rehearsal(address, "t"))
        with pytest.raises(errors.BadRequest) as caught:
            await asyncio.wait_for(collect(provider), 20)
        await provider.close()
    assert len(str(caught.value)) < 2_000
    assert sent < 16 << 20
