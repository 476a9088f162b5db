"""Prices against hand arithmetic from the published list, and what is not known."""

from __future__ import annotations

from decimal import Decimal

import pytest

from forkdeck.config.settings import ModelPrice
from forkdeck.model.ports import ModelFacts
from forkdeck.model.usage import Usage
from forkdeck.providers.models import MODELS, model_facts
from forkdeck.providers.prices import Prices

CACHED = Usage(
    input_tokens=12,
    output_tokens=50,
    cache_read_input_tokens=90_000,
    cache_creation_input_tokens=3_000,
    cache_creation_5m_tokens=1_000,
    cache_creation_1h_tokens=2_000,
)


def test_every_kind_of_token_has_its_price():
    cost, source = Prices().cost_usd("claude-opus-5-5", CACHED)
    # 12×4 + 90,000×0.20 + 1,000×5 + 2,000×8 + 50×20 dollars per million
    assert cost == Decimal("0.040048")
    assert source.startswith("genai-prices ")


def test_the_size_of_the_prompt_decides_the_band():
    small = Usage(input_tokens=99_000, output_tokens=1_000)
    large = Usage(input_tokens=101_000, output_tokens=1_000)
    assert Prices().cost_usd("claude-haiku-5-5", small)[0] == Decimal("0.0104")
    assert Prices().cost_usd("claude-haiku-5-5", large)[0] == Decimal("0.0530")
    read = Usage(input_tokens=1_000, output_tokens=1_000, cache_read_input_tokens=100_000)
    assert Prices().cost_usd("claude-haiku-5-5", read)[0] == Decimal("0.0080")


@pytest.mark.parametrize(
    "model", ["claude-opus-6", "glm-5", "", "gpt-5", "anthropic/claude-opus-5-5"]
)
def test_unknown_is_unknown_and_never_zero(model):
    prices = Prices()
    assert prices.cost_usd(model, CACHED) == (None, "")
    assert prices.read_saving_usd(model, 1_000) is None
    assert prices.per_token_usd(model) is None


def test_the_list_is_not_used_for_an_endpoint_that_need_not_share_it():
    assert Prices(listed=False).cost_usd("claude-opus-5-5", CACHED) == (None, "")
    assert Prices(listed=False).per_token_usd("claude-opus-5-5") is None


def test_per_token_and_saving():
    fresh, write, read, out = Prices().per_token_usd("claude-opus-5-5") or (None,) * 4
    assert (fresh, write, read, out) == (
        Decimal("0.000004"),
        Decimal("0.000005"),
        Decimal("0.0000002"),
        Decimal("0.00002"),
    )
    assert Prices().read_saving_usd("claude-opus-5-5", 90_000) == Decimal("0.342")
    assert Prices().read_saving_usd("claude-opus-5-5", 0) == 0


def test_the_users_price_wins_and_holds_for_unknown_models():
    own = ModelPrice(
        input=Decimal(10),
        output=Decimal(100),
        cache_read=Decimal(1),
        cache_write=Decimal("12.5"),
    )
    prices = Prices(
        {"claude-opus-5-5": own, "local": ModelPrice(input=Decimal(1), output=Decimal(2))}
    )
    # 12×10 + 90,000×1 + 1,000×12.5 + 2,000×20 + 50×100 dollars per million
    assert prices.cost_usd("claude-opus-5-5", CACHED) == (Decimal("0.14762"), "settings")
    # without cache prices every prompt token costs what input costs: 93,012×1 + 50×2
    assert prices.cost_usd("local", CACHED) == (Decimal("0.093112"), "settings")
    assert prices.read_saving_usd("local", 1_000) == 0
    assert prices.read_saving_usd("claude-opus-5-5", 1_000) == Decimal("0.009")


def test_unknown_cache_counts_are_priced_as_fresh():
    cost, _ = Prices().cost_usd("claude-opus-5-5", Usage(input_tokens=1_000, output_tokens=0))
    assert cost == Decimal("0.004")


def test_a_sum_of_responses_is_exact_to_the_cent():
    one, _ = Prices().cost_usd("claude-sonnet-5-5", Usage(input_tokens=1, output_tokens=1))
    assert one is not None
    assert one * 1_000_000 == 12


def test_facts():
    facts = Prices().facts("claude-opus-5-5")
    assert facts.context_tokens == 1_000_000
    assert facts.cache_minimum_tokens == 512
    assert facts.thinking == {"type": "adaptive", "display": "summarized"}
    assert facts.effort == "medium"
    assert model_facts("claude-opus-5-5-20260901") == facts
    assert model_facts("claude-opus-5").effort == "high"
    assert model_facts("claude-haiku-4-5-20251001").thinking is None
    assert model_facts("claude-haiku-4-5").context_tokens == 200_000
    for unknown in ("claude-opus-5-55", "glm-5", "claude-opus-5-5[1m]", ""):
        assert model_facts(unknown) == ModelFacts()


@pytest.mark.parametrize("model", [name for name in MODELS if "mythos" not in name])
def test_every_known_model_is_priced(model):
    cost, _ = Prices().cost_usd(model, Usage(input_tokens=1, output_tokens=1))
    assert cost is not None
    assert cost > 0
