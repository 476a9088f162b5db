"""Token counts and money, named as the Messages API names them."""

from __future__ import annotations

from decimal import Decimal

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens of one response, or a sum of several.

    The cache fields are None when the endpoint did not report them: unknown, not zero.
    ``input_tokens`` counts only what follows the last cache hit or write.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation_5m_tokens: int | None = None
    cache_creation_1h_tokens: int | None = None
    thinking_tokens: int | None = None

    @property
    def prompt_tokens(self) -> int:
        """All tokens of the prompt: fresh, read and written."""
        read = self.cache_read_input_tokens or 0
        return self.input_tokens + read + (self.cache_creation_input_tokens or 0)

    @property
    def cache_share(self) -> float | None:
        """Part of the prompt read from the cache (0 to 1); None when not told."""
        if self.cache_read_input_tokens is None or not self.prompt_tokens:
            return None
        return self.cache_read_input_tokens / self.prompt_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_input_tokens=_sum(
                self.cache_read_input_tokens, other.cache_read_input_tokens
            ),
            cache_creation_input_tokens=_sum(
                self.cache_creation_input_tokens, other.cache_creation_input_tokens
            ),
            cache_creation_5m_tokens=_sum(
                self.cache_creation_5m_tokens, other.cache_creation_5m_tokens
            ),
            cache_creation_1h_tokens=_sum(
                self.cache_creation_1h_tokens, other.cache_creation_1h_tokens
            ),
            thinking_tokens=_sum(self.thinking_tokens, other.thinking_tokens),
        )


def _sum(left: int | None, right: int | None) -> int | None:
    if left is None:
        return right
    return left if right is None else left + right


def usd_text(usd: Decimal) -> str:
    """Return an amount as a plain decimal number, exact, without trailing zeros."""
    return f"{usd.normalize():f}"


class Cost(msgspec.Struct, frozen=True, omit_defaults=True):
    """Money spent, in US dollars, exact; `unpriced` when part of it has no known price."""

    usd: Decimal = Decimal(0)
    unpriced: bool = False

    @property
    def known(self) -> bool:
        """Whether `usd` is the whole cost."""
        return not self.unpriced

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.usd + other.usd, self.unpriced or other.unpriced)

    @classmethod
    def of(cls, usd: Decimal | None) -> Cost:
        """Return the cost of one response; None means its price is unknown."""
        return cls(unpriced=True) if usd is None else cls(usd)


NO_COST = Cost()
"""Nothing spent yet."""
