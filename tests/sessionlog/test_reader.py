"""Damaged logs: what can be read is read, the rest is named; a torn tail is kept aside."""

from __future__ import annotations

from pathlib import Path

import pytest

from forkdeck.errors import LogFormatError, SessionError
from forkdeck.model.events import UnknownEvent
from forkdeck.model.events.step import TextStreamed
from forkdeck.sessionlog.codec import encode
from forkdeck.sessionlog.logfile import make_private_directory
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.sessionlog.reader import NOTES_LIMIT, read_log, repair_tail
from forkdeck.sessionlog.writer import JsonlSink
from forkdeck.store.reducer import fold
from tests.store.recordings import Script, numbered, opened


def lines(count: int = 6) -> list[bytes]:
    events = numbered(
        [opened(), *(TextStreamed(index=0, text=f"ü😀{n}") for n in range(count - 1))]
    )
    return [encode(event) + b"\n" for event in events]


def write(path: Path, *parts: bytes) -> Path:
    path.write_bytes(b"".join(parts))
    return path


def test_a_whole_log_reads_without_a_note(tmp_path: Path) -> None:
    events = Script(4).events()
    path = write(tmp_path / "e", *(encode(event) + b"\n" for event in events))
    contents = read_log(path)
    assert contents.events == events
    assert (contents.unknown, contents.notes, contents.torn_bytes, contents.newer) == (
        0, (), 0, False,
    )  # fmt: skip
    assert fold(contents.events) == fold(events)


DAMAGE: dict[str, tuple[bytes, int, str]] = {
    "nul run": (b"\0" * 300 + b"\n", 0, "300 NUL bytes"),
    "bad utf-8": (b'{"type":"text.streamed","index":0,"text":"\xff"}\n', 0, "line 4"),
    "array": (b"[1,2]\n", 0, "line 4"),
    "junk": (b"hello\n", 0, "line 4"),
    "deep": (b'{"type":"x","v":' + b"[" * 5_000 + b"]" * 5_000 + b"}\n", 0, ""),
    "known type, wrong body": (b'{"type":"fork.ended","run":"f1"}\n', 0, "fork.ended"),
    "unknown type": (b'{"type":"later.thing","k":1}\n', 1, ""),
    "blank": (b"\n\r\n", 0, ""),
    "8 MB": (b'{"type":"text.streamed","index":0,"text":"' + b"a" * 8_000_000 + b'"}\n', 1, ""),
    "glued": (
        b'{"type":"text.streamed","index":0,"text":"a"}'
        b'{"type":"text.streamed","index":0,"text":"b"}\n', 2, "line 4"),
    "glued to a torn one": (
        b'{"type":"text.streamed","ind{"type":"text.streamed","index":0,"text":"b"}\n',
        1, "line 4"),
    "nul before": (b'\0\0{"type":"text.streamed","index":0,"text":"a"}\n', 1, "NUL bytes around"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_in_the_middle_is_skipped_and_named(tmp_path: Path, name: str) -> None:
    bad, found, words = DAMAGE[name]
    whole = lines()
    contents = read_log(write(tmp_path / "e", *whole[:3], bad, *whole[3:]))
    assert len([event for event in contents.events if event.seq]) == len(whole)
    extra = [event for event in contents.events if not event.seq]
    if name != "deep":  # either skipped or kept as unknown, by the depth of this interpreter
        assert len(extra) == found
        assert bool(contents.notes) == bool(words)
    assert words in " ".join(contents.notes)
    assert contents.torn_bytes == 0


def test_a_message_inside_a_glued_line_is_not_taken_for_an_event(tmp_path: Path) -> None:
    whole = lines(2)
    inner = (
        b'{"type":"message.finished","stop_reason":"","message":'
        b'{"role":"assistant","content":[{"type":"text","text":"x"}]}}'
    )
    contents = read_log(write(tmp_path / "e", *whole, inner, inner, b"\n"))
    assert [type(event).__name__ for event in contents.events] == [
        "SessionOpened", "TextStreamed", "MessageFinished", "MessageFinished",
    ]  # fmt: skip


def test_bom_and_crlf_are_read(tmp_path: Path) -> None:
    body = b"".join(lines()).replace(b"\n", b"\r\n")
    contents = read_log(write(tmp_path / "e", b"\xef\xbb\xbf" + body))
    assert len(contents.events) == 6
    assert contents.notes == ()


def test_lost_and_repeated_numbers_are_named(tmp_path: Path) -> None:
    whole = lines(8)
    contents = read_log(write(tmp_path / "e", *whole[:2], *whole[5:], whole[6]))
    assert contents.notes == (
        "line 3: events 3 to 5 are missing",
        "line 6: event 7 comes after event 8",
    )


def test_notes_are_counted_beyond_their_limit(tmp_path: Path) -> None:
    contents = read_log(write(tmp_path / "e", lines(1)[0], b"x\n" * 80))
    assert len(contents.notes) == NOTES_LIMIT + 1
    assert contents.notes[-1] == "and 30 more damaged places"


def test_a_newer_major_version_is_told(tmp_path: Path) -> None:
    line = encode(opened(format_version=2))
    contents = read_log(write(tmp_path / "e", line, b"\n", b'{"type":"new.thing"}\n'))
    assert contents.newer
    assert contents.unknown == 1
    assert isinstance(contents.events[1], UnknownEvent)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b'{"type":"text.streamed","index":0,"text":"a"}\n', "no session.opened"),
        (b"<html>\n", "no session.opened"),
        (b"half", "no session.opened"),
    ],
)
def test_a_file_that_is_no_log_is_refused_with_the_reason(
    tmp_path: Path, body: bytes, words: str
) -> None:
    with pytest.raises(LogFormatError, match=words):
        read_log(write(tmp_path / "e", body))


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="No such file"):
        read_log(tmp_path / "none")
    with pytest.raises(LogFormatError, match="directory"):
        read_log(tmp_path)


