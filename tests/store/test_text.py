"""Nothing from outside acts on a terminal or hides from a reader."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forkdeck.store.text import one_line, plain_text
from tests.soak import laws

LAWS = laws(300)
ODD = "\x00\x07\x08\x0b\x1b\x7f\x85\x9b\u200b\u200d\u202e\u2066\u2069\ufeff\U000e0041\ud800\u061c"


@pytest.mark.parametrize("char", ODD, ids=lambda char: f"{ord(char):x}")
def test_each_odd_character_is_replaced(char: str) -> None:
    shown = plain_text(f"a{char}b")
    assert char not in shown
    assert shown[0] + shown[-1] == "ab"
    assert len(shown) == 3


def test_what_is_shown_instead() -> None:
    assert plain_text("\x1b[31mred\x1b]0;t\x07") == "␛[31mred␛]0;t␇"
    assert plain_text("a\r\nb\rc\td\n") == "a\nb␍c\td\n"
    assert plain_text("a\nb\tc", newlines=False, tabs=False) == "a␊b␉c"
    assert plain_text("a\nb\tc", tabs=False) == "a\nb␉c"
    assert plain_text("naïve 漢字 🙂 עברית") == "naïve 漢字 🙂 עברית"


@LAWS
@given(st.text(st.sampled_from("ab \n\t漢e\u0301🙂" + ODD) | st.characters(), max_size=40))
def test_no_control_or_format_character_is_left_and_it_is_idempotent(text: str) -> None:
    shown = plain_text(text)
    assert all(
        char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp")
        for char in shown
    )
    assert not any(
        unicodedata.bidirectional(char)
        in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        for char in shown
    )
    assert plain_text(shown) == shown
    line = one_line(text, 10)
    assert len(line) <= 10
    assert not set(line) & set("\n\t\r")


def test_one_line() -> None:
    assert one_line("  a\n\n b\t c  ", 20) == "a b c"
    assert one_line("abcdef", 6) == "abcdef"
    assert one_line("abcdefg", 6) == "abcde…"
    assert one_line("abc", 0) == ""
    assert one_line(" " * 10_000 + "x", 10) in ("", "…")
    assert one_line("x" * 10_000_000, 5) == "xxxx…"
