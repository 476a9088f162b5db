"""What a response cost, exactly, or that it is not known.

The engine asks after every response. Prices come from the user's settings first, else from the
list inside the ``genai-prices`` package; nothing is ever downloaded. A model that neither knows
has no price: None, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from forkdeck.config.settings import ModelPrice
from forkdeck.model.ports import ModelFacts
from forkdeck.model.usage import Usage
from forkdeck.providers.models import model_facts

_MTOK = Decimal(1_000_000)
_PROBE = 1_000

Rates: TypeAlias = tuple[Decimal, Decimal, Decimal, Decimal]
"""Per token: input, cache write (5 minutes), cache read, output."""


class Prices:
    """Prices of models, with their source.

    Args:
        overrides: The user's own prices by model; they win, and also hold for unknown models.
        listed: Whether the package's list may be used: it holds the prices of Anthropic's own
            endpoint, which another endpoint need not share.
    """

    def __init__(
        self, overrides: Mapping[str, ModelPrice] | None = None, *, listed: bool = True
    ) -> None:
        self._overrides = dict(overrides or {})
        self._listed = listed

    def warm_up(self) -> None:
        """Load the list of prices; takes a while, so call it in a thread."""
        if self._listed:
            _list_cost("claude-opus-5-5", 1, 0, 0, 0, 0)

    def cost_usd(self, model: str, usage: Usage) -> tuple[Decimal | None, str]:
        """Return the cost of one response in US dollars and the price's source.

        Cache counts that the endpoint did not tell count as none. None when there is no price.
        """
        reads = usage.cache_read_input_tokens or 0
        writes = usage.cache_creation_input_tokens or 0
        long = min(usage.cache_creation_1h_tokens or 0, writes)
        own = self._overrides.get(model)
        if own is not None:
            fresh, write, read, out = _rates(own)
            # The settings state one price for writes: the longer lifetime costs 1.6 times it.
            long_write = write * Decimal("1.6") if own.cache_write is not None else write
            total = fresh * usage.input_tokens + write * (writes - long) + long_write * long
            return total + read * reads + out * usage.output_tokens, "settings"
        if not self._listed:
            return None, ""
        cost = _list_cost(
            model, usage.input_tokens, reads, writes - long, long, usage.output_tokens
        )
        return (None, "") if cost is None else (cost, _source())

    def read_saving_usd(self, model: str, read_tokens: int) -> Decimal | None:
        """Return what reading `read_tokens` from the cache saved against fresh input."""
        if read_tokens <= 0:
            return Decimal(0)
        own = self._overrides.get(model)
        if own is not None:
            fresh, _, read, _ = _rates(own)
            return (fresh - read) * read_tokens
        if not self._listed:
            return None
        fresh_cost = _list_cost(model, read_tokens, 0, 0, 0, 0)
        read_cost = _list_cost(model, 0, read_tokens, 0, 0, 0)
        if fresh_cost is None or read_cost is None:
            return None
        return fresh_cost - read_cost

    def per_token_usd(self, model: str) -> Rates | None:
        """Return (input, cache write 5m, cache read, output) per token, or None.

        For a model whose price depends on the size of the prompt: those of a small one.
        """
        own = self._overrides.get(model)
        if own is not None:
            return _rates(own)
        return _list_rates(model) if self._listed else None

    def facts(self, model: str) -> ModelFacts:
        """Return what is known of a model; careful for an unknown one."""
        return model_facts(model)


def _rates(price: ModelPrice) -> Rates:
    write = price.input if price.cache_write is None else price.cache_write
    read = price.input if price.cache_read is None else price.cache_read
    return price.input / _MTOK, write / _MTOK, read / _MTOK, price.output / _MTOK


@lru_cache(maxsize=64)
def _list_rates(model: str) -> Rates | None:
    found: list[Decimal] = []
    for counts in (
        (_PROBE, 0, 0, 0, 0),
        (0, 0, _PROBE, 0, 0),
        (0, _PROBE, 0, 0, 0),
        (0, 0, 0, 0, _PROBE),
    ):
        cost = _list_cost(model, *counts)
        if cost is None:
            return None
        found.append(cost / _PROBE)
    return found[0], found[1], found[2], found[3]


def _list_cost(
    model: str, fresh: int, reads: int, writes: int, long_writes: int, output: int
) -> Decimal | None:
    """Return the list price of these tokens, or None for a model that is not listed."""
    import genai_prices  # noqa: PLC0415 - takes 0.15 s, and replay never needs it

    body = {
        "model": model,
        "usage": {
            "input_tokens": fresh,
            "cache_read_input_tokens": reads,
            "cache_creation_input_tokens": writes + long_writes,
            "cache_creation": {
                "ephemeral_5m_input_tokens": writes,
                "ephemeral_1h_input_tokens": long_writes,
            },
            "output_tokens": output,
        },
    }
    try:
        return genai_prices.extract_usage(body, provider_id="anthropic").calc_price().total_price
    except (LookupError, ValueError):
        return None


@lru_cache(maxsize=1)
def _source() -> str:
    import genai_prices  # noqa: PLC0415 - as above

    return f"genai-prices {genai_prices.__version__}"
