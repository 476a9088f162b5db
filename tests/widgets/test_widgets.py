"""Widgets on a screen: text goldens, scrolling, selection, folding, hostile text."""

from __future__ import annotations

import msgspec
import pytest
from textual.geometry import Offset
from textual.selection import Selection

from forkdeck.model.events.step import PaceChanged
from forkdeck.model.ids import PARENT
from forkdeck.model.ports import PlaybackFacts
from forkdeck.model.state import DeckState
from forkdeck.model.work import DiffLine, WorkDiff
from forkdeck.store import selectors
from forkdeck.store.cells import cell_width
from forkdeck.store.rows_diff import parse_patch
from forkdeck.ui.widgets.ask_strip import AskStrip
from forkdeck.ui.widgets.board import Board
from forkdeck.ui.widgets.diff_view import DiffView
from forkdeck.ui.widgets.empty import EmptyDeck
from forkdeck.ui.widgets.facts import Fact, Facts, Section
from forkdeck.ui.widgets.facts_of import deck_sections, fork_sections
from forkdeck.ui.widgets.line_widget import DrawOptions, LineWidget
from forkdeck.ui.widgets.paint import Palette, highlight
from forkdeck.ui.widgets.pane import Pane
from forkdeck.ui.widgets.status_line import FooterLine, TitleLine
from forkdeck.ui.widgets.timeline import Timeline, lanes_of
from forkdeck.ui.widgets.transport_line import TransportLine
from tests.widgets import scenes
from tests.widgets.host import KEYS, DeckHost, OneHost, text_of

SIZES = [(80, 24), (120, 40), (200, 60)]


async def test_three_stacked_panes_at_120x40() -> None:
    script = scenes.deck(3)
    app = DeckHost(script.state(), script.at_ms + 41_000, panes=("f1", "f2", "f3"), selected="f2")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        first, second = app.query_one("#pane-f1", Pane), app.query_one("#pane-f2", Pane)
        head = text_of(first)[0]
        assert head.startswith("  1  ● RUN   api-audit  read-only")
        assert head.endswith("2:11   3t  $0.06  95%")
        lines = text_of(second)
        assert lines[0].startswith("▌ 2  ◆ ASK   impl-step3  worktree")
        assert any(line.startswith("▌   bash    pytest -q tests/io") for line in lines)
        assert second.card_visible
        title = text_of(app.query_one(TitleLine))[0]
        assert title.startswith(" forkdeck  auth-rework  main +3")
        assert title.endswith("◆ 1 ask    ✓ 1 new   ● 1 run   $0.24 of 5.00   cache 95%")
        strip = text_of(app.query_one(AskStrip))[0]
        assert strip.startswith(" ◆ 1 ask   2 impl-step3   bash pytest -q tests/io")
        assert strip.endswith("oldest waits 0:41   w next")
        footer = text_of(app.query_one(FooterLine))[0]
        assert footer.startswith(" DECK   Tab prompt   j k move")
        assert footer.endswith(": palette   ? help")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", [0, 1, 3, 8, 30])
async def test_nothing_is_wider_than_its_widget(size: tuple[int, int], count: int) -> None:
    script = scenes.deck(count) if count else scenes.empty()
    app = DeckHost(script.state(), script.at_ms, selected="f2")
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for widget in app.query(LineWidget):
            assert all(cell_width(line) <= widget.size.width for line in text_of(widget))


async def test_the_empty_deck() -> None:
    script = scenes.empty()
    app = DeckHost(script.state(), script.at_ms)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        lines = text_of(app.query_one(EmptyDeck))
        assert lines[0] == " forks 0"
        at = lines.index("        No forks yet.")
        assert lines[at - 4 : at - 1] == [
            "        ━━━━┳━━━━━━━━━━━━━━", "            ┣━━━━━━━━━", "            ┗━━━━━━━━━━━━",
        ]  # fmt: skip
        assert "        prefix 13.5k tokens" in lines


