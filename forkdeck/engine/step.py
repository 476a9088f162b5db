"""One step: a request that extends the last one, its streamed answer, and what it cost.

`RunLoop` calls `Asker.ask`; requests go through the gate to the provider, and everything that
comes back becomes events of the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never, cast

from forkdeck.engine.cache_verdict import Expectation, expectation, judge
from forkdeck.engine.pace import note_pace
from forkdeck.engine.run import PrefixUse, Sent, Warmth
from forkdeck.errors import Overloaded, ProviderError, ServerFault, StreamCut
from forkdeck.model.events.step import (
    CallStreamed,
    MessageFinished,
    RequestDelayed,
    RequestSent,
    StepCut,
    StepStarted,
    StreamOpened,
    TextStreamed,
    ThinkingStreamed,
    UsageReported,
)
from forkdeck.model.prefix import fingerprint, message_blocks, positions
from forkdeck.model.raw import JsonDict, from_raw
from forkdeck.model.stream import (
    CallPart,
    Completed,
    ModelRequest,
    Opened,
    StreamPart,
    TextPart,
    ThinkingPart,
)
from forkdeck.model.usage import Usage
from forkdeck.seeds.request import build_body, check_prefix, check_recorded, rolling_marks
from forkdeck.seeds.validity import check

if TYPE_CHECKING:
    from forkdeck.engine.durability import Durable
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.run import Run

CUT_ATTEMPTS = 3
"""How often a step is resent after its stream broke."""

WAIT_LIMIT_S = 900.0
"""How long one step waits for a busy endpoint in all, when its run has no time limit."""


@dataclass(frozen=True)
class Answer:
    """A finished answer.

    Attributes:
        message: The assistant message; empty content when it did not enter the history.
        stop_reason: Why it ended, as the endpoint says.
        refusal: The endpoint's words on a refusal.
    """

    message: JsonDict
    stop_reason: str
    refusal: str | None = None

    @property
    def calls(self) -> list[JsonDict]:
        """The tool calls, in order."""
        return [b for b in message_blocks(self.message) if b.get("type") == "tool_use"]

    @property
    def text(self) -> str:
        """The text blocks, joined by blank lines."""
        texts = [str(b.get("text", "")) for b in message_blocks(self.message) if _is_text(b)]
        return "\n\n".join(text for text in texts if text.strip())


class Asker:
    """Asks the model for one answer at a time.

    Args:
        parts: The deck's parts.
        durable: The hub with joined syncs.
    """

    def __init__(self, parts: EngineParts, durable: Durable) -> None:
        self._parts = parts
        self._durable = durable
        self.last_ttft_ms: int | None = None

    async def ask(self, run: Run, max_tokens: int) -> Answer:
        """Send the run's messages and return the answer, resending what broke.

        Raises:
            PrefixChanged: The request would not extend the last one; it was not sent.
            SeedRefused: The history is not one that an endpoint takes; it was not sent.
            ProviderError: The endpoint refused, or every attempt failed.
        """
        hub = self._parts.hub
        hub.append(StepStarted(run=run.run, step=run.steps + 1))
        marks = rolling_marks(run.shared_marks, run.previous_mark, run.blocks)
        body = build_body(run.head, run.messages, marks, max_tokens)
        found = self._checked(run, body)
        run.flight = Sent(found, run.blocks - 1)
        try:
            return await self._attempts(run, body, found, max_tokens)
        finally:
            run.flight = None

    def _checked(self, run: Run, body: JsonDict) -> list[bytes]:
        """Return the positions of a request that may be sent.

        Raises:
            SeedRefused: The history is not one that an endpoint takes.
            PrefixChanged: It does not extend what was sent before, in this process or an earlier
                one.
        """
        check(body["messages"])
        found = positions(body)
        who = f"The request of {run.run}"
        check_prefix(run.record, found, body, who)
        if run.recorded is not None:
            recorded, run.recorded = run.recorded, None
            check_recorded(recorded, found, who)
        found[: len(run.record)] = run.record
        return found

    async def _attempts(
        self, run: Run, body: JsonDict, found: list[bytes], max_tokens: int
    ) -> Answer:
        attempt, cuts, waited_s = 0, 0, 0.0
        while True:
            attempt += 1
            await self._durable.ready()
            await self._parts.gate.enter(run.run, self._waiting(run))
            exchange = _Exchange(
                self._parts, run, attempt, found, max_tokens, resends=cuts < CUT_ATTEMPTS
            )
            exchange.flow = self._durable.flow
            try:
                answer = await exchange.send(body)
            except ProviderError as error:
                failure = error
            else:
                self.last_ttft_ms = exchange.ttft_ms
                return answer
            finally:
                self._parts.gate.leave(run.run)
            cuts += exchange.cut
            wait_s, attempts = self._resend(exchange, failure, attempt - cuts, cuts)
            note_pace(self._parts, failure.word)
            waited_s += wait_s
            if waited_s > (run.limits.timeout_s or WAIT_LIMIT_S):
                raise failure
            await self._delay(run, exchange, failure, wait_s, attempts)

    def _resend(
        self, exchange: _Exchange, error: ProviderError, attempt: int, cuts: int
    ) -> tuple[float, int | None]:
        """Return (wait in seconds, attempts) of the next attempt; raise when there is none."""
        if exchange.cut:
            if cuts > CUT_ATTEMPTS:
                raise error
            if isinstance(error, Overloaded | ServerFault):
                return (self._parts.gate.wait_after(error, cuts) or (1.0, None))[0], CUT_ATTEMPTS
            # A first cut is chance and resent at once; one behind another waits its turn.
            wait = self._parts.gate.wait_after(error, cuts) if cuts > 1 else None
            return 0.0 if wait is None else wait[0], CUT_ATTEMPTS
        wait = self._parts.gate.wait_after(error, attempt)
        if wait is None:
            raise error
        return wait

    async def _delay(
        self,
        run: Run,
        exchange: _Exchange,
        error: ProviderError,
        wait_s: float,
        attempts: int | None,
    ) -> None:
        self._parts.hub.append(
            RequestDelayed(
                run=run.run,
                reason=error.word,
                wait_ms=round(wait_s * 1000),
                attempt=exchange.attempt + 1,
                attempts=attempts,
                message=error.what,
            )
        )
        if wait_s > 0:
            await self._parts.clock.sleep(wait_s)

    def _waiting(self, run: Run) -> Any:
        def waiting(reason: str, wait_ms: int) -> None:
            self._parts.hub.append(RequestDelayed(run=run.run, reason=reason, wait_ms=wait_ms))

        return waiting


class _Exchange:
    """One attempt: request out, stream in."""

    def __init__(
        self,
        parts: EngineParts,
        run: Run,
        attempt: int,
        found: list[bytes],
        max_tokens: int,
        *,
        resends: bool,
    ) -> None:
        self._parts = parts
        self._resends = resends
        self._hub = parts.hub
        self._run = run
        self.attempt = attempt
        self._found = found
        self._max_tokens = max_tokens
        self._opened: Opened | None = None
        self._expected: Expectation | None = None
        self._judged = False
        self._sent_ms = 0
        self.flow: Callable[[], Awaitable[None]] | None = None
        self.cut = 0
        self.ttft_ms: int | None = None

    async def send(self, body: JsonDict) -> Answer:
        """Send and read to the end; every way out reports what was used.

        Raises:
            ProviderError: As the provider raises it.
        """
        run = self._run
        run.partial = ""
        self._sent_ms = self._hub.now_ms()
        self._expected = expectation(run, self._sent_ms, self._found, body)
        self._hub.append(
            RequestSent(
                run=run.run,
                attempt=self.attempt,
                prefix_sha256=fingerprint(self._found),
                positions=len(self._found),
                shared_positions=run.shared_positions,
                max_tokens=self._max_tokens,
            )
        )
        request = ModelRequest(run=run.run, body=body, previous_message_id=run.previous_message_id)
        stream = cast("AsyncGenerator[StreamPart, None]", self._parts.provider.stream(request))
        try:
            async with aclosing(stream):
                async for part in stream:
                    answer = self._take(part)
                    if answer is not None:
                        return answer
                    if self._hub.full and self.flow is not None:
                        await self.flow()
            raise StreamCut("The answer ended before it was whole.")
        except ProviderError as error:
            self._broken(error)
            raise
        except asyncio.CancelledError:
            self._cut("stopped", resent=False)
            raise

    def _broken(self, error: ProviderError) -> None:
        """Note a failed attempt; after the first byte it is a cut."""
        if self._opened is None:
            return
        self.cut = 1
        self._cut(error.what, resent=self._resends)

    def _cut(self, reason: str, *, resent: bool) -> None:
        if self._opened is None:
            return
        self._report(self._opened.usage, at_least=True)
        self._hub.append(
            StepCut(run=self._run.run, reason=reason, attempt=self.attempt, resent=resent)
        )

    def _take(self, part: StreamPart) -> Answer | None:
        run = self._run
        match part:
            case Opened():
                self._open(part)
            case TextPart():
                run.partial += part.text
                self._hub.append(TextStreamed(run=run.run, index=part.index, text=part.text))
            case ThinkingPart():
                self._hub.append(ThinkingStreamed(run=run.run, index=part.index, text=part.text))
            case CallPart():
                self._hub.append(
                    CallStreamed(run=run.run, index=part.index, name=part.name, text=part.text)
                )
            case Completed():
                return self._complete(part)
            case _:
                assert_never(part)
        return None

    def _open(self, opened: Opened) -> None:
        run = self._run
        self._opened = opened
        self.ttft_ms = self._hub.now_ms() - self._sent_ms
        self._parts.gate.succeeded()
        note_pace(self._parts, "")
        self._hub.append(
            StreamOpened(run=run.run, message_id=opened.message_id, ttft_ms=self.ttft_ms)
        )
        if run.opened is not None:
            run.opened()
            run.opened = None
        usage = opened.usage
        if usage is not None and usage.cache_read_input_tokens is not None:
            self._judge(usage)
        self._extend(usage)

    def _extend(self, usage: Usage | None) -> None:
        """Note that this request can be read from the cache, and must be extended, from now on.

        Whoever shares what it began with profits too: that entry has its whole life again.
        """
        run = self._run
        run.warmth.use.at_ms = self._sent_ms
        tokens = usage.prompt_tokens if usage is not None and usage.prompt_tokens else None
        shared = run.warmth.shared_tokens
        run.warmth = Warmth(tokens, PrefixUse(self._sent_ms), shared_tokens=shared)
        run.record = self._found
        if run.flight is not None:
            run.previous_mark = run.flight.mark

    def _complete(self, done: Completed) -> Answer:
        run = self._run
        self._judge(done.usage or Usage())
        self._report(done.usage)
        run.warmth.tokens = (done.usage.prompt_tokens or None) if done.usage is not None else None
        run.previous_message_id = done.message_id
        run.steps += 1
        run.partial = ""
        message: JsonDict = from_raw(done.message)
        if done.stop_reason == "refusal" or not message_blocks(message):
            reason = "refusal" if done.stop_reason == "refusal" else "the answer was empty"
            self._hub.append(
                StepCut(run=run.run, reason=reason, attempt=self.attempt, resent=False)
            )
            return Answer({"role": "assistant", "content": []}, done.stop_reason, done.refusal)
        self._hub.append(
            MessageFinished(
                run=run.run,
                message=done.message,
                stop_reason=done.stop_reason,
                message_id=done.message_id,
            )
        )
        run.messages.append(message)
        answer = Answer(message, done.stop_reason, done.refusal)
        if answer.text:
            run.texts.append(answer.text)
        return answer

    def _judge(self, usage: Usage) -> None:
        if self._judged or self._expected is None:
            return
        self._judged = True
        reason = self._opened.cache_miss_reason if self._opened else None
        # Only now is known what the endpoint has taken of the request.
        endpoint = self._parts.provider.endpoint_for(self._run.head.model)
        expected = self._expected.as_sent(endpoint)
        self._hub.append(judge(self._run, usage, expected, self._parts.prices, reason))

    def _report(self, usage: Usage | None, *, at_least: bool = False) -> None:
        """Append tokens and money; an endpoint that tells no usage leaves the price unknown."""
        model = self._opened.model if self._opened else self._run.head.model
        cost, source = None, ""
        if usage is not None:
            cost, source = self._parts.prices.cost_usd(model, usage)
        self._hub.append(
            UsageReported(
                run=self._run.run,
                usage=usage or Usage(),
                model=model,
                cost_usd=cost,
                price_source=source,
                at_least=at_least or usage is None,
            )
        )


def _is_text(block: JsonDict) -> bool:
    return block.get("type") == "text"
