"""The demo in the real deck: fan out, answer, zoom, abort, diff, apply, undo, replay, quit."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Open
from tests.e2e.terminal import Terminal
from tests.program import Program, eventually, processes_of

pytestmark = pytest.mark.needs_sandbox

CTRL_D = "\x04"


def quit_deck(deck: Terminal) -> None:
    deck.press(CTRL_D, r"Quit ForkDeck\?")
    deck.send("\r")
    assert deck.ended() == 0
    assert deck.restored


def test_from_fan_out_to_replay(place: Program, open_terminal: Open) -> None:
    deck = open_terminal("demo", env={"FORKDECK_REHEARSAL_SPEED": "12"})
    deck.wait(r"scripted model, simulated at list price")
    deck.wait(r"4\s+◆ ASK\s+fix\s+bash git commit")
    deck.wait(r"◆ 1 ask\s+4 fix\s+bash git commit")
    # Typing in the prompt is never taken for an answer.
    deck.press("yes", r"› yes")
    assert "ASK" in deck.text
    deck.press("\x03", r"› Ask the parent")

    deck.press("\t", r"DECK")
    deck.press("4", r"y once")
    # An answer counts once its card was there a moment and no other key came just before.
    deck.pump(0.7)
    deck.send("y")
    deck.wait_gone(r"◆ ASK")
    deck.wait(r"4\s+✓ NEW\s+fix")
    deck.wait(r"The cause is clear and the fix is ready\.")

    sample = next((place.base / "tmp").glob("forkdeck-demo-*")) / "tally" / "tally" / "money.py"
    before = sample.read_text()
    assert "range(1, left)" in before
    deck.send("4")
    deck.press("\r", r"ZOOM")
    deck.press("\x1b", r"DECK")
    deck.press("d", r"for index in range\(left\):")
    deck.press("\x1b", r"DECK")
    deck.press("m", r"(?s)range\(left\):.*apply to main")
    deck.press("\r", r"applied +u takes it back exactly")
    assert "range(left)" in sample.read_text()
    deck.press("\x1b", r"DECK")
    deck.press("u", r"(?i)undo")
    deck.send("\r")
    assert eventually(lambda: deck.pump() and sample.read_text() == before, 10), deck.text

    deck.press("q", r"PROMPT")
    deck.press("/replay\r", r"(?i)saved sessions|all sessions|The March invoice")
    deck.pump(0.5)
    deck.press("r", r"REPLAY")
    deck.press("g", r"REPLAY")
    deck.press(" ", r"REPLAY")
    for keys in (".", ",", "\x1b[C", ">", "I", " "):
        deck.send(keys)
        deck.pump(0.1)
    deck.press("'", r"(?i)go to")
    deck.press("100%\r", r"event (\d+) of \1\b")
    quit_deck(deck)
    assert not list((place.base / "tmp").iterdir())
    assert not processes_of(place.base)


def test_aborting_one_fork_leaves_the_others(place: Program, open_terminal: Open) -> None:
    deck = open_terminal("demo", env={"FORKDECK_REHEARSAL_SPEED": "3"})
    deck.wait(r"3\s+\S (RUN|START|WAIT)\s+coverage")
    deck.press("\t", r"DECK")
    deck.send("3")
    deck.pump(0.2)
    deck.press("x", r"3\s+\S (STOP|ABRT)\s+coverage")
    deck.wait(r"3\s+■ ABRT\s+coverage")
    deck.wait(r"1\s+✓ NEW\s+confirm", 25)
    deck.wait(r"2\s+✓ NEW\s+reach", 25)
    deck.wait(r"4\s+◆ ASK\s+fix", 25)
    quit_deck(deck)
    assert not processes_of(place.base)


def test_resizing_while_all_stream(place: Program, open_terminal: Open) -> None:
    deck = open_terminal("demo", size=(80, 24), env={"FORKDECK_REHEARSAL_SPEED": "4"})
    deck.wait(r"START|RUN")
    sizes = [(200, 60), (40, 10), (20, 5), (80, 24), (120, 40), (20, 5), (300, 80), (60, 15)]
    for width, height in sizes * 3:
        deck.resize(width, height)
        assert deck.pump(0.15), deck.text
    deck.resize(120, 40)
    deck.wait(r"4\s+◆ ASK\s+fix", 30)
    deck.wait(r"PROMPT .*Enter send")
    assert deck.screen.display[0].startswith(" forkdeck")
    quit_deck(deck)
    assert not processes_of(place.base)
