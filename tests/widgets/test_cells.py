"""Cell widths, cutting and wrapping, and how figures are written."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from forkdeck.model.usage import Cost
from forkdeck.store import cells, figures
from forkdeck.ui import formats, glyphs


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("日本", 4), ("e\u0301", 1), ("한글", 4), ("…", 1), ("🙂", 2), ("ｱ", 1)],
)
def test_widths(text: str, width: int) -> None:
    assert cells.cell_width(text) == width


def test_every_glyph_is_one_cell_for_us_and_for_the_renderer() -> None:
    ours = [glyphs.badge(word).glyph for word in glyphs.WORDS]
    ours += list("".join(glyphs.UNICODE_MARKS)) + list("".join(glyphs.row_glyphs()))
    assert all(cells.cell_width(glyph) == 1 and cell_len(glyph) == 1 for glyph in ours)


def test_the_ascii_set_is_ascii_and_distinct() -> None:
    words = [glyphs.badge(word, ascii_only=True).glyph for word in glyphs.WORDS]
    drawn = "".join(glyphs.ASCII_MARKS) + "".join(glyphs.row_glyphs(ascii_only=True))
    assert ("".join(words) + drawn).isascii()
    # NEW and DONE share a glyph: one is the other, unread; the word and the weight differ.
    assert len(set(words)) == len(words) - 1


def test_cutting_never_splits_a_wide_character() -> None:
    assert cells.split_cells("日本語", 3) == ("日", "本語")
    assert cells.cut_end("日本語", 5) == "日本…"
    assert cells.cut_end("abcdef", 4) == "abc…"
    assert cells.cut_end("abc", 3) == "abc"
    assert cells.cut_end("abc", 0) == ""
    assert cells.fit("ab", 4) == "ab  "


@pytest.mark.parametrize(
    ("path", "room", "shown"),
    [
        ("src/http/retry.py", 17, "src/http/retry.py"),
        ("src/http/retry.py", 16, "…/http/retry.py"),
        ("src/http/retry.py", 12, "…/retry.py"),
        ("src/http/retry.py", 6, "retry…"),
    ],
)
def test_a_path_keeps_its_end(path: str, room: int, shown: str) -> None:
    assert cells.cut_path(path, room) == shown


def test_wrapping_breaks_at_blanks_and_breaks_long_words() -> None:
    assert cells.wrap("one two three", 8) == ["one two", "three"]
    assert cells.wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert cells.wrap("日本語テキスト", 5) == ["日本", "語テ", "キス", "ト"]
    assert cells.wrap("", 5) == [""]


@given(st.text(alphabet="ab 日é\u0301", max_size=60), st.integers(2, 20))
def test_wrapping_loses_nothing_but_blanks_at_breaks(text: str, width: int) -> None:
    rows = cells.wrap(text, width)
    assert rows
    assert all(cells.cell_width(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


@given(st.text(alphabet="ab  c", max_size=60), st.integers(1, 20))
def test_the_short_way_to_wrap_ascii_wraps_alike(text: str, width: int) -> None:
    text = "x" + text
    if len(text) > width:
        assert cells._ascii_rows(text, width) == list(cells._rows(text, width))


def test_figures() -> None:
    assert [figures.clock(ms) for ms in (None, 0, 3_400, 134_000, 900_000, 3_725_000)] == [
        "–", "0:00", "0:03", "2:14", "15:00", "1:02:05",
    ]  # fmt: skip
    assert [figures.tokens(n) for n in (None, 0, 850, 41_200, 402_449, 999_949, 3_200_000)] == [
        "–", "0", "850", "41.2k", "402.4k", "999.9k", "3.20M",
    ]  # fmt: skip
    assert [figures.window(n) for n in (None, 200_000, 1_000_000, 60_000)] == [
        "–", "200k", "1M", "60k",
    ]  # fmt: skip
    texts = [figures.money(None if v is None else Decimal(v)) for v in
             (None, "0", "0.0001", "0.064", "0.065", "1234.5", "-0.01")]  # fmt: skip
    assert texts == ["–", "$0.00", "<$0.01", "$0.06", "$0.07", "$1,234.50", "−$0.01"]
    assert figures.size(38_000_000) == "38 MB"
    assert figures.plural(1, "file") == "1 file"


def test_unknown_is_never_zero() -> None:
    assert formats.cost(Cost(unpriced=True)) == "–"
    assert formats.cost(Cost(Decimal("0.5")), known=False) == "–"
    assert formats.percent(None) == "–"
    assert formats.percent(0.999) == "99%"
    assert formats.percent(1.0) == "100%"
    assert formats.context(None, 200_000) == ""
    assert formats.context(41_200, 200_000) == "41.2k of 200k context"
    assert formats.of_budget("$0.19", Decimal("5")) == ("$0.19", " of 5.00")
    assert formats.of_budget("$0.19", None) == ("$0.19", "")


def test_meters_and_sparklines() -> None:
    assert glyphs.meter_cells(0.0, 8) == 0
    assert glyphs.meter_cells(0.001, 8) == 1
    assert glyphs.meter_cells(1.5, 8) == 8
    assert glyphs.sparkline([0.0, 4.0, 8.0]) == "▁▄█"
    assert glyphs.sparkline([0.0, 0.0]) == "▁▁"
