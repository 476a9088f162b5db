"""What endpoints can do: the table, the settings over it, and what a refusal teaches."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import httpx2
import pytest

from forkdeck.errors import BadRequest, ProviderError
from forkdeck.model.stream import ModelRequest
from forkdeck.providers import capabilities as able
from forkdeck.providers.capabilities import Capabilities
from forkdeck.providers.client import AnthropicProvider
from tests.providers.support import KEY, request, sse, start, text_answer
from tests.providers.wire import answering, collect, credentials

MARK = {"type": "ephemeral", "ttl": "1h"}
BODY: dict[str, Any] = {
    "model": "claude-opus-5-5",
    "max_tokens": 64,
    "system": [{"type": "text", "text": "s", "cache_control": MARK}],
    "thinking": {"type": "adaptive", "display": "summarized"},
    "output_config": {"effort": "high"},
    "tools": [{"name": "read", "description": "r", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}]},
        {"role": "user", "content": [{"type": "text", "text": "go", "cache_control": MARK}]},
    ],
}


@pytest.mark.parametrize(
    ("url", "name", "auth", "thinking", "diagnostics"),
    [
        ("https://api.anthropic.com", "Anthropic", "bearer", True, True),
        ("https://api.deepseek.com/anthropic", "DeepSeek", "both", False, False),
        ("https://openrouter.ai/api", "OpenRouter", "bearer", True, False),
        ("https://dashscope-intl.aliyuncs.com/apps/anthropic", "DashScope", "both", False, False),
        ("https://w1.eu.maas.aliyuncs.com/apps/anthropic", "DashScope", "both", False, False),
        ("http://127.0.0.1:11434", "Ollama", "both", False, False),
        ("http://[::1]:1234", "LM Studio", "both", False, False),
        ("http://localhost:4000", "LiteLLM", "bearer", True, False),
        ("http://127.0.0.1:9999", "127.0.0.1:9999", "both", True, False),
        ("https://gate.example", "gate.example", "both", True, False),
        ("https://api.anthropic.com.evil.example", "api.anthropic.com.evil.example", "both", 1, 0),
        ("https://notaliyuncs.com", "notaliyuncs.com", "both", True, False),
    ],
)
def test_endpoints_by_host(url, name, auth, thinking, diagnostics):
    row = able.known(url)
    assert (row.name, row.auth) == (name, auth)
    assert (row.thinking, row.effort) == (thinking, thinking)
    assert row.diagnostics == diagnostics


def test_settings_stand_over_the_table_and_cannot_rename_an_endpoint():
    row = able.known("https://api.deepseek.com/anthropic")
    made = able.corrected(row, {"thinking": True, "auth": "x-api-key", "name": "no", "new": True})
    assert (made.thinking, made.effort, made.auth, made.name) == (
        True,
        False,
        "x-api-key",
        "DeepSeek",
    )


def test_what_an_endpoint_does_not_take_is_left_out_and_nothing_else():
    before = copy.deepcopy(BODY)
    full = Capabilities(diagnostics=True, ttl=True)
    assert able.fitted(BODY, full) == BODY
    less = able.fitted(BODY, Capabilities(thinking=False, effort=False, cache_control=False))
    assert list(less) == ["model", "max_tokens", "system", "tools", "messages"]
    assert "cache_control" not in json.dumps(less)
    assert less["messages"][1] == BODY["messages"][1]
    short = able.fitted(BODY, Capabilities())
    assert short["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert short["messages"][2]["content"][0]["cache_control"] == {"type": "ephemeral"}
    kept = able.fitted({**BODY, "output_config": {"effort": "low", "format": {}}}, FEW)
    assert kept["output_config"] == {"format": {}}
    assert before == BODY


FEW = Capabilities(effort=False)


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("thinking: Extra inputs are not permitted", {"thinking"}),
        ("body.thinking: Extra inputs are not permitted", {"thinking"}),
        ("This model does not support thinking", {"thinking"}),
        ("thinking.type: 'adaptive' is not supported for this model", {"thinking"}),
        ("output_config: Extra inputs are not permitted", {"effort"}),
        ("Unknown parameter: 'output_config.effort'", {"effort"}),
        ("diagnostics: Extra inputs are not permitted", {"diagnostics"}),
        ("messages.0.content.0.text.cache_control: Extra inputs not permitted", {"cache_control"}),
        ("system.0.cache_control.ttl: Extra inputs are not permitted", {"ttl"}),
        ("Unrecognized fields: thinking, output_config", {"thinking", "effort"}),
        # What is wrong there is a value, a count or the history, not the parameter.
        ("A maximum of 4 blocks with cache_control may be provided. Found 5.", set()),
        ("output_config.effort: Input should be one of low, medium, high", set()),
        ("`max_tokens` must be greater than `thinking.budget_tokens`", set()),
        ("messages.1.content.0: unexpected `thinking` block", set()),
        ("messages.1.content.0.thinking.signature: Extra inputs are not permitted", set()),
        ("`thinking` blocks in the latest assistant message cannot be modified", set()),
        ("cache_control cannot be set for thinking blocks", set()),
        ("tools.0.strict: Extra inputs are not permitted", set()),
    ],
)
def test_only_a_refusal_of_the_parameter_itself_counts(message, found):
    body = {**BODY, "diagnostics": {"previous_message_id": "m"}}
    assert able.refused(BadRequest(f'Refused. It said: "{message}"', status=400), body) == found
    assert able.refused(BadRequest(message, status=413), body) == set()
    assert able.refused(ProviderError(message, status=400), body) == set()
    bare = {"model": "m", "messages": []}
    assert able.refused(BadRequest(message, status=400), bare) == set()


class Picky:
    """An endpoint that refuses parameters, one at a time, as strict servers do."""

    def __init__(self, *refused: str, model: str = "") -> None:
        self.refused = refused
        self.model = model
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, asked: httpx2.Request) -> httpx2.Response:
        body = json.loads(asked.content)
        self.bodies.append(body)
        for name in self.refused:
            held = name in body or (name == "cache_control" and name in json.dumps(body))
            if held and self.model in ("", body["model"]):
                words = f"{name}: Extra inputs are not permitted"
                if self.model:
                    words = f"{name} is not supported for this model"
                error = {"type": "invalid_request_error", "message": words}
                return httpx2.Response(400, json={"type": "error", "error": error})
        kind = {"content-type": "text/event-stream"}
        return httpx2.Response(200, content=sse(text_answer()), headers=kind)


def provider_for(tmp_path: Any, endpoint: Any, **more: Any) -> AnthropicProvider:
    return AnthropicProvider(
        credentials(tmp_path, ANTHROPIC_BASE_URL="https://gate.example"),
        transport=httpx2.MockTransport(endpoint),
        **more,
    )


async def send(provider: AnthropicProvider, run: str = "p", **changes: Any) -> list[Any]:
    body = {**copy.deepcopy(BODY), **changes}
    return [part async for part in provider.stream(ModelRequest(run=run, body=body))]


async def test_a_refusal_is_learned_once_told_once_and_kept(tmp_path):
    endpoint = Picky("thinking", "output_config", "cache_control")
    provider = provider_for(tmp_path, endpoint)
    told: list[str] = []
    provider.on_note(told.append)
    assert len(await send(provider)) == 3
    assert len(endpoint.bodies) == 4
    assert len(await send(provider, "f1")) == 3
    assert len(endpoint.bodies) == 5
    assert endpoint.bodies[3] == endpoint.bodies[4]
    facts = provider.endpoint
    assert (facts.thinking, facts.effort, facts.cache_control) == (False, False, False)
    assert [note.split(" does not take ")[1].split(":")[0] for note in told] == [
        "thinking",
        "output_config.effort",
        "cache_control",
    ]
    assert provider.notes == tuple(told)
    assert all("gate.example" in note and "fork" in note for note in told)
    await provider.close()


async def test_siblings_refused_at_once_are_all_sent_again_and_it_is_told_once(tmp_path):
    endpoint = Picky("output_config")
    arrived = asyncio.Event()

    async def together(asked: httpx2.Request) -> httpx2.Response:
        answer = endpoint(asked)
        if len(endpoint.bodies) == 8:
            arrived.set()
        await arrived.wait()
        return answer

    provider = provider_for(tmp_path, together)
    answers = await asyncio.gather(*(send(provider, f"f{n}") for n in range(8)))
    assert [len(parts) for parts in answers] == [3] * 8
    assert len(endpoint.bodies) == 16
    assert len(provider.notes) == 1
    after = {json.dumps(body) for body in endpoint.bodies[8:]}
    assert len(after) == 1
    await provider.close()


async def test_what_one_model_refuses_holds_for_that_model_alone(tmp_path):
    endpoint = Picky("output_config", model="claude-haiku-4-5")
    provider = provider_for(tmp_path, endpoint)
    await send(provider, model="claude-haiku-4-5")
    await send(provider)
    await send(provider, model="claude-haiku-4-5")
    held = ["output_config" in body for body in endpoint.bodies]
    assert held == [True, False, True, False]
    assert provider.endpoint.effort
    assert "claude-haiku-4-5" in provider.notes[0]
    await provider.close()


async def test_another_400_is_sent_once_and_is_an_error(tmp_path):
    endpoint = Picky("max_tokens")
    provider = provider_for(tmp_path, endpoint)
    with pytest.raises(BadRequest, match="max_tokens"):
        await send(provider)
    assert len(endpoint.bodies) == 1
    assert provider.notes == ()
    await provider.close()


async def test_what_is_known_beforehand_is_not_tried(tmp_path):
    endpoint = Picky("thinking")
    provider = provider_for(tmp_path, endpoint, capabilities={"thinking": False})
    await send(provider)
    assert len(endpoint.bodies) == 1
    await provider.close()


@pytest.mark.parametrize(
    ("auth", "bearer", "older"),
    [("bearer", True, False), ("x-api-key", False, True), ("both", True, True)],
)
async def test_which_header_carries_the_key(tmp_path, auth, bearer, older):
    transport, seen = answering(200, sse(text_answer()))
    provider = AnthropicProvider(
        credentials(tmp_path, ANTHROPIC_BASE_URL="https://gate.example"),
        capabilities={"auth": auth},
        transport=transport,
    )
    await collect(provider)
    assert (seen[0].headers.get("authorization") == f"Bearer {KEY}") is bearer
    assert (seen[0].headers.get("x-api-key") == KEY) is older
    assert ("authorization" in seen[0].headers) is bearer


async def test_whether_answers_tell_of_the_cache_is_seen_from_them(tmp_path):
    told = {"input_tokens": 1, "output_tokens": 1, "cache_read_input_tokens": 0}
    answers = [
        text_answer(),
        [start(usage=told), *text_answer()[1:]],
        [start(usage="none"), *text_answer()[1:]],
    ]
    provider = provider_for(
        tmp_path,
        lambda asked: httpx2.Response(
            200, content=sse(answers.pop(0)), headers={"content-type": "text/event-stream"}
        ),
    )
    seen = []
    for _ in range(3):
        _ = [part async for part in provider.stream(request())]
        seen.append(provider.endpoint.cache_fields)
    # Without any usage nothing was told about the cache fields either way.
    assert seen == [False, True, True]
    await provider.close()
