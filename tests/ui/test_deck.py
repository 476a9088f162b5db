"""The deck screen driven by keys: layout, selection, answers, abort, prompt, replay, resize."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from forkdeck.model.events.fork import ForkEnded
from forkdeck.model.events.step import TextStreamed
from forkdeck.model.events.work import WorkApplied
from forkdeck.model.ids import PARENT
from forkdeck.model.intents import (
    AbortAll,
    AbortFork,
    AnswerRequest,
    ApplyWork,
    CancelTool,
    DiscardWork,
    IntentResult,
    InterruptParent,
    NoteTyping,
    RenameSession,
    ResumeFork,
    RunShell,
    SendPrompt,
    SetBudget,
    SetLimits,
    SetMode,
    SettleFork,
    StartFork,
    SteerFork,
    TrustProject,
    UndoLast,
)
from forkdeck.ui.bindings import BINDINGS, Zone
from forkdeck.ui.screens.deck import DeckScreen
from forkdeck.ui.screens.dialog import Confirm
from forkdeck.ui.screens.diff import DiffScreen
from tests.ui.fakes import FakeClock, FakeDeck, FakeTransport, app_of
from tests.widgets import scenes
from tests.widgets.host import text_of

SIZES = [(80, 24), (120, 40), (200, 60)]


class Driver:
    """A pilot with its deck, and shortcuts."""

    def __init__(self, pilot: Pilot[int], deck: FakeDeck, clock: FakeClock) -> None:
        self.pilot = pilot
        self.deck = deck
        self.clock = clock

    @property
    def screen(self) -> DeckScreen:
        for screen in self.pilot.app.screen_stack:
            if isinstance(screen, DeckScreen):
                return screen
        raise AssertionError(self.pilot.app.screen_stack)

    async def keys(self, *keys: str, quiet_ms: int = 1_000) -> None:
        for key in keys:
            self.clock.ms += quiet_ms
            await self.pilot.press(key)
        await self.settle()

    async def type(self, text: str) -> None:
        self.clock.ms += 1_000
        await self.pilot.press(*[{" ": "space", "/": "slash"}.get(char, char) for char in text])
        await self.settle()

    async def settle(self) -> None:
        for _ in range(2):
            await self.pilot.pause()

    async def until(self, ready: Callable[[], bool]) -> None:
        """Wait for another layout: Textual takes a moment for another size."""
        for _ in range(200):
            await self.settle()
            if ready():
                return

    @property
    def selected(self) -> str:
        return self.screen.view.selected

    @property
    def strip(self) -> str:
        return text_of(self.screen.strip)[0] if self.screen.strip.display else ""

    @property
    def footer(self) -> str:
        return text_of(self.screen.footer)[0]


@asynccontextmanager
async def driven(
    events: Sequence[object] | None = None,
    *,
    count: int = 3,
    size: tuple[int, int] = (120, 40),
    replay: bool = False,
    state_dir: Path | None = None,
) -> AsyncGenerator[Driver]:
    made = events if events is not None else (
        scenes.deck(count).events if count else scenes.empty().events
    )  # fmt: skip
    deck = FakeDeck(made, replay=replay)  # type: ignore[arg-type]
    clock = FakeClock()
    app = app_of(deck, clock=clock, state_dir=state_dir)
    async with app.run_test(size=size) as pilot:
        driver = Driver(pilot, deck, clock)
        for _ in range(50):
            await pilot.pause()
            if any(isinstance(screen, DeckScreen) for screen in app.screen_stack):
                break
        await driver.settle()
        clock.ms += 1_000
        yield driver


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", [0, 1, 3, 8])
async def test_sizes_and_counts_show_every_fork(size: tuple[int, int], count: int) -> None:
    async with driven(count=count, size=size) as driver:
        screen = driver.screen
        title = text_of(screen.title_line)[0]
        assert "forkdeck" in title
        assert "PROMPT" in driver.footer
        assert "help" in driver.footer
        shown = "\n".join(
            "\n".join(text_of(widget))
            for widget in (screen.body.board, *screen.body.panes, screen.body.empty)
            if widget.display
        )
        for name in scenes.NAMES[:count]:
            assert name in shown, (name, shown)
        if not count:
            assert "No forks yet." in shown
        assert screen.body.size.height > 0
        assert screen.box.area.region.bottom <= size[1] - 1


async def test_tab_goes_to_who_needs_the_person_and_back() -> None:
    async with driven() as driver:
        assert driver.screen.in_prompt
        await driver.keys("tab")
        assert not driver.screen.in_prompt
        assert driver.selected == "f2"
        assert driver.footer.startswith(" DECK")
        await driver.keys("q")
        assert driver.screen.in_prompt
        await driver.type("quit x")
        assert driver.screen.area.text == "quit x"
        assert driver.deck.asked(AbortFork) == []


async def test_moving_and_numbers_keep_to_the_fork() -> None:
    async with driven(count=8) as driver:
        await driver.keys("tab", "j")
        second = driver.selected
        assert second != "f2"
        await driver.keys("k", "5")
        assert driver.selected == "f5"
        driver.deck.apply(
            ForkEnded(run="f5", outcome="failed", reason="gone", at_ms=driver.deck.state.at_ms + 1),
            urgent=True,
        )
        await driver.settle()
        assert driver.selected == "f5"
        await driver.keys("0")
        assert driver.selected == PARENT
        await driver.keys("9")
        assert "no fork 9" in driver.strip


async def test_two_digits_within_their_time() -> None:
    async with driven(count=12, size=(200, 60)) as driver:
        await driver.keys("tab", "1")
        await driver.keys("2", quiet_ms=100)
        assert driver.selected == "f12"
        await driver.keys("1", "2", quiet_ms=900)
        assert driver.selected == "f2"
        await driver.keys("1")
        await driver.keys("0", quiet_ms=100)
        assert driver.selected == "f10"


async def test_rows_do_not_move_under_the_cursor_in_the_deck_zone() -> None:
    async with driven(count=8) as driver:
        await driver.keys("tab", "4")
        before = driver.screen.view.order
        driver.deck.apply(
            ForkEnded(run="f4", outcome="failed", reason="x", at_ms=driver.deck.state.at_ms + 1),
            urgent=True,
        )
        await driver.settle()
        assert driver.screen.view.order == before
        await driver.keys("s", "s", "s", "s")
        assert driver.screen.view.order != before


async def test_the_leader_works_from_the_prompt_and_types_nothing() -> None:
    async with driven() as driver:
        await driver.keys("ctrl+x", "3")
        assert driver.selected == "f3"
        assert driver.screen.area.text == ""
        await driver.keys("ctrl+x", "g")
        assert "followed by" in driver.strip
        assert driver.screen.area.text == ""
        await driver.type("x")
        assert driver.screen.area.text == "x"


async def test_an_answer_needs_deck_zone_time_and_quiet() -> None:
    async with driven() as driver:
        await driver.keys("y")
        assert driver.deck.asked(AnswerRequest) == []
        assert driver.screen.area.text == "y"
        await driver.keys("backspace", "tab")
        await driver.keys("y", quiet_ms=100)
        assert driver.deck.asked(AnswerRequest) == []
        assert "too fast" in driver.strip or "just appeared" in driver.strip
        await driver.keys("y", quiet_ms=500)
        assert driver.deck.asked(AnswerRequest) == [
            AnswerRequest(request=driver.deck.state.asks[0].event.request, answer="once")
        ]


@pytest.mark.parametrize(("key", "answer"), [("a", "fork"), ("A", "batch"), ("minus", "deny")])
async def test_the_other_answers(key: str, answer: str) -> None:
    async with driven() as driver:
        await driver.keys("tab", key)
        found = driver.deck.asked(AnswerRequest)
        assert [intent.answer for intent in found] == [answer]  # type: ignore[attr-defined]


async def test_deny_with_a_reason() -> None:
    async with driven() as driver:
        await driver.keys("tab", "underscore")
        assert driver.screen.in_prompt
        await driver.type("use make")
        await driver.keys("enter")
        request = driver.deck.state.asks[0].event.request
        assert driver.deck.asked(AnswerRequest) == [
            AnswerRequest(request=request, answer="deny", reason="use make")
        ]
        assert not driver.screen.in_prompt
        assert driver.deck.asked(SendPrompt) == []


async def test_nothing_is_answered_on_a_fork_without_a_request() -> None:
    async with driven() as driver:
        await driver.keys("tab", "1", "y", "minus")
        assert driver.deck.asked(AnswerRequest) == []
        assert "no request" in driver.strip


async def test_x_aborts_the_selected_fork_only() -> None:
    async with driven() as driver:
        await driver.keys("tab", "1", "x")
        assert driver.deck.asked(AbortFork) == [AbortFork(handle="f1")]
        await driver.keys("3", "x")
        assert driver.deck.asked(AbortFork) == [AbortFork(handle="f1")]
        assert "over already" in driver.strip


async def test_capital_x_lists_and_asks() -> None:
    async with driven() as driver:
        await driver.keys("tab", "X")
        dialog = driver.pilot.app.screen
        assert isinstance(dialog, Confirm)
        text = "\n".join(text_of(dialog.sheet))
        assert "api-audit" in text
        assert "impl-step3" in text
        assert "data-layer" not in text
        await driver.keys("escape")
        assert driver.deck.asked(AbortAll) == []
        await driver.keys("X", "x", "enter")
        assert driver.deck.asked(AbortAll) == [AbortAll()]


async def test_steer_tool_resume_and_rename() -> None:
    async with driven() as driver:
        await driver.keys("tab", "1", "i")
        await driver.type("look at io")
        await driver.keys("enter")
        assert driver.deck.asked(SteerFork) == [SteerFork(handle="f1", text="look at io")]
        assert not driver.screen.in_prompt
        await driver.keys("K")
        assert driver.deck.asked(CancelTool) == [CancelTool(run="f1")]
        await driver.keys("3", "r", "enter")
        assert driver.deck.asked(ResumeFork) == [ResumeFork(handle="f3", text="")]
        await driver.keys("R", "ctrl+u")
        await driver.type("new name")
        await driver.keys("enter", "0", "b")
        await driver.type("2.50")
        await driver.keys("enter")
        assert driver.deck.asked(RenameSession) == [RenameSession(title="new name")]
        assert driver.deck.asked(SetBudget) == [SetBudget(budget_usd="2.50")]


async def test_b_on_a_fork_sets_its_limits() -> None:
    """On a fork its own, whatever shows it; on the parent and in the cost screen the session's."""
    async with driven() as driver:
        await driver.keys("tab", "1", "b")
        about = driver.screen.area.purpose
        assert about.hint.startswith("Limits of f1, now ")
        assert about.hint.endswith("; type 40 turns, $1, 10m, 200k tokens or none")
        await driver.type("40 turns, lots")
        await driver.keys("enter")
        assert driver.deck.asked(SetLimits) == []
        assert driver.strip.strip().startswith("No limit: 'lots'. Type 40 turns")
        await driver.keys("z", "b")
        await driver.type("none, 40 turns $1")
        await driver.keys("enter")
        assert driver.deck.asked(SetLimits) == [
            SetLimits(handle="f1", max_turns=40, budget_usd="1")
        ]
        await driver.screen.act("cost")
        await driver.keys("b")
        assert driver.screen.area.purpose.kind == "budget"


