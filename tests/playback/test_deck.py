"""The replay deck: transport, time, seeking, and what a recording refuses."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from forkdeck.errors import WorktreeError
from forkdeck.model.events import Event
from forkdeck.model.events.fork import ForkEnded, ForkQueued, ForkStarted
from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.events.tool import ApprovalAsked
from forkdeck.model.events.turn import TurnStarted
from forkdeck.model.events.work import WorkSaved
from forkdeck.model.intents import AbortFork, SendPrompt, SettleFork
from forkdeck.model.ports import Deck, Transport
from forkdeck.playback.deck import ReplayDeck
from forkdeck.store.reducer import fold
from tests.clocks import ManualClock
from tests.store.recordings import Script, numbered, opened


def recording(*gaps_ms: int) -> list[Event]:
    """Notices, each `gap` behind the one before; the header at 0."""
    at_ms, events = 0, [opened(seq=1)]
    found: list[Event] = list(events)
    for number, gap_ms in enumerate(gaps_ms):
        at_ms += gap_ms
        found.append(NoticeRaised(seq=number + 2, at_ms=at_ms, severity="info", what=str(number)))
    return found


def open_deck(events: list[Event], clock: ManualClock | None = None) -> ReplayDeck:
    return ReplayDeck.open(events, clock=clock or ManualClock(), title="t")


async def played(deck: ReplayDeck, clock: ManualClock) -> float:
    """Play to the end; return how many milliseconds of the clock it took."""
    begin = clock.ms
    deck.play()
    for _ in iter(lambda: deck.facts.playing, False):
        await asyncio.sleep(0)
    return clock.ms - begin


async def test_it_is_a_deck_and_a_transport_and_opens_on_the_first_event() -> None:
    events = recording(100, 100)
    opened_deck = open_deck(events)
    deck: Deck = opened_deck
    transport: Transport | None = deck.transport
    assert transport is not None
    assert deck.state == fold(events[:1])
    assert transport.facts == replace(transport.facts, playing=False, event=1, events=3)
    assert (transport.facts.position_ms, transport.facts.duration_ms) == (0, 200)
    assert not deck.capabilities.live
    assert deck.capabilities.recorded
    assert await deck.complete_path("a") == ()
    await deck.close()
    await deck.close()


async def test_live_intents_answer_recorded_and_change_nothing() -> None:
    deck = open_deck(recording(100))
    before = deck.state
    for intent in (SendPrompt(text="x"), AbortFork(handle="f1"), SettleFork(handle="f1")):
        result = await deck.submit(intent)
        assert not result.ok
        assert result.text.startswith("recorded")
    assert deck.state is before
    await deck.close()


@pytest.mark.parametrize(
    ("speed", "skip", "expected_ms"),
    [
        (1.0, True, 1_000 + 500 + 2_000),
        (1.0, False, 1_000 + 60_000 + 2_000),
        (4.0, True, 3_500 / 4),
        (0.25, True, 3_500 * 4),
    ],
)
async def test_playing_takes_its_time_and_skips_idle(
    speed: float, skip: bool, expected_ms: float
) -> None:
    clock = ManualClock()
    deck = open_deck(recording(1_000, 60_000, 2_000), clock)
    deck.set_speed(speed)
    deck.set_skip_idle(skip)
    spent = await played(deck, clock)
    assert spent == pytest.approx(expected_ms, abs=100)
    assert deck.facts.event == 4
    assert deck.now_ms() == 63_000
    # At the end it begins again.
    again = await played(deck, clock)
    assert again == pytest.approx(expected_ms, abs=100)
    await deck.close()


async def test_the_position_moves_between_events() -> None:
    clock = ManualClock()
    deck = open_deck(recording(10_000), clock)
    deck.set_skip_idle(False)
    deck.play()
    seen = set()
    while deck.now_ms() < 5_000:
        await asyncio.sleep(0)
        seen.add(deck.now_ms())
    assert len(seen) > 100
    deck.pause()
    position = deck.now_ms()
    clock.ms += 60_000
    await asyncio.sleep(0.01)
    assert deck.now_ms() == position
    assert not deck.facts.playing
    assert deck.facts.event == 1
    deck.play()
    await asyncio.sleep(0)
    await deck.close()


async def test_a_step_is_one_event_either_way_and_pauses() -> None:
    events = recording(10, 10, 10)
    deck = open_deck(events)
    deck.play()
    deck.step(1)
    assert not deck.facts.playing
    assert deck.state == fold(events[:2])
    deck.step(1)
    deck.step(-1)
    assert deck.state == fold(events[:2])
    assert deck.now_ms() == 10
    deck.step(-99)
    assert deck.facts.event == 1
    deck.step(99)
    assert deck.state == fold(events)
    await deck.close()


async def test_a_seek_by_time_shows_what_had_happened_by_then() -> None:
    events = recording(100, 100, 0, 100)
    deck = open_deck(events)
    for at_ms, count in ((0, 1), (99, 1), (100, 2), (250, 4), (300, 5), (999, 5), (-5, 1)):
        deck.seek_ms(at_ms)
        assert deck.state == fold(events[:count])
        assert deck.now_ms() == max(0, min(at_ms, 300))
    await deck.close()


async def test_speeds_are_clamped() -> None:
    deck = open_deck(recording(1))
    for speed, kept in ((0.1, 0.25), (64, 32.0), (2, 2)):
        deck.set_speed(speed)
        assert deck.facts.speed == kept
    await deck.close()


async def test_landmarks_are_found_forward_and_back() -> None:
    def queued(handle: str) -> ForkQueued:
        return ForkQueued(
            run=handle, batch="b", index=0, name="n", task="t", seed="none", from_run="p", depth=1
        )

    ask = ApprovalAsked(
        run="f1", request="q", call="c", tool="bash", argument="ls", cwd="/", rule=""
    )
    events = numbered(
        [
            opened(),
            TurnStarted(turn=1),
            queued("f1"),
            ForkStarted(run="f1", from_run="p", inherited_messages=0, boundary=0),
            TurnStarted(run="f1", turn=1, source="fork"),
            ask,
            ForkEnded(run="f1", outcome="failed", reason="429"),
            queued("f2"),
            ForkEnded(run="f2", outcome="aborted", reason="person"),
            TurnStarted(turn=2),
        ]
    )
    deck = open_deck(events)

    def walk(what, back: bool = False) -> list[int]:
        found = []
        while deck.seek_next(what, back):
            found.append(deck.facts.event)
        return found

    for what, places in (
        ("owed", [6, 7]), ("error", [7]), ("fork", [4, 7, 9]), ("turn", [2, 10]),
    ):  # fmt: skip
        deck.seek_ms(0)
        assert walk(what) == places
        deck.step(99)
        at_end = [place for place in places if place != 10]
        assert walk(what, back=True) == at_end[::-1]
    await deck.close()


async def test_subscribers_are_woken_and_told_what_is_urgent() -> None:
    clock = ManualClock()
    deck = open_deck(Script(1).events(), clock)
    seen: list[bool] = []
    stop = deck.subscribe(seen.append)
    await played(deck, clock)
    assert True in seen
    assert False in seen
    stop()
    count = len(seen)
    deck.step(-1)
    assert len(seen) == count
    await deck.close()


async def test_every_position_is_the_fold_of_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forkdeck.playback.timeline.KEYFRAME_EVENTS", 7)
    events = Script(9).events()
    deck = open_deck(events)
    await deck.folded()
    jumps = [3, 90, 14, 15, 13, 60, 7, 1, len(events), 21, 20, 22]
    for place in jumps:
        deck.step(place - deck.facts.event)
        assert deck.facts.event == place
        assert deck.state == fold(events[:place])
    await deck.close()


async def test_a_seek_ahead_of_the_folding_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forkdeck.playback.timeline.KEYFRAME_EVENTS", 10)
    monkeypatch.setattr("forkdeck.playback.deck._FOLD_EVENTS", 5)
    events = Script(9, forks=5).events()
    deck = open_deck(events)
    deck.step(200)
    assert deck.facts.event == 1
    deck.step(3)  # counts from where it is going
    await deck.folded()
    assert deck.facts.event == 204
    assert deck.state == fold(events[:204])
    await deck.close()


async def test_a_hundred_thousand_events_open_at_once_and_seek_fast() -> None:
    events = Script(3, forks=8, steps=40, chunks=300).events()
    begin = time.process_time()
    deck = open_deck(events)
    assert deck.state.session.project == "orders"
    assert time.process_time() - begin < 0.35
    await asyncio.sleep(0)
    longest, begin = 0.0, time.perf_counter()
    while deck._folder is not None and not deck._folder.done():
        before = time.thread_time()
        await asyncio.sleep(0)
        longest = max(longest, time.thread_time() - before)
    assert longest < 0.05
    worst = 0.0
    for place in (len(events), 50_001, 3, 99_000, 1_999, 70_123):
        begin = time.process_time()
        deck.seek_ms(deck._timeline.times_ms[min(place, len(events)) - 1])
        worst = max(worst, time.process_time() - begin)
    assert worst < 0.1
    assert deck.state.seq == 70_123
    begin = time.process_time()
    assert not deck.seek_next("error") or deck.facts.event > 70_123
    assert time.process_time() - begin < 0.3
    await deck.close()


async def test_times_that_go_back_do_not_confuse_it() -> None:
    events = recording(100, 100)
    events[2] = replace(events[2], at_ms=50)
    deck = open_deck(events)
    deck.seek_ms(100)
    assert deck.facts.event == 3
    assert deck.facts.duration_ms == 100
    await deck.close()


async def test_an_empty_recording_is_harmless() -> None:
    deck = open_deck([])
    deck.play()
    deck.step(1)
    deck.seek_ms(5)
    assert not deck.seek_next("owed")
    assert deck.facts.events == 0
    await deck.close()


PATCH = """diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
 x