async def show_board(board: Board, state: DeckState, now: int, chosen: str | None) -> list[str]:
    board.update_state(state, now, chosen, selectors.attention_order(state))
    return text_of(board)


async def test_the_board_at_80_columns() -> None:
    script = scenes.deck(8)
    board = Board()
    async with OneHost(board).run_test(size=(80, 12)):
        lines = await show_board(board, script.state(), script.at_ms + 41_000, "f2")
        assert lines[0] == (
            " forks 8   by attention                                           places 4 of 4"
        )
        assert lines[1:4] == [
            "▌ 2  ◆ ASK   impl-step3   bash pytest -q tests/io         2:11   3t  $0.04  95%",
            "  6  × FAIL  type-fix     server overloaded, 3 tries o…   1:30   1t  $0.06   0%",
            "  7  ◕ PART  flaky-hunt   money, $0.21 of 0.20            1:30   1t  $0.21  97%",
        ]
        assert lines[8] == (
            "  8  … QUE   lint-pass    waits for a place                  –    –      –    –"
        )


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (80, " forks 8   by attention   4 of 9 requests at once, after a 429   places 4 of 4"),
        (60, " forks 8   by attention     4 of 9 at once   places 4 of 4"),
        (44, " forks 8   4 of 9 at once   places 4 of 4"),
    ],
)
async def test_the_board_says_that_requests_are_held_back(width: int, words: str) -> None:
    script = scenes.deck(8).add(PaceChanged(width=4, most=9, reason="429"))
    board = Board()
    async with OneHost(board).run_test(size=(width, 12)):
        shown = (await show_board(board, script.state(), script.at_ms, "f2"))[0]
        assert shown.split() == words.split()
        script.add(PaceChanged(width=9, most=9))
        shown = (await show_board(board, script.state(), script.at_ms, "f2"))[0]
        assert "at once" not in shown


async def test_columns_drop_in_order_as_the_board_narrows() -> None:
    script = scenes.deck(3)
    state, now = script.state(), script.at_ms
    seen: list[str] = []
    for width in (80, 66, 60, 44, 30):
        board = Board()
        async with OneHost(board).run_test(size=(width, 8)):
            seen.append((await show_board(board, state, now, "f2"))[1])
    assert "95%" in seen[0]
    assert "3t" in seen[1]
    assert "95%" not in seen[1]
    assert "$0.04" in seen[2]
    assert "3t" not in seen[2]
    assert all("◆" in line and "impl-step3" in line and "1:30" in line for line in seen)


async def test_thirty_forks_fold_but_never_who_needs_the_person() -> None:
    script = scenes.deck(30)
    state, now = script.state(), script.at_ms
    board = Board()
    async with OneHost(board).run_test(size=(70, 24)):
        lines = await show_board(board, state, now, "f2")
        text = "\n".join(lines)
        assert "grouped by attention" in lines[0]
        assert text.count("FAIL") == 2
        assert text.count("ASK") == 1
        assert text.count("PART") == 1
        assert "more" in text
        assert board.fold_group("f3", folded=True)
        assert not board.fold_group("f2", folded=True)
        assert "f3" not in board.visible_handles
        assert "f2" in board.visible_handles


async def test_the_heat_strip_keeps_every_fork_in_its_place() -> None:
    script = scenes.deck(30)
    board = Board()
    async with OneHost(board).run_test(size=(70, 60)):
        lines = await show_board(board, script.state(), script.at_ms, "f2")
        glyphs = lines[2].split()
        assert len(glyphs) == 30
        assert (glyphs[0], glyphs[1], glyphs[5], glyphs[7]) == ("●", "◆", "×", "…")
        assert lines[3].split() == ["1", "5", "10", "15", "20", "25", "30"]
        assert lines[3].index("5") == 3 + 4 * 2


async def test_tiles() -> None:
    script = scenes.deck(8)
    board = Board(density="tiles")
    async with OneHost(board).run_test(size=(120, 24)):
        lines = await show_board(board, script.state(), script.at_ms, "f2")
        assert board.columns == 2
        assert lines[1].startswith("▌ 2  ◆ ASK   impl-step3")
        assert "6  × FAIL  type-fix" in lines[1]
        assert board.handle_at(70, 1) == "f6"
        assert board.handle_at(5, 5) == "f7"