async def test_owed_is_walked_and_settled_by_reading() -> None:
    async with driven() as driver:
        await driver.keys("tab", "w")
        first = driver.selected
        await driver.keys("w")
        assert {first, driver.selected} == {"f2", "f3"}
        await driver.keys("3")
        assert driver.deck.asked(SettleFork) == []
        await driver.keys("enter")
        assert driver.deck.asked(SettleFork) == [SettleFork(handle="f3", how="read")]
        await driver.keys("escape", "full_stop")
        assert SettleFork(handle="f3", how="dismissed") in driver.deck.intents


async def test_peek_reads_too_and_esc_goes_outward_only() -> None:
    async with driven() as driver:
        await driver.keys("tab", "3", "space")
        assert driver.screen.in_prompt
        assert driver.screen.area.purpose.kind == "resume"
        assert driver.deck.asked(SettleFork) == [SettleFork(handle="f3", how="read")]
        await driver.keys("escape")
        assert not driver.screen.in_prompt
        await driver.keys("enter")
        assert driver.screen.view.zoomed
        await driver.keys("escape")
        assert not driver.screen.view.zoomed
        await driver.keys("escape")
        assert driver.screen.in_prompt
        await driver.keys("escape", "escape")
        assert "Ctrl+C interrupts" in driver.strip
        assert not driver.deck.asked(InterruptParent)
        assert not driver.deck.asked(AbortFork)


