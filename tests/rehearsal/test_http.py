"""Hostile bytes, foreign callers, and what the listener must survive."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import pytest

from forkdeck.providers.rehearsal.http import BODY_LIMIT
from tests.rehearsal.helpers import body, raw, request_bytes, say, serving, text, until, user

PAYLOAD = json.dumps(body(user(text("hi")))).encode()


def status(answer):
    return int(answer.split(b" ", 2)[1])


def message(answer):
    return json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"]


HEADERS: dict[str, tuple[dict[str, Any], int]] = {
    "wrong token": ({"authorization": "Bearer nonsense"}, 401),
    "no token": ({"authorization": None}, 401),
    "api key only": ({"authorization": None, "x_api_key": "sk-ant-secret"}, 401),
    "basic": ({"authorization": "Basic abc"}, 401),
    "not ascii": ({"authorization": "Bearer \xff\xfe"}, 401),
    "foreign host": ({"host": "evil.example"}, 403),
    "foreign port": ({"host": "127.0.0.1:1"}, 403),
    "no host": ({"host": None}, 403),
    "a web page": ({"origin": "http://evil.example"}, 403),
    "a null origin": ({"origin": "null"}, 403),
    "no version": ({"anthropic_version": None}, 400),
    "chunked": ({"content_length": None, "transfer_encoding": "chunked"}, 501),
    "no length": ({"content_length": None}, 411),
    "negative length": ({"content_length": "-1"}, 400),
    "length in words": ({"content_length": "ten"}, 400),
    "two lengths in one": ({"content_length": "5, 5"}, 400),
    "too large": ({"content_length": str(BODY_LIMIT + 1)}, 413),
    "huge header": ({"x_filler": "y" * 70_000}, 431),
    "a line break": ({"x_evil": "a\nb"}, 400),
}


@pytest.mark.parametrize("name", HEADERS)
async def test_headers(name):
    changed, expected = HEADERS[name]
    async with serving(say()) as (server, client):
        answer = await raw(server, request_bytes(server, PAYLOAD, **changed))
        assert status(answer) == expected
        assert message(answer)
        assert server.token.encode() not in answer
        assert b"sk-ant-secret" not in answer
        assert len(server.journal.entries) == 0
        # The next one is served as if nothing had been.
        assert (await client.messages.create(**body(user(text("hi"))))).content


async def test_localhost_is_its_own_name():
    async with serving(say()) as (server, _):
        answer = await raw(server, request_bytes(server, PAYLOAD, host=f"localhost:{server.port}"))
    assert status(answer) == 200


LINES = {
    "no request": b"\r\n\r\n",
    "old version": b"GET / HTTP/1.0\r\n\r\n",
    "http 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "absolute": b"GET http://evil.example/ HTTP/1.1\r\n\r\n",
    "method": b"G\x00T / HTTP/1.1\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nhost\r\n\r\n",
    "space before colon": b"GET / HTTP/1.1\r\nhost : x\r\n\r\n",
    "folded": b"GET / HTTP/1.1\r\nhost: x\r\n y\r\n\r\n",
    "twice": b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "binary": bytes(range(256)) + b"\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
}


@pytest.mark.parametrize("name", LINES)
async def test_lines(name):
    async with serving(say()) as (server, _):
        answer = await raw(server, LINES[name])
    assert status(answer) in (400, 505)


BODIES = {
    "empty": b"",
    "no json": b"{",
    "not utf-8": b'{"a": "\xff"}',
    "nan": b'{"model": "claude-opus-5-5", "max_tokens": NaN}',
    "a list": b"[]",
    "deep": b"[" * 200_000,
    "deep in a message": b'{"messages":' + b'{"a":' * 50_000,
    "huge number": b'{"max_tokens": ' + b"9" * 10_000 + b"}",
    "bytes": bytes(range(256)) * 50,
}


@pytest.mark.parametrize("name", BODIES)
async def test_bodies(name):
    async with serving(say()) as (server, _):
        answer = await raw(server, request_bytes(server, BODIES[name]))
    assert status(answer) == 400
    assert "JSON" in message(answer)


async def test_lone_surrogates_come_back_whole():
    payload = json.dumps(body(user(text("\ud800 hi")))).encode()
    async with serving(say()) as (server, _):
        answer = await raw(server, request_bytes(server, payload))
        journal = await raw(
            server, request_bytes(server, b"", path="/__forkdeck/journal", method="GET")
        )
    assert status(answer) == status(journal) == 200


async def test_paths():
    async with serving(say()) as (server, client):
        for path, method in (("/", "GET"), ("/v1/other", "POST"), ("/v1/messages", "GET")):
            answer = await raw(server, request_bytes(server, b"", path=path, method=method))
            assert status(answer) == 404
        with pytest.raises(anthropic.NotFoundError):
            await client.models.retrieve("gpt-9")


async def test_a_short_body_and_a_client_that_hangs_up():
    async with serving(say()) as (server, _):
        half = request_bytes(server, PAYLOAD)[:-5]
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(half)
        await writer.drain()
        writer.write_eof()
        async with asyncio.timeout(5):
            assert status(await reader.read()) == 400
        writer.close()
        await writer.wait_closed()
        assert len(server.journal.entries) == 0


async def test_one_connection_serves_many_and_survives_an_api_error():
    async with serving(say()) as (server, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for payload in (PAYLOAD, b"{}", PAYLOAD):
            writer.write(request_bytes(server, payload, close=False))
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            assert status(head) == (400 if payload == b"{}" else 200)
        writer.close()
        await writer.wait_closed()


async def test_it_listens_on_loopback_alone_and_stops_for_good():
    async with serving(say()) as (server, _):
        assert server._server is not None
        names = [entry.getsockname()[0] for entry in server._server.sockets]
        port = server.port
        assert server.base_url == f"http://127.0.0.1:{port}"
    assert names == ["127.0.0.1"]
    await server.stop()
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_every_start_has_its_own_token():
    async with serving(say()) as (one, _), serving(say()) as (two, _):
        assert one.token != two.token
        assert one.port != two.port
        answer = await raw(one, request_bytes(one, PAYLOAD, authorization=f"Bearer {two.token}"))
    assert status(answer) == 401


async def test_stopping_in_the_middle_of_an_answer_leaves_no_task():
    from forkdeck.providers.rehearsal.scenario import load

    slow = load('name="slow"\n[[answer]]\n[[answer.round]]\nttft_ms = 60000\ntext="hi"')
    async with serving(slow, speed=1) as (server, client):
        task = asyncio.create_task(client.messages.create(**body(user(text("x")))))
        await until(lambda: server.journal.entries)
        await server.stop()
        with pytest.raises(anthropic.APIConnectionError):
            await task
    assert not server._tasks
