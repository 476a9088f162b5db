"""The provider: one request at a time out, stream parts in.

The engine calls `AnthropicProvider.stream` for every attempt; data goes to the endpoint through
the SDK's HTTP and comes back through our own decoder and accumulator. The SDK is imported in a
thread at the first request, or earlier by `warm_up`. No retry happens here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import msgspec

from forkdeck.errors import AuthFailed, BadRequest, NotAnEndpoint, ProviderError, Unreachable
from forkdeck.model.ports import Clock, EndpointFacts
from forkdeck.model.raw import JsonDict
from forkdeck.model.stream import Completed, ModelRequest, StreamPart
from forkdeck.providers import capabilities as able
from forkdeck.providers.accumulate import Accumulator, cut
from forkdeck.providers.classify import classify, stream_error
from forkdeck.providers.clock import SystemClock
from forkdeck.providers.credentials import DEFAULT_BASE_URL, Credentials, usable_base_url
from forkdeck.providers.join import Joiner
from forkdeck.providers.sdk import make_client
from forkdeck.providers.sse import Record, RecordTooLong, SseDecoder
from forkdeck.providers.statuses import Failure

if TYPE_CHECKING:
    import anthropic
    import httpx2

_LINGER_S = 0.25
_LONGEST_REFUSAL = 1 << 20


class AnthropicProvider:
    """Speaks the Messages API to one endpoint with one set of credentials.

    Args:
        credentials: What to sign with.
        simulated: Words to show when the model behind the endpoint is scripted.
        base_url: The endpoint from the user's settings; it wins over ``ANTHROPIC_BASE_URL``.
        headers: Headers from the user's settings; may hold secrets.
        capabilities: What the endpoint can do, from the user's settings, over what is assumed.
        clock: Time of the joining of deltas; None: the machine's.
        read_timeout_s: Longest silence of the endpoint, in seconds.
        transport: Stands in for the network in tests.

    Raises:
        UsageError: `base_url` is no web address, or holds a name or password.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        simulated: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        capabilities: Mapping[str, bool | str] | None = None,
        clock: Clock | None = None,
        read_timeout_s: float = 600.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.notes: tuple[str, ...] = credentials.notes
        """What was corrected or learned, to be shown."""
        url = credentials.base_url
        if base_url is not None and credentials.kind != "rehearsal":
            url, note = usable_base_url(base_url, "endpoint.base_url")
            self.notes = (note,) if note else ()
        self._told: Callable[[str], None] | None = None
        self._credentials = credentials
        self._base_url = url
        self._headers = dict(headers or {})
        self._clock: Clock = clock or SystemClock()
        self._read_timeout_s = read_timeout_s
        self._transport = transport
        row = able.REAL if simulated else able.known(url or DEFAULT_BASE_URL)
        row = able.corrected(row, capabilities or {})
        self._memory = able.Memory(row, "the rehearsal model" if simulated else row.name)
        self._tells_cache = "cache_fields" not in (capabilities or {})
        self._endpoint = EndpointFacts(
            base_url=url or DEFAULT_BASE_URL,
            name="rehearsal" if simulated else row.name,
            account=credentials.account,
            simulated=simulated,
            **_abilities(row),
        )
        self._client: anthropic.AsyncAnthropic | None = None
        self._making: asyncio.Task[anthropic.AsyncAnthropic] | None = None
        self._thread = ThreadPoolExecutor(1, "sdk")
        self._closed = False

    @property
    def endpoint(self) -> EndpointFacts:
        """What is known of the endpoint, with what it refused or told in this session."""
        return self._endpoint

    def endpoint_for(self, model: str) -> EndpointFacts:
        """Return what is known of the endpoint for requests to one model."""
        return msgspec.structs.replace(self._endpoint, **_abilities(self._memory.of(model)))

    def on_note(self, told: Callable[[str], None]) -> None:
        """Call `told` with every note that comes from now on; one listener, on the loop."""
        self._told = told

    async def warm_up(self) -> None:
        """Import the SDK and make the client, in a thread; safe to call again and to cancel.

        Raises:
            AuthFailed: There are no credentials, or they cannot be used.
            ProviderError: The client cannot be made.
        """
        await self._ready()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart]:
        """Send a request and yield its answer; no retry inside.

        Closing the iterator (or cancelling its task) closes the HTTP stream at once. Deltas of one
        block are joined over about 50 ms.

        Raises:
            ProviderError: Before `Opened`: the classified refusal. After it: `StreamCut`,
                `Overloaded` or `ServerFault` (a broken stream is never an answer).
        """
        client = await self._ready()
        joiner = Joiner(self._clock)
        reader = asyncio.create_task(
            self._read(client, request, joiner), name=f"stream {request.run}"
        )
        try:
            async with aclosing(joiner.parts()) as parts:
                async for part in parts:
                    yield part
        finally:
            reader.cancel()
            await asyncio.wait((reader,))

    async def close(self) -> None:
        """Close the connections; safe to call twice."""
        self._closed = True
        making, client = self._making, self._client
        self._making = self._client = None
        if making is not None and not making.done():
            await asyncio.wait((making,))
        if making is not None and making.done() and not making.cancelled():
            client = client or (making.result() if making.exception() is None else None)
        if client is not None:
            await client.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _ready(self) -> anthropic.AsyncAnthropic:
        if self._client is not None:
            return self._client
        if self._closed:
            raise BadRequest("The endpoint was closed.", "Start forkdeck again.")
        if not self._credentials.found:
            raise AuthFailed(
                self._credentials.looked_for,
                "Without a key: forkdeck demo shows everything against a scripted model.",
            )
        if self._making is None:
            self._making = asyncio.create_task(self._make(), name="import anthropic")
        making = self._making
        try:
            # One caller that gives up must not take the client away from the others.
            client = await asyncio.shield(making)
        except Exception as error:  # noqa: BLE001 - whatever the SDK says becomes one error
            self._making = None
            raise classify(error, self._failure(""), opened=False) from None
        self._client = client
        return client

    async def _make(self) -> anthropic.AsyncAnthropic:
        return await asyncio.get_running_loop().run_in_executor(
            self._thread,
            lambda: make_client(
                self._credentials,
                base_url=self._base_url,
                headers=self._headers,
                auth=self._memory.all.auth,
                read_timeout_s=self._read_timeout_s,
                transport=self._transport,
            ),
        )

    async def _read(
        self, client: anthropic.AsyncAnthropic, request: ModelRequest, joiner: Joiner
    ) -> None:
        """Send and read until the end; everything that happens goes to the joiner.

        A refusal of a parameter billed nothing: the same request goes out again without it. Each
        time there is less to refuse, so this ends.
        """
        while True:
            body = self._body(request)
            error = await self._attempt(client, body, joiner)
            if error is None or not self._learns(error, body):
                break
        joiner.end(error)

    def _learns(self, error: ProviderError, body: JsonDict) -> bool:
        again, notes = self._memory.learn(error, body)
        self._endpoint = msgspec.structs.replace(self._endpoint, **_abilities(self._memory.all))
        self.notes += notes
        for note in notes:
            if self._told is not None:
                self._told(note)
        return again

    async def _attempt(
        self, client: anthropic.AsyncAnthropic, body: JsonDict, joiner: Joiner
    ) -> ProviderError | None:
        answer = Accumulator()
        failure = self._failure(str(body.get("model", "")))
        try:
            await self._exchange(client, body, joiner, answer, failure)
        except Exception as raised:  # noqa: BLE001 - every way to fail is classified here
            error = classify(raised, failure, opened=answer.opened, now=self._now())
            error.__suppress_context__ = True
            return error
        return None

    async def _exchange(
        self,
        client: anthropic.AsyncAnthropic,
        body: JsonDict,
        joiner: Joiner,
        answer: Accumulator,
        failure: Failure,
    ) -> None:
        async with client.messages.with_streaming_response.create(
            max_tokens=0,
            messages=[],
            model="",
            stream=True,
            # The body is sent as it is: the SDK would walk and copy every message of it.
            extra_body=body,
        ) as response:
            if "json" in response.headers.get("content-type", ""):
                await _refuse_json(response, failure)
            async with aclosing(_events(response.iter_bytes())) as events:
                async for event in events:
                    if event.get("type") == "error":
                        raise stream_error(_error(event), failure, opened=answer.opened)
                    for part in answer.feed(event):
                        joiner.add(part)
                    if answer.stopped:
                        joiner.add(self._noted(answer.completed()))
                        await _drain(events)
                        return
                    await joiner.room()
            if not answer.opened:
                raise _nothing(response.headers.get("content-type", ""), failure)
            answer.completed()

    def _body(self, request: ModelRequest) -> JsonDict:
        body = {**request.body, "stream": True}
        if request.previous_message_id:
            body["diagnostics"] = {"previous_message_id": request.previous_message_id}
        return able.fitted(body, self._memory.of(str(body.get("model", ""))))

    def _noted(self, answer: Completed) -> Completed:
        """Note whether answers tell what the cache did, unless the settings say it."""
        used = answer.usage
        if used is not None and self._tells_cache:
            told = used.cache_read_input_tokens is not None
            self._memory.cache_fields(told)
            self._endpoint = msgspec.structs.replace(self._endpoint, cache_fields=told)
        return answer

    def _failure(self, model: str) -> Failure:
        secrets = (*self._credentials.secrets(), *self._headers.values())
        return Failure(self._endpoint.base_url, model, self._credentials.origin, secrets)

    def _now(self) -> datetime:
        return self._clock.now().astimezone(UTC)


