"""The hub: number and stamp, log first, fold, tell, wake."""

from __future__ import annotations

import pytest

from forkdeck.errors import SessionError
from forkdeck.model.events import Event
from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.events.step import TextStreamed
from forkdeck.model.events.tool import ToolEnded
from forkdeck.model.events.work import WorktreeChanged
from forkdeck.model.raw import clean_text
from forkdeck.model.state import EMPTY
from forkdeck.model.work import FileChange
from forkdeck.sessionlog.codec import encode
from forkdeck.store.hub import Hub
from forkdeck.store.reducer import fold
from tests.clocks import ManualClock
from tests.store.recordings import Script, opened


class FakeSink:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.syncs = 0
        self.closed = 0
        self.trouble: str | None = None
        self.full = False

    def put(self, event: Event) -> None:
        encode(event)
        self.events.append(event)

    async def sync(self) -> None:
        self.syncs += 1

    async def close(self) -> None:
        self.closed += 1


async def test_events_are_numbered_stamped_logged_and_folded_in_that_order() -> None:
    clock, sink = ManualClock(), FakeSink()
    hub = Hub(sink=sink, clock=clock)
    seen: list[str] = []
    hub.listen(lambda event: seen.append(f"listen {event.seq} {len(sink.events)} {hub.state.seq}"))
    hub.subscribe(lambda urgent: seen.append(f"wake {urgent}"))
    first = hub.append(opened())
    clock.ms = 250
    second = hub.append(TextStreamed(index=0, text="a"))
    assert (first.seq, first.at_ms, second.seq, second.at_ms) == (1, 0, 2, 250)
    assert seen == ["listen 1 1 1", "wake True", "listen 2 2 2", "wake False"]
    assert hub.state == fold(sink.events)
    assert hub.now_ms() == 250


async def test_a_resumed_session_goes_on_behind_its_last_event() -> None:
    state = fold(Script(1).events())
    clock = ManualClock()
    clock.ms = 1_000_000
    hub = Hub(sink=FakeSink(), clock=clock, state=state)
    assert hub.now_ms() == state.at_ms + 1
    event = hub.append(NoticeRaised(severity="info", what="x"))
    assert (event.seq, event.at_ms) == (state.seq + 1, state.at_ms + 1)
    clock.ms += 40
    assert hub.now_ms() == state.at_ms + 41


async def test_stamped_events_keep_their_stamp_and_move_the_number() -> None:
    hub = Hub(sink=FakeSink(), clock=ManualClock())
    assert hub.append(opened(seq=7, at_ms=900)).at_ms == 900
    after = hub.append(NoticeRaised(severity="info", what="x"))
    assert (after.seq, after.at_ms) == (8, 900)


async def test_listeners_can_leave_also_while_being_told() -> None:
    hub = Hub(sink=FakeSink(), clock=ManualClock())
    seen: list[str] = []

    def once(urgent: bool) -> None:
        seen.append("a")
        leave()

    leave = hub.subscribe(once)
    hub.subscribe(lambda urgent: seen.append("b"))
    hub.append(opened())
    hub.append(NoticeRaised(severity="info", what="x"))
    leave()
    assert seen == ["a", "b", "b"]


@pytest.mark.parametrize(
    ("event", "urgent"),
    [
        (TextStreamed(index=0, text="a"), False),
        (WorktreeChanged(run="f1", files=()), False),
        (NoticeRaised(severity="info", what="x"), True),
    ],
)
async def test_only_deltas_are_not_urgent(event: Event, urgent: bool) -> None:
    hub = Hub(sink=FakeSink(), clock=ManualClock())
    seen: list[bool] = []
    hub.subscribe(seen.append)
    hub.append(event)
    assert seen == [urgent]


async def test_lone_surrogates_are_replaced_in_log_and_state_alike() -> None:
    sink = FakeSink()
    hub = Hub(sink=sink, clock=ManualClock())
    hub.append(ToolEnded(call="c", name="read", status="ok", content="\udcff", path="a\udc80b"))
    hub.append(WorktreeChanged(run="f1", files=(FileChange(path="\ud800x"),)))
    first = sink.events[0]
    assert isinstance(first, ToolEnded)
    assert first.path == clean_text("a\udc80b")
    assert hub.state == fold(sink.events)
    assert hub.state.forks["f1"].files[0].path == clean_text("\ud800x")
    assert encode(sink.events[1])


async def test_syncing_and_closing() -> None:
    sink = FakeSink()
    hub = Hub(sink=sink, clock=ManualClock())
    assert (await hub.append_synced(opened())).seq == 1
    await hub.sync()
    assert sink.syncs == 2
    sink.trouble = "disk full"
    assert hub.trouble == "disk full"
    await hub.close()
    await hub.close()
    assert sink.closed == 1
    with pytest.raises(SessionError, match="NoticeRaised came too late"):
        hub.append(NoticeRaised(severity="info", what="x"))


async def test_a_shown_state_is_not_logged() -> None:
    sink = FakeSink()
    hub = Hub(sink=sink, clock=ManualClock())
    seen: list[bool] = []
    hub.subscribe(seen.append)
    state = fold(Script(1).events())
    hub.show(state)
    hub.show(state)
    hub.show(EMPTY, urgent=False)
    assert seen == [True, False]
    assert sink.events == []
