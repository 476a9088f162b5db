"""Every refusal and broken answer, as the error a person sees."""

from __future__ import annotations

from typing import Any

import pytest

from forkdeck import errors
from forkdeck.model.stream import TextPart
from forkdeck.providers.capabilities import refused
from forkdeck.providers.client import AnthropicProvider
from tests.providers.support import (
    KEY,
    ManualClock,
    block,
    delta,
    event,
    finish,
    sse,
    start,
)
from tests.providers.wire import answering, collect, credentials


async def failure(
    tmp_path: Any, status: int, body: Any = b"", **headers: str
) -> errors.ProviderError:
    transport, _ = answering(status, body, **headers)
    provider = AnthropicProvider(credentials(tmp_path), transport=transport)
    with pytest.raises(errors.ProviderError) as caught:
        await collect(provider)
    assert KEY not in str(caught.value)
    assert caught.value.what
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind"),
    [
        (
            400,
            {"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}},
            {},
            "BadRequest",
        ),
        (
            400,
            {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}},
            {},
            "ContextTooLong",
        ),
        (
            400,
            {"error": {"message": "input length and `max_tokens` exceed context limit"}},
            {},
            "ContextTooLong",
        ),
        (400, {"error": {"message": "Your credit balance is too low"}}, {}, "SpendLimit"),
        (
            400,
            {"error": {"message": "You have reached your specified API usage limits."}},
            {},
            "SpendLimit",
        ),
        (
            401,
            {"error": {"type": "authentication_error", "message": f"bad key {KEY}"}},
            {},
            "AuthFailed",
        ),
        (402, {"error": {"message": "pay"}}, {}, "SpendLimit"),
        (403, {"error": {"type": "permission_error", "message": "no"}}, {}, "AuthFailed"),
        (404, {"error": {"type": "not_found_error", "message": "model: x"}}, {}, "ModelNotFound"),
        (404, "<!DOCTYPE html><html>", {}, "NotAnEndpoint"),
        (405, {"detail": "no"}, {}, "NotAnEndpoint"),
        (408, {}, {}, "Unreachable"),
        (409, {}, {}, "ServerFault"),
        (413, "<html>cloud</html>", {}, "BadRequest"),
        (422, {"detail": [{"msg": "bad"}]}, {}, "BadRequest"),
        (
            429,
            {"error": {"type": "rate_limit_error", "message": "slow"}},
            {"retry_after": "7"},
            "RateLimited",
        ),
        (429, {"error": {"message": "monthly spend limit reached"}}, {}, "SpendLimit"),
        (429, {"error": {"message": "monthly spend limit"}}, {"retry_after": "7"}, "RateLimited"),
        (429, {}, {}, "RateLimited"),
        (500, {"error": {"type": "api_error", "message": "oops"}}, {}, "ServerFault"),
        (500, {"error": {"type": "overloaded_error", "message": "oops"}}, {}, "Overloaded"),
        (502, "<html>bad gateway</html>", {}, "ServerFault"),
        (529, {"error": {"type": "overloaded_error"}}, {}, "Overloaded"),
        (302, "", {"location": "https://evil.example/"}, "NotAnEndpoint"),
        (400, '{"error":"a text"}', {}, "BadRequest"),
        (418, "[1, 2]", {}, "BadRequest"),
        (503, "\x00\xff\x1b[2J", {}, "ServerFault"),
    ],
)
async def test_statuses(tmp_path, status, body, headers, kind):
    error = await failure(tmp_path, status, body, **headers)
    assert type(error).__name__ == kind
    assert error.status == status
    assert "\x1b" not in str(error)
    assert "\n" not in error.what


@pytest.mark.parametrize(
    "said",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block.",
        "messages.1.content.0.thinking.signature: Field required",
        "messages.3.content.0: `thinking` or `redacted_thinking` blocks cannot be modified, nor",
        "messages.3.content.0: a thinking block before this one was removed.",
    ],
)
async def test_thinking_that_is_not_taken_back(tmp_path, said):
    """The cause is an earlier answer, and the remedy leaves its thinking out."""
    error = await failure(tmp_path, 400, {"error": {"message": said}})
    assert "refused the thinking blocks of an earlier answer (HTTP 400)" in error.what
    assert said in error.what
    assert "/model" in error.remedy
    assert refused(error, {"thinking": {"type": "adaptive"}, "messages": []}) == frozenset()


async def test_a_word_on_thinking_alone_is_another_fault(tmp_path):
    """Such as a parameter that the model does not take."""
    said = 'thinking.type: "enabled" is not supported for this model.'
    error = await failure(tmp_path, 400, {"error": {"message": said}})
    assert "The endpoint refused the request" in error.what


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after": "-3"}, 0.0),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
async def test_retry_after(tmp_path, headers, seconds):
    error = await failure(tmp_path, 429, {}, **headers)
    assert error.retry_after_s == seconds


async def test_retry_after_as_a_date(tmp_path):
    transport, _ = answering(429, {}, retry_after="Mon, 30 Nov 2026 00:00:31 GMT")
    provider = AnthropicProvider(credentials(tmp_path), transport=transport, clock=ManualClock())
    with pytest.raises(errors.RateLimited) as caught:
        await collect(provider)
    assert caught.value.retry_after_s == 30.0


async def test_request_id_is_kept(tmp_path):
    error = await failure(tmp_path, 500, {}, request_id="req_1")
    assert error.request_id == "req_1"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html>log in</html>", "NotAnEndpoint"),
        (b'{"id":"m","content":[]}', "NotAnEndpoint"),
        (b'{"error":{"type":"overloaded_error","message":"x"}}', "Overloaded"),
        (b"", "Unreachable"),
        (sse([event("ping")]), "Unreachable"),
        (sse([event("error", error={"type": "rate_limit_error", "message": "x"})]), "RateLimited"),
        (sse([event("error", error={"type": "authentication_error"})]), "AuthFailed"),
        (sse([delta(0, "text_delta", text="x")]), "StreamCut"),
        (b"data: {nonsense\n\n", "StreamCut"),
    ],
)
async def test_success_that_is_no_answer(tmp_path, body, kind):
    if body.startswith(b"<"):
        headers = {"content_type": "text/html"}
    elif body.startswith(b"{"):
        headers = {"content_type": "application/json"}
    else:
        headers = {}
    error = await failure(tmp_path, 200, body, **headers)
    assert type(error).__name__ == kind


@pytest.mark.parametrize(
    ("tail", "kind"),
    [
        ([], "StreamCut"),
        ([event("error", error={"type": "overloaded_error"})], "Overloaded"),
        ([event("error", error={"type": "rate_limit_error"})], "Overloaded"),
        ([event("error", error={"type": "api_error"})], "ServerFault"),
        ([event("error", error={"type": "invalid_request_error"})], "StreamCut"),
        ([event("error")], "ServerFault"),
        ([event("message_stop")], "StreamCut"),
        (finish(None), "StreamCut"),
    ],
)
async def test_broken_after_the_beginning(tmp_path, tail, kind):
    events = [start(), block(0, type="text", text=""), delta(0, "text_delta", text="half"), *tail]
    transport, _ = answering(200, sse(events))
    provider = AnthropicProvider(credentials(tmp_path), transport=transport)
    parts = []
    with pytest.raises(errors.ProviderError) as caught:
        await collect(provider, into=parts)
    assert type(caught.value).__name__ == kind
    assert parts[-1] == TextPart(0, "half")