async def _drain(events: AsyncIterator[JsonDict]) -> None:
    """Read what follows a whole answer, so that the connection can be used again."""
    # The answer is whole: however its connection ends, it stays an answer.
    with suppress(Exception):
        async with asyncio.timeout(_LINGER_S):
            async for _ in events:
                pass


async def _events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[JsonDict]:
    """Decode events; records that are no JSON object break the stream."""
    decoder = SseDecoder()
    try:
        async for chunk in chunks:
            for record in decoder.feed(chunk):
                yield _event(record)
    except RecordTooLong:
        raise cut("The endpoint sent something that never ends.") from None
    for record in decoder.end():
        # A last record without its blank line counts only when it is whole.
        try:
            yield _event(record)
        except ProviderError:
            return


def _event(record: Record) -> JsonDict:
    if record.data.strip() == "[DONE]":
        return {}
    try:
        loaded: Any = json.loads(record.data)
    except (ValueError, RecursionError):
        raise cut("A part of the answer is no JSON.") from None
    if not isinstance(loaded, dict):
        return {}
    event = cast("JsonDict", loaded)
    if "type" not in event and record.event:
        event["type"] = record.event
    return event


def _error(event: JsonDict) -> JsonDict:
    error = event.get("error")
    return cast("JsonDict", error) if isinstance(error, dict) else {"message": str(error or "")}


