"""Terminals as they come: tiny, without colour, without UTF-8, without a key in the environment."""

from __future__ import annotations

import re

import pytest

from tests.e2e.conftest import Open
from tests.program import Program

CTRL_D = "\x04"


def test_the_start_screen_without_credentials(place: Program, open_terminal: Open) -> None:
    deck = open_terminal()
    deck.wait(r"no key  No credentials: ANTHROPIC_API_KEY")
    deck.wait(r"export ANTHROPIC_API_KEY=")
    deck.wait(r"d demo, offline and free\s+r replay a saved session")
    deck.wait(r"✓\s+state")
    deck.wait(r"START")
    deck.press("\t", r"PROMPT")
    deck.press("fix the bug\r", r"› fix the bug")
    deck.wait(r"! +No credentials")
    deck.press("\x03", r"No key yet")
    deck.press("\t", r"START")
    deck.press("?", r"keys in the start")
    deck.send("\x1b")
    deck.wait_gone(r"keys in the start")
    deck.send(CTRL_D)
    assert deck.ended() == 0
    assert deck.restored
    assert not place.sessions(), "nothing was begun"


@pytest.mark.parametrize("how", ["flag", "locale"])
def test_nothing_beyond_ascii_is_drawn(live: Program, open_terminal: Open, how: str) -> None:
    words = ["--ascii"] if how == "flag" else []
    env = {"LC_ALL": "C"} if how == "locale" else {}
    deck = open_terminal(*words, env=env)
    deck.wait(r"new session")
    deck.wait(r"\+\s+state")
    deck.press("fork and fail\r", r"x FAIL\s+unlucky")
    deck.wait(r"It failed\.")
    deck.press("\t", r"DECK")
    deck.press("?", r"j k \^ v")
    assert deck.text.isascii(), sorted({each for each in deck.text if not each.isascii()})
    deck.send("\x1b")
    deck.wait_gone(r"keys in the deck")
    assert deck.text.isascii(), sorted({each for each in deck.text if not each.isascii()})
    drawn = re.sub(rb"\x1b\][^\x07\x1b]*(\x07|\x1b\\)", b"", bytes(deck.raw))
    assert drawn.isascii()
    deck.press(CTRL_D, r"Quit ForkDeck\?")
    deck.send("\r")
    assert (deck.ended(), deck.restored) == (0, True)


def test_no_colour(live: Program, open_terminal: Open) -> None:
    deck = open_terminal(env={"NO_COLOR": "1"})
    deck.wait(r"✓\s+state")
    deck.press("say hello\r", r"Hello from the script\.")
    colours = {
        code
        for codes in re.findall(rb"\x1b\[([0-9;]*)m", bytes(deck.raw))
        for code in re.findall(rb"38;2;(\d+);(\d+);(\d+)", codes)
    }
    assert all(len(set(each)) == 1 for each in colours), "only greys"
    deck.press(CTRL_D, r"Quit ForkDeck\?")
    deck.send("\r")
    assert (deck.ended(), deck.restored) == (0, True)


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (80, 24), (200, 60)])
def test_every_size_can_be_left(live: Program, open_terminal: Open, size: tuple[int, int]) -> None:
    deck = open_terminal(size=size)
    deck.wait(r"PROMPT")
    if size == (20, 5):
        deck.resize(40, 10)
        deck.wait(r"Enter send")
    deck.press("say hello\r", r"Hello from")
    if size == (20, 5):
        deck.resize(20, 5)
        deck.wait(r"needs 40x10")
    else:
        assert "PROMPT" in deck.last_line
        assert "›" in deck.text
    deck.resize(80, 24)
    deck.wait(r"Hello from the script\.")
    deck.press(CTRL_D, r"Quit ForkDeck\?")
    deck.send("\r")
    assert (deck.ended(), deck.restored) == (0, True)
