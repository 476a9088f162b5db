"""However it ends: the terminal is restored, no process stays, the session can be gone on with."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.e2e.conftest import Open
from tests.e2e.terminal import Terminal
from tests.program import Program, descendants, eventually, living, processes_of

CTRL_C, CTRL_D = "\x03", "\x04"


def working(place: Program, open_terminal: Open) -> tuple[Terminal, set[int]]:
    """A deck whose two forks run a command each, and the processes below it."""
    deck = open_terminal()
    deck.wait(r"new session")
    deck.press("fork and wait\r", r"(?s)sleeper.*writer|writer.*sleeper", 25)
    assert eventually(
        lambda: (
            deck.pump()
            and place.log().read_text().count('"tool.started"') >= 3
            and place.fork_wrote("from the fork")
        ),
        20,
    ), deck.text
    children = descendants(deck.pid)
    assert children
    return deck, children


@pytest.mark.needs_sandbox
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_while_forks_work(
    live: Program, open_terminal: Open, number: signal.Signals, code: int
) -> None:
    deck, children = working(live, open_terminal)
    deck.signal(number)
    assert deck.ended() == code
    assert deck.restored
    assert eventually(lambda: not living(children))
    assert not processes_of(live.base)
    events = [json.loads(line) for line in live.log().read_text().splitlines()]
    assert events[-1]["type"] == "session.closed"
    assert sum(event["type"] == "fork.ended" for event in events) == 2
    assert any(event["type"] == "work.saved" and event["run"] == "f2" for event in events)
    assert live.run("replay", "--plain", live.log().parent.name).code == 0


@pytest.mark.needs_sandbox
def test_kill_9_then_continue_shows_what_was_interrupted(
    live: Program, open_terminal: Open
) -> None:
    deck, children = working(live, open_terminal)
    deck.signal(signal.SIGKILL)
    assert deck.ended() == -signal.SIGKILL
    assert eventually(lambda: not living(children), 2), "no orphan lives"
    kept = live.log().read_text()
    again = open_terminal("--continue")
    again.wait(r"† INTR\s+sleeper", 25)
    again.wait(r"† INTR\s+writer")
    again.wait(r"fork and wait|Two forks that take their time")
    assert live.log().read_text().startswith(kept[: kept.rindex("\n")])
    again.press("say hello\r", r"Hello from the script\.")
    again.press(CTRL_D, r"Quit ForkDeck\?")
    again.send("\r")
    assert (again.ended(), again.restored) == (0, True)
    assert not processes_of(live.base)


def test_the_terminal_is_closed(live: Program, open_terminal: Open) -> None:
    deck = open_terminal()
    deck.wait(r"new session")
    deck.press("say hello\r", r"Hello from the script\.")
    os.close(deck.fd)
    deck.closed = True
    assert deck.process.wait(15) in (129, 1, -signal.SIGHUP)
    assert eventually(lambda: '"session.closed"' in live.log().read_text())
    assert not processes_of(live.base)


@pytest.mark.parametrize("moment", ["at once", "start screen", "opening"])
def test_sigterm_at_other_moments(live: Program, open_terminal: Open, moment: str) -> None:
    deck = open_terminal()
    if moment == "at once":
        assert eventually(lambda: deck.pump() and bool(deck.raw), 10)
    else:
        deck.wait(r"new session")
    if moment == "opening":
        deck.send("stay silent\r")
        deck.pump(0.1)
    deck.signal(signal.SIGTERM)
    assert deck.ended() == 143
    assert deck.restored
    assert not processes_of(live.base)


@pytest.mark.needs_sandbox
def test_the_ladder_of_ctrl_c(live: Program, open_terminal: Open) -> None:
    deck = open_terminal()
    deck.wait(r"new session")
    deck.press("wait for ever\r", r"bash\s+sleep 600")
    deck.press("half a thought", r"› half a thought")
    deck.send(CTRL_C)
    deck.wait_gone(r"half a thought")
    assert "sleep 600" in deck.text, "the first only clears the prompt"
    assert eventually(lambda: '"tool.started"' in live.log().read_text())
    sleepers = descendants(deck.pid)
    deck.send(CTRL_C)
    assert eventually(lambda: deck.pump() and '"turn.ended"' in live.log().read_text())
    assert eventually(lambda: not living(sleepers)), "the second stops the parent's command"
    deck.pump(0.5)
    deck.press(CTRL_C, r"Quit ForkDeck\?")
    deck.send("\x1b")
    deck.wait_gone(r"Quit ForkDeck\?")
    deck.press("say hello\r", r"Hello from the script\.")
    deck.press(CTRL_C, r"Quit ForkDeck\?")
    deck.send("\r")
    assert (deck.ended(), deck.restored) == (0, True)
    assert not processes_of(live.base)


def test_a_session_that_is_not_there(live: Program, open_terminal: Open) -> None:
    for words, told in (
        (["--resume", "nope"], "there is no session 'nope'"),
        (["--continue"], "There is no saved session in"),
        (["replay", "nope"], "there is no session 'nope'"),
    ):
        deck = open_terminal(*words)
        assert deck.ended() == 1
        assert told in deck.text
        assert b"\x1b[?1049h" not in deck.raw, "no deck was opened for it"


def test_a_session_that_is_open_elsewhere(live: Program, open_terminal: Open) -> None:
    first = open_terminal()
    first.wait(r"new session")
    first.press("say hello\r", r"Hello from the script\.")
    second = open_terminal("--continue")
    second.wait(r"(?i)another process|open elsewhere|in use")
    second.send("q")
    second.ended()
    assert second.restored
    first.press("read the notes\r", r"plum jam")
    first.press(CTRL_D, r"Quit ForkDeck\?")
    first.send("\r")
    assert (first.ended(), first.restored) == (0, True)


def test_a_torn_log_in_the_deck_shows_its_mark(live: Program, open_terminal: Open) -> None:
    live.run("run", "say hello")
    data = live.log().read_bytes()
    (live.project / "torn.jsonl").write_bytes(data[:-20])
    deck = open_terminal("replay", "./torn.jsonl")
    deck.wait(r"REPLAY")
    deck.press("'", r"(?i)go to")
    deck.press("100%\r", r"Hello from the script\.")
    deck.wait(r"unfinished")
    deck.press(CTRL_D, r"Quit ForkDeck\?")
    deck.send("\r")
    assert (deck.ended(), deck.restored) == (0, True)
