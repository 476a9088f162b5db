"""The parts without a screen: layout, flush, approvals, clipboard, attention, history."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from forkdeck.model.events.fork import BatchEnded, ForkEnded
from forkdeck.model.events.tool import ApprovalAnswered
from forkdeck.store.reducer import fold
from forkdeck.ui import clipboard
from forkdeck.ui.approvals import AnswerGuard
from forkdeck.ui.attention import Attention, safe_line
from forkdeck.ui.cost_rows import as_csv, cost_rows
from forkdeck.ui.flush import Flush, Flusher
from forkdeck.ui.history import PromptHistory
from forkdeck.ui.layout import PANE_HEIGHT, PANE_WIDTH, Plan, Size, assign, plan
from forkdeck.ui.lines import line, outside
from forkdeck.ui.screens.deck_moves import ordered
from forkdeck.ui.screens.deck_replay import place_ms
from forkdeck.ui.start_request import speaks_utf8
from forkdeck.ui.start_rows import start_rows, when
from tests.ui.fakes import FakeFactory
from tests.widgets import scenes

SIZES = [(40, 7), (60, 12), (80, 19), (99, 30), (100, 33), (120, 34), (159, 40), (160, 50),
         (200, 54), (239, 60), (240, 60), (300, 80)]  # fmt: skip


def _area(size: Size) -> int:
    return size.width * size.height


@pytest.mark.parametrize("forks", [0, 1, 2, 3, 4, 8, 30])
@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("density", [None, "panes", "tiles", "rows"])
def test_every_plan_fits_and_no_pane_is_too_small(
    width: int, height: int, forks: int, density: str | None
) -> None:
    made: Plan = plan(width, height, forks, density=density)  # type: ignore[arg-type]
    parts = [made.parent, made.board, made.facts, made.empty, *made.panes]
    assert sum(map(_area, parts)) <= width * height
    for pane in made.panes:
        assert pane.width >= PANE_WIDTH
        assert pane.height >= PANE_HEIGHT
    assert all(part.width <= width and part.height <= height for part in parts)
    if forks:
        assert made.board or len(made.panes) >= forks
    assert made.tier == ("S" if width < 100 else "M" if width < 160 else "L")


def test_the_parent_keeps_its_share() -> None:
    assert plan(120, 34, 3).parent == Size(57, 34)
    assert plan(200, 54, 8).parent.width <= 80
    assert plan(80, 19, 8).parent.height >= 1
    assert len(plan(200, 54, 8).panes) == 4
    assert len(plan(240, 60, 8).panes) == 6
    assert plan(120, 34, 3, zoomed=True).panes == (Size(84, 34),)


def test_a_fork_keeps_its_pane() -> None:
    assert assign(2, ["f3", "f1"], ["f2", "f1", "f3"], None) == ["f3", "f1"]
    assert assign(2, ["f3", "f1"], ["f2", "f1", "f3"], "f2") == ["f3", "f2"]
    assert assign(2, ["f9"], ["f2", "f1"], "f1") == ["f2", "f1"]
    assert assign(0, [], ["f1"], "f1") == []


class _Ticker:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.tick = callback
        self.on = False

    def pause(self) -> None:
        self.on = False

    def resume(self) -> None:
        self.on = True

    stop = pause


class _Flushing:
    def __init__(self) -> None:
        self.drawn: list[Flush] = []
        self.tickers: list[_Ticker] = []
        self.soon: list[Callable[[], None]] = []
        self.time = 0.0
        self.flusher = Flusher(
            self.drawn.append,
            set_interval=self._interval,
            call_soon=self.soon.append,
            seconds=lambda: self.time,
        )

    def _interval(self, seconds: float, callback: Callable[[], None]) -> _Ticker:
        self.tickers.append(_Ticker(callback))
        return self.tickers[-1]


def test_streaming_waits_for_the_tick_and_the_board_for_every_second() -> None:
    made = _Flushing()
    timer = made.tickers[0]
    assert not timer.on
    for _ in range(4):
        made.flusher.wake(False)
        made.flusher.wake(False)
        assert timer.on
        timer.tick()
    assert [flush.board for flush in made.drawn] == [False, True, False, True]
    assert not any(flush.urgent for flush in made.drawn)
    timer.tick()
    assert not timer.on
    assert len(made.drawn) == 4


def test_the_last_board_is_not_forgotten() -> None:
    made = _Flushing()
    made.flusher.wake(False)
    made.tickers[0].tick()
    made.tickers[0].tick()
    assert [flush.board for flush in made.drawn] == [False, True]


def test_urgent_wakes_join_into_one_flush_on_the_next_turn() -> None:
    made = _Flushing()
    made.flusher.wake(True)
    made.flusher.wake(True)
    assert len(made.soon) == 1
    assert not made.drawn
    made.soon[0]()
    assert made.drawn == [Flush(urgent=True, board=True)]


def test_a_key_draws_what_is_pending_and_nothing_else() -> None:
    made = _Flushing()
    made.flusher.key()
    assert not made.soon
    made.flusher.wake(False)
    made.flusher.key()
    assert len(made.soon) == 1


def test_spinners_turn_only_while_something_runs() -> None:
    made = _Flushing()
    spinner = made.tickers[1]
    made.flusher.running(True)
    assert spinner.on
    spinner.tick()
    assert made.drawn == [Flush(spin=True)]
    made.flusher.running(False)
    assert not spinner.on
    made.flusher.close()
    made.flusher.wake(True)
    assert not made.soon


def test_an_answer_counts_only_after_its_time() -> None:
    guard = AnswerGuard()
    assert "not on screen" in guard.refusal("r1", 0, allows=True)
    guard.showing("r1", 1000, whole=True)
    assert "just appeared" in guard.refusal("r1", 1399, allows=True)
    assert guard.refusal("r1", 1400, allows=True) == ""
    guard.key_came(1500)
    assert "too fast" in guard.refusal("r1", 1749, allows=True)
    assert guard.refusal("r1", 1750, allows=True) == ""


def test_yes_needs_the_last_line_and_no_does_not() -> None:
    guard = AnswerGuard()
    guard.showing("r1", 0, whole=False)
    assert "last line" in guard.refusal("r1", 900, allows=True)
    assert guard.refusal("r1", 900, allows=False) == ""
    guard.showing("r1", 950, whole=True)
    guard.showing("r1", 960, whole=False)
    assert guard.refusal("r1", 1000, allows=True) == ""
    guard.showing("r2", 1000, whole=True)
    assert "just appeared" in guard.refusal("r2", 1100, allows=True)


async def test_copy_by_osc52(tmp_path: Path) -> None:
    written: list[str] = []
    done = await clipboard.copy(
        "grün", write=written.append, environ={"TERM": "xterm"}, fallback=tmp_path / "c.txt"
    )
    payload = base64.b64encode("grün".encode()).decode()
    assert written == [f"\x1b]52;c;{payload}\x07"]
    assert done.way == "osc52"
    assert "OSC 52" in done.text


def test_osc52_is_wrapped_for_tmux() -> None:
    text = clipboard.osc52("a", in_tmux=True)
    assert text.startswith("\x1bPtmux;\x1b\x1b]52;c;")
    assert text.endswith("\x07\x1b\\")


async def test_copy_to_a_private_file_without_a_clipboard(tmp_path: Path) -> None:
    target = tmp_path / "state" / "copied.txt"
    written: list[str] = []
    done = await clipboard.copy(
        "x" * 100_000, write=written.append, environ={"TERM": "xterm"}, fallback=target
    )
    assert not written
    assert done.way == "file"
    assert str(target) in done.text
    assert target.read_text() == "x" * 100_000
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


async def test_a_copy_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = await clipboard.copy(
        "x", write=lambda _: None, environ={"TERM": "dumb"}, fallback=tmp_path / "file" / "c.txt"
    )
    assert done.way == "none"
    assert "not copied" in done.text


async def test_tmux_buffer_when_osc52_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tmux"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/args\ncat > {tmp_path}/in\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    done = await clipboard.copy(
        "y" * 100_000, write=lambda _: None, environ={"TERM": "screen", "TMUX": "1"},
        fallback=tmp_path / "c.txt",
    )  # fmt: skip
    assert done.way == "tmux"
    assert (tmp_path / "args").read_text() == "load-buffer -\n"
    assert len((tmp_path / "in").read_text()) == 100_000


def test_attention_rings_on_edges_only_and_never_while_focused() -> None:
    written: list[str] = []
    attention = Attention(written.append)
    script = scenes.deck(3)
    before = fold(script.events[:-30])
    assert attention.notice(before, focused=False) == []
    state = script.state()
    news = attention.notice(state, focused=False)
    assert "impl-step3 asks" in news
    assert any(text.startswith("\x07\x1b]9;") for text in written)
    assert "\x1b]2;(2) forkdeck auth-rework\x07" in written
    assert attention.notice(state, focused=False) == []
    script.add(ForkEnded(run="f1", outcome="failed", reason="x"))
    written.clear()
    assert attention.notice(script.state(), focused=True) == []
    assert not any("\x07\x1b]9" in text for text in written)
    script.add(BatchEnded(batch=next(iter(script.state().batches))))
    assert attention.notice(script.state(), focused=False) == ["3 forks settled"]


def test_titles_are_neutralised() -> None:
    assert safe_line("a\x1b]0;evil\x07b\u202ec") == "a]0;evilbc"
    assert len(safe_line("x" * 500)) == 120


def test_history_round_trip_and_privacy(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "history.jsonl"
    history = PromptHistory(path)
    assert history.add("one")
    history.save("one")
    assert history.add("two\nlines")
    history.save("two\nlines")
    assert not history.add("two\nlines")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text(path.read_text() + "not json\n[1]\n")
    again = PromptHistory(path)
    again.load()
    assert again.entries == ("one", "two\nlines")
    assert again.older("draft") == "two\nlines"
    assert again.older("x") == "one"
    assert again.older("x") is None
    assert again.newer() == "two\nlines"
    assert again.newer() == "draft"
    assert again.newer() is None
    assert list(again.search("LINES")) == ["two\nlines"]
    assert not PromptHistory(None).add("x" * 30_000)
    assert json.loads(path.read_text().splitlines()[0]) == "one"


@pytest.mark.parametrize(
    ("text", "place"),
    [("50%", 60_000), ("2:31", 151_000), ("90", 90_000), ("1:00:00", 3_600_000), ("1.5", 1_500),
     ("200%", 120_000), ("soon", None), ("", None), ("-5", None)],
)  # fmt: skip
def test_places(text: str, place: int | None) -> None:
    assert place_ms(text, 120_000) == place


def test_when_is_said_as_people_do() -> None:
    now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
    assert when("2026-11-30T11:58:00+00:00", now) == "2 min ago"
    assert when("2026-11-30T09:00:00+00:00", now) == "3 h ago"
    assert when("2026-11-29T23:00:00+00:00", now) == "yesterday"
    assert when("2026-11-24T10:00:00+00:00", now) == "Tue 24 Nov"
    assert when("2024-11-24T10:00:00+00:00", now) == "24 Nov 2024"
    assert when("rubbish", now) == "–"


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
async def test_start_page_fits(width: int) -> None:
    factory = FakeFactory(can_start=False)
    rows = start_rows(
        await factory.start_facts(), factory.listed, selected=0, width=width, height=40,
        now=datetime(2026, 11, 30, 12, 0, tzinfo=UTC), focused=True,
    )  # fmt: skip
    assert all(len(row.text) <= width for row in rows)
    text = "\n".join(row.text for row in rows)
    for wanted in ("No credentials found", "ANTHROPIC_AUTH_TOKEN", "demo", "title 1", "recent"):
        assert wanted in text


def test_cost_table_sums_to_the_cent_and_unknown_is_no_zero() -> None:
    state = scenes.deck(8).state()
    total = sum((run.cost.usd for run in state.runs.values()), Decimal(0))
    rows = cost_rows(state, selected=0, width=120)
    text = {row.text.split()[0]: row.text for row in rows if row.text.split()}
    assert f"${total:.2f}" in text["total"]
    queued = next(row.text for row in rows if "lint-pass" in row.text)
    assert "$0.00" not in queued
    assert "–" in queued
    assert any("MISS" in row.text for row in rows)
    assert as_csv(state).count("\n") == 10


def test_orders() -> None:
    state = scenes.deck(8).state()
    assert ordered(state, "attention")[0] == "f2"
    assert ordered(state, "number") == [f"f{n}" for n in range(1, 9)]
    assert ordered(state, "cost")[0] == "f7"


@pytest.mark.parametrize(
    ("environ", "answer"),
    [({"LANG": "C.UTF-8"}, True), ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, False), ({}, False),
     ({"LC_CTYPE": "en_US.utf8"}, True), ({"LANG": "en_US.ISO-8859-1"}, False)],
)  # fmt: skip
def test_utf8(environ: dict[str, str], answer: bool) -> None:
    assert speaks_utf8(environ) is answer


def test_outside_text_cannot_act() -> None:
    assert outside("a\x1b[31mb\u202e\nc") == "a\ufffd[31mb\ufffd c"
    row = line([("text", "x" * 50)], [("text", "y" * 30)], width=40)
    assert len(row.text) == 40


def test_importing_the_app_loads_nothing_slow() -> None:
    code = (
        "import sys, forkdeck.ui.app\n"
        "slow = ['anthropic', 'git', 'watchfiles', 'pydantic', 'markdown_it', 'pygments.lexers',"
        " 'httpx2', 'forkdeck.engine', 'forkdeck.providers', 'genai_prices']\n"
        "print([name for name in slow if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50
    )
    assert done.stdout.strip() == "[]"


async def test_a_cancelled_tmux_copy_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tmux"
    program.write_text("#!/bin/sh\nexec sleep 30\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    task = asyncio.create_task(
        clipboard.copy("y" * 90_000, write=lambda _: None, environ={"TMUX": "1", "TERM": "x"},
                       fallback=tmp_path / "c")
    )  # fmt: skip
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_answered_requests_are_news_no_more() -> None:
    script = scenes.deck(3)
    attention = Attention(lambda _: None)
    attention.notice(script.state(), focused=False)
    request = script.state().asks[0].event.request
    script.add(ApprovalAnswered(run="f2", request=request, answer="once"))
    assert attention.notice(script.state(), focused=False) == []
