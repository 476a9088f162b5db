"""The launch plan: a card that steals nothing, a page, and answers that count only when read."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from forkdeck.model.events.fork import ForkEnded
from forkdeck.model.events.tool import ApprovalAnswered
from forkdeck.model.ids import PARENT
from forkdeck.model.intents import AbortFork, AnswerRequest
from forkdeck.model.launching import LaunchPlan, PlannedFork
from forkdeck.store.rows_plan import plan_card
from forkdeck.store.rows_types import Grid
from forkdeck.ui.plan_rows import plan_rows
from forkdeck.ui.screens.plan import PlanScreen
from tests.ui.test_deck import Driver, driven
from tests.widgets import scenes
from tests.widgets.host import text_of

YES = [AnswerRequest(request="plan1", answer="once")]
NO = [AnswerRequest(request="plan1", answer="deny")]


async def _page(driver: Driver) -> PlanScreen:
    await driver.screen.act("plan")
    await driver.settle()
    screen = driver.pilot.app.screen
    assert isinstance(screen, PlanScreen)
    screen.refresh_rows()
    return screen


def _text(lines: Sequence[str]) -> str:
    return " ".join(" ".join(lines).split())


async def test_the_card_says_what_it_costs_and_keeps_the_prompt_where_it_is() -> None:
    async with driven(scenes.planned().events) as driver:
        assert driver.screen.in_prompt
        assert driver.selected == PARENT
        shown = _text(text_of(driver.screen.body.parent_pane))
        for words in (
            "launch 4 forks", "$0.23 to $0.53", "usually $0.31", "41.2k tokens, cold",
            "4f2c9a1, 2 uncommitted files", "read-only, worktree", "each fork 40 turns, 900 s",
            "before_call, 4 at once", "1 api-audit", "worktree One helper", "y launch", "- refuse",
        ):  # fmt: skip
            assert words in shown, words
        assert "launch 4 forks" in driver.strip
        assert "$0.23 to $0.53" in driver.strip
        assert "4 plan" in text_of(driver.screen.title_line)[0]
        await driver.type("yes")
        assert driver.screen.area.text == "yes"
        assert driver.deck.asked(AnswerRequest) == []


async def test_an_unknown_price_is_said_in_words() -> None:
    async with driven(scenes.planned(priced=False).events) as driver:
        shown = _text(text_of(driver.screen.body.parent_pane))
        assert "price not known for this model" in shown
        assert "$0.00" not in shown


@pytest.mark.parametrize(("key", "wanted"), [("y", YES), ("minus", NO)])
async def test_a_planned_fork_answers_for_its_launch(key: str, wanted: list[object]) -> None:
    async with driven(scenes.planned().events) as driver:
        await driver.keys("tab")
        assert driver.selected == "f1"
        pane = driver.screen.pane
        assert pane is not None
        assert "List every retry site with evidence." in _text(text_of(pane))
        await driver.keys(key)
        assert driver.deck.asked(AnswerRequest) == wanted


async def test_enter_on_a_planned_fork_shows_the_plan_and_only_a_second_look_launches() -> None:
    async with driven(scenes.planned().events) as driver:
        await driver.keys("tab", "2")
        await driver.keys("enter", "enter", quiet_ms=100)
        screen = driver.pilot.app.screen
        assert isinstance(screen, PlanScreen)
        assert driver.deck.asked(AnswerRequest) == []
        assert screen.selected == 1
        await driver.keys("enter")
        assert driver.deck.asked(AnswerRequest) == YES
        assert driver.pilot.app.screen is driver.screen


async def test_a_plan_that_does_not_fit_launches_only_after_its_end_was_seen() -> None:
    async with driven(scenes.planned().events, size=(80, 16)) as driver:
        screen = await _page(driver)
        assert not screen.sheet.at_end
        await driver.keys("enter")
        assert driver.deck.asked(AnswerRequest) == []
        assert "last line" in screen.note.rows[0].text
        await driver.keys("G", "pagedown", "enter")
        assert driver.deck.asked(AnswerRequest) == YES


async def test_the_page_has_every_fact_and_leaves_forks_out() -> None:
    async with driven(scenes.planned().events) as driver:
        screen = await _page(driver)
        shown = _text(text_of(screen.sheet))
        for words in (
            "asked for by the parent, nothing has started", "budget left $4.95 of 5.00",
            "$0.23 to $0.53, usually $0.31", "its last use is more than five minutes ago",
            "the first fork leads", "the session $5.00", "such a launch usually costs $0.31",
        ):  # fmt: skip
            assert words in shown, words
        await driver.keys("j", "x")
        assert driver.deck.asked(AbortFork) == [AbortFork(handle="f2")]
        ended = ForkEnded(run="f2", outcome="aborted", reason="person", at_ms=9_000)
        driver.deck.apply(ended, urgent=True)
        screen.refresh_rows()
        shown = _text(text_of(screen.sheet))
        await driver.keys("escape", "tab", "2")
        pane = driver.screen.pane
        assert pane is not None
        card = _text(text_of(pane))
        assert "ended stopped by you" in card
        assert "it never started; /fork gives the task anew" in card
        assert "resume" not in card
        assert "left out" in shown
        assert "Enter launch 3 of 4 forks" in shown


async def _left_out(driver: Driver, *handles: str) -> None:
    for handle in handles:
        ended = ForkEnded(run=handle, outcome="aborted", reason="person", at_ms=9_000)
        driver.deck.apply(ended, urgent=True)
    await driver.settle()


async def test_prices_and_places_are_those_of_the_forks_that_are_left() -> None:
    async with driven(scenes.planned(plan=scenes.priced_plan()).events) as driver:
        parent, strip = driver.screen.body.parent_pane, driver.screen.strip
        assert "$0.23 to $0.53, usually $0.31" in _text(text_of(parent))
        await _left_out(driver, "f1")
        # The second fork leads now: 0.08 + 2 x 0.05, 0.10 + 2 x 0.07, 0.17 + 2 x 0.12.
        for words in (
            "launch 3 of 4 forks", "$0.18 to $0.41, usually $0.24", "before_call, 3 at once",
            "what is left usually costs $0.24, no more than",
        ):  # fmt: skip
            assert words in _text(text_of(parent)).replace("▌ ", ""), words
        assert "$0.18 to $0.41" in _text(text_of(strip))
        screen = await _page(driver)
        shown = text_of(screen.sheet)
        for words in (
            "$0.18 to $0.41, usually $0.24", "at once 3", "forks.plan_above_usd ($0.25)",
            "the first fork leads",
        ):  # fmt: skip
            assert words in _text(shown), words
        words = [row.replace("▌", " ").split() for row in shown[4:8]]
        costs = {each[1]: each[-1] for each in words}
        assert costs["impl-step3"] == "$0.10"
        assert costs["data-layer"] == "$0.07"
        assert not costs["api-audit"].startswith("$")
        await driver.keys("escape", "tab", "2")
        pane = driver.screen.pane
        assert pane is not None
        assert "launch 3 of 4 forks $0.18 to $0.41" in _text(text_of(pane))
        await _left_out(driver, "f2", "f3")
        screen = await _page(driver)
        assert "the first fork leads" not in _text(text_of(screen.sheet))


async def test_a_log_without_prices_of_forks_says_what_its_price_is_of() -> None:
    async with driven(scenes.planned().events) as driver:
        await _left_out(driver, "f1")
        shown = _text(text_of(driver.screen.body.parent_pane))
        assert "$0.23 to $0.53 for all 4, usually $0.31" in shown
        assert "before_call, 3 at once" in shown
        assert "such a launch usually costs $0.31" in shown


async def test_refusing_with_words_goes_to_the_prompt_and_escape_decides_nothing() -> None:
    async with driven(scenes.planned().events) as driver:
        await _page(driver)
        await driver.keys("escape")
        assert driver.pilot.app.screen is driver.screen
        assert driver.deck.asked(AnswerRequest) == []
        await _page(driver)
        await driver.keys("underscore")
        assert driver.screen.in_prompt
        await driver.type("one is enough")
        await driver.keys("enter")
        wanted = AnswerRequest(request="plan1", answer="deny", reason="one is enough")
        assert driver.deck.asked(AnswerRequest) == [wanted]


async def test_a_plan_that_was_answered_elsewhere_cannot_be_answered_again() -> None:
    async with driven(scenes.planned().events) as driver:
        screen = await _page(driver)
        driver.deck.apply(ApprovalAnswered(run=PARENT, request="plan1", answer="deny"))
        screen.refresh_rows()
        assert "answered already" in text_of(screen.sheet)[0]
        await driver.keys("enter", "x")
        assert driver.deck.intents == []


async def test_without_a_plan_the_command_says_so_and_a_replay_answers_nothing() -> None:
    async with driven(count=3) as driver:
        await driver.screen.act("plan")
        await driver.settle()
        assert "no launch waits" in driver.strip
    async with driven(scenes.planned().events, replay=True) as driver:
        assert "cannot be answered here" in _text(text_of(driver.screen.body.parent_pane))
        screen = await _page(driver)
        await driver.keys("enter")
        assert driver.deck.intents == []
        assert "recorded" in screen.note.rows[0].text


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_row_of_the_page_is_wider_than_it(width: int) -> None:
    state = scenes.planned().state()
    rows = plan_rows(state.asks[0], state, selected=1, width=width)
    assert all(len(row.text) <= width for row in rows), [len(row.text) for row in rows]


async def test_of_two_questions_only_the_one_that_a_key_answers_is_on_screen() -> None:
    script = scenes.planned()
    first = script.state().asks[0].event
    plan = msgspec.structs.replace(scenes.launch_plan(), forks=scenes.launch_plan().forks[:1])
    script.add(msgspec.structs.replace(first, request="plan2", tool="user", plan=plan))
    async with driven(script.events) as driver:
        shown = _text(text_of(driver.screen.body.parent_pane))
        assert "launch 4 forks" in shown
        assert "launch 1 fork" not in shown
        assert "1 more question after this one" in shown
        await driver.keys("tab", "0", "y")
        assert driver.deck.asked(AnswerRequest) == YES


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_a_fork_that_was_left_out_still_answers_for_its_plan(size: tuple[int, int]) -> None:
    """The parent's card is what was read; that is what the key answers."""
    script = scenes.planned().add(ForkEnded(run="f2", outcome="aborted", reason="person"))
    async with driven(script.events, size=size) as driver:
        await driver.keys("tab", "2", "y")
        assert driver.selected == "f2"
        assert driver.deck.asked(AnswerRequest) == YES


