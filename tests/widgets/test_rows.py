"""The row buffer: wrapping, appending, folding, and text that means harm."""

from __future__ import annotations

import time
import unicodedata

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forkdeck.model.events.step import RequestSent, StreamOpened, TextStreamed
from forkdeck.model.ids import PARENT
from forkdeck.model.items import Chunk, Item, ItemKind, ToolFacts
from forkdeck.model.shared_list import SharedList
from forkdeck.model.state import EMPTY, DeckState, RunState, TurnFacts
from forkdeck.store.cells import cell_width
from forkdeck.store.reducer import reduce
from forkdeck.store.rows import RowBuffer
from forkdeck.store.rows_cards import visible_escapes
from forkdeck.store.rows_diff import changed_part, parse_patch
from forkdeck.store.rows_items import report_fields
from forkdeck.store.rows_tools import verb_of
from forkdeck.store.rows_types import ASCII_GLYPHS, Grid
from tests.widgets import scenes

KINDS: tuple[ItemKind, ...] = (
    "you", "text", "thinking", "task", "boundary", "report", "cut", "shell", "steer", "notice",
    "delivery",
)  # fmt: skip
HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b31m \u202egpj.exe\u2066 \u200bzero\u00ad [bold]x[/bold] "
    "\x00\x08\x7f\ud800 \U000e0041 e\u0301 日本語 👩\u200d💻 ❤\ufe0f\ttab\r\nnext"
)


def state_of(items: list[Item], stream: list[Chunk] | None = None, run: str = PARENT) -> DeckState:
    found = RunState(run=run, transcript=SharedList(items), stream=SharedList(stream or []))
    return msgspec.structs.replace(EMPTY, runs={run: found})


def rows_of(state: DeckState, grid: Grid, run: str = PARENT, now: int = 0) -> RowBuffer:
    buffer = RowBuffer(run, grid)
    buffer.update(state, now)
    return buffer


def texts(buffer: RowBuffer) -> list[str]:
    return [line.rstrip() for line in buffer.text()]


def test_the_transcript_grid() -> None:
    state = scenes.empty().state()
    assert texts(rows_of(state, Grid(57)))[:7] == [
        " you   Where do we retry, and how?",
        "",
        " deck  In four layers, each in its own way. I can read",
        "       them one after the other, or send a fork to each.",
        "",
        '       grep    "retry" src/           12 hits in 7 files',
    ]


def test_markdown_is_styled_per_line() -> None:
    text = "# Head\n\n- **one** and `two`\n10. ten\n> quoted\n```py\nx = 1\n```\nend"
    rows = rows_of(state_of([Item(kind="text", at_ms=1, text=text)]), Grid(40))
    assert texts(rows) == [
        " deck  Head", "", "       •  one and two", "       10  ten", "         quoted",
        "        x = 1", "       end",
    ]  # fmt: skip
    styles = {style for index in range(len(rows)) for style, _ in rows[index].spans}
    assert {"heading", "strong", "inline", "muted", "code"} <= styles
    assert rows[5].fill == "panel"


def test_a_batch_is_drawn_with_its_branches_and_folds_when_large() -> None:
    lines = texts(rows_of(scenes.deck(3).state(), Grid(57)))
    start = next(i for i, line in enumerate(lines) if "3 tasks" in line)
    assert lines[start : start + 4] == [
        "       fork    3 tasks from 4f2c9a1       est $0.11–0.24",
        "       ├  1  api-audit    read-only",
        "       ├  2  impl-step3   worktree",
        "       └  3  data-layer   read-only",
    ]
    lines = texts(rows_of(scenes.deck(30).state(), Grid(80)))
    assert "       ├ 29  read-only" in lines
    assert "       └  1  worktree, one each" in lines


def test_a_fork_pane_shows_calls_hits_and_what_runs() -> None:
    script = scenes.deck(3)
    lines = texts(rows_of(script.state(), Grid(62, "fork"), "f1", script.at_ms + 3_000))
    tail = lines[-9:]
    assert tail[0].startswith("    read    src/http/retry.py")
    assert tail[0].endswith("120 lines")
    assert tail[2] == "            src/http/client.py:88     backoff(2**n)"
    assert tail[-1].startswith("    read    src/queue/worker.py")
    assert tail[-1].endswith("0:03")


def test_the_request_card() -> None:
    script = scenes.deck(3)
    buffer = rows_of(script.state(), Grid(62, "fork"), "f2", script.at_ms + 41_000)
    lines = texts(buffer)[-buffer.card_rows :]
    assert lines[1] == "    bash    pytest -q tests/io                  waiting 0:41"
    assert lines[2] == "    in      fd/impl-step3   worktree, network off"
    assert lines[3] == "    rule    none allows bash(pytest *)"
    assert lines[4] == "    a A     allows bash(pytest -q)"
    assert lines[6].startswith("    y once   a this fork   A this batch   e edit   - deny")
    assert {buffer[len(buffer) - 1 - n].bar for n in range(buffer.card_rows)} == {"warn"}


