"""What supervision shows beside the state word: slow, limits, claims, steering, cache, context."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from forkdeck.model.events.fork import ForkDelayed, ForkEnded, ForkRecovered, ForkSteered
from forkdeck.model.events.session import HeadRecorded, NoticeRaised
from forkdeck.model.events.step import PaceChanged, UsageReported
from forkdeck.model.events.tool import ApprovalAnswered
from forkdeck.model.events.turn import HistoryCompacted, ShellRan
from forkdeck.model.ids import PARENT
from forkdeck.model.intents import AbortFork, CancelTool, CompactParent, IntentResult
from forkdeck.model.raw import to_raw
from forkdeck.model.state import DeckState, Delay, Pace
from forkdeck.model.usage import Usage
from forkdeck.store.cache_view import cache_view
from forkdeck.store.figures import readable_instants
from forkdeck.store.flags import context_words, flags_of, pace_words, reason_words, slow_words
from forkdeck.store.rows import RowBuffer
from forkdeck.store.rows_live import brief_delay, tail_rows
from forkdeck.store.rows_types import Grid
from forkdeck.ui.cache_rows import VERDICTS, cache_rows
from forkdeck.ui.screens.cache import CacheScreen
from forkdeck.ui.screens.deck_base import over_of
from forkdeck.ui.screens.notices import NoticesScreen
from tests.ui.test_deck import Driver, driven
from tests.widgets import scenes
from tests.widgets.host import text_of


def _board(driver: Driver) -> str:
    return "\n".join(text_of(driver.screen.body.board))


def _pane(driver: Driver) -> str:
    pane = driver.screen.pane
    assert pane is not None
    return "\n".join(text_of(pane))


async def test_slow_is_said_everywhere_with_its_clock_and_stops_nothing() -> None:
    async with driven(scenes.troubled().events) as driver:
        assert "! 1 slow" in text_of(driver.screen.title_line)[0]
        assert "! SLOW  api-audit" in _board(driver)
        assert "repeats 1:1" in _board(driver)
        assert "1 slow   1 api-audit   repeats 1:1" in driver.strip
        assert "Ctrl+X 1 goes there" in driver.strip
        await driver.keys("tab", "1")
        assert driver.strip.endswith("Space steer   K stop tool   x abort")
        card = _pane(driver)
        assert "bash pytest -k net called 4 times" in card
        assert "repeats, the very same call again" in card
        assert "Nothing stops it by itself." in card
        assert driver.deck.intents == []
        await driver.keys("K", "x")
        assert driver.deck.intents == [CancelTool(run="f1"), AbortFork(handle="f1")]
        driver.deck.apply(ForkRecovered(run="f1"), urgent=True)
        await driver.settle()
        assert "SLOW" not in _board(driver)
        assert "Nothing stops it" not in _pane(driver)
        assert driver.strip == ""


async def test_flags_of_the_rows() -> None:
    state = scenes.troubled().state()
    assert flags_of(state, "f1") == []
    assert flags_of(state, "f2") == [("! near $0.40", True), ("STEER", False)]
    assert flags_of(state, "f3") == [("UNVERIFIED 2", True)]
    assert flags_of(state, "f4") == [("MISS", True)]
    assert slow_words(state.forks["f1"], state.at_ms).startswith("repeats 1:1")
    assert slow_words(state.forks["f2"], state.at_ms) == ""
    async with driven(scenes.troubled().events, size=(80, 24)) as driver:
        board = _board(driver)
        assert "UNVERIFIED 2" in board
        assert "! near $0.40" in board


async def test_claims_stand_below_their_report() -> None:
    async with driven(scenes.troubled().events) as driver:
        await driver.keys("tab", "3", "z")
        shown = _pane(driver)
        assert "! 2 of 3 not confirmed" in shown
        assert "names src/http/pool.py, which does not exist" in shown
        assert "UNVERIFIED 2" in text_of(driver.screen.pane)[0]  # type: ignore[arg-type]
        facts = "\n".join(text_of(driver.screen.body.facts))
        assert "1 of 3 confirmed" in facts
        await driver.keys("4")
        assert "✓ 3 of 3 claims confirmed" in _pane(driver)


async def test_the_zoom_shows_what_is_near_and_the_lines_that_tool_calls_told() -> None:
    async with driven(scenes.troubled().events) as driver:
        await driver.keys("tab", "2", "z")
        facts = text_of(driver.screen.body.facts)
        assert any("money" in row and "! $0.33 of 0.40" in row for row in facts)
        assert any(row.split() == ["src/io/retry.py", "+41", "−6"] for row in facts)
        assert any(row.split() == ["notes.md", "–"] for row in facts)
        assert "83 % of $0.40 is used" in _pane(driver)


async def test_steering_waits_and_is_then_part_of_the_conversation() -> None:
    async with driven(scenes.troubled().events) as driver:
        await driver.keys("tab", "2")
        assert "waits for the tool to end: Leave notes.md alone." in _pane(driver)
        driver.deck.apply(
            ForkSteered(run="f2", text="Leave notes.md alone.", delivered=True), urgent=True
        )
        await driver.settle()
        shown = _pane(driver)
        assert "waits for the tool" not in shown
        assert "Leave notes.md alone." in shown


def _steer_lines(state: DeckState, status: str | None = None, *, calls: bool = True) -> list[str]:
    fork, run = state.forks["f2"], state.runs["f2"]
    if status is not None:
        outcome = "aborted" if status == "ABRT" else None
        fork = replace(fork, status=status, outcome=outcome)
    state = replace(state, forks={**state.forks, "f2": fork})
    run = run if calls else replace(run, tools=())
    rows = tail_rows(run, state, Grid(width=80), state.at_ms, compact=False, recorded=False)
    texts = ("".join(text for _, text in row.spans) for row in rows)
    return [text.strip() for text in texts if "steer, " in text]


def test_a_message_to_a_fork_says_what_it_waits_for() -> None:
    """Only what is so: no tool when none runs, and not delivered when the fork is over."""
    state = scenes.troubled().state()
    said = "Leave notes.md alone."
    assert _steer_lines(state) == [f"steer, waits for the tool to end: {said}"]
    assert _steer_lines(state, calls=False) == [f"steer, waits for the answer to end: {said}"]
    assert _steer_lines(state, "PLAN") == [f"steer, waits for the fork to start: {said}"]
    over = [f"steer, not delivered, r goes on with it: {said}"]
    assert _steer_lines(state, "ABRT", calls=False) == over


def test_what_never_started_cannot_go_on() -> None:
    state = scenes.troubled().state()
    unborn = replace(state.forks["f2"], started_at_ms=None)
    state = replace(state, forks={**state.forks, "f2": unborn})
    said = "steer, not delivered, it never started: Leave notes.md alone."
    assert _steer_lines(state, "ABRT", calls=False) == [said]


def test_the_pace_is_told_while_something_runs() -> None:
    """A number that holds nobody back is no news."""
    state = replace(scenes.troubled().state(), pace=Pace(4, 9, "429"))
    assert pace_words(state) == "4 of 9 requests at once, after a 429"
    assert pace_words(state, short=True) == "4 of 9 at once"
    over = {name: replace(fork, status="DONE") for name, fork in state.forks.items()}
    run = replace(state.parent, turn=replace(state.parent.turn, running=False))
    assert pace_words(replace(state, forks=over, runs={**state.runs, PARENT: run})) == ""


def test_a_private_fork_is_marked() -> None:
    state = scenes.troubled().state()
    private = replace(state.forks["f1"], private=True)
    state = replace(state, forks={**state.forks, "f1": private})
    assert flags_of(state, "f1") == [("PRIVATE", False)]


async def test_the_cache_page_explains_each_run() -> None:
    async with driven(scenes.troubled().events) as driver:
        await driver.keys("tab", "4")
        await driver.screen.act("cache")
        await driver.settle()
        screen = driver.pilot.app.screen
        assert isinstance(screen, CacheScreen)
        shown = "\n".join(text_of(screen.sheet))
        assert "! MISS" in shown
        assert 'system block 2: "effort: high"' in shown
        assert dict(VERDICTS)["MISS"] in shown
        parent = next(row for row in shown.split("\n") if row.split()[:1] == ["parent"])
        assert "9c1e4a7b" in parent
        assert "$0.00" not in parent
        await driver.keys("k", "enter")
        assert driver.pilot.app.screen is driver.screen
        assert driver.selected == "f3"
        assert driver.screen.view.zoomed


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_row_of_the_cache_page_is_wider_than_it(width: int) -> None:
    view = cache_view(scenes.troubled().state())
    for selected in range(len(view.rows)):
        rows = cache_rows(view, selected=selected, width=width)
        assert all(len(row.text) <= width for row in rows)


def test_no_line_of_the_legend_is_cut_at_80_columns() -> None:
    view = cache_view(scenes.troubled().state())
    rows = [row.text for row in cache_rows(view, selected=0, width=80)]
    legend = rows[rows.index(next(row for row in rows if "the words" in row)) :]
    assert not any("…" in row for row in legend)
    shown = " ".join(" ".join(legend).split())
    assert all(meaning in shown for _, meaning in VERDICTS)


def test_an_endpoint_that_tells_nothing_of_a_cache_is_not_a_zero() -> None:
    script = scenes.Script().opened().parent_talk().batch(1).started("f1")
    rows = cache_rows(cache_view(scenes.Script().opened().state()), selected=0, width=120)
    assert any("told anything of a cache" in row.text for row in rows)
    rows = cache_rows(cache_view(script.state()), selected=1, width=120)
    line = next(row.text for row in rows if "api-audit" in row.text)
    assert " 0 " not in line
    assert "–" in line


async def test_a_full_context_asks_for_a_summary_and_the_summary_is_shown() -> None:
    script = scenes.empty()
    script.add(HeadRecorded(sha256="9c1e", model="claude", context_tokens=13_500))
    usage = Usage(input_tokens=300, output_tokens=100, cache_read_input_tokens=12_700)
    script.add(UsageReported(usage=usage, model="claude", cost_usd=None))
    async with driven(script.events) as driver:
        assert "context 97% full: /compact" in driver.strip
        await driver.type("/compact the plan")
        await driver.keys("enter")
        assert driver.deck.asked(CompactParent) == [CompactParent(hint="the plan")]
        message = to_raw({"role": "user", "content": [{"type": "text", "text": "Short."}]})
        done = HistoryCompacted(
            message=message, kept_from=2, kept_to=2, before_tokens=13_100, text="Short.",
        )  # fmt: skip
        driver.deck.apply(done, urgent=True)
        await driver.settle()
        assert driver.strip == ""
        shown = "\n".join(text_of(driver.screen.body.parent_pane))
        assert "compacted: a summary of 2 messages, 0 kept ─" in shown
        assert "Short." in shown


def test_a_context_below_the_mark_or_without_a_window_says_nothing() -> None:
    assert context_words(scenes.empty().state()) == ""
    script = scenes.Script().opened()
    script.add(HeadRecorded(sha256="9c1e", model="claude"))
    assert context_words(script.state()) == ""


def test_reasons_have_their_figures() -> None:
    state = scenes.deck(8).state()
    fork, run = state.forks["f7"], state.runs["f7"]

    def words(**change: object) -> str:
        return reason_words(msgspec.structs.replace(fork, **change), run)

    assert words(reason="budget") == "money, $0.21 of 0.40"
    assert words(reason="time", started_at_ms=0, ended_at_ms=900_000) == "time, 15:00 of 15:00"
    assert words(reason="the model stopped") == "the model stopped"
    assert words(status="ABRT", reason="person") == "stopped by you"


async def test_notices_are_kept_and_can_be_read_again() -> None:
    async with driven(count=3) as driver:
        driver.deck.apply(
            NoticeRaised(
                severity="warning", what="The endpoint refused\x1b[31m an effort.",
                kept="The turn went on.", remedy="Set effort in the settings.", at_ms=61_000,
            )
        )  # fmt: skip
        await driver.screen.act("notices")
        await driver.settle()
        screen = driver.pilot.app.screen
        assert isinstance(screen, NoticesScreen)
        shown = "\n".join(text_of(screen.sheet))
        assert "1:01  !" in shown
        assert "kept   The turn went on." in shown
        assert "next   Set effort in the settings." in shown
        assert "\x1b" not in shown
        await driver.keys("escape")
        assert driver.pilot.app.screen is driver.screen


@pytest.mark.parametrize("count", [3, 8])
async def test_requests_that_are_held_back_show_on_every_layout_and_under_notices(
    count: int,
) -> None:
    async with driven(scenes.deck(count).events, size=(120, 40)) as driver:
        for ask in driver.deck.state.asks:
            answer = ApprovalAnswered(request=ask.event.request, run=ask.run, answer="deny")
            driver.deck.apply(answer, urgent=True)
        for width, told in ((4, True), (9, False)):
            event = PaceChanged(width=width, most=9, reason="429" if told else "")
            driver.deck.apply(event, urgent=True)
            await driver.settle()
            part = driver.screen.strip if count == 3 else driver.screen.body.board
            assert ("4 of 9" in "\n".join(text_of(part)[:1])) is told
            await driver.screen.act("notices")
            await driver.settle()
            screen = driver.pilot.app.screen
            assert isinstance(screen, NoticesScreen)
            words = "4 of 9 requests at once, after a 429"
            assert (words in "\n".join(text_of(screen.sheet))) is told
            await driver.keys("escape")


async def test_the_palette_runs_a_command_without_arguments_at_once() -> None:
    async with driven(count=3) as driver:
        driver.screen.put_command("/cache")
        await driver.settle()
        assert isinstance(driver.pilot.app.screen, CacheScreen)
        await driver.keys("escape")
        driver.screen.put_command("/model")
        assert driver.screen.area.text == "/model "


async def test_the_key_after_the_leader_is_never_typed_however_fast() -> None:
    async with driven(count=3) as driver:
        driver.clock.ms += 1_000
        await driver.pilot.press("ctrl+x", "2", "x", "y")
        await driver.settle()
        assert driver.selected == "f2"
        assert driver.screen.area.text in {"xy", ""}
        assert driver.deck.asked(AbortFork) == []
        assert PARENT in driver.deck.state.runs


async def test_a_click_on_the_cache_section_of_the_zoom_explains_it() -> None:
    async with driven(scenes.troubled().events) as driver:
        await driver.keys("tab", "4", "z")
        facts = driver.screen.body.facts
        y = next(y for y, row in enumerate(text_of(facts)) if "/cache" in row)
        await driver.pilot.click("#facts", offset=(4, y))
        await driver.settle()
        screen = driver.pilot.app.screen
        assert isinstance(screen, CacheScreen)
        assert cache_view(driver.deck.state).rows[screen.selected].run == "f4"


async def test_what_a_message_tells_of_ends_it() -> None:
    """Nothing says that it is compacting, or stopping a fork, when that is over."""
    async with driven(scenes.deck(3).events) as driver:
        over = [False]
        driver.screen.say("compacting", until=lambda _: over[0])
        await driver.settle()
        assert "compacting" in driver.strip
        over[0] = True
        driver.deck.apply(ForkSteered(run="f1", text="x"), urgent=True)
        await driver.settle()
        assert "compacting" not in driver.strip
    state = scenes.deck(1).state()
    compacting = over_of(CompactParent(), IntentResult(ok=True, text="compacting"))
    running = state.parent.turn.running
    assert compacting(state) is not running
    stopping = over_of(AbortFork(handle="f1"), IntentResult(ok=True, handles=("f1",)))
    assert not stopping(state)
    ended = ForkEnded(run="f1", outcome="aborted", reason="person")
    assert stopping(scenes.deck(1).add(ended).state())


async def test_a_long_message_is_shown_whole() -> None:
    """At 80 columns the remedy stands at the end: it wraps instead of being cut."""
    async with driven(scenes.deck(3).events, size=(80, 24)) as driver:
        await driver.type("/fork --seed warm x")
        await driver.keys("enter")
        rows = text_of(driver.screen.strip)
        assert len(rows) == 2
        assert "".join(rows).rstrip().endswith("completed_turns, turns:N, none.")
        await driver.keys("ctrl+d")
        assert "Ctrl+D quits when the prompt is empty" in driver.strip
        assert len(text_of(driver.screen.strip)) == 1
        assert driver.screen.area.text == "/fork --seed warm x"


def test_a_wait_fits_its_row() -> None:
    assert brief_delay(Delay("429", 18_000, attempt=2), 999) == "429 0:18 (2)"
    assert brief_delay(Delay("429", 18_000, attempt=2, attempts=6), 999) == "429 0:18 (2/6)"
    assert brief_delay(Delay("429", 18_000), 999) == "429 0:18"
    held = Delay("place", elsewhere=2, places=2)
    assert brief_delay(held, 0) == "waits for a place (2 of 2 held by another forkdeck)"


async def test_places_of_others_are_counted_apart() -> None:
    script = scenes.Script().opened().parent_talk().batch(2)
    script.add(ForkDelayed(run="f1", reason="place", elsewhere=2, places=2))
    async with driven(script.events, size=(80, 24)) as driver:
        assert "places 0 here, 2 elsewhere, of 2" in _board(driver)
        assert driver.deck.state.forks["f1"].status == "QUE"


def test_a_resumed_session_says_when_as_a_person_does() -> None:
    text = "session resumed 2026-11-30T20:01:02.345678+00:00"
    assert readable_instants(text) == "session resumed Mon 30 Nov 20:01 UTC"
    assert readable_instants("no time here") == "no time here"


def test_a_shell_command_is_folded() -> None:
    output = "\n".join(f"line {number}" for number in range(30))
    script = scenes.Script().opened()
    script.add(ShellRan(command="seq", output=output, exit_code=0, duration_ms=5))
    buffer = RowBuffer(PARENT, Grid(80))
    buffer.update(script.state(), 0)
    folded = len(buffer)
    assert folded < 12
    assert any("24 more" in text for text in buffer.text())
    assert buffer.toggle(0, script.state())
    assert len(buffer) >= 30
