"""The tables of bindings and commands: clashes, footers, README's table, what commands mean."""

from __future__ import annotations

import pytest

from forkdeck.errors import UsageError
from forkdeck.model.intents import (
    AbortFork,
    CompactParent,
    RunShell,
    SendPrompt,
    SetMode,
    SetModel,
    StartFork,
)
from forkdeck.ui import bindings
from forkdeck.ui.app import ForkDeckApp
from forkdeck.ui.bindings import BINDINGS, LEADER, find, footer_keys, of_zones
from forkdeck.ui.commands import COMMANDS, UiAction, completions, interpret
from forkdeck.ui.help_rows import ZONES, help_rows
from forkdeck.ui.key_table import markdown
from forkdeck.ui.screens.cache import CacheScreen
from forkdeck.ui.screens.cost import CostScreen
from forkdeck.ui.screens.deck import DeckScreen
from forkdeck.ui.screens.diff import DiffScreen
from forkdeck.ui.screens.notices import NoticesScreen
from forkdeck.ui.screens.plan import PlanScreen
from forkdeck.ui.screens.sessions import SessionsScreen
from forkdeck.ui.screens.start import StartScreen

SCREENS = {
    "deck": DeckScreen, "zoom": DeckScreen, "replay": DeckScreen, "diff": DiffScreen,
    "cost": CostScreen, "sessions": SessionsScreen, "start": StartScreen,
    "plan": PlanScreen, "cache": CacheScreen, "notices": NoticesScreen,
}  # fmt: skip
HANDLED_BY_PROMPT = {
    "prompt_send", "prompt_newline", "prompt_older", "prompt_newer", "prompt_search",
}  # fmt: skip


def test_no_key_means_two_things_in_a_zone() -> None:
    seen: dict[tuple[str, str], str] = {}
    for binding in BINDINGS:
        for zone in binding.zones:
            for key in binding.keys:
                assert (zone, key) not in seen, (zone, key, binding.id, seen[zone, key])
                seen[zone, key] = binding.id


def test_ids_are_unique_and_texts_are_there() -> None:
    assert len({binding.id for binding in BINDINGS}) == len(BINDINGS)
    assert all(binding.help and binding.word and binding.shown for binding in BINDINGS)


def test_in_the_prompt_letters_are_letters() -> None:
    for binding in BINDINGS:
        if "prompt" in binding.zones:
            assert all(len(key) > 1 and key != "space" for key in binding.keys), binding.id


def test_a_key_means_the_same_on_deck_and_zoom_unless_it_moves() -> None:
    for binding in BINDINGS:
        if binding.section in {"needs you", "steer and stop", "results"} and (
            binding.zones & {"deck", "zoom"}
        ):
            assert {"deck", "zoom"} <= binding.zones, binding.id


def test_every_binding_has_its_method_on_every_screen_of_its_zones() -> None:
    for binding in BINDINGS:
        for zone in binding.zones - {"prompt"}:
            name = f"do_{binding.action}"
            assert hasattr(SCREENS[zone], name) or hasattr(ForkDeckApp, name), (zone, name)
        if "prompt" in binding.zones and binding.action not in HANDLED_BY_PROMPT:
            name = f"do_{binding.action}"
            assert hasattr(DeckScreen, name) or hasattr(ForkDeckApp, name), name
    for action in LEADER.values():
        assert hasattr(DeckScreen, f"do_{action}")


def test_transport_keys_shadow_only_what_a_replay_cannot_do_or_has_again() -> None:
    for binding in BINDINGS:
        if "replay" not in binding.zones:
            continue
        for key in binding.keys:
            found = find(("deck",), key)
            if found is not None and found is not binding:
                again = {"turn.next", "turn.previous", "move.left", "move.right", "owed.next",
                         "fork.peek"}  # fmt: skip
                assert found.need == "live" or found.id in again, (key, found.id)


def test_footer_keeps_help_last_and_hides_what_cannot_be_done() -> None:
    left, right = footer_keys(("deck",))
    assert right[-1] == ("?", "help")
    assert ("x", "abort") in left
    replay, _ = footer_keys(("replay", "deck"), live=False, worktrees=False)
    assert ("x", "abort") not in replay
    assert ("m", "apply") not in replay
    assert ("Space", "play, pause") in replay
    assert ("Tab", "prompt") not in replay