def long_parent(lines: int) -> DeckState:
    script = scenes.Script().opened()
    script.answered("\n\n".join(f"line number {n}" for n in range(lines)))
    return script.state()


async def test_a_pane_follows_until_it_is_scrolled_away() -> None:
    pane = Pane()
    state = long_parent(60)
    async with OneHost(pane).run_test(size=(60, 20)):
        pane.update_state(state, 0)
        assert pane.following
        assert any("line number 59" in line for line in text_of(pane))
        pane.scroll_lines(-10)
        assert not pane.following
        assert "rows below" in text_of(pane)[-1]
        before = text_of(pane)[2:-1]
        script = scenes.Script().opened()
        script.answered("\n\n".join(f"line number {n}" for n in range(60)))
        script.answered("and more")
        pane.update_state(script.state(), 0)
        assert text_of(pane)[2:-1] == before
        pane.to_start()
        assert "line number 0" in text_of(pane)[2]
        pane.scroll_page(1)
        pane.to_end()
        assert pane.following
        assert pane.at_end


async def test_a_resize_keeps_the_row_in_sight() -> None:
    pane = Pane()
    state = long_parent(60)
    app = OneHost(pane)
    async with app.run_test(size=(60, 20)) as pilot:
        pane.update_state(state, 0)
        pane.to_start()
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert "line number 0" in text_of(pane)[2]
        assert not pane.following


async def test_finding_wraps_around_and_marks() -> None:
    pane = Pane()
    async with OneHost(pane).run_test(size=(60, 20)):
        pane.update_state(long_parent(60), 0)
        assert pane.find("NUMBER 30")
        assert any("line number 30" in line for line in text_of(pane))
        assert not pane.find("no such text")


async def test_pointing_a_pane_at_another_run() -> None:
    script = scenes.deck(3)
    pane = Pane("f1")
    async with OneHost(pane).run_test(size=(70, 20)):
        pane.update_state(script.state(), script.at_ms)
        pane.point_at("f3")
        lines = text_of(pane)
        assert "data-layer" in lines[0]
        assert any("Result  three call sites" in line for line in lines)
        pane.point_at(PARENT)
        assert text_of(pane)[0].startswith(" parent")


async def test_selection_is_clamped_to_what_there_is() -> None:
    pane = Pane()
    app = OneHost(pane)
    async with app.run_test(size=(60, 20)):
        pane.update_state(long_parent(3), 0)
        whole = pane.get_selection(Selection(None, None))
        assert whole is not None
        assert "line number 2" in whole[0]
        part = pane.get_selection(Selection(Offset(7, 0), Offset(11, 0)))
        assert part == ("line", "\n")
        beyond = pane.get_selection(Selection(Offset(0, 900), Offset(3, 950)))
        assert beyond is None
        tail = pane.get_selection(Selection(Offset(0, 2), Offset(90, 950)))
        assert tail is not None
        assert tail[0].startswith("       line number 1")


async def test_a_pane_of_every_kind_is_safe_with_hostile_names() -> None:
    script = scenes.deck(3)
    state = script.state()
    name = "\x1b[2J[b]\u202ename\nx"
    bad = msgspec.structs.replace(state.forks["f1"], name=name, agent_type="\x9b")
    state = msgspec.structs.replace(state, forks={**state.forks, "f1": bad})
    app = DeckHost(state, script.at_ms, panes=("f1",))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        text = "\n".join(line for widget in app.query(LineWidget) for line in text_of(widget))
        assert not any(char in text for char in "\x1b\x9b\u202e")
        assert "[b]" in text


