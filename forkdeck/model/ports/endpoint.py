"""Ports of the model's side: provider, gate, prices, seeds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from decimal import Decimal
from typing import Protocol

import msgspec

from forkdeck.errors import ProviderError
from forkdeck.model.raw import JsonDict
from forkdeck.model.state import HistoryEntry
from forkdeck.model.stream import ModelRequest, StreamPart
from forkdeck.model.usage import Usage


class EndpointFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the endpoint; capabilities are data, overridable in the config."""

    base_url: str
    """Shown; never with credentials in it."""
    name: str
    account: str = ""
    """Tells one account from another and is no secret; empty when not known."""
    thinking: bool = True
    effort: bool = True
    diagnostics: bool = False
    cache_fields: bool = True
    """Whether answers tell what was read from the cache."""
    cache_control: bool = True
    """Whether cache marks are taken; without them nothing is shared at the cache's price."""
    ttl: bool = False
    """Whether a cache mark may ask for an hour."""
    simulated: str | None = None
    """Words to show when the model is scripted."""

    @property
    def caches(self) -> bool:
        """Whether it takes cache marks and tells what became of them."""
        return self.cache_control and self.cache_fields


class Provider(Protocol):
    """One attempt at a time at one endpoint."""

    @property
    def endpoint(self) -> EndpointFacts:
        """What is known of the endpoint."""
        ...

    def endpoint_for(self, model: str) -> EndpointFacts:
        """Return what holds for requests to one model: an endpoint may refuse it more."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Send a request and yield its answer; no retry inside.

        Closing the iterator (or cancelling its task) closes the HTTP stream at once. Deltas
        are joined over about 50 ms.

        Raises:
            ProviderError: Before `Opened`: the classified refusal. After it: `StreamCut`,
                `Overloaded` or `ServerFault` (a broken stream is never an answer).
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a model; unknown fields are None."""

    context_tokens: int | None = None
    max_output_tokens: int = 32_000
    cache_minimum_tokens: int = 4_096
    thinking: JsonDict | None = None
    """The ``thinking`` parameter for this model, or None to leave it out."""
    effort: str | None = None
    """The model's default effort."""


class PriceBook(Protocol):
    """Prices of models, with their source."""

    def cost_usd(self, model: str, usage: Usage) -> tuple[Decimal | None, str]:
        """Return the cost of one response and the price's source; None when unknown."""
        ...

    def read_saving_usd(self, model: str, read_tokens: int) -> Decimal | None:
        """Return what reading `read_tokens` from the cache saved against fresh input."""
        ...

    def per_token_usd(self, model: str) -> tuple[Decimal, Decimal, Decimal, Decimal] | None:
        """Return (input, cache write 5m, cache read, output) per token, or None."""
        ...

    def facts(self, model: str) -> ModelFacts:
        """Return what is known of a model; conservative for an unknown one."""
        ...


class Gate(Protocol):
    """One gate per endpoint and key: concurrency, Retry-After, back-off, jitter."""

    @property
    def width(self) -> int:
        """How many may be inside at once now."""
        ...

    @property
    def most(self) -> int:
        """How many may be inside at once when all is well."""
        ...

    async def enter(self, run: str, waiting: Callable[[str, int], None]) -> None:
        """Wait for the turn to send; `waiting(reason, wait_ms)` is called when it must wait."""
        ...

    def leave(self, run: str) -> None:
        """Give the place back after the request ended, however it ended."""
        ...

    def succeeded(self) -> None:
        """Note a first byte: concurrency may climb again."""
        ...

    def wait_after(self, error: ProviderError, attempt: int) -> tuple[float, int | None] | None:
        """Say how long to wait in seconds and how many attempts there are; None: give up.

        `attempt` counts from 1. A 429 with Retry-After closes the gate for every run.
        """
        ...


class Seed(msgspec.Struct, frozen=True, kw_only=True):
    """What a fork starts from; frozen, shared by all children of a launch."""

    mode: str
    inherited_messages: int
    """Parent messages taken whole."""
    messages: tuple[msgspec.Raw, ...]
    """Messages that follow them in the child, without the directive."""
    inherited_blocks: int = 0
    """Leading blocks of the last of `messages` that are the parent's."""
    boundary: int = 0
    """Message positions inherited in all."""
    notes: tuple[str, ...] = ()


class SeedPolicy(Protocol):
    """A pure function of the parent's history."""

    name: str

    def plan(self, history: Sequence[HistoryEntry], call: str | None) -> Seed:
        """Return the seed for a call of the last assistant message (None: the person's fork).

        Raises:
            SeedRefused: The history cannot give a valid seed of this kind.
        """
        ...