def test_keys_of_later_work_are_not_in_the_table() -> None:
    shown = {key for binding in BINDINGS for key in binding.keys}
    assert not shown & {"p", "P", "*", "o", "ctrl+t", "ctrl+q"}


def test_readme_table_names_every_binding_once() -> None:
    table = markdown()
    for binding in BINDINGS:
        assert f"| {binding.help} |" in table
    assert table.count("\n") == len(BINDINGS) + 6 + 2
    assert "everywhere" in table


@pytest.mark.parametrize("width", [72, 100, 106])
def test_help_shows_every_key_of_its_zone_and_fits(width: int) -> None:
    for page, (_, zones) in enumerate(ZONES):
        rows = help_rows(page, width=width)
        text = "\n".join(row.text for row in rows)
        assert all(len(row.text) <= width for row in rows)
        for binding in of_zones(zones):
            for key in binding.shown.split():
                assert key[:11] in text, (zones, binding.id, key)


def test_help_search() -> None:
    rows = help_rows(0, width=100, query="abort")
    text = "\n".join(row.text for row in rows)
    assert "x X" in text
    assert "/abort" in text
    assert "roomier" not in text


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("hello", SendPrompt(text="hello")),
        ("/etc/hosts is wrong", SendPrompt(text="/etc/hosts is wrong")),
        ("!git status", RunShell(command="git status")),
        ("/fork find it", StartFork(task="find it")),
        (
            "/fork --write --n 3 --seed none --private -- --do it",
            StartFork(task="--do it", write=True, count=3, seed="none", private=True),
        ),
        ("/fork --seed turns:03 x", StartFork(task="x", seed="turns:3")),
        ("/fork --seed completed_turns x", StartFork(task="x", seed="completed_turns")),
        ("/compact", CompactParent()),
        ("/compact keep the plan", CompactParent(hint="keep the plan")),
        ("/plan", UiAction("plan")),
        ("/cache", UiAction("cache")),
        ("/notices", UiAction("notices")),
        ("/abort 3", AbortFork(handle="f3")),
        ("/abort f12", AbortFork(handle="f12")),
        ("/abort all", UiAction("fork_abort_all")),
        ("/mode plan", SetMode(mode="plan")),
        ("/model claude-x high", SetModel(model="claude-x", effort="high")),
        ("/theme forkdeck-light", UiAction("theme", "forkdeck-light")),
        ("/quit", UiAction("quit")),
    ],
)
def test_interpret(text: str, outcome: object) -> None:
    assert interpret(text) == outcome


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("/fork", "needs a task"),
        ("/fork --n 9 x", "--n must be 1 to 8, not 9."),
        ("/fork --n", "--n needs a number"),
        ("/fork --seed", "--seed needs a value"),
        ("/fork --n x y", "'x'"),
        ("/fork --what x", "does not know --what"),
        ("/fork --n 2 --n 3 x", "--n twice"),
        ("/fork --seed none --write --seed none x", "--seed twice"),
        ("/fork --seed warm x", "no seed"),
        ("/fork --seed turns:0 x", "no seed"),
        ("/fork --seed turns:N x", "no seed"),
        ("/fork --seed turns:" + "9" * 5000 + " x", "no seed"),
        ("/fork --n " + "9" * 5000 + " x", "number of forks"),
        ("/mode wild", "no mode"),
        ("/hepl", "no command /hepl"),
        ("/quit now", "no argument"),
        ("/abort x1", "no fork"),
        ("!", "needs a command"),
    ],
)
def test_wrong_commands_say_what_and_how(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        interpret(text)
    assert says in caught.value.what
    assert caught.value.remedy


def test_completions() -> None:
    assert [text for text, _ in completions("/mo")] == ["/model ", "/mode "]
    assert ("/abort f2", "/abort [f3 | all]") in completions("/abort ", ["f2"])
    assert completions("/theme forkdeck-l", themes=["forkdeck-light"])[0][0].endswith("light")
    assert completions("hello") == []
    assert len({command.name for command in COMMANDS}) == len(COMMANDS) == 16


def test_key_names() -> None:
    assert bindings.key_name("ctrl+x") == "Ctrl+X"
    assert bindings.key_name("f8") == "F8"
    assert bindings.key_name("pagedown") == "PgDn"