async def test_the_zoom_and_its_side_column() -> None:
    script = scenes.deck(3)
    state, now = script.state(), script.at_ms + 41_000
    facts = Facts(headed=False)
    async with OneHost(facts).run_test(size=(34, 40)):
        facts.update_sections(fork_sections(state, "f2", now, 34), selected="f2")
        lines = text_of(facts)
        assert lines[0] == "  cache                      HIT"
        assert lines[2] == "  read              40.0k    95%"
        assert "  time  ━───────── 2:11 of 15:00" in lines
        assert "  src/io/retry.py         +41 −6" in lines
        assert "▌ 2  ◆ ASK    impl-step3   $0.04" in lines


async def test_a_meter_warns_near_its_limit() -> None:
    facts = Facts(headed=False)
    async with OneHost(facts).run_test(size=(34, 6)):
        figure = [("text", "49.3k of 60k")]
        facts.update_sections([Section("limits", (Fact("tokens", figure, 0.82, limit=True),))])
        assert text_of(facts)[1] == "  tokens ━━━━━━━─ ! 49.3k of 60k"


def test_facts_leave_out_what_nobody_told() -> None:
    empty = scenes.Script().opened().state()
    assert deck_sections(empty, 0) == []
    script = scenes.deck(8)
    titles = [section.title for section in deck_sections(script.state(), script.at_ms)]
    assert titles == ["cache", "spend", "rate gate"]


async def test_the_diff() -> None:
    lines = (DiffLine("file", "src/io/retry.py"), *parse_patch(scenes.PATCH))
    view = DiffView(WorkDiff(base="a", commit="b", lines=lines, truncated=True))
    async with OneHost(view).run_test(size=(70, 20)) as pilot:
        await pilot.pause()
        shown = text_of(view)
        assert shown[:1] == [" src/io/retry.py"]
        assert "  18  18       def call(self, fn):" in shown
        assert "  19     −         for n in range(8):" in shown
        assert "      19 +         for wait in delays(self.policy, self.rng):" in shown
        assert any("longer than is shown" in line for line in shown)
        row = next(y for y, line in enumerate(shown) if "+ " in line)
        styles = [segment.style for segment in view.render_line(row) if segment.style]
        tinted = {style.bgcolor.name for style in styles if style.bgcolor}
        assert "#17281f" in tinted
        assert view.file_count == 1


async def test_the_transport_and_the_timeline() -> None:
    script = scenes.deck(8)
    state = script.state()
    line = TransportLine(
        PlaybackFacts(
            playing=True, speed=2.0, position_ms=163_000, duration_ms=372_000, event=418,
            events=1204,
        )
    )  # fmt: skip
    async with OneHost(line).run_test(size=(120, 3)) as pilot:
        await pilot.pause()
        shown = text_of(line)
        assert shown[1].startswith("  ▶ playing   2:43 of 6:12   ━━━")
        assert shown[1].endswith("2× speed   skip idle on")
        assert shown[2] == "  event 418 of 1,204"
    timeline = Timeline()
    async with OneHost(timeline).run_test(size=(120, 12)):
        timeline.update_lanes(lanes_of(state, 130_000), state, 130_000)
        timeline.update_position(60_000, "f2")
        shown = text_of(timeline)
        assert shown[0].startswith(" timeline")
        assert "▼" in shown[1]
        assert shown[2].startswith("    parent")
        assert shown[2].endswith("$0.05")
        assert "┿" in shown[3]


async def test_the_footer_drops_from_the_right_and_keeps_help() -> None:
    footer = FooterLine()
    async with OneHost(footer).run_test(size=(60, 1)):
        footer.update_state("DECK", KEYS)
        line = text_of(footer)[0]
        assert line.startswith(" DECK   Tab prompt")
        assert line.endswith("? help")
        assert "next owed" not in line