def test_a_command_wraps_in_its_card_and_is_never_cut() -> None:
    command = "echo " + "x" * 300 + " && rm -rf /tmp/\u202edetcerid\n\tsecond line"
    script = scenes.Script().opened().parent_talk().batch(1, writers=(1,)).started("f1")
    script.asks("f1", command)
    text = "".join(line.strip() for line in texts(rows_of(script.state(), Grid(50, "fork"), "f1")))
    assert text.count("x") >= 300
    assert "\\u{202e}detcerid" in text
    assert "second line" in text
    assert "\u202e" not in text


def test_identical_requests_name_each_other() -> None:
    script = scenes.Script().opened().parent_talk().batch(2, writers=(1, 2)).started("f1", "f2")
    script.asks("f1").asks("f2")
    lines = texts(rows_of(script.state(), Grid(62, "fork"), "f1"))
    assert "    also    2 impl-step3" in lines
    assert any(line.startswith("    y both, once") for line in lines)


def test_a_fork_that_failed_says_what_was_kept() -> None:
    script = scenes.deck(8)
    lines = texts(rows_of(script.state(), Grid(62, "fork"), "f6"))
    assert "    error   server overloaded, 3 tries over 0:38" in lines
    assert "    kept    transcript, 1 tool result" in lines
    assert "    next    a retry reads the prefix from cache" in lines
    assert lines.count("    next    a retry reads the prefix from cache") == 1


def test_report_fields() -> None:
    fields = report_fields("Intro\n**Scope:** a\nResult: b\nmore\nKey files: x.py\n- y.py")
    assert fields == [
        ("", "Intro"),
        ("Scope", "a"),
        ("Result", "b\nmore"),
        ("Files", "x.py\n- y.py"),
    ]


def test_a_call_opens_and_folds() -> None:
    script = scenes.deck(3)
    state = script.state()
    buffer = rows_of(state, Grid(90, "zoom"), "f2")
    lines = texts(buffer)
    assert " − edit   src/io/retry.py" in [line[:26].rstrip() for line in lines]
    assert any("− " in line and "for n in range(8):" in line for line in lines)
    row = next(i for i, line in enumerate(lines) if line.startswith(" − edit"))
    index = buffer.item_at(row)
    assert index is not None
    before = len(buffer)
    assert buffer.toggle(index, state)
    assert len(buffer) < before
    assert buffer.toggle(index, state)
    assert texts(buffer) == lines


def test_patch_lines_are_numbered() -> None:
    lines = parse_patch(scenes.PATCH)
    assert [(line.kind, line.old, line.new) for line in lines] == [
        ("hunk", 18, 18), ("context", 18, 18), ("removed", 19, None), ("removed", 20, None),
        ("added", None, 19), ("added", None, 20), ("context", 21, 21),
    ]  # fmt: skip


def test_changed_words() -> None:
    assert changed_part("for n in range(8):", "for n in delays(x):") == ((9, 16), (9, 17))
    assert changed_part("alpha beta", "gamma delta") is None


def test_appending_equals_drawing_anew_and_keeps_earlier_rows() -> None:
    script = scenes.deck(3)
    events = script.events
    from forkdeck.store.reducer import reduce

    for run, kind in ((PARENT, "parent"), ("f1", "fork"), ("f2", "zoom")):
        state = EMPTY
        live = RowBuffer(run, Grid(60, kind))  # type: ignore[arg-type]
        for event in events:
            state = reduce(state, event)
            before = [live[n] for n in range(len(live))]
            first = live.update(state, event.at_ms)
            kept = len(before) if first is None else first
            assert all(live[n] == before[n] for n in range(min(kept, len(before), len(live))))
            assert first is not None or len(live) == len(before)
        fresh = rows_of(state, Grid(60, kind), run, events[-1].at_ms)  # type: ignore[arg-type]
        assert live.text() == fresh.text()


def test_streaming_equals_the_finished_text_row_by_row() -> None:
    text = "First **bold** line that is long enough to wrap twice at this width.\n\n- a\n- b\n"
    stream: SharedList[Chunk] = SharedList()
    live = RowBuffer(PARENT, Grid(34))
    run = RunState(run=PARENT, turn=TurnFacts(running=True))
    for at in range(0, len(text), 5):
        stream = stream.appended(Chunk("text", 0, text[at : at + 5]))
        state = msgspec.structs.replace(
            EMPTY, runs={PARENT: msgspec.structs.replace(run, stream=stream)}
        )
        live.update(state, 0)
    done = rows_of(state_of([Item(kind="text", at_ms=0, text=text)]), Grid(34))
    assert texts(live) == texts(done)


def test_an_older_state_after_a_seek_is_drawn_as_it_was() -> None:
    script = scenes.deck(3)
    from forkdeck.store.reducer import fold

    early, late = fold(script.events[:30], EMPTY), script.state()
    buffer = rows_of(late, Grid(60))
    buffer.update(early, 0)
    assert buffer.text() == rows_of(early, Grid(60)).text()
    buffer.update(late, script.at_ms)
    assert buffer.text() == rows_of(late, Grid(60), now=script.at_ms).text()


