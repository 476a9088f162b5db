"""Answers from the strip, the edited command, undo on the diff screen, themes, and the mouse."""

from __future__ import annotations

import pytest
from textual import events

from forkdeck.model.events.work import WorkApplied, WorkSaved
from forkdeck.model.intents import AnswerRequest, ApplyWork, UndoLast
from forkdeck.model.work import WorkDiff
from forkdeck.ui.screens.dialog import Confirm
from forkdeck.ui.screens.diff import DiffScreen
from forkdeck.ui.start_rows import here_first
from forkdeck.ui.terminal import Terminal
from forkdeck.ui.theme import shipped_folder, user_folder
from forkdeck.ui.widgets.line_widget import LineWidget
from tests.ui.fakes import summary
from tests.ui.test_deck import Driver, driven
from tests.widgets import scenes
from tests.widgets.host import text_of


async def test_without_a_pane_the_strip_answers_a_request_that_is_whole_in_it() -> None:
    async with driven(count=8, size=(80, 13)) as driver:
        request = driver.deck.state.asks[0].event.request
        assert driver.strip.endswith("Ctrl+X w next")
        await driver.keys("tab", "1")
        assert driver.screen.pane is None
        assert "y once" not in driver.strip
        await driver.keys("y")
        assert "no request is shown here" in driver.strip
        await driver.keys("2")
        assert driver.screen.pane is None
        assert "pytest -q tests/io" in driver.strip
        assert "y once" in driver.strip
        await driver.keys("y")
        assert driver.deck.asked(AnswerRequest) == [AnswerRequest(request=request, answer="once")]


async def test_without_a_pane_a_long_request_is_not_answered_unread() -> None:
    script = scenes.deck(8)
    script.asks("f4", "pytest " + "-k name " * 20)
    async with driven(script.events, size=(80, 13)) as driver:
        await driver.keys("tab", "4")
        assert driver.screen.pane is None
        assert "Enter shows it whole" in driver.strip
        assert "y once" not in driver.strip
        await driver.keys("y")
        assert driver.deck.asked(AnswerRequest) == []
        await driver.keys("enter")
        # The zoom's layout takes a moment; until the card stands there, y answers nothing.
        await driver.until(
            lambda: driver.screen.pane is not None and driver.screen.pane.card_visible
        )
        await driver.keys("y")
        assert len(driver.deck.asked(AnswerRequest)) == 1


async def test_an_edited_command_is_sent_whole() -> None:
    async with driven(count=3) as driver:
        request = driver.deck.state.asks[0].event.request
        await driver.keys("tab", "2", "e")
        assert driver.footer.lstrip().startswith("EDIT")
        assert driver.screen.area.text == "pytest -q tests/io"
        await driver.type("/x")
        await driver.keys("enter")
        assert driver.deck.asked(AnswerRequest) == [
            AnswerRequest(request=request, answer="once", edited="pytest -q tests/io/x")
        ]
        assert not driver.screen.in_prompt
        await driver.keys("e", "escape", "y")
        assert driver.deck.asked(AnswerRequest)[1:] == [
            AnswerRequest(request=request, answer="once")
        ]


async def test_what_cannot_be_seen_cannot_be_edited() -> None:
    script = scenes.Script().opened().parent_talk().batch(1, writers=(1,)).started("f1")
    script.asks("f1", "echo \u202eevil")
    async with driven(script.events) as driver:
        await driver.keys("tab", "1", "e")
        assert "invisible characters" in driver.strip
        assert not driver.screen.in_prompt


async def test_undo_on_the_diff_screen_asks_when_files_change() -> None:
    script = scenes.deck(3)
    script.add(
        WorkSaved(run="f2", ref="refs/forkdeck/s/f2", commit="aa", base="4f", files=(), commits=1)
    )
    async with driven(script.events) as driver:
        await driver.keys("tab", "2", "d", "u")
        screen = driver.pilot.app.screen
        assert isinstance(screen, DiffScreen)
        assert "can be undone" in "\n".join(text_of(screen.sheet))
        applied = WorkApplied(run="f2", undo_ref="refs/u/1", files=(), seq=999,
                              at_ms=driver.deck.state.at_ms)  # fmt: skip
        driver.deck.apply(applied, urgent=True)
        await driver.keys("u")
        assert isinstance(driver.pilot.app.screen, Confirm)
        await driver.keys("escape")
        assert driver.deck.asked(UndoLast) == []
        await driver.keys("u", "enter")
        assert driver.deck.asked(UndoLast) == [UndoLast(handle="f2")]


async def test_a_changed_theme_file_is_drawn_at_once() -> None:
    folder = shipped_folder()
    assert folder is not None
    source = (folder / "forkdeck-light.toml").read_text(encoding="utf-8")
    async with driven(count=3) as driver:
        app = driver.screen.deck_app
        app.do_theme("forkdeck-light")
        await driver.settle()
        assert "for this session" in driver.strip
        before = driver.screen.title_line.palette
        own = user_folder()
        own.mkdir(parents=True)
        changed = source.replace('background = "#fcfcfb"', 'background = "#010203"')
        assert changed != source
        (own / "mine.toml").write_text(changed, encoding="utf-8")
        app.reload_themes()
        await driver.settle()
        assert driver.screen.title_line.palette is not before
        assert app.theme_variables["background"].lower() == "#010203"
        (own / "mine.toml").write_text("name = 3", encoding="utf-8")
        app.reload_themes()
        await driver.settle()
        assert "mine.toml is not used" in driver.strip


