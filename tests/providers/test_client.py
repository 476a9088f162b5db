"""The provider against a mock transport: what is sent, and whole answers."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from typing import Any

import httpx2
import pytest

from forkdeck import errors
from forkdeck.model.raw import from_raw
from forkdeck.model.stream import CallPart, Completed, Opened, TextPart
from forkdeck.providers.client import AnthropicProvider
from forkdeck.providers.credentials import Credentials
from tests.providers.support import (
    KEY,
    ManualClock,
    block,
    delta,
    finish,
    request,
    settle,
    sse,
    start,
    stop,
    text_answer,
)
from tests.providers.wire import answering, collect, credentials


async def test_whole_answer(tmp_path):
    transport, seen = answering(200, sse(text_answer("hello")))
    parts = await collect(AnthropicProvider(credentials(tmp_path), transport=transport))
    assert isinstance(parts[0], Opened)
    assert parts[0].message_id == "msg_1"
    assert parts[1] == TextPart(0, "hello")
    done = parts[-1]
    assert isinstance(done, Completed)
    assert from_raw(done.message) == {
        "role": "assistant",
        "content": [{"type": "text", "text": "hello"}],
    }
    assert len(seen) == 1
    assert seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in seen[0].headers


async def test_body_goes_out_in_its_own_order_and_untouched(tmp_path):
    transport, seen = answering(200, sse(text_answer()))
    tools = [{"name": "z", "description": "d", "input_schema": {"type": "object", "b": 1, "a": 2}}]
    messages = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "é\u2028", "cache_control": {"a": 1}}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "tool_use", "id": "t1", "name": "z", "input": {"z": 1, "a": {"y": 1}}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]},
    ]
    asked = request(tools=tools, messages=messages, thinking={"type": "adaptive"})
    await collect(AnthropicProvider(credentials(tmp_path), transport=transport), asked)
    sent = json.loads(seen[0].content)
    assert json.dumps(sent["messages"]) == json.dumps(messages)
    assert json.dumps(sent["tools"]) == json.dumps(tools)
    assert sent["stream"] is True
    assert sent["max_tokens"] == 64
    assert sent["model"] == "claude-opus-5-5"
    assert set(sent) == {"model", "max_tokens", "system", "messages", "tools", "thinking", "stream"}


async def test_diagnostics_only_where_they_are_known(tmp_path):
    for capabilities, expected in (({}, True), ({"diagnostics": False}, False)):
        transport, seen = answering(200, sse(text_answer()))
        provider = AnthropicProvider(
            credentials(tmp_path), transport=transport, capabilities=capabilities
        )
        asked = request()
        asked = type(asked)(run="p", body=asked.body, previous_message_id="msg_0")
        await collect(provider, asked)
        assert ("diagnostics" in json.loads(seen[0].content)) is expected
    assert "diagnostics" not in asked.body


async def test_an_endpoint_that_refuses_diagnostics_is_asked_without_them(tmp_path):
    bodies = []

    def handler(asked: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(asked.content))
        if "diagnostics" in bodies[-1]:
            text = {"error": {"type": "invalid_request_error", "message": "diagnostics: extra"}}
            return httpx2.Response(400, json=text)
        kind = {"content-type": "text/event-stream"}
        return httpx2.Response(200, content=sse(text_answer()), headers=kind)

    provider = AnthropicProvider(credentials(tmp_path), transport=httpx2.MockTransport(handler))
    asked = type(request())(run="p", body=request().body, previous_message_id="msg_0")
    assert provider.endpoint.diagnostics
    for _ in range(2):
        assert len([part async for part in provider.stream(asked)]) == 3
    assert not provider.endpoint.diagnostics
    assert ["diagnostics" in body for body in bodies] == [True, False, False]
    await provider.close()


async def test_key_also_in_the_older_header_for_other_endpoints(tmp_path):
    transport, seen = answering(200, sse(text_answer()))
    provider = AnthropicProvider(
        credentials(tmp_path, ANTHROPIC_BASE_URL="https://gate.example/v1/"), transport=transport
    )
    assert "left out" in provider.notes[0]
    await collect(provider)
    assert str(seen[0].url) == "https://gate.example/v1/messages"
    assert seen[0].headers["x-api-key"] == KEY


async def test_settings_win_over_the_variable_and_headers_are_sent(tmp_path):
    transport, seen = answering(200, sse(text_answer()))
    provider = AnthropicProvider(
        credentials(tmp_path, ANTHROPIC_BASE_URL="https://a.example"),
        base_url="https://b.example",
        headers={"X-Team": "blue"},
        transport=transport,
    )
    assert provider.endpoint.base_url == "https://b.example"
    assert provider.endpoint.name == "b.example"
    await collect(provider)
    assert seen[0].url.host == "b.example"
    assert seen[0].headers["x-team"] == "blue"


async def test_nothing_of_the_environment_reaches_a_rehearsal(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Leak: yes")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://real.example")
    transport, seen = answering(200, sse(text_answer()))
    provider = AnthropicProvider(
        Credentials.for_rehearsal("http://127.0.0.1:9", "loop"),
        simulated="scripted model",
        transport=transport,
    )
    await collect(provider)
    assert seen[0].url.host == "127.0.0.1"
    assert seen[0].headers["authorization"] == "Bearer loop"
    assert "x-leak" not in seen[0].headers
    assert KEY not in repr(dict(seen[0].headers))
    assert os.environ["ANTHROPIC_API_KEY"] == KEY
    assert provider.endpoint.simulated == "scripted model"


async def test_without_credentials_says_what_was_looked_for(tmp_path):
    provider = AnthropicProvider(Credentials.take({}, tmp_path))
    with pytest.raises(errors.AuthFailed, match="ANTHROPIC_API_KEY"):
        await collect(provider)


async def test_a_broken_profile_is_an_auth_error(tmp_path):
    configs = tmp_path / ".config/anthropic/configs"
    configs.mkdir(parents=True)
    (configs / "default.json").write_text("{}")
    provider = AnthropicProvider(Credentials.take({}, tmp_path))
    with pytest.raises(errors.AuthFailed, match="default"):
        await collect(provider)


async def test_a_profile_on_disk_signs(tmp_path):
    home = tmp_path / ".config/anthropic"
    (home / "configs").mkdir(parents=True)
    (home / "credentials").mkdir()
    (home / "configs/work.json").write_text('{"authentication": {"type": "user_oauth"}}')
    secret = home / "credentials/work.json"
    secret.write_text('{"type": "oauth_token", "access_token": "tok-from-disk"}')
    (home / "configs/work.json").chmod(0o600)
    secret.chmod(0o600)
    given = {"ANTHROPIC_PROFILE": "work", "ANTHROPIC_CONFIG_DIR": str(home)}
    found = Credentials.take(given, tmp_path)
    assert found.found
    transport, seen = answering(200, sse(text_answer()))
    await collect(AnthropicProvider(found, transport=transport))
    assert seen[0].headers["authorization"] == "Bearer tok-from-disk"
    assert "ANTHROPIC_PROFILE" not in os.environ


async def test_unnamed_events_and_odd_chunks(tmp_path):
    data = sse(text_answer("näïve"), named=False)

    async def body():
        for at in range(0, len(data), 3):
            yield data[at : at + 3]

    def handler(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=body(), headers={"content-type": "text/event-stream"})

    provider = AnthropicProvider(credentials(tmp_path), transport=httpx2.MockTransport(handler))
    parts = await collect(provider)
    assert from_raw(parts[-1].message)["content"][0]["text"] == "näïve"


async def test_deltas_are_joined_and_flushed_before_others(tmp_path):
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def body():
        while (data := await queue.get()) is not None:
            yield data

    def handler(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=body(), headers={"content-type": "text/event-stream"})

    clock = ManualClock()
    provider = AnthropicProvider(
        credentials(tmp_path), transport=httpx2.MockTransport(handler), clock=clock
    )
    await provider.warm_up()
    parts: list[Any] = []

    async def consume_live() -> None:
        async for part in provider.stream(request()):
            parts.append(part)

    task = asyncio.create_task(consume_live())
    queue.put_nowait(sse([start(), block(0, type="text", text="")]))
    for _ in range(200):
        await settle()
        if parts:
            break
        await asyncio.sleep(0.01)
    assert [type(part) for part in parts] == [Opened]
    for letter in "abc":
        queue.put_nowait(sse([delta(0, "text_delta", text=letter)]))
    await settle(60)
    assert len(parts) == 1
    await clock.advance(60)
    await settle(60)
    assert parts[1:] == [TextPart(0, "abc")]
    queue.put_nowait(
        sse(
            [
                delta(0, "text_delta", text="d"),
                stop(0),
                block(1, type="tool_use", id="t", name="ls", input={}),
                delta(1, "input_json_delta", partial_json='{"path"'),
                delta(1, "input_json_delta", partial_json=':"."}'),
                stop(1),
                *finish("tool_use"),
            ]
        )
    )
    queue.put_nowait(None)
    await asyncio.wait_for(task, 5)
    assert parts[2:4] == [TextPart(0, "d"), CallPart(1, "ls", '{"path":"."}')]
    assert isinstance(parts[4], Completed)
    await provider.close()


async def test_surrogate_halves_in_two_deltas_become_one_character(tmp_path):
    events = text_answer()
    events[2:3] = [delta(0, "text_delta", text="\ud83d"), delta(0, "text_delta", text="\ude00!")]
    transport, _ = answering(200, sse(events))
    parts = await collect(AnthropicProvider(credentials(tmp_path), transport=transport))
    assert "".join(part.text for part in parts if isinstance(part, TextPart)) == "😀!"
    assert from_raw(parts[-1].message)["content"][0]["text"] == "😀!"


async def test_nothing_is_written_to_stderr(tmp_path, capfd):
    transport, _ = answering(200, sse(text_answer()))
    given = credentials(tmp_path, ANTHROPIC_AUTH_TOKEN="other-token")
    await collect(AnthropicProvider(given, transport=transport))
    logging.getLogger("anthropic").warning("noise")
    out = capfd.readouterr()
    assert out.err == ""
    assert out.out == ""


async def test_a_caller_that_gives_up_while_the_sdk_loads_harms_nobody(tmp_path):
    transport, _ = answering(200, sse(text_answer()))
    provider = AnthropicProvider(credentials(tmp_path), transport=transport)
    first = asyncio.create_task(provider.warm_up())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert len(await collect(provider)) == 3
    await provider.close()