item_texts = st.text(
    alphabet=st.one_of(st.sampled_from("ab `*#-\n日e\u0301\x1b\u202e1."), st.characters()),
    max_size=120,
)


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), item_texts), max_size=6),
    st.integers(14, 90),
    st.integers(14, 90),
    st.sampled_from(["parent", "fork", "tile", "zoom"]),
)
def test_rewrapping_equals_wrapping_and_no_row_is_too_wide(
    given_items: list[tuple[ItemKind, str]], width: int, other: int, kind: str
) -> None:
    items = [Item(kind=name, at_ms=1, text=text) for name, text in given_items]
    state = state_of(items)
    buffer = rows_of(state, Grid(other, kind))  # type: ignore[arg-type]
    buffer.set_grid(Grid(width, kind), state, 0)  # type: ignore[arg-type]
    fresh = rows_of(state, Grid(width, kind))  # type: ignore[arg-type]
    assert [buffer[n] for n in range(len(buffer))] == [fresh[n] for n in range(len(fresh))]
    assert_safe(buffer, max(width, 32))


def assert_safe(buffer: RowBuffer, width: int) -> None:
    for text in buffer.text():
        assert cell_width(text) <= width, text
        assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in text), text


@pytest.mark.parametrize("kind", ["parent", "fork", "tile", "zoom"])
def test_hostile_text_cannot_act(kind: str) -> None:
    tool = ToolFacts(
        call="c", name="bash\x1b[0m", argument=HOSTILE, started_at_ms=0, status="error",
        summary=HOSTILE, content=HOSTILE * 3, patch="@@ -1 +1 @@ \x1b[2J\n-a\x07\n+b\u202e\n",
    )  # fmt: skip
    items = [Item(kind=name, at_ms=1, text=HOSTILE, remedy=HOSTILE) for name in KINDS]
    items.append(Item(kind="tool", at_ms=1, tool=tool))
    state = state_of(items, [Chunk("text", 0, HOSTILE), Chunk("call", 1, HOSTILE, HOSTILE)])
    buffer = rows_of(state, Grid(60, kind))  # type: ignore[arg-type]
    buffer.fold_all(opened=True, state=state)
    assert_safe(buffer, 60)
    assert "[bold]x[/bold]" in "".join(buffer.text()).replace("\n", "") or kind == "tile"


def test_escapes_are_written_out_in_requests() -> None:
    assert visible_escapes("a\x1b[0m\u200bb\nc") == "a\\u{1b}[0m\\u{200b}b\nc"
    assert visible_escapes("plain") == "plain"


def test_ascii_rows_draw_only_ascii() -> None:
    script = scenes.deck(3)
    grid = Grid(70, "zoom", ASCII_GLYPHS)
    buffer = rows_of(script.state(), grid, "f2")
    drawn = {char for line in buffer.text() for char in line if not char.isascii()}
    # What is cut or unknown is marked by the palette in the same set.
    assert drawn <= set("…–")


def test_a_long_transcript_loads_and_rewraps_in_time() -> None:
    line = "The backoff in client.py ignores Retry-After; the queue worker keeps its own copy\n"
    state = state_of([Item(kind="text", at_ms=1, text=line * 1000) for _ in range(100)])
    started = time.process_time()
    buffer = rows_of(state, Grid(100))
    loaded = time.process_time() - started
    assert len(buffer) >= 100_000
    # Measured well under 0.3 s alone; the bound leaves room for a loaded machine.
    assert loaded < 1.5
    run = state.runs[PARENT]
    more = run.transcript.appended(Item(kind="text", at_ms=2, text="one more"))
    newer = msgspec.structs.replace(
        state, runs={PARENT: msgspec.structs.replace(run, transcript=more)}
    )
    first = buffer[0]
    assert buffer.update(newer, 0) == len(buffer) - 2
    assert buffer[0] is first


def test_rows_of_a_growing_answer_stay_the_same_objects() -> None:
    """What was drawn once is not drawn again because the paragraph goes on."""
    script = scenes.Script().opened().parent_talk()
    script.add(RequestSent(run=PARENT, attempt=1, prefix_sha256="a", positions=3))
    script.add(StreamOpened(run=PARENT, message_id="m", ttft_ms=1))
    script.add(TextStreamed(run=PARENT, index=0, text="one two three four " * 20))
    state = script.state()
    buffer = rows_of(state, Grid(60, "parent"), PARENT)
    before = [buffer[index] for index in range(len(buffer))]
    script.add(TextStreamed(run=PARENT, index=0, text="five six seven " * 10))
    first = buffer.update(reduce(state, script.events[-1]), script.at_ms)
    assert first is not None
    assert first > 0
    assert all(buffer[index] is before[index] for index in range(first))


@pytest.mark.parametrize(
    ("name", "shown"), [("fork_join", "fork"), ("fork", "fork"), ("agent", "agent")]
)
def test_fork_tools_fit_the_verb_column(name: str, shown: str) -> None:
    assert verb_of(name) == shown
