"""Cost of drawing, by counts that are the same on every machine: no reflow, one paint a flush."""

from __future__ import annotations

import pytest
from textual._compositor import Compositor

from forkdeck.model.events.step import RequestSent, StreamOpened, TextStreamed
from forkdeck.model.ids import PARENT
from forkdeck.store.reducer import reduce
from forkdeck.ui.widgets.pane import Pane
from tests.widgets import scenes
from tests.widgets.host import DeckHost

FLUSHES = 30


@pytest.mark.parametrize("count", [8, 30])
async def test_streaming_never_reflows(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    script = scenes.deck(count)
    state = script.state()
    runs = (PARENT, "f1", "f4")
    for run in runs:
        state = reduce(state, RequestSent(run=run, attempt=1, prefix_sha256="a", positions=1))
        state = reduce(state, StreamOpened(run=run, message_id="m", ttft_ms=1))
    app = DeckHost(state, script.at_ms, selected="f1")
    counts = {"reflow": 0, "render_partial_update": 0}
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        for name in counts:
            original = getattr(Compositor, name)

            def counted(self, *args, _name=name, _original=original, **more):
                counts[_name] += 1
                return _original(self, *args, **more)

            monkeypatch.setattr(Compositor, name, counted)
        lines = 0
        parent = app.query_one("#parent", Pane)
        draw = parent.render_line

        def drawn(y: int):
            nonlocal lines
            lines += 1
            return draw(y)

        monkeypatch.setattr(parent, "render_line", drawn)
        for flush in range(FLUSHES):
            for run in runs:
                text = f"some more words {flush} " + ("\n" if flush % 5 == 4 else "")
                state = reduce(state, TextStreamed(run=run, index=0, text=text))
            app.feed(state)
            await pilot.pause()
        assert counts["reflow"] == 0
        assert counts["render_partial_update"] <= FLUSHES
        assert lines <= FLUSHES * 36
        assert len(list(app.screen.query("*"))) <= 12
    assert len(state.runs) == count + 1


async def test_a_growing_tail_paints_its_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    script = scenes.empty()
    state = reduce(script.state(), RequestSent(attempt=1, prefix_sha256="a", positions=1))
    state = reduce(state, StreamOpened(message_id="m", ttft_ms=1))
    state = reduce(state, TextStreamed(index=0, text="begin "))
    app = DeckHost(state, script.at_ms)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        parent = app.query_one("#parent", Pane)
        regions: list[int] = []
        monkeypatch.setattr(
            parent, "refresh", lambda *found, **_: regions.extend(r.height for r in found)
        )
        state = reduce(state, TextStreamed(index=0, text="more"))
        parent.update_state(state, script.at_ms)
        assert regions == [1]
        regions.clear()
        parent.update_state(state, script.at_ms)
        assert regions == []


async def test_a_clock_tick_repaints_the_running_call_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = scenes.deck(3)
    app = DeckHost(script.state(), script.at_ms, panes=("f1",))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        pane = app.query_one("#pane-f1", Pane)
        rows: list[tuple[int, int]] = []
        monkeypatch.setattr(
            pane, "refresh", lambda *found, **_: rows.extend((r.y, r.height) for r in found)
        )
        pane.update_state(app.state, script.at_ms + 250)
        assert [height for _, height in rows] == [1]
