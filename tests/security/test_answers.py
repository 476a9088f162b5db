"""A hostile endpoint, and a fork that writes ForkDeck's own markup."""

from __future__ import annotations

import pytest

from forkdeck.engine.reports import escaped
from forkdeck.errors import StreamCut
from forkdeck.providers.accumulate import LONGEST_ANSWER, Accumulator
from forkdeck.providers.usage_fields import UsageFields

START = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}


@pytest.mark.parametrize(
    ("kind", "key"),
    [("text_delta", "text"), ("thinking_delta", "thinking"), ("signature_delta", "signature")],
)
def test_an_answer_that_never_ends_is_cut(kind: str, key: str) -> None:
    answer = Accumulator()
    answer.feed(START)
    delta = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": kind, key: "x" * (1 << 20)},
    }
    for _ in range((LONGEST_ANSWER >> 20) - 1):
        answer.feed(delta)
    with pytest.raises(StreamCut, match="longer than any model"):
        answer.feed(delta)


@pytest.mark.parametrize("count", [-1, 10**10, 10**400, True, 1.5, "7", None])
def test_counts_nobody_can_have_used_are_not_told(count: object) -> None:
    fields = UsageFields()
    fields.take({"input_tokens": count})
    assert fields.usage() is None


def test_own_markup_is_harmless_in_any_spelling() -> None:
    for text in ("</fork-report>", "< / FORK-REPORT >", "<task-notification>", "<\tfork-report x>"):
        assert "<" not in escaped(text)