-y
+z
"""


def saved(patch: str | None) -> list[Event]:
    return numbered(
        [
            opened(),
            ForkQueued(
                run="f1", batch="b", index=0, name="n", task="t", seed="none", from_run="p", depth=1
            ),
            WorkSaved(run="f1", ref="r", commit="c", base="b", files=(), patch=patch),
        ]
    )  # fmt: skip


async def diff_of(events: list[Event], directory: Path | None):
    deck = ReplayDeck.open(events, clock=ManualClock(), title="t", directory=directory)
    deck.step(99)
    try:
        return await deck.diff("f1")
    finally:
        await deck.close()


async def test_a_diff_comes_from_the_patch_beside_the_log(tmp_path: Path) -> None:
    (tmp_path / "f1.patch").write_text(PATCH)
    diff = await diff_of(saved("f1.patch"), tmp_path)
    assert (diff.base, diff.commit) == ("b", "c")
    assert [(c.path, c.added, c.removed) for c in diff.files] == [("a.py", 1, 1)]
    own = tmp_path / "forks" / "f1"
    own.mkdir(parents=True)
    (own / "work-1.patch").write_text(PATCH.replace("a.py", "own.py"))
    for recorded in ("work-1.patch", str(own / "work-1.patch"), "/else/where/work-1.patch"):
        diff = await diff_of(saved(recorded), tmp_path)
        assert diff.files[0].path == "own.py"


@pytest.mark.parametrize(
    "name",
    ["../f1.patch", "/etc/passwd", "..", "", ".patch", "events.jsonl", "deep.patch",
     "link.patch", "pipe.patch", "none.patch", "a\0b.patch", "\udc80.patch", "x" * 300, None],
)  # fmt: skip
async def test_no_other_file_is_opened_for_a_diff(tmp_path: Path, name: str | None) -> None:
    import os

    (tmp_path / "outside.patch").write_text(PATCH)
    session = tmp_path / "session"
    session.mkdir()
    (tmp_path / "f1.patch").write_text(PATCH)
    (session / "link.patch").symlink_to(tmp_path / "outside.patch")
    os.mkfifo(session / "pipe.patch")
    (session / "forks").mkdir()
    (tmp_path / "deep.patch").write_text(PATCH)
    (session / "forks" / "f1").symlink_to(tmp_path)
    with pytest.raises(WorktreeError):
        await diff_of(saved(name), session)


async def test_a_diff_without_work_or_fork_or_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorktreeError, match="no saved work"):
        await diff_of(saved("f1.patch")[:2], tmp_path)
    with pytest.raises(WorktreeError, match="no fork f1"):
        await diff_of(saved("f1.patch")[:1], tmp_path)
    with pytest.raises(WorktreeError, match="not in this recording"):
        await diff_of(saved("f1.patch"), None)
