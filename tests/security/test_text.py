"""Text that floods, hides or costs: on every face, and in time."""

from __future__ import annotations

import json
import time
from decimal import Decimal

import pytest

from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.events.tool import ApprovalAsked
from forkdeck.model.state import EMPTY
from forkdeck.plain.json_lines import JsonFace
from forkdeck.store.cells import cell_width, wrap
from forkdeck.store.figures import UNKNOWN, money
from forkdeck.store.rows_cards import ARGUMENT_CHARACTERS, ARGUMENT_LINES, hides_some
from forkdeck.store.rows_text import inline_spans, wrap_spans
from forkdeck.store.text import one_line, plain_text


@pytest.mark.parametrize("mark", ["\u0301", "\u20dd", "\ufe0f", "\u1161", "\U000e0101"])
def test_a_flood_of_marks_stays_small(mark: str) -> None:
    assert len(plain_text("a" + mark * 1_000_000)) <= 11
    assert cell_width(one_line("a" + mark * 500)) <= 120
    assert len(one_line("a" + mark * 500)) <= 120


def test_marks_of_real_scripts_stay() -> None:
    for text in ("e\u0301", "\u05d1\u05bc\u05b0\u05e8\u05b5\u05d0", "\u0e17\u0e35\u0e48", "日本語"):
        assert plain_text(text) == text


@pytest.mark.parametrize(
    "line",
    ["x" * 1_000_000, "日" * 300_000, "é " * 300_000, "`a` " * 100_000, "é" + " " * 500_000],
    ids=["ascii", "wide", "accents", "marks", "blanks"],
)
def test_a_line_of_a_megabyte_is_wrapped_at_once(line: str) -> None:
    began = time.monotonic()
    rows = wrap_spans(inline_spans(line), 80)
    # The slow way took minutes.
    assert time.monotonic() - began < 5
    assert all(sum(cell_width(text) for _, text in row) <= 80 for row in rows)


def test_wide_characters_in_one_cell() -> None:
    assert wrap("日a日", 1) == ["日", "a", "日"]


def test_json_lines_are_safe_for_a_terminal_and_mean_the_same() -> None:
    text = "a\x9b2J\x7f\u202e\u200b\U000e0041\ufeff日é"
    lines: list[str] = []
    JsonFace(lines.append).event(NoticeRaised(severity="info", what=text), EMPTY)
    assert json.loads(lines[0])["what"] == text
    assert not set(lines[0]) & set("\x9b\x7f\u202e\u200b\U000e0041\ufeff\x1b")
    assert "日é" in lines[0]


@pytest.mark.parametrize("text", ["1E+999999", "-1E+40", "NaN", "Infinity"])
def test_money_nobody_has_is_unknown(text: str) -> None:
    assert money(Decimal(text)) == UNKNOWN


def test_a_request_too_long_to_be_read_is_told_apart() -> None:
    def asked(argument: str) -> bool:
        event = ApprovalAsked(
            run="p", request="q1", call="c", tool="bash", argument=argument, cwd="/", rule="r"
        )
        return hides_some(event.argument)

    assert not asked("x\n" * (ARGUMENT_LINES - 1) + "rm -rf .")
    assert asked("x\n" * ARGUMENT_LINES + "rm -rf .")
    assert asked("x" * (ARGUMENT_CHARACTERS + 1))
