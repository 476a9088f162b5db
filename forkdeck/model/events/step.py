"""Events of a step: one API request and its streamed answer."""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

import msgspec

from forkdeck.model.events.base import Event
from forkdeck.model.usage import Usage
from forkdeck.model.words import Verdict


class StepStarted(Event, frozen=True, kw_only=True, tag="step.started"):
    """A run is about to ask the model; ``step`` counts from 1 within the run."""

    step: int


class RequestSent(Event, frozen=True, kw_only=True, tag="request.sent"):
    """A request left; its shared positions were checked before."""

    attempt: int
    prefix_sha256: str
    positions: int
    shared_positions: int = 0
    """Positions inherited from the parent's last request (0 for the parent itself)."""
    max_tokens: int = 0


class RequestDelayed(Event, frozen=True, kw_only=True, tag="request.delayed"):
    """A request waits before it is sent (again)."""

    reason: str
    """``cache``, ``429``, ``529``, ``5xx``, ``connection``, ``cut``, ``place`` or
    ``budget``: the steps of other runs hold what is left of one."""
    wait_ms: int
    attempt: int = 1
    attempts: int | None = None
    """How often it is tried at most; None: as often as the endpoint says."""
    message: str = ""


class PaceChanged(Event, frozen=True, kw_only=True, tag="pace.changed"):
    """How many requests may be at the endpoint at once changed, for all runs."""

    width: int
    most: int
    """How many there may be when all is well."""
    reason: str = ""
    """``429`` when it was halved; empty when it climbs back."""


class StreamOpened(Event, frozen=True, kw_only=True, tag="stream.opened"):
    """The first byte of an answer arrived."""

    message_id: str
    ttft_ms: int
    """Time to first token: from sending to this event."""


class TextStreamed(Event, frozen=True, kw_only=True, tag="text.streamed"):
    """More text of the current answer, joined over about 50 ms."""

    index: int
    text: str


class ThinkingStreamed(Event, frozen=True, kw_only=True, tag="thinking.streamed"):
    """More thinking of the current answer."""

    index: int
    text: str


class CallStreamed(Event, frozen=True, kw_only=True, tag="call.streamed"):
    """More of a tool call's input; only shown, never parsed."""

    index: int
    name: str
    text: str


class MessageFinished(Event, frozen=True, kw_only=True, tag="message.finished"):
    """An assistant message is whole and enters the history; its text wins over the deltas."""

    message: msgspec.Raw
    stop_reason: str
    message_id: str = ""


class StepCut(Event, frozen=True, kw_only=True, tag="step.cut"):
    """An answer broke; what was streamed stays visible as cut and runs no tool."""

    reason: str
    attempt: int
    resent: bool


class UsageReported(Event, frozen=True, kw_only=True, tag="usage.reported"):
    """Tokens and money of one response, also of a cut one (then ``at_least``)."""

    usage: Usage
    model: str
    cost_usd: Decimal | None
    """None when the price is unknown."""
    price_source: str = ""
    at_least: bool = False


class CacheJudged(Event, frozen=True, kw_only=True, tag="cache.judged"):
    """What the usage says about the shared prefix of one request."""

    verdict: Verdict
    read_tokens: int | None
    expected_tokens: int | None
    first_step: bool = False
    saved_usd: Decimal | None = None
    difference: str = ""
    """The first differing block, or the endpoint's own reason."""
    written_tokens: int | None = None
    """Tokens this request wrote to the cache."""
    fresh_tokens: int | None = None
    """Tokens behind the last mark: neither read nor written."""


StepFamily: TypeAlias = (
    StepStarted
    | RequestSent
    | RequestDelayed
    | PaceChanged
    | StreamOpened
    | TextStreamed
    | ThinkingStreamed
    | CallStreamed
    | MessageFinished
    | StepCut
    | UsageReported
    | CacheJudged
)
"""The step's events."""