def test_a_log_cut_at_every_byte_of_its_last_lines_recovers(tmp_path: Path) -> None:
    whole = lines(6)
    body = b"".join(whole)
    kept = len(b"".join(whole[:3]))
    paths = SessionPaths(tmp_path)
    for cut in range(kept, len(body) + 1):
        paths.events.write_bytes(body[:cut])
        expected = body[:cut].count(b"\n")
        # A record that only lacks its line end is whole.
        if any(cut == len(b"".join(whole[:n])) - 1 for n in range(1, 7)):
            expected += 1
        contents = read_log(paths.events)
        assert len(contents.events) == expected, cut
        torn = repair_tail(paths)
        assert torn == contents.torn_bytes
        after = read_log(paths.events)
        assert after.events == contents.events
        assert after.torn_bytes == 0
        assert paths.events.read_bytes().endswith(b"\n")
        aside = list(tmp_path.glob("events.torn-*"))
        assert [path.read_bytes() for path in aside] == ([body[cut - torn : cut]] if torn else [])
        for path in aside:
            assert path.stat().st_mode & 0o777 == 0o600
            path.unlink()


async def test_a_torn_log_is_repaired_at_opening_and_goes_on(tmp_path: Path) -> None:
    whole = lines(3)
    paths = SessionPaths(tmp_path / "s")
    make_private_directory(paths.directory)
    paths.events.write_bytes(b"".join(whole)[:-5])
    sink = JsonlSink.open(paths)
    assert sink.kept_aside_bytes == len(whole[-1]) - 5
    sink.put(TextStreamed(seq=3, index=0, text="again"))
    await sink.close()
    contents = read_log(paths.events)
    assert [event.seq for event in contents.events] == [1, 2, 3]
    assert contents.notes == ()


def test_a_log_that_cannot_be_repaired_says_so(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="cannot be repaired"):
        repair_tail(SessionPaths(tmp_path))


def test_the_tail_of_a_long_torn_line_is_found(tmp_path: Path) -> None:
    paths = SessionPaths(tmp_path)
    whole = b"".join(lines(2))
    paths.events.write_bytes(whole + b"x" * 300_000)
    assert repair_tail(paths) == 300_000
    assert repair_tail(paths) == 0
    assert paths.events.read_bytes() == whole
