"""The list of sessions: summaries, broken sessions, finding by name, and speed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from forkdeck.errors import SessionError
from forkdeck.model.events import Event
from forkdeck.model.events.fork import ForkEnded, ForkQueued
from forkdeck.model.events.session import SessionRenamed
from forkdeck.sessionlog import catalogue
from forkdeck.sessionlog.catalogue import find_session, list_sessions, summarise, write_summary
from forkdeck.sessionlog.codec import encode
from forkdeck.sessionlog.paths import SessionPaths, session_directory, state_root
from forkdeck.store.reducer import fold
from tests.store.recordings import Script, numbered, opened


def save(root: Path, number: int, events: list[Event], project: str = "/w/orders") -> SessionPaths:
    paths = SessionPaths(
        session_directory(root, project, f"20261130-2022{number % 60:02}-{number:06x}")
    )
    paths.directory.mkdir(parents=True)
    paths.events.write_bytes(b"".join(encode(event) + b"\n" for event in events))
    os.utime(paths.events, ns=(10**18 + number * 10**9, 10**18 + number * 10**9))
    return paths


def session(title: str = "count the stars") -> list[Event]:
    return numbered(
        [
            opened(),
            SessionRenamed(title=title),
            *(
                ForkQueued(
                    run=f"f{n}", batch="b", index=n, name="n", task="t", seed="none", from_run="p",
                    depth=1,
                )
                for n in (1, 2, 3)
            ),
            ForkEnded(run="f1", outcome="done", reason="end_turn", report="r"),
            ForkEnded(run="f2", outcome="failed", reason="429"),
        ]
    )  # fmt: skip


def test_paths_are_made_of_safe_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKDECK_STATE_DIR", str(tmp_path))
    assert state_root() == tmp_path
    one = session_directory(tmp_path, "/w/My Project", "20261130-202200-1f3a9c")
    other = session_directory(tmp_path, "/v/My Project", "20261130-202200-1f3a9c")
    assert one.parent.name.startswith("my-project-")
    assert one.parent != other.parent
    assert one.parts[-3] == "sessions"
    for bad in ("", "../x", "latest", "20261130-202200-1f3a9c/.."):
        with pytest.raises(SessionError):
            session_directory(tmp_path, "/w", bad)
    paths = SessionPaths(one)
    assert paths.report("f3") == one / "forks" / "f3" / "report.md"
    assert paths.result("f12") == one / "forks" / "f12" / "result.json"
    for bad in ("p", "../f1", "f0", "f1/..", ""):
        with pytest.raises(SessionError):
            paths.report(bad)


def test_a_summary_says_what_the_log_says(tmp_path: Path) -> None:
    paths = save(tmp_path, 1, session())
    (row,) = list_sessions(tmp_path)
    assert row == summarise(paths, fold(session()))
    assert (row.title, row.project, row.branch) == ("count the stars", "orders", "main")
    assert (row.forks, row.new, row.failed, row.interrupted, row.asks) == (3, 1, 1, 0, 0)
    assert row.cost_usd == "0"
    assert row.log_bytes == paths.events.stat().st_size
    assert row.updated_at == "2001-09-09T01:46:41+00:00"
    assert json.loads(paths.summary.read_bytes())["title"] == "count the stars"
    assert paths.summary.stat().st_mode & 0o777 == 0o600


def test_a_summary_is_read_until_its_log_is_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = save(tmp_path, 1, session())
    assert list_sessions(tmp_path)[0].title == "count the stars"
    reads: list[Path] = []
    real = catalogue.read_log
    monkeypatch.setattr(catalogue, "read_log", lambda path: (reads.append(path), real(path))[1])
    assert list_sessions(tmp_path)[0].title == "count the stars"
    assert reads == []
    with paths.events.open("ab") as file:
        file.write(encode(SessionRenamed(seq=8, title="new")) + b"\n")
    assert list_sessions(tmp_path)[0].title == "new"
    assert reads == [paths.events]
    assert list_sessions(tmp_path)[0].title == "new"
    assert reads == [paths.events]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"session":"other"}', b"[" * 40_000])
def test_a_broken_summary_is_made_again(tmp_path: Path, body: bytes) -> None:
    paths = save(tmp_path, 1, session())
    paths.summary.write_bytes(body)
    assert list_sessions(tmp_path)[0].title == "count the stars"


def test_a_copied_summary_of_another_session_is_not_believed(tmp_path: Path) -> None:
    one, two = save(tmp_path, 1, session("one")), save(tmp_path, 2, session("two"))
    list_sessions(tmp_path)
    two.summary.write_bytes(one.summary.read_bytes())
    assert [row.title for row in list_sessions(tmp_path)] == ["two", "one"]


def test_broken_sessions_are_listed_as_such(tmp_path: Path) -> None:
    save(tmp_path, 1, session())
    empty = save(tmp_path, 2, [])
    junk = save(tmp_path, 3, [])
    junk.events.write_bytes(b"\0" * 900)
    (tmp_path / "sessions" / "stray.txt").write_text("x")
    (junk.directory.parent / "not-an-id").mkdir()
    (junk.directory.parent / "20261130-202200-aaaaaa").mkdir()  # no log in it
    rows = {row.session: row for row in list_sessions(tmp_path)}
    assert len(rows) == 3
    assert "is empty" in rows[empty.session].title
    assert "no ForkDeck session log" in rows[junk.session].title
    assert rows[junk.session].log_bytes == 900
    assert list_sessions(tmp_path / "none") == []


def test_the_last_used_comes_first(tmp_path: Path) -> None:
    for number in range(1, 5):
        save(tmp_path, number, session(f"s{number}"), project=f"/w/p{number % 2}")
    old = find_session(tmp_path, "20261130-202201")
    os.utime(old.events)
    assert [row.title for row in list_sessions(tmp_path)] == ["s1", "s4", "s3", "s2"]
    assert [row.title for row in list_sessions(tmp_path, 2)] == ["s1", "s4"]


def test_a_thousand_sessions_are_listed_fast(tmp_path: Path) -> None:
    events = session()
    for number in range(1_000):
        write_summary(save(tmp_path, number, events), fold(events))
    begin = time.process_time()
    rows = list_sessions(tmp_path, 1_000)
    assert len(rows) == 1_000
    assert time.process_time() - begin < 0.5


def test_a_summary_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    paths = save(tmp_path, 1, session())
    paths.summary.mkdir()
    assert list_sessions(tmp_path)[0].title == "count the stars"
    assert [path.name for path in paths.directory.iterdir() if path.name.startswith(".")] == []


def test_sessions_are_found_by_id_prefix_and_path(tmp_path: Path, monkeypatch) -> None:
    one, two = save(tmp_path, 1, session()), save(tmp_path, 2, session())
    assert find_session(tmp_path, one.session) == one
    assert find_session(tmp_path, "20261130-202202") == two
    assert find_session(tmp_path, str(one.directory)) == one
    assert find_session(tmp_path, one.events) == one
    other = tmp_path / "saved run.jsonl"
    other.write_bytes(one.events.read_bytes())
    assert find_session(tmp_path, other).events == other
    monkeypatch.chdir(tmp_path)
    assert find_session(tmp_path, "saved run.jsonl").events == other
    with pytest.raises(SessionError, match="2 sessions begin"):
        find_session(tmp_path, "2026")
    with pytest.raises(SessionError, match="no session 'zzz'"):
        find_session(tmp_path, "zzz")
    with pytest.raises(SessionError, match="no file"):
        find_session(tmp_path, "./zzz.jsonl")
    with pytest.raises(SessionError, match="holds no session log"):
        find_session(tmp_path, str(tmp_path / "sessions"))


def test_cost_is_left_out_when_part_of_it_has_no_price(tmp_path: Path) -> None:
    from decimal import Decimal

    from forkdeck.model.events.step import UsageReported
    from forkdeck.model.usage import Usage

    def usage(cost: str | None) -> UsageReported:
        return UsageReported(
            usage=Usage(input_tokens=1), model="m", cost_usd=Decimal(cost) if cost else None
        )

    paths = save(tmp_path, 1, session())
    known = fold([opened(), usage("0.10"), usage("0.20")])
    assert summarise(paths, known).cost_usd == "0.3"
    assert summarise(paths, fold([usage(None)], known)).cost_usd is None


@pytest.mark.parametrize("cut", range(1, 150, 7))
def test_a_dead_session_is_closed_for_going_on(cut: int) -> None:
    from forkdeck.sessionlog.interrupted import closing_events
    from forkdeck.store import selectors

    state = fold(Script(6).events()[:cut])
    living, running = selectors.living(state), state.parent.turn.running
    events = closing_events(state)
    after = fold(events, state)
    assert selectors.living(after) == []
    assert not after.parent.turn.running
    assert after.asks == ()
    assert all(batch.ended for batch in after.batches.values())
    assert all(after.forks[handle].status == "INTR" for handle in living)
    assert all(after.forks[handle].owed for handle in living)
    assert (after.parent.turn.outcome == "interrupted") == running
    assert closing_events(after) == []


def test_an_interrupted_fork_keeps_its_partial_text() -> None:
    from forkdeck.model.events.step import TextStreamed
    from forkdeck.sessionlog.interrupted import closing_events

    queued = session()[:5]
    streamed = [
        TextStreamed(run="f1", index=0, text="half an ans"),
        TextStreamed(run="f1", index=0, text="wer"),
    ]
    (first, *_), state = closing_events(fold([*queued, *streamed])), fold([*queued, *streamed])
    assert isinstance(first, ForkEnded)
    assert (first.run, first.outcome, first.report) == ("f1", "interrupted", "half an answer")
    items = fold([first], state).runs["f1"].transcript
    assert [item.kind for item in items] == ["report", "notice"]
    assert items[0].text == "half an answer"