def test_in_a_low_pane_count_and_price_stand_last() -> None:
    state = scenes.planned().state()
    ask = state.asks[0]
    rows = plan_card(ask, state, Grid(60), state.at_ms, compact=True, recorded=False)
    texts = [row.text for row in rows]
    at = next(index for index, text in enumerate(texts) if "launch 4 forks" in text)
    assert "$0.23 to $0.53" in texts[at + 1]
    assert "y launch" in texts[at + 2]
    whole = plan_card(ask, state, Grid(60), state.at_ms, compact=False, recorded=False)
    assert "launch 4 forks" in whole[1].text


@pytest.mark.parametrize("amount", ["abc", "NaN", "Infinity", "-1", "1e999", ""])
def test_a_price_that_is_none_and_hostile_words_draw_as_nothing_but_text(amount: str) -> None:
    script = scenes.planned()
    bad = "a\x1b[31mb\u202ec\nd"
    fork = PlannedFork(handle="f1", name=bad, task=bad * 50, seed=bad, model=bad)
    plan = LaunchPlan(
        forks=(fork,), low_usd=amount, likely_usd=amount, high_usd=amount, base_commit=bad,
        isolation=(bad,), limits=(bad,), seeds=(bad,), notes=(bad,), warm=False, cold_why=bad,
    )  # fmt: skip
    event = script.state().asks[0].event
    script.add(msgspec.structs.replace(event, plan=plan, rule=bad))
    state = script.state()
    rows = plan_rows(state.asks[0], state, selected=0, width=100)
    grid = Grid(60)
    card = plan_card(state.asks[0], state, grid, state.at_ms, compact=False, recorded=False)
    text = "".join(row.text for row in (*rows, *card))
    assert text.isprintable()
    assert "\u202e" not in text
    assert "not known for this model" in text
