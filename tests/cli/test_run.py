"""``forkdeck run`` against a scripted model in another process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.program import FORKDECK, KEY, Program, descendants, eventually, git, living, no_traceback


def test_the_answer_goes_to_stdout_and_progress_to_stderr(program: Program) -> None:
    done = program.run("run", "read the notes")
    assert (done.code, done.out) == (0, "The notes say: plum jam.\n")
    assert "YOU   read the notes" in done.err
    assert "RUN   read notes.txt" in done.err
    assert "END   session closed" in done.err


def test_json_lines_are_the_lines_of_the_log(program: Program) -> None:
    done = program.run("run", "--json", "read the notes")
    assert (done.code, done.err) == (0, "")
    events = [json.loads(line) for line in done.lines]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["type"], events[-1]["type"]) == ("session.opened", "session.closed")
    assert done.out == program.log().read_text()


@pytest.mark.needs_sandbox
def test_forks_work_and_their_work_is_applied(program: Program) -> None:
    done = program.run("run", "fork twice")
    assert (done.code, done.out) == (0, "Both forks are back.\n"), done.err
    assert "[f1 looker] DONE" in done.err
    assert "[f2 writer] DONE" in done.err
    session = program.log().parent.name
    command = f"forkdeck apply {session}/f2"
    assert f"work saved; apply it with: {command}" in done.err
    notes = program.project / "notes.txt"
    assert notes.read_text() == "plum jam\nquince jelly\n"

    listed = program.run("worktrees")
    assert (listed.code, f"{session}/f2" in listed.out) == (0, True)

    applied = program.run(*command.split()[1:])
    assert applied.code == 0, applied.err
    assert notes.read_text() == "plum cake\nquince jelly\n"
    assert "notes.txt" in applied.out
    assert "Applied 1 file. " in applied.out
    undo = applied.out.split()[-1]
    assert git(program.project, "show", f"{undo}:notes.txt") == "plum jam\nquince jelly\n"

    again = program.run(*command.split()[1:])
    assert (again.code, again.out) == (1, "")
    assert again.err == "forkdeck: Your tree already has all of this; nothing was written.\n"


@pytest.mark.needs_sandbox
def test_a_conflict_changes_nothing(program: Program) -> None:
    program.run("run", "fork twice")
    notes = program.project / "notes.txt"
    notes.write_text("plum brandy\nquince jelly\n")
    before = git(program.project, "status", "--porcelain")
    done = program.run("apply", f"{program.log().parent.name}/f2")
    assert (done.code, done.out) == (1, "")
    assert "notes.txt" in done.err
    assert notes.read_text() == "plum brandy\nquince jelly\n"
    assert git(program.project, "status", "--porcelain") == before


def test_a_denied_call_is_exit_code_3(program: Program) -> None:
    done = program.run("run", "touch a file")
    assert (done.code, done.out) == (3, "Tried.\n"), done.err
    assert not (program.project / "made.txt").exists()
    assert "bash touch made.txt" in done.err


@pytest.mark.needs_sandbox
def test_a_look_that_may_not_become_work_is_exit_code_3(program: Program) -> None:
    done = program.run("run", "touch without a word")
    assert "Read-only file system" in program.log().read_text()
    assert (done.code, done.out) == (3, "Tried.\n"), done.err
    assert not (program.project / "made.txt").exists()


@pytest.mark.needs_sandbox
@pytest.mark.parametrize("flags", [["--allow", "bash(touch made.txt)"], ["--mode", "auto"]])
def test_what_is_allowed_runs(program: Program, flags: list[str]) -> None:
    done = program.run("run", *flags, "touch a file")
    assert (done.code, done.out) == (0, "Tried.\n"), done.err
    assert (program.project / "made.txt").exists()


def test_plan_mode_denies_even_what_is_allowed(program: Program) -> None:
    done = program.run("run", "--mode", "plan", "touch a file")
    assert done.code == 3
    assert not (program.project / "made.txt").exists()


def test_forks_that_a_person_must_confirm_do_not_start_without_one(program: Program) -> None:
    program.config.mkdir(exist_ok=True)
    (program.config / "config.toml").write_text('[forks]\nplan = "confirm"\n')
    done = program.run("run", "fork twice")
    assert "forks.plan is confirm: a person confirms every launch, and nobody is" in done.err
    assert "[f1" not in done.err
    assert '"fork.queued"' not in program.log().read_text()


def test_a_failed_fork_is_exit_code_3(program: Program) -> None:
    done = program.run("run", "fork and fail")
    assert (done.code, done.out) == (3, "It failed.\n"), done.err
    assert "[f1 unlucky] FAIL" in done.err


def test_the_prompt_can_come_from_stdin(program: Program) -> None:
    done = program.run("run", "-", stdin=b"say hello\n")
    assert (done.code, done.out) == (0, "Hello from the script.\n")


def test_a_prompt_of_a_megabyte(program: Program) -> None:
    text = "All work and no play. " * 48_000 + "the end of the long prompt"
    assert len(text) > 1_000_000
    done = program.run("run", "-", stdin=text.encode())
    assert (done.code, done.out) == (0, "Read to the end.\n")
    assert len(done.err) < 10_000, "progress does not repeat a long prompt"
    assert text in json.dumps(program.log().read_text()), "the log holds it whole"


def test_a_prompt_that_is_no_text_is_sent_as_well_as_it_can_be(program: Program) -> None:
    done = program.run("run", "-", stdin=b"say hello \xff\xfe\x00\x1b[2J")
    assert (done.code, done.out) == (0, "Hello from the script.\n")
    assert "\x1b" not in done.err


@pytest.mark.parametrize(
    ("words", "stdin", "told"),
    [
        (["run"], None, "Missing argument 'PROMPT'"),
        (["run", ""], None, "The prompt is empty."),
        (["run", " \n "], None, "The prompt is empty."),
        (["run", "-"], b"", "The prompt is empty."),
        (["run", "-"], b"x" * 4_000_001, "The prompt is longer than 4 MB."),
        (["run", "--mode", "yolo", "hi"], None, "'yolo' is not one of"),
        (["run", "--budget-usd", "much", "hi"], None, "'much' in --budget-usd is not allowed"),
        (["run", "--budget-usd", "-1", "hi"], None, "--budget-usd is not allowed"),
        (["run", "--allow", "bash(", "hi"], None, 'The rule "bash(" cannot be read.'),
        (["run", "--cwd", "/no/such/place", "hi"], None, "/no/such/place cannot be found"),
        (["run", "--cwd", "notes.txt", "hi"], None, "is not a directory"),
        (["run", "--jsn", "hi"], None, "No such option '--jsn'. Did you mean '--json'?"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_wrong_usage_is_exit_code_2(
    program: Program, words: list[str], stdin: bytes | None, told: str
) -> None:
    done = program.run(*words, stdin=stdin)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert not program.sessions()


def test_a_budget_needs_a_known_price(program: Program) -> None:
    done = program.run("run", "--budget-usd", "0.50", "say hello")
    assert (done.code, done.out) == (2, "")
    assert "The budget of $0.50 cannot be kept: no price of claude-opus-5-5" in done.err
    assert '[prices."claude-opus-5-5"]' in done.err
    assert not program.sessions()


def test_a_budget_that_is_spent_stops_the_run(program: Program) -> None:
    program.config.mkdir()
    (program.config / "config.toml").write_text(
        '[prices."claude-opus-5-5"]\ninput = 1000\noutput = 1000\n'
    )
    done = program.run("run", "--budget-usd", "0.01", "say hello")
    assert (done.code, done.out) == (1, "")
    assert "The session's budget of $0.01 cannot pay another step." in done.err


def test_without_credentials_it_says_what_was_looked_for(keyless: Program) -> None:
    done = keyless.run("run", "say hello")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("forkdeck: No credentials: ANTHROPIC_API_KEY")
    assert "Set a key with export ANTHROPIC_API_KEY=" in done.err
    assert not keyless.sessions()


# --- streams ----------------------------------------------------------------------------------


def test_stdout_that_nobody_reads(program: Program) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = program.run("run", "--json", "read the notes", stdout=closed)
    assert done.code == 1
    assert "the session is saved" in done.err
    assert json.loads(program.log().read_text().splitlines()[-1])["type"] == "session.closed"


def test_stdout_that_is_full(program: Program) -> None:
    with Path("/dev/full").open("wb") as full:
        done = program.run("run", "read the notes", stdout=full)
    assert done.code == 1
    session = program.log().parent.name
    assert f"forkdeck replay --plain {session} prints it." in done.err
    assert "plum jam" in program.run("replay", "--plain", session).out


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(program: Program, closed: str) -> None:
    command = " ".join([*FORKDECK, "run", "'read the notes'", closed])
    done = subprocess.run(
        ["sh", "-c", command], cwd=program.project, env=program.environment, capture_output=True,
        text=True, timeout=30, check=False,
    )  # fmt: skip
    no_traceback(done.stderr)
    assert done.returncode == (1 if ">&-" in closed.replace("2>&-", "") else 0)
    if closed in ("<&-", "2>&-"):
        assert done.stdout == "The notes say: plum jam.\n"
    assert '"session.closed"' in program.log().read_text()


# --- signals ----------------------------------------------------------------------------------


@pytest.mark.needs_sandbox
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_saves_all_and_leaves_no_process(
    program: Program, number: signal.Signals, code: int
) -> None:
    with program.started("run", "fork and wait") as process:
        assert process.stderr is not None
        seen = ""
        while seen.count("RUN   bash") < 2:
            line = process.stderr.readline().decode()
            assert line, seen
            seen += line
        log = program.log()
        assert eventually(lambda: program.fork_wrote("from the fork"), 15)
        children = descendants(process.pid)
        assert children
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (code, b""), err
    no_traceback(err.decode())
    assert "forkdeck: interrupted; what was done so far is saved." in err.decode()
    assert eventually(lambda: not living(children)), "no child is left"
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert events[-1]["type"] == "session.closed"
    ended = {event["run"]: event["outcome"] for event in events if event["type"] == "fork.ended"}
    assert set(ended) == {"f1", "f2"}
    shown = program.run("replay", "--plain", log.parent.name)
    assert (shown.code, "Two forks that take their time." in shown.out) == (0, True)
    session = log.parent.name
    saved = git(program.project, "for-each-ref", "--format=%(refname)", "refs/forkdeck")
    work = [name for name in saved.split() if f"{session}/f2/work/" in name]
    assert "from the fork" in git(program.project, "show", f"{work[-1]}:notes.txt")
    assert git(program.project, "worktree", "list").count("\n") == 1
    assert (program.project / "notes.txt").read_text() == "plum jam\nquince jelly\n"


def test_a_signal_before_the_first_byte(program: Program) -> None:
    with program.started("run", "stay silent") as process:
        assert eventually(
            lambda: program.sessions() and '"request.sent"' in program.log().read_text()
        )
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (130, b"")
    no_traceback(err.decode())


# --- endpoints that are none ---------------------------------------------------------------


def test_a_key_that_is_refused(program: Program) -> None:
    done = program.run("run", "say hello", env={"ANTHROPIC_API_KEY": KEY})
    assert (done.code, done.out) == (1, "")
    assert "does not accept ANTHROPIC_API_KEY (HTTP 401)" in done.err
    assert "Check the key, set it and start forkdeck again." in done.err
    assert KEY not in done.err + program.log().read_text()


def test_a_model_that_does_not_exist(program: Program) -> None:
    done = program.run("run", "--model", "no-such-model", "say hello")
    assert (done.code, done.out) == (1, "")
    assert 'does not know the model "no-such-model"' in done.err
    assert "Choose another model" in done.err


def test_a_web_page_is_no_endpoint(program: Program, web_page: dict[str, str]) -> None:
    done = program.run("run", "say hello", env=web_page)
    assert (done.code, done.out) == (1, "")
    assert "answered with 'text/html" in done.err
    assert "a login page may stand before it" in done.err
    assert KEY not in done.err + program.log().read_text()


def test_nothing_listens_and_no_such_name(program: Program, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Program(tmp_path / "other", dict(program.more))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nothing = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{taken.getsockname()[1]}"}
        no_name = {"ANTHROPIC_BASE_URL": "http://no-such-host.invalid"}
        with (
            program.started("run", "say hello", env=nothing) as refused,
            other.started("run", "say hello", env=no_name) as unknown,
        ):
            assert unknown.stderr is not None
            seen = ""
            while "WAIT" not in seen:
                line = unknown.stderr.readline().decode()
                assert line, seen
                seen += line
            assert "The name in http://no-such-host.invalid cannot be looked up." in seen
            unknown.send_signal(signal.SIGINT)
            assert unknown.wait(10) == 130
            out, err = refused.communicate(timeout=50)
    assert (refused.returncode, out) == (1, b"")
    assert err.decode().count("WAIT") >= 2, "it is tried again"
    assert "refuses connections" in err.decode()
    assert "Check that the endpoint runs and that its address and port are right." in err.decode()


# --- tool output ----------------------------------------------------------------------------


@pytest.mark.needs_sandbox
def test_control_characters_reach_no_stream(program: Program) -> None:
    done = program.run("run", "print escapes")
    assert done.code == 0, done.err
    replayed = program.run("replay", "--plain", program.log().parent.name)
    everything = done.out + done.err + replayed.out
    assert "bidi" in program.log().read_text()
    for bad in ("\x1b", "\x07", "\x00", "\u202e"):
        assert bad not in everything
    assert "\x00" not in program.log().read_text()


@pytest.mark.needs_sandbox
def test_a_hundred_megabytes_of_output(program: Program) -> None:
    done = program.run("run", "print a lot")
    assert (done.code, done.out) == (0, "Done: last.\n"), done.err
    assert program.log().stat().st_size < 1_000_000
    spilled = list(program.log().parent.glob("spill/**/*"))
    assert any(path.stat().st_size > 99_000_000 for path in spilled if path.is_file())