async def test_the_ladder_of_ctrl_c() -> None:
    async with driven() as driver:
        await driver.type("draft")
        await driver.keys("ctrl+c")
        assert driver.screen.area.text == ""
        assert "draft" in driver.pilot.app.history.entries  # type: ignore[attr-defined]
        await driver.keys("ctrl+c")
        assert driver.deck.asked(InterruptParent) == [InterruptParent()]
    async with driven(scenes.empty().events[:1]) as driver:
        await driver.keys("ctrl+c")
        assert isinstance(driver.pilot.app.screen, Confirm)
        await driver.keys("enter")
        assert driver.deck.closed == 1


async def test_quit_lists_what_becomes_of_the_forks() -> None:
    async with driven(count=8) as driver:
        await driver.keys("ctrl+d")
        dialog = driver.pilot.app.screen
        assert isinstance(dialog, Confirm)
        text = "\n".join(text_of(dialog.sheet))
        assert "api-audit" in text
        assert "saved" in text
        await driver.keys("escape")
        assert driver.deck.closed == 0
        await driver.keys("ctrl+d", "enter")
        assert driver.deck.closed == 1


async def test_sending_commands_and_shell() -> None:
    async with driven() as driver:
        for text in ("hello", "!ls", "/fork --write do it", "/mode plan", "/abort 1"):
            await driver.type(text)
            await driver.keys("enter")
        kinds = (SendPrompt, RunShell, StartFork, SetMode, AbortFork)
        done = [intent for intent in driver.deck.intents if isinstance(intent, kinds)]
        assert done == [
            SendPrompt(text="hello"),
            RunShell(command="ls"),
            StartFork(task="do it", write=True),
            SetMode(mode="plan"),
            AbortFork(handle="f1"),
        ]
        await driver.type("/wrong x")
        await driver.keys("enter")
        assert "no command /wrong" in driver.strip
        assert driver.screen.area.text == "/wrong x"


