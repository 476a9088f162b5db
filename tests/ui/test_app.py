"""The app: what it opens, what it says when that fails, and how it leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot

from forkdeck.model.intents import SendPrompt
from forkdeck.ui.screens.cost import CostScreen
from forkdeck.ui.screens.deck import DeckScreen
from forkdeck.ui.screens.dialog import Confirm
from forkdeck.ui.screens.error import ErrorScreen, Trouble
from forkdeck.ui.screens.help import HelpScreen
from forkdeck.ui.screens.palette import PaletteScreen
from forkdeck.ui.screens.sessions import SessionsScreen
from forkdeck.ui.screens.start import StartScreen
from forkdeck.ui.screens.trust import TrustScreen
from forkdeck.ui.start_request import StartRequest
from tests.ui.fakes import FakeDeck, FakeFactory, app_of, no_such_session
from tests.widgets import scenes
from tests.widgets.host import text_of


async def settle(pilot: Pilot[int]) -> None:
    for _ in range(6):
        await pilot.pause()


async def press(pilot: Pilot[int], *keys: str) -> None:
    await pilot.press(*keys)
    await settle(pilot)


async def test_the_first_message_opens_the_deck_and_is_sent() -> None:
    factory = FakeFactory(FakeDeck(scenes.empty().events))
    app = app_of(factory=factory)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert isinstance(app.screen, StartScreen)
        assert factory.opened == []
        await press(pilot, *"hello", "enter")
        assert isinstance(app.screen, DeckScreen)
        assert factory.opened == [("live", None)]
        deck = factory.deck
        assert isinstance(deck, FakeDeck)
        assert deck.asked(SendPrompt) == [SendPrompt(text="hello")]


@pytest.mark.parametrize(
    ("keys", "opened"),
    [
        (("n",), ("live", None)),
        (("d",), ("demo", None)),
        (("j", "enter"), ("live", "20261130-100002-000002")),
        (("3",), ("live", "20261130-100003-000003")),
        (("r",), ("replay", "20261130-100001-000001")),
        (("slash", "4", "enter"), ("live", "20261130-100004-000004")),
    ],
)
async def test_ways_to_begin(keys: tuple[str, ...], opened: tuple[str, object]) -> None:
    factory = FakeFactory(FakeDeck(scenes.empty().events))
    app = app_of(factory=factory)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "tab", *keys[:1])
        await press(pilot, *keys[1:])
        assert factory.opened == [opened]
        assert isinstance(app.screen, DeckScreen)


async def test_a_project_is_trusted_before_a_session_begins() -> None:
    """Its settings then count from the first session on."""
    factory = FakeFactory()
    app = app_of(factory=factory)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, *"/trust", "enter")
        assert isinstance(app.screen, TrustScreen)
        app.clock.ms += 500  # type: ignore[attr-defined]
        await press(pilot, "y")
        await settle(pilot)
        assert factory.opened == [("trust", None)]
        assert isinstance(app.screen, StartScreen)
        assert "Trusted as they are now." in text_of(app.screen.note)[0]


async def test_without_credentials_it_says_what_was_looked_for_and_starts_nothing() -> None:
    factory = FakeFactory(can_start=False)
    app = app_of(factory=factory)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, StartScreen)
        text = "\n".join(text_of(screen.sheet))
        for wanted in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "demo", "replay"):
            assert wanted in text
        assert text_of(screen.footer)[0].lstrip().startswith("START")
        await press(pilot, "tab", *"hi", "enter")
        assert factory.opened == []
        assert screen.box.area.text == "hi"
        await press(pilot, "tab", "d")
        assert factory.opened == [("demo", None)]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (44, 20)])
async def test_what_was_looked_for_is_never_cut(size: tuple[int, int]) -> None:
    factory = FakeFactory(can_start=False)
    factory.listed = []
    app = app_of(factory=factory)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, StartScreen)
        page = " ".join(row.text for row in screen.sheet.rows)
        words = " ".join(page.replace("▌", " ").split())
        assert "ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN and a" in words
        assert "export ANTHROPIC_API_KEY=…" in words
        assert words.count("…") == words.count("=…")
        await press(pilot, "d")
        assert factory.opened == [("demo", None)]


@pytest.mark.parametrize(
    "error", [no_such_session(), OSError(28, "No space left on device", "/x"), ValueError("[b]odd")]
)
async def test_an_opening_that_fails_is_a_card_never_a_traceback(error: Exception) -> None:
    factory = FakeFactory()
    factory.error = error
    app = app_of(factory=factory, start=StartRequest("resume", "2026"))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, ErrorScreen)
        text = "\n".join(text_of(screen.sheet))
        assert Trouble.of(error).what.split()[0] in text
        assert "next" in text
        factory.error = None
        await press(pilot, "enter")
        assert isinstance(app.screen, StartScreen)


async def test_a_failed_replay_leaves_the_open_deck_alone() -> None:
    factory = FakeFactory(FakeDeck(scenes.empty().events[:1]))
    app = app_of(factory=factory, start=StartRequest("live"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        factory.error = no_such_session()
        await press(pilot, *"/replay", "space", "x", "enter")
        screen = app.screen
        assert isinstance(screen, DeckScreen)
        assert "no session" in text_of(screen.strip)[0]
        assert isinstance(factory.deck, FakeDeck)
        assert factory.deck.closed == 0


async def test_living_forks_are_never_closed_without_asking() -> None:
    deck = FakeDeck(scenes.deck(3).events)
    factory = FakeFactory(deck)
    app = app_of(factory=factory, start=StartRequest("live"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, *"/clear", "enter")
        assert isinstance(app.screen, Confirm)
        await press(pilot, "escape")
        assert deck.closed == 0
        assert len(factory.opened) == 1
        await press(pilot, *"/clear", "enter")
        factory.deck = FakeDeck(scenes.empty().events)
        await press(pilot, "enter")
        assert deck.closed == 1
        assert app.deck is factory.deck


async def test_screens_open_and_esc_leads_back() -> None:
    app = app_of(FakeDeck(scenes.deck(3).events))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for text, kind in (("/cost", CostScreen), ("/sessions", SessionsScreen),
                           ("/help", HelpScreen)):  # fmt: skip
            await press(pilot, *text.replace("/", ""), "home", "slash", "end", "enter")
            assert isinstance(app.screen, kind), text
            await press(pilot, "escape")
            assert isinstance(app.screen, DeckScreen)
        await press(pilot, "tab", "colon", *"denser", "enter")
        screen = app.screen
        assert isinstance(screen, DeckScreen)
        assert screen.view.density is not None
        await press(pilot, "colon")
        assert isinstance(app.screen, PaletteScreen)
        await press(pilot, "escape")
        await press(pilot, "ctrl+q", "ctrl+p")
        assert app.is_running
        assert app.screen is screen


async def test_themes_by_command() -> None:
    app = app_of(FakeDeck(scenes.empty().events))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, *"/theme", "space", *"forkdeck-light", "enter")
        assert app.theme == "forkdeck-light"
        app.do_theme("nonsense")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, DeckScreen)
        assert "no theme 'nonsense'" in text_of(screen.strip)[0]
        assert app.theme == "forkdeck-light"


async def test_an_unknown_theme_is_said_and_ascii_is_drawn() -> None:
    app = app_of(FakeDeck(scenes.deck(3).events), theme="nope", ascii_only=True)
    assert app.theme == "forkdeck-dark"
    assert any("nope" in fault for fault in app.theme_faults)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, DeckScreen)
        widgets = (screen.title_line, screen.body.parent_pane, *screen.body.panes[:3], screen.strip)
        text = "\n".join("\n".join(text_of(widget)) for widget in widgets)
        assert not set("◆●✓×━▌▼") & set(text)


async def test_leaving_closes_the_deck_once_and_sets_the_code(tmp_path: Path) -> None:
    deck = FakeDeck(scenes.deck(3).events)
    app = app_of(deck, state_dir=tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await app.leave(130)
        await app.leave(1)
    assert deck.closed == 1
    assert app.return_code == 130


async def test_mouse_and_repaint_do_no_harm() -> None:
    app = app_of(FakeDeck(scenes.deck(3).events))
    written: list[str] = []
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.terminal._write = written.append
        await press(pilot, "f8", "f8", "ctrl+l")
        assert written[0].startswith("\x1b[?1000l")
        assert written[1].startswith("\x1b[?1000h")
        assert app.terminal.mouse


async def test_a_click_selects_and_keeps_the_text_of_the_prompt() -> None:
    app = app_of(FakeDeck(scenes.deck(8).events))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, DeckScreen)
        await press(pilot, *"draft")
        await pilot.click(screen.body.board, offset=(20, 2))
        await settle(pilot)
        assert screen.view.selected in screen.view.order
        assert not screen.in_prompt
        assert screen.area.text == "draft"


@pytest.mark.parametrize("opener", ["ctrl+d", "question_mark", "colon"])
async def test_a_burst_of_closing_keys_closes_one_screen(opener: str) -> None:
    """The second key of a burst is still addressed to the dialog that has just left."""
    app = app_of(FakeDeck(scenes.empty().events))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "tab", opener)
        assert not isinstance(app.screen, DeckScreen)
        dialog = app.screen
        for _ in range(3):
            dialog.post_message(Key("escape", None))
        await settle(pilot)
        assert isinstance(app.screen, DeckScreen)
        assert len(app.screen_stack) == 2


async def test_enter_plays_where_a_replay_was_asked_for() -> None:
    """`forkdeck replay` without a session: the list's Enter must not go on with one."""
    factory = FakeFactory(FakeDeck(scenes.empty().events))
    app = app_of(factory=factory, start=StartRequest(kind="sessions"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert isinstance(app.screen, SessionsScreen)
        await press(pilot, "enter")
        assert factory.opened[0][0] == "replay"
