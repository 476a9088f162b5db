"""Places of a directory over processes: the dead block nobody and are closed in their log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from forkdeck.engine.places import Holder, Places, leases
from forkdeck.engine.reaping import reap
from forkdeck.model.events.fork import BatchAdmitted, ForkDelayed, ForkQueued, ForkStarted
from forkdeck.model.events.session import NoticeRaised, SessionOpened
from forkdeck.model.events.turn import TurnStarted
from forkdeck.model.intents import SendPrompt
from forkdeck.sessionlog.catalogue import list_sessions
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.sessionlog.reader import read_log
from forkdeck.sessionlog.writer import JsonlSink
from forkdeck.store.reducer import fold
from tests.engine.fakes import Net, Reply
from tests.engine.rig import REPORT, Rig, join, parent_then

HOLD = """
import sys, time
from pathlib import Path
from forkdeck.engine.places import Places
places = Places(Path(sys.argv[1]), 2, Path(sys.argv[2]))
print(places.take("f1"), places.take("f2"), flush=True)
time.sleep(600)
"""


def holder(directory: Path, session: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(directory), str(session)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "0 1\n"
    return process


def test_a_killed_process_gives_its_places_back(tmp_path: Path) -> None:
    """T74: the kernel frees the places, whatever pid is used again; who was in them is told."""
    session = tmp_path / "s"
    process = holder(tmp_path / "places", session)
    mine = Places(tmp_path / "places", 2, tmp_path / "mine")
    assert mine.take("f1") is None
    assert not mine.full
    assert mine.look() == ()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    place = mine.take("f1")
    assert place == 0
    assert mine.take_dead() == (Holder(str(session), "f1"),)
    assert mine.look() == (Holder(str(session), "f2"),)
    assert mine.look() == ()
    mine.give(place)
    other = Places(tmp_path / "places", 2)
    assert (other.take(), other.take(), other.take()) == (0, 1, None)
    assert other.take_dead() == ()


def test_nonsense_in_a_place_is_nobody(tmp_path: Path) -> None:
    """A place file is data: what cannot be read names no session, and the place still works."""
    for text in ("{", "[]", '{"session": 3}', "\x00" * 9000):
        (tmp_path / "place-0.lock").write_text(text)
        places = Places(tmp_path, 1)
        place = places.take("f9")
        assert place == 0
        assert places.take_dead() == ()
        places.give(place)


async def dead_session(root: Path, name: str) -> SessionPaths:
    """Write a log whose process died while f1 ran."""
    paths = SessionPaths(root / "sessions" / "w-12345678" / name)
    sink = JsonlSink.open(paths)
    events: list[Any] = [
        SessionOpened(
            format_version=1, app_version="0", session=name, cwd="/w", project="w",
            started_at="2026-11-30T20:00:00Z", model="claude-opus-5-5",
        ),
        TurnStarted(turn=1),
        BatchAdmitted(batch="b1", tool="fork_join", call="c", handles=("f1",), max_concurrency=1),
        ForkQueued(
            run="f1", batch="b1", index=0, name="a", task="Look.", seed="before_call",
            from_run="p", depth=1,
        ),
        ForkStarted(run="f1", from_run="p", inherited_messages=0, boundary=0),
    ]  # fmt: skip
    for number, event in enumerate(events, 1):
        sink.put(replace(event, seq=number, at_ms=number))
    await sink.close()
    return paths


DEAD = "20261130-190000-aaaaaa"


async def test_a_dead_sessions_forks_end_interrupted(tmp_path: Path) -> None:
    """T74: closed once, in their own log, as a resume would; a live owner's are left alone."""
    paths = await dead_session(tmp_path, DEAD)
    owner = JsonlSink.open(paths)
    assert await reap(paths.directory) == ()
    await owner.close()
    assert await reap(paths.directory) == ("f1",)
    state = fold(read_log(paths.events).events)
    assert state.forks["f1"].status == "INTR"
    assert state.batches["b1"].ended
    assert not state.parent.turn.running
    assert await reap(paths.directory) == ()
    assert list_sessions(tmp_path)[0].interrupted == 1


async def test_a_deck_reaps_what_it_finds(tmp_path: Path) -> None:
    """T74: what the places name is closed and said once; what is no session of ours is ignored."""
    paths = await dead_session(tmp_path, DEAD)
    own = tmp_path / "sessions" / "w-12345678" / "20261130-200000-abcdef"
    folder = leases(tmp_path / "places", "/w")
    folder.mkdir(parents=True)
    for number, where in enumerate((paths.directory, "/etc", own, "relative")):
        text = f'{{"session":"{where}","handle":"f1"}}'
        (folder / f"place-{number}.lock").write_text(text)
    rig = await Rig(own, Net(), places=tmp_path / "places").open()
    rig.provider.script = parent_then(join("a"), lambda _: Reply(REPORT))
    await rig.say()
    await rig.close()
    notices = [e.what for e in rig.sink.of(NoticeRaised) if "process that died" in e.what]
    assert notices == [
        f"f1 of session {DEAD} was left running by a process that died; it is marked INTR there."
    ]
    assert fold(read_log(paths.events).events).forks["f1"].status == "INTR"
    assert all(path.read_text() == "" for path in folder.iterdir())


async def test_a_fork_says_that_others_hold_the_places(tmp_path: Path) -> None:
    """It is queued, not lost: the places of the other process are counted."""
    others = Places(leases(tmp_path / "places", "/w"), 8)
    held = [others.take() for _ in range(8)]
    rig = await Rig(tmp_path / "own", Net(), places=tmp_path / "places").open()
    rig.provider.script = parent_then(join("a"), lambda _: Reply(REPORT))
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.sink.of(ForkDelayed))
    event = rig.sink.of(ForkDelayed)[0]
    assert (event.reason, event.elsewhere, event.places) == ("place", 8, 8)
    assert rig.fork("f1").status == "QUE"
    for place in held:
        assert place is not None
        others.give(place)
    await rig.idle()
    assert rig.fork("f1").outcome == "done"
    assert len(rig.sink.of(ForkDelayed)) == 1, "told once, not at every look"
    await rig.close()
