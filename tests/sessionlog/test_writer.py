"""The writer: order, batches, sync, lock, a full disk, a deleted directory, a killed process."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forkdeck.errors import SessionBusy, SessionError
from forkdeck.model.events.step import TextStreamed
from forkdeck.sessionlog import logfile, writer
from forkdeck.sessionlog.lock import take_lock
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.sessionlog.reader import read_log, repair_tail
from forkdeck.sessionlog.writer import JsonlSink
from tests.soak import SOAK
from tests.store.recordings import Script, opened


def text(seq: int, words: str = "some words") -> TextStreamed:
    return TextStreamed(seq=seq, index=0, text=words)


@pytest.fixture
def paths(tmp_path: Path) -> SessionPaths:
    return SessionPaths(tmp_path / "state" / "sessions" / "p" / "20261130-202200-1f3a9c")


def is_locked(paths: SessionPaths) -> bool:
    try:
        os.close(take_lock(paths))
    except SessionBusy:
        return True
    return False


def seqs(paths: SessionPaths) -> list[int]:
    return [event.seq for event in read_log(paths.events).events]


async def until(condition, seconds: float = 5.0) -> None:
    for _ in range(int(seconds / 0.005)):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come about")


async def test_events_come_to_the_disk_in_order_and_private(paths: SessionPaths) -> None:
    before = os.umask(0)
    try:
        sink = JsonlSink.open(paths)
    finally:
        os.umask(before)
    sink.put(opened(seq=1))
    for seq in range(2, 500):
        sink.put(text(seq))
    await sink.sync()
    assert seqs(paths) == list(range(1, 500))
    assert sink.unsaved_bytes == 0
    for directory in (paths.directory, paths.directory.parent, paths.directory.parents[2]):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for file in (paths.events, paths.lock):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    await sink.close()
    await sink.close()
    with pytest.raises(SessionError):
        sink.put(text(500))
    await sink.sync()


async def test_lines_are_written_within_fifty_milliseconds_unasked(paths: SessionPaths) -> None:
    sink = JsonlSink.open(paths)
    sink.put(opened(seq=1))
    begin = time.monotonic()
    await until(lambda: paths.events.stat().st_size > 0)
    assert time.monotonic() - begin < 1.0  # 0.02 s and a busy machine
    assert writer.GATHER_S <= 0.05
    await sink.close()


async def test_a_batch_is_one_write(paths: SessionPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = LogFileAppend()
    monkeypatch.setattr(logfile.LogFile, "append", lambda self, b: real(self, b, sizes))
    sink = JsonlSink.open(paths)
    for seq in range(1, 201):
        sink.put(text(seq))
    await sink.close()
    assert len(sizes) <= 2
    assert sum(sizes) == paths.events.stat().st_size


class LogFileAppend:
    def __init__(self) -> None:
        self.real = logfile.LogFile.append

    def __call__(self, file, batch: bytes, sizes: list[int]) -> None:
        sizes.append(len(batch))
        self.real(file, batch)


async def test_a_session_cannot_be_opened_twice(paths: SessionPaths) -> None:
    sink = JsonlSink.open(paths)
    assert is_locked(paths)
    with pytest.raises(SessionBusy, match="20261130-202200-1f3a9c is open"):
        JsonlSink.open(paths)
    code = (
        "import sys; from pathlib import Path; from forkdeck.errors import SessionBusy\n"
        "from forkdeck.sessionlog.paths import SessionPaths\n"
        "from forkdeck.sessionlog.writer import JsonlSink\n"
        "try: JsonlSink.open(SessionPaths(Path(sys.argv[1])))\n"
        "except SessionBusy: print('busy')\n"
    )
    out = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code, str(paths.directory)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert out.stdout == "busy\n"
    with pytest.raises(SessionBusy):
        repair_tail(paths)
    await sink.close()
    assert not is_locked(paths)
    again = JsonlSink.open(paths)
    await again.close()


async def test_a_full_disk_loses_nothing(
    paths: SessionPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failed batch leaves no half record, is kept, and is written when there is space."""
    monkeypatch.setattr(writer, "RETRY_S", 60)  # only a waiter makes it try again
    real, full = os.write, [False]

    def write(descriptor: int, data) -> int:
        if full[0]:
            if len(data) > 10:
                return real(descriptor, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    sink = JsonlSink.open(paths)
    sink.put(opened(seq=1))
    await sink.sync()
    size = paths.events.stat().st_size
    monkeypatch.setattr(logfile.os, "write", write)
    full[0] = True
    sink.put(text(2))
    await sink.sync()
    assert sink.trouble is not None
    assert "No space left" in sink.trouble
    for seq in range(3, 50):
        sink.put(text(seq, "x" * 300_000))
    await sink.sync()
    assert sink.full
    assert paths.events.stat().st_size == size
    full[0] = False
    await sink.sync()
    assert sink.trouble is None
    assert seqs(paths) == list(range(1, 50))
    assert sink.unsaved_bytes == 0
    await sink.close()


async def test_a_half_record_that_could_not_be_taken_back_is_taken_back_later(
    paths: SessionPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RETRY_S", 0.01)
    real_write, real_cut, broken = os.write, os.ftruncate, [True]

    def write(descriptor: int, data) -> int:
        if broken[0] and len(data) <= 10:
            raise OSError(errno.EIO, "Input/output error")
        return real_write(descriptor, data[:7] if broken[0] else data)

    def cut(descriptor: int, length: int) -> None:
        if broken[0]:
            raise OSError(errno.EIO, "Input/output error")
        real_cut(descriptor, length)

    sink = JsonlSink.open(paths)
    monkeypatch.setattr(logfile.os, "write", write)
    monkeypatch.setattr(logfile.os, "ftruncate", cut)
    sink.put(opened(seq=1))
    await sink.sync()
    assert sink.trouble is not None
    assert paths.events.stat().st_size > 0
    broken[0] = False
    await until(lambda: sink.trouble is None)
    await sink.close()
    assert seqs(paths) == [1]


async def test_closing_with_a_full_disk_says_what_is_lost(
    paths: SessionPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RETRY_S", 0.01)

    def refuse(self, batch: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(logfile.LogFile, "append", refuse)
    sink = JsonlSink.open(paths)
    sink.put(opened(seq=1))
    with pytest.raises(SessionError, match="1 events could not be saved"):
        await sink.close()
    assert not is_locked(paths)


async def test_a_deleted_directory_comes_back_with_everything(paths: SessionPaths) -> None:
    import shutil

    sink = JsonlSink.open(paths)
    sink.put(opened(seq=1))
    sink.put(text(2))
    await sink.sync()
    shutil.rmtree(paths.directory.parents[2])
    sink.put(text(3))
    await sink.sync()
    assert sink.trouble is None
    assert seqs(paths) == [1, 2, 3]
    assert is_locked(paths)
    await sink.close()


async def test_a_link_in_the_logs_place_is_refused(paths: SessionPaths, tmp_path: Path) -> None:
    paths.directory.mkdir(parents=True)
    target = tmp_path / "precious"
    target.write_text("mine\n")
    paths.events.symlink_to(target)
    with pytest.raises(SessionError):
        JsonlSink.open(paths)
    assert target.read_text() == "mine\n"
    assert not is_locked(paths)


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_that_others_may_write_to_is_refused(
    paths: SessionPaths, level: int, mode: int
) -> None:
    logfile.make_private_directory(paths.directory)
    place = (paths.directory, *paths.directory.parents)[level]
    place.chmod(mode)
    with pytest.raises(SessionError) as refused:
        JsonlSink.open(paths)
    assert str(place) in refused.value.what
    assert "chmod go-w" in refused.value.remedy
    assert list(paths.directory.iterdir()) == []


async def test_a_state_directory_in_a_sticky_one_is_good(paths: SessionPaths) -> None:
    logfile.make_private_directory(paths.directory)
    paths.directory.parents[2].chmod(0o1777)
    await JsonlSink.open(paths).close()
    assert paths.lock.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(paths: SessionPaths) -> None:
    logfile.make_private_directory(paths.directory)
    os.chown(paths.directory.parents[2], 12345, -1)
    with pytest.raises(SessionError, match="belongs to another user"):
        JsonlSink.open(paths)
    assert list(paths.directory.iterdir()) == []


async def test_a_cancelled_wait_harms_nobody(paths: SessionPaths) -> None:
    sink = JsonlSink.open(paths)
    sink.put(opened(seq=1))
    waits = [asyncio.create_task(sink.sync()) for _ in range(8)]
    await asyncio.sleep(0)
    waits[0].cancel()
    results = await asyncio.gather(*waits, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == [None] * 7
    await sink.close()


KILLED = """
import asyncio, sys
from pathlib import Path
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.sessionlog.writer import JsonlSink
from forkdeck.store.hub import Hub
from tests.store.recordings import Script, opened
from forkdeck.providers.clock import SystemClock
from msgspec.structs import replace

async def main():
    directory, kind = sys.argv[1:]
    hub = Hub(sink=JsonlSink.open(SessionPaths(Path(directory))), clock=SystemClock())
    for event in Script(5, forks=4).events():
        event = replace(event, seq=0, at_ms=0)
        stop = type(event).__name__ == kind
        if kind == "TextStreamed" and not stop:
            hub.append(event)
        else:
            stamped = await hub.append_synced(event)
        if stop:
            if kind == "TextStreamed":
                stamped = hub.append(event)
                await asyncio.sleep(0.1)
            print(stamped.seq, flush=True)
            await asyncio.sleep(60)

asyncio.run(main())
"""


FEW = (
    "MessageAdded", "MessageFinished", "ToolStarted", "ToolEnded", "ForkQueued", "ForkEnded",
    "ApprovalAsked", "WorkSaved", "TextStreamed",
)  # fmt: skip
ALL = tuple(sorted({type(event).__name__ for event in Script(5, forks=4).events()}))


@pytest.mark.parametrize("kind", ALL if SOAK else FEW)
def test_a_killed_process_leaves_every_synced_event(paths: SessionPaths, kind: str) -> None:
    """SIGKILL right behind a boundary: the log holds it, and everything before."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(paths.directory), kind],
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout:
        last = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.wait()
    contents = read_log(paths.events)
    assert [event.seq for event in contents.events][:last] == list(range(1, last + 1))
    assert contents.notes == ()
    assert not is_locked(paths)