async def test_a_refused_prompt_comes_back() -> None:
    async with driven() as driver:
        driver.deck.results["SendPrompt"] = IntentResult(ok=False, text="no key")
        await driver.type("hello")
        await driver.keys("enter")
        assert driver.screen.area.text == "hello"
        assert "no key" in driver.strip


async def test_typing_is_noted_once_each_way() -> None:
    async with driven() as driver:
        await driver.type("ab")
        await driver.keys("backspace", "backspace")
        assert driver.deck.asked(NoteTyping) == [NoteTyping(typing=True), NoteTyping(typing=False)]


async def test_prompt_editing_history_and_completion(tmp_path: Path) -> None:
    async with driven(state_dir=tmp_path) as driver:
        area = driver.screen.area
        await driver.type("one")
        await driver.keys("ctrl+j")
        await driver.type("two")
        assert area.text == "one\ntwo"
        assert area.size.height == 2
        await driver.keys("enter")
        assert driver.deck.asked(SendPrompt) == [SendPrompt(text="one\ntwo")]
        await driver.type("dra")
        await driver.keys("up")
        assert area.text == "one\ntwo"
        await driver.keys("down")
        assert area.text == "dra"
        await driver.keys("ctrl+u")
        await driver.type("see @src/a")
        assert driver.screen.box.choices.display
        await driver.keys("down", "tab")
        assert area.text == "see @src/api.py "
        assert driver.screen.in_prompt
        await driver.keys("ctrl+u")
        await driver.type("/mo")
        await driver.keys("tab")
        assert area.text == "/model "
        await driver.keys("ctrl+u", "ctrl+r")
        assert driver.screen.box.choices.display
        await driver.keys("enter")
        assert area.text == "one\ntwo"
        await driver.keys("escape")
        await asyncio.sleep(0.05)
        assert (tmp_path / "history.jsonl").exists()