async def _drag(
    driver: Driver, widget: LineWidget, start: tuple[int, int], end: tuple[int, int]
) -> None:
    await driver.pilot.mouse_down(widget, offset=start)
    await driver.pilot.hover(widget, offset=end)
    await driver.pilot.mouse_up(widget, offset=end)
    await driver.settle()


async def test_the_wheel_scrolls_a_pane_and_the_board() -> None:
    async with driven(count=30, size=(80, 24)) as driver:
        board = driver.screen.body.board
        first = text_of(board)
        assert "more" in first[-1]
        board.post_message(_wheel(board))
        await driver.settle()
        assert " forks 30   grouped by attention   1 above" in text_of(board)[0]
        assert text_of(board)[1:4] == first[4:7]
        pane = driver.screen.body.panes[0]
        await driver.keys("tab", "2")
        top = text_of(pane)
        pane.scroll_lines(-3)
        await driver.settle()
        assert text_of(pane) != top
        assert not pane.following


def _wheel(widget: LineWidget) -> events.MouseScrollDown:
    return events.MouseScrollDown(
        widget, 1, 1, 0, 1, 0, shift=False, meta=False, ctrl=False, screen_x=1, screen_y=1
    )


async def test_a_drag_selects_text_and_c_copies_it() -> None:
    async with driven(count=3) as driver:
        pane = driver.screen.body.parent_pane
        row = next(y for y, line in enumerate(text_of(pane)) if "Find every place" in line)
        await _drag(driver, pane, (7, row), (17, row))
        assert driver.screen.get_selected_text() == "Find every"
        await driver.keys("c")
        assert "10 characters" in driver.strip or "copied" in driver.strip


async def test_a_click_selects_then_zooms_and_folds() -> None:
    async with driven(count=3) as driver:
        body = driver.screen.body
        await driver.pilot.click(body.panes[1], offset=(20, 0))
        await driver.settle()
        assert (driver.selected, driver.screen.view.zoomed) == ("f2", False)
        await driver.pilot.click(body.panes[1], offset=(20, 0))
        await driver.settle()
        assert driver.screen.view.zoomed
        pane = driver.screen.pane
        assert pane is not None
        before = text_of(pane)
        row = next(y for y, line in enumerate(before) if "− edit" in line)
        await driver.pilot.click(pane, offset=(12, row))
        await driver.settle()
        assert "+ edit" in "\n".join(text_of(pane))
        row = next(y for y, line in enumerate(text_of(body.facts)) if "data-layer" in line)
        await driver.pilot.click(body.facts, offset=(6, row))
        await driver.settle()
        assert driver.selected == "f3"


async def test_f8_gives_the_mouse_to_the_terminal_and_takes_it_back() -> None:
    async with driven(count=1) as driver:
        said: list[str] = []
        driver.screen.deck_app.terminal = Terminal(said.append)
        await driver.keys("f8")
        assert "F8 turns it on" in driver.strip
        await driver.keys("f8")
        assert [text[-1] for text in said] == ["l", "h"]
        assert "?1006" in said[0]


async def test_the_cost_footer_can_be_hidden() -> None:
    async with driven(count=8, size=(80, 24)) as driver:
        assert "$0.04" in "\n".join(text_of(driver.screen.body.board))
        driver.screen.deck_app.draw_options.costs = False
        driver.screen.replan()
        driver.screen.body.board.repaint()
        await driver.keys("tab")
        assert "$0.04" not in "\n".join(text_of(driver.screen.body.board))
        assert "1:33" in "\n".join(text_of(driver.screen.body.board))
        assert "$0.54 of 5.00" in text_of(driver.screen.title_line)[0]
        assert "cache" not in text_of(driver.screen.title_line)[0]


@pytest.mark.parametrize("count", [13, 30])
async def test_what_is_below_the_board_is_counted(count: int) -> None:
    async with driven(count=count, size=(80, 24)) as driver:
        board = driver.screen.body.board
        shown = [line for line in text_of(board) if line]
        assert shown[-1].strip().startswith("+ ")
        await driver.keys("tab", "G")
        assert driver.selected in driver.screen.view.order
        chosen = driver.deck.state.forks[driver.selected].name
        assert any(chosen in line for line in text_of(board))


async def test_a_diff_without_changes_offers_no_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    script = scenes.deck(3)
    script.add(
        WorkSaved(run="f2", ref="refs/forkdeck/s/f2", commit="aa", base="4f", files=(), commits=0)
    )
    async with driven(script.events) as driver:

        async def nothing(_: str) -> WorkDiff:
            return WorkDiff(base="4f", commit="aa")

        monkeypatch.setattr(driver.deck, "diff", nothing)
        await driver.keys("tab", "2", "d", "enter")
        screen = driver.pilot.app.screen
        assert isinstance(screen, DiffScreen)
        assert "nothing to apply" in "\n".join(text_of(screen.sheet))
        assert "Enter" not in "\n".join([*text_of(screen.sheet), *text_of(screen.footer)])
        assert driver.deck.asked(ApplyWork) == []


def test_sessions_of_this_directory_stand_first() -> None:
    found = [summary(number, cwd=cwd) for number, cwd in enumerate(("/b", "/a", "/b", "/a"))]
    assert [each.forks for each in here_first(found, "/a")] == [1, 3, 0, 2]