async def _refuse_json(response: Any, failure: Failure) -> None:
    """Raise the error of a success that is no stream: some gateways hide failures in one."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.iter_bytes():
        size += len(piece)
        # An error is short; what never ends (or unpacks to gigabytes) is none.
        if size > _LONGEST_REFUSAL:
            break
        pieces.append(piece)
    try:
        loaded: Any = json.loads(b"".join(pieces))
    except (ValueError, RecursionError):
        loaded = None
    if isinstance(loaded, dict) and "error" in loaded:
        raise stream_error(_error(cast("JsonDict", loaded)), failure, opened=False)
    raise NotAnEndpoint(
        f"{failure.endpoint} does not stream its answers.",
        "Use an endpoint that streams the Messages API.",
    )


def _nothing(content_type: str, failure: Failure) -> ProviderError:
    """Return the error of a success without an answer."""
    if "event-stream" in content_type:
        return Unreachable(
            f"{failure.endpoint} closed the connection before the answer began.",
            "It is tried again by itself; press r to send the turn again later.",
        )
    kind = content_type.split(";", 1)[0].strip() or "something else"
    return NotAnEndpoint(
        f"{failure.endpoint} answered with {kind[:60]!r}, not with a Messages API stream.",
        "Check the address of the endpoint; a proxy or a login page may stand before it.",
    )


def _abilities(row: able.Capabilities) -> dict[str, bool]:
    """Return the part of a row that `EndpointFacts` has as well."""
    names = ("thinking", "effort", "diagnostics", "cache_control", "ttl", "cache_fields")
    return {name: bool(getattr(row, name)) for name in names}