async def test_a_paste_of_a_megabyte_is_folded_and_sent_whole() -> None:
    async with driven() as driver:
        from textual import events

        big = "x" * 1_000_000 + "\x1b[31m"
        driver.screen.area.post_message(events.Paste(big))
        await driver.settle()
        assert len(driver.screen.area.text) < 100
        await driver.keys("enter")
        sent = driver.deck.asked(SendPrompt)[0]
        assert sent.text == "x" * 1_000_000 + "\ufffd[31m"  # type: ignore[attr-defined]


async def test_ten_lines_stay_six_rows() -> None:
    async with driven() as driver:
        for _ in range(9):
            await driver.keys("ctrl+j")
        assert driver.screen.area.size.height == 6
        assert driver.screen.footer.region.y == 39


async def test_page_keys_scroll_without_leaving_the_prompt() -> None:
    async with driven(size=(100, 20)) as driver:
        pane = driver.screen.body.parent_pane
        assert pane.following
        await driver.keys("pageup")
        assert not pane.following
        assert driver.screen.in_prompt
        await driver.keys("pagedown", "pagedown", "pagedown")
        assert pane.following


async def test_diff_apply_discard_and_undo() -> None:
    async with driven(count=8) as driver:
        await driver.keys("tab", "1", "d")
        assert "read-only" in driver.strip
        await driver.keys("2", "d")
        screen = driver.pilot.app.screen
        assert isinstance(screen, DiffScreen)
        assert "src/io/retry.py" in "\n".join(text_of(screen.files))
        assert "def call" in "\n".join(text_of(screen.view))
        await driver.keys("enter")
        assert driver.deck.asked(ApplyWork) == []
    script = scenes.deck(3)
    from forkdeck.model.events.work import WorkSaved

    script.add(WorkSaved(run="f2", ref="refs/forkdeck/s/f2/work/1", commit="aa", base="4f",
                         files=(), commits=2))  # fmt: skip
    script.add(ForkEnded(run="f2", outcome="done", reason="end_turn", report="ok"))
    async with driven(script.events) as driver:
        await driver.keys("tab", "2", "m", "2", "enter")
        assert driver.deck.asked(ApplyWork) == [ApplyWork(handle="f2", method="cherry-pick")]
        await driver.keys("D")
        assert isinstance(driver.pilot.app.screen, Confirm)
        await driver.keys("enter")
        assert driver.deck.asked(DiscardWork) == [DiscardWork(handle="f2")]
        await driver.keys("escape")
        driver.deck.apply(WorkApplied(run="f2", undo_ref="refs/u/1", files=(), seq=999,
                                      at_ms=driver.deck.state.at_ms), urgent=True)  # fmt: skip
        await driver.settle()
        await driver.keys("u")
        assert isinstance(driver.pilot.app.screen, Confirm)
        await driver.keys("escape")
        assert driver.deck.asked(UndoLast) == []
        await driver.keys("u", "u")
        assert driver.deck.asked(UndoLast) == [], "the Enter that follows must not act elsewhere"
        await driver.keys("enter")
        assert driver.deck.asked(UndoLast) == [UndoLast(handle="f2")]


async def test_copy_says_which_way_it_went() -> None:
    async with driven() as driver:
        await driver.keys("tab", "3", "c")
        assert "OSC 52" in driver.strip
        await driver.keys("2", "C")
        assert "copied" in driver.strip


async def test_trust_asks_only_after_its_time() -> None:
    async with driven() as driver:
        await driver.type("/trust")
        await driver.keys("enter")
        await driver.keys("y", quiet_ms=10)
        assert driver.deck.asked(TrustProject) == []
        await driver.keys("y", quiet_ms=500)
        assert driver.deck.asked(TrustProject) == [TrustProject()]