async def test_the_strip_shows_answer_keys_only_where_they_answer() -> None:
    script = scenes.deck(3)
    state = script.state()
    ask = state.asks[0]
    strip = AskStrip()
    async with OneHost(strip).run_test(size=(140, 1)) as pilot:
        strip.update_state(state, script.at_ms, keys=True, ask=ask)
        line = text_of(strip)[0]
        assert "pytest -q tests/io" in line
        assert "y once   a this fork   A this batch   e edit   - deny" in line
        assert strip.shows_whole == ask.event.request
        strip.update_state(state, script.at_ms, keys=True)
        assert "y once" not in text_of(strip)[0]
        assert text_of(strip)[0].endswith("w next")
        assert strip.shows_whole == ""
        strip.update_state(state, script.at_ms, typing=True)
        assert text_of(strip)[0].endswith("Ctrl+X w next")
        strip.update_state(state, script.at_ms, keys=True, ask=ask, message=("done", "info"))
        assert strip.shows_whole == ""
        await pilot.resize_terminal(72, 1)
        await pilot.pause()
        strip.update_state(state, script.at_ms, keys=True, ask=ask)
        assert text_of(strip)[0].endswith("y once   - deny")
        await pilot.resize_terminal(50, 1)
        await pilot.pause()
        strip.update_state(state, script.at_ms, keys=True, ask=ask)
        assert "y once" not in text_of(strip)[0]
        assert strip.shows_whole == ""


async def test_a_request_of_several_lines_is_never_whole_in_the_strip() -> None:
    script = scenes.Script().opened().parent_talk().batch(1, writers=(1,)).started("f1")
    script.asks("f1", "ls\nrm -r src")
    state = script.state()
    strip = AskStrip()
    async with OneHost(strip).run_test(size=(160, 1)):
        strip.update_state(state, script.at_ms, keys=True, ask=state.asks[0])
        line = text_of(strip)[0]
        assert "rm -r src" in line
        assert "y once" not in line
        assert "Enter shows it whole" in line
        assert strip.shows_whole == ""


async def test_the_strip_says_trouble_before_all_else() -> None:
    script = scenes.deck(3)
    strip = AskStrip()
    async with OneHost(strip).run_test(size=(140, 1)):
        strip.update_state(script.state(), script.at_ms, trouble="disk full: 14 events held")
        assert text_of(strip)[0] == " × log  disk full: 14 events held"
        strip.update_state(scenes.empty().state(), 0)
        assert not strip.wanted
        strip.paced = "4 of 9 requests at once"
        strip.update_state(scenes.empty().state(), 0)
        assert strip.wanted
        assert text_of(strip)[0] == " 4 of 9 requests at once"


@pytest.mark.parametrize(("width", "words"), [(120, "scripted, at list price"), (60, "simulated")])
async def test_the_simulated_model_and_the_budget_are_always_named(width: int, words: str) -> None:
    state = scenes.deck(8).state()
    facts = msgspec.structs.replace(state.session, simulated="scripted, at list price")
    title = TitleLine()
    async with OneHost(title).run_test(size=(width, 1)):
        title.update_state(msgspec.structs.replace(state, session=facts))
        line = text_of(title)[0]
        assert words in line
        assert "$0.54 of 5.00" in line
        assert cell_width(line) <= width


async def test_ascii_widgets_draw_only_ascii() -> None:
    options = DrawOptions()
    options.ascii_only, options.motion = True, False
    script = scenes.deck(8)
    app = DeckHost(script.state(), script.at_ms, options=options, selected="f2")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        own = "".join(text_of(app.query_one(Board)))
        assert "".join(line for w in app.query(LineWidget) for line in text_of(w)).isascii()
        assert "? ASK" in own
        assert "x FAIL" in own


def test_without_colour_a_chip_is_reverse_and_nothing_else_has_colour() -> None:
    palette = Palette({"primary": "#84b6f4", "ask": "#eab54d"}, colour=False)
    assert palette.style("chip-ask").reverse
    style = palette.style("live", "panel")
    assert style.color is None
    assert style.bgcolor is None


def test_code_has_at_most_three_tones() -> None:
    spans = highlight('    yield f("a b", 2.5)  # note')
    assert "".join(text for _, text in spans) == '    yield f("a b", 2.5)  # note'
    assert {name for name, _ in spans} == {"code", "keyword", "string", "muted"}
