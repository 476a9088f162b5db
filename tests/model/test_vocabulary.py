"""The vocabulary's own arithmetic: raw JSON, prefixes, usage, shared lists, names."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forkdeck.model.ids import handle, handle_number, is_handle, is_session_id, slug
from forkdeck.model.prefix import (
    describe_position,
    fingerprint,
    first_difference,
    positions,
)
from forkdeck.model.raw import clean, from_raw, to_raw
from forkdeck.model.shared_list import SharedList
from forkdeck.model.usage import Cost, Usage
from tests.soak import laws

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@laws(200)
@given(JSON)
def test_raw_is_ascii_and_keeps_order(value: Any) -> None:
    raw = to_raw({"v": value})
    assert bytes(raw).isascii()
    assert json.dumps(from_raw(raw)) == json.dumps({"v": clean(value)})


def test_lone_surrogates_and_non_finite_numbers_are_replaced() -> None:
    value = from_raw(to_raw({"a\ud800": [float("nan"), float("-inf"), "x\udfff", 1.5]}))
    assert value == {"a?": [None, None, "x?", 1.5]}


def test_key_order_and_marks() -> None:
    """T34, T35: order is part of a position, cache marks are not."""
    one = {"messages": [{"role": "user", "content": [{"type": "text", "text": "é"}]}]}
    two = {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "é", "cache_control": {"type": "ephemeral"}}],
            }
        ]
    }
    three = {"messages": [{"role": "user", "content": [{"text": "é", "type": "text"}]}]}
    assert fingerprint(positions(one)) == fingerprint(positions(two))
    assert first_difference(positions(one), positions(three)) == 1
    assert describe_position(one, 1) == "messages[0] block 0"
    assert positions({"messages": [{"role": "user", "content": "é"}]}) == positions(one)


def test_model_and_effort_salt_the_prefix() -> None:
    """T33: another effort or model shares nothing."""
    base: dict[str, Any] = {"model": "m", "tools": [{"name": "a"}], "system": [], "messages": []}
    assert first_difference(positions(base), positions({**base, "model": "n"})) == 0
    other = {**base, "output_config": {"effort": "high"}}
    assert first_difference(positions(base), positions(other)) == 0
    assert describe_position(base, 1) == "tools[0]"


def test_usage_knows_what_it_was_not_told() -> None:
    silent = Usage(input_tokens=10, output_tokens=2)
    told = Usage(input_tokens=5, cache_read_input_tokens=0, cache_creation_input_tokens=95)
    assert silent.cache_share is None
    assert told.cache_share == 0.0
    assert (silent + told).cache_read_input_tokens == 0
    assert (silent + silent).cache_read_input_tokens is None
    assert (silent + told).prompt_tokens == 110


@laws(200)
@given(st.lists(st.decimals(0, 1000, places=9) | st.none()))
def test_money_sums_exactly(parts: list[Decimal | None]) -> None:
    total = Cost()
    for part in parts:
        total += Cost.of(part)
    assert total.usd == sum((p for p in parts if p is not None), Decimal(0))
    assert total.known == (None not in parts)


def test_older_values_stay_true() -> None:
    old: SharedList[int] = SharedList([1, 2])
    left = old.appended(3)
    right = old.appended(4)
    assert (list(old), list(left), list(right)) == ([1, 2], [1, 2, 3], [1, 2, 4])
    assert left.shares(old)
    assert not right.shares(old)
    assert left[-1] == 3
    assert right.since(1) == [2, 4]
    with pytest.raises(IndexError):
        old[2]


def test_names() -> None:
    assert handle(3) == "f3"
    assert handle_number("f12") == 12
    assert (
        slug("Find every place — we RETRY, and make it uniform!") == "find-every-place-we-retry-and"
    )
    assert slug("…") == "fork"
    assert slug("x" * 50) == "x" * 32
    good = ["f1", "f999999"]
    bad = ["f0", "f", "F1", "f1\n", "f1/..", "--bad", "f1234567", ""]
    assert [is_handle(name) for name in good + bad] == [True] * 2 + [False] * 8
    assert is_session_id("20261130-202200-1f3a9c")
    assert not is_session_id("../20261130-202200-1f3a9c")