async def test_replay_has_transport_and_no_answers() -> None:
    async with driven(replay=True) as driver:
        transport = driver.deck.transport
        assert isinstance(transport, FakeTransport)
        await driver.keys(
            "space", "space", "full_stop", "comma", "right", "left", "greater_than_sign"
        )
        await driver.keys("less_than_sign", "I", "apostrophe")
        await driver.type("50%")
        await driver.keys("enter", "w")
        assert transport.calls == [
            ("play", None), ("pause", None), ("step", 1), ("step", -1), ("seek", 65_000),
            ("seek", 60_000), ("speed", 2.0), ("speed", 1.0), ("idle", False), ("seek", 60_000),
            ("owed", False),
        ]  # fmt: skip
        await driver.keys("2", "y")
        assert "recorded" in driver.strip
        assert driver.deck.asked(AnswerRequest) == []
        assert driver.footer.startswith(" REPLAY")
        assert "REPLAY" in text_of(driver.screen.title_line)[0]
        await driver.keys("3", "enter")
        assert driver.deck.asked(SettleFork) == []


async def test_a_resize_storm_while_all_stream() -> None:
    async with driven(count=8) as driver:
        at = driver.deck.state.at_ms
        for round_ in range(24):
            for run in ("p", "f4", "f1"):
                driver.deck.apply(
                    TextStreamed(run=run, index=0, text=f"word {round_} " * 20, at_ms=at + round_)
                )
            width, height = [(80, 24), (200, 60), (30, 5), (120, 40), (45, 11), (161, 30)][
                round_ % 6
            ]
            await driver.pilot.resize_terminal(width, height)
        await driver.pilot.resize_terminal(120, 40)
        await driver.until(
            lambda: driver.screen.plan is not None and driver.screen.plan.tier == "M"
        )
        assert driver.screen.body.display
        assert driver.screen.plan is not None
        assert driver.screen.plan.tier == "M"
        assert "forkdeck" in text_of(driver.screen.title_line)[0]


async def test_too_small_says_what_is_needed() -> None:
    async with driven(size=(30, 8)) as driver:
        text = text_of(driver.screen.small)[0]
        assert text.startswith("forkdeck needs 40x10")
        await driver.pilot.resize_terminal(80, 24)
        await driver.until(lambda: not driver.screen.small.display)
        assert not driver.screen.small.display
        assert driver.screen.box.display


_HARMLESS = (NoteTyping, SettleFork, SetMode, CancelTool)


@pytest.mark.parametrize("zone", ["prompt", "deck", "zoom"])
async def test_every_binding_works_or_does_nothing_harmful(zone: Zone) -> None:
    """Esc, then the key, then Esc: nothing crashes, no fork is lost without being asked for."""
    async with driven(count=8, size=(80, 24)) as driver:
        for binding in BINDINGS:
            if zone not in binding.zones or binding.id in {"prompt.editor"}:
                continue
            for key in binding.keys[:1]:
                while len(driver.pilot.app.screen_stack) > 2:
                    await driver.pilot.app.pop_screen()
                screen = driver.screen
                screen.view.zoomed = zone == "zoom"
                screen.focus_deck()
                if zone == "prompt":
                    screen.focus_prompt()
                screen.select("f1")
                screen.area.put("")
                await driver.pilot.pause()
                driver.deck.intents.clear()
                driver.clock.ms += 1_000
                await driver.pilot.press(NAMES.get(key, key))
                await driver.pilot.pause()
                wrong = [i for i in driver.deck.intents if not isinstance(i, _HARMLESS)]
                if binding.id == "fork.abort":
                    assert wrong == [AbortFork(handle="f1")]
                elif binding.id == "interrupt":
                    assert wrong == [InterruptParent()]
                else:
                    assert wrong == [], (binding.id, wrong)
        assert driver.deck.closed == 0


NAMES = {
    ".": "full_stop", ",": "comma", "'": "apostrophe", "<": "less_than_sign",
    ">": "greater_than_sign", "?": "question_mark", ":": "colon", "/": "slash", "-": "minus",
    "_": "underscore", "{": "left_curly_bracket", "}": "right_curly_bracket",
    "[": "left_square_bracket", "]": "right_square_bracket",
}  # fmt: skip
