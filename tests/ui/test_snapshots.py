"""Canonical screens as pictures: fixed states, no clock; compared with ``__snapshots__``.

A change of the look is looked at and taken over with ``--snapshot-update``, on Python 3.11 only,
so that two versions never fight over the files.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

import pytest
from textual.pilot import Pilot

from forkdeck.model.ports import Deck
from forkdeck.ui.app import ForkDeckApp
from forkdeck.ui.screens.deck import DeckScreen
from forkdeck.ui.start_request import StartRequest
from tests.ui.fakes import FakeClock, FakeDeck, FakeFactory, app_of
from tests.widgets import scenes

Compare: TypeAlias = Callable[..., bool]
S, M, L = (80, 24), (120, 40), (200, 60)


class Shot(NamedTuple):
    """One picture: how many forks (None: the start screen), its size, and the keys before it."""

    name: str
    forks: int | None
    size: tuple[int, int]
    keys: tuple[str, ...] = ()
    theme: str = "forkdeck-dark"
    replay: bool = False
    can_start: bool = True
    act: str = ""
    ascii_only: bool = False
    scene: str = ""
    """A scene of its own instead of so many forks."""


SHOTS = (
    Shot("start", None, M, ("tab",)),
    Shot("start-no-key", None, S, can_start=False),
    Shot("empty", 0, M),
    Shot("deck-3", 3, M, ("tab",)),
    Shot("deck-8-small", 8, S, ("tab",)),
    Shot("deck-8-large", 8, L, ("tab",)),
    Shot("deck-30-large", 30, L, ("tab",)),
    Shot("zoom", 3, M, ("tab", "2", "z")),
    Shot("failed", 8, M, ("tab", "6")),
    Shot("diff", 3, M, ("tab", "2", "d")),
    Shot("cost", 8, M, ("tab",), act="cost"),
    Shot("help", 3, M, ("tab", "question_mark")),
    Shot("replay", 8, M, replay=True),
    Shot("deck-3-light", 3, M, ("tab",), theme="forkdeck-light"),
    Shot("deck-8-ascii", 8, S, ("tab",), ascii_only=True),
    Shot("plan-card", 4, M, scene="planned"),
    Shot("plan", 4, M, ("tab",), act="plan", scene="planned"),
    Shot("cache", 4, M, ("tab", "4"), act="cache", scene="troubled"),
    Shot("slow", 4, M, ("tab", "1"), scene="troubled"),
    Shot("slow-small", 4, S, scene="troubled"),
    Shot("zoom-near-limit", 4, M, ("tab", "2", "z"), scene="troubled"),
    Shot("claims", 4, M, ("tab", "3", "z"), scene="troubled"),
)


@pytest.fixture
def picture(snap_compare: Compare, request: pytest.FixtureRequest) -> Compare:
    """Return the comparison; the stored pictures are made by one version of Python only."""
    updating = bool(request.config.getoption("update_snapshots", default=False))
    if updating and sys.version_info[:2] != (3, 11):
        pytest.fail("--snapshot-update: the stored pictures are made with Python 3.11 only")
    return snap_compare


def _app(shot: Shot, clock: FakeClock) -> ForkDeckApp:
    if shot.forks is None:
        factory = FakeFactory(can_start=shot.can_start)
        return app_of(factory=factory, clock=clock, theme=shot.theme)
    if shot.scene:
        script = {"planned": scenes.planned, "troubled": scenes.troubled}[shot.scene]()
    else:
        script = scenes.deck(shot.forks) if shot.forks else scenes.empty()
    deck: Deck = FakeDeck(script.events, replay=shot.replay)
    start = StartRequest("replay", "x") if shot.replay else None
    return app_of(deck, clock=clock, start=start, theme=shot.theme, ascii_only=shot.ascii_only)


def _before(shot: Shot, clock: FakeClock) -> Callable[[Pilot[Any]], Awaitable[None]]:
    async def run(pilot: Pilot[Any]) -> None:
        for _ in range(100):
            await pilot.pause()
            if shot.forks is None or isinstance(pilot.app.screen, DeckScreen):
                break
        for _ in range(5):
            await pilot.pause()
        for key in shot.keys:
            clock.ms += 1_000
            await pilot.press(key)
            await pilot.pause()
        screen = pilot.app.screen
        if shot.act and isinstance(screen, DeckScreen):
            await screen.act(shot.act)
        for _ in range(5):
            await pilot.pause()

    return run


@pytest.mark.parametrize("shot", SHOTS, ids=lambda shot: shot.name)
def test_screen(shot: Shot, picture: Compare) -> None:
    clock = FakeClock()
    assert picture(_app(shot, clock), terminal_size=shot.size, run_before=_before(shot, clock)), (
        shot.name
    )
