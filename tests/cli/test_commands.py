"""Every command's help, the version, wrong words, and the commands that only look."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from forkdeck import __version__
from forkdeck.cli.commands import forkdeck
from forkdeck.cli.saved_work import told_columns
from tests.program import Program, eventually, git, no_traceback

COMMANDS = sorted(forkdeck.commands)


def test_the_version_in_both_spellings(keyless: Program) -> None:
    for flag in ("--version", "-V"):
        done = keyless.run(flag)
        assert (done.code, done.out, done.err) == (0, f"forkdeck {__version__}\n", "")


def test_the_help_names_every_command(keyless: Program) -> None:
    done = keyless.run("--help")
    assert (done.code, done.err) == (0, "")
    for command in COMMANDS:
        assert f"\n  {command} " in done.out
    assert '\n  forkdeck run "PROMPT"   do one job without a terminal\n' in done.out, "as a table"
    assert "..." not in done.out.split("Commands:")[1], "no summary is cut"
    assert max(map(len, done.lines)) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself_and_every_flag(command: str) -> None:
    import click

    found = forkdeck.commands[command]
    assert found.help
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{command} {parameter.name}"


def test_help_starts_nothing(keyless: Program) -> None:
    for words in (["run", "--help"], ["demo", "-h"], ["rehearsal", "--help"]):
        done = keyless.run(*words)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"Usage: forkdeck {words[0]}")
    assert not keyless.state.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sesions"], "No such command 'sesions'. Did you mean 'sessions'?"),
        (["nonsense"], "No such command 'nonsense'."),
        (["--resum", "x"], "No such option '--resum'. Did you mean '--resume'?"),
        (["--mode", "plann"], "'plann' is not one of 'plan', 'default', 'accept-edits', 'auto'"),
        (["--mode", "plan", "run", "x"], "forkdeck run --mode"),
        (["--continue", "sessions"], "--continue is for the deck; `forkdeck sessions` has no such"),
        (["sessions", "--limit", "none"], "'none' is not a valid integer"),
        (["sessions", "--limit", "0"], "0 is not in the range x>=1"),
        (["apply"], "Missing argument 'SESSION/FORK'"),
        (["apply", "x/f1", "--method", "rebase"], "'rebase' is not one of 'patch', 'cherry-pick'"),
        (["replay", "a", "b"], "Got unexpected extra argument (b)"),
        (["rehearsal", "--port", "99999"], "--port 99999 is out of range."),
        (["rehearsal", "--scenario", "none.toml"], "none.toml cannot be read: No such file"),
        (
            ["rehearsal", "--scenario", "magic"],
            "built-in one: bench, demo, investigator, supervise",
        ),
        (["replay", "--plain"], "Which session?"),
        (["apply", "f1"], "'f1' names no fork's work."),
        ([], "ForkDeck's deck needs a terminal for input, output and errors."),
        (["replay", "20260101"], "ForkDeck's deck needs a terminal"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_words_are_exit_code_2(keyless: Program, words: list[str], told: str) -> None:
    done = keyless.run(*words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err


def test_a_taken_port(keyless: Program) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = keyless.run("rehearsal", "--port", str(port))
    assert (done.code, done.out) == (2, "")
    assert f"Port {port} cannot be used: Address already in use." in done.err
    assert "--port" in done.err


def test_a_scenario_that_is_wrong_names_the_place(keyless: Program) -> None:
    (keyless.project / "bad.toml").write_text('[[answer]]\nmatch = "x"\n')
    done = keyless.run("rehearsal", "--scenario", "bad.toml")
    assert done.code == 2
    assert "bad.toml answer 1: it has no [[answer.round]]" in done.err


def test_output_that_is_full_or_unread_is_said_or_silent(keyless: Program) -> None:
    for words in (["--version"], ["--help"], ["config"], ["sessions"]):
        with Path("/dev/full").open("wb") as full:
            done = keyless.run(*words, stdout=full)
        assert (done.code, "No space left on device" in done.err) == (1, True), words
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as unread:
            done = keyless.run(*words, stdout=unread)
        assert (done.code, done.err) == (1, ""), words


def test_the_config_shows_each_value_with_its_origin(keyless: Program) -> None:
    keyless.config.mkdir()
    (keyless.config / "config.toml").write_text('model = "mine"\n[forks]\nmax_concurrency = 2\n')
    done = keyless.run("config", env={"FORKDECK_FORKS__MAX_TURNS": "7"})
    assert (done.code, done.err) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in done.lines if line.strip()}
    assert rows["model"] == ["mine", str(keyless.config / "config.toml")]
    assert rows["forks.max_concurrency"][0] == "2"
    assert rows["forks.max_turns"] == ["7", "environment", "FORKDECK_FORKS__MAX_TURNS"]
    assert rows["mode"] == ["default", "default"]
    assert "forkdeck-contrast," in rows["themes"]


def test_the_doctor_gives_a_remedy_with_each_fault(keyless: Program) -> None:
    done = keyless.run("doctor", env={"PATH": "/nonexistent"})
    assert done.code == 1
    rows = {line.split()[1]: line for line in done.lines if line.startswith(("ok ", "no "))}
    assert set(rows) == {"key", "git", "sandbox", "prices", "search", "state", "project"}
    for name in ("key", "git", "sandbox", "search"):
        assert rows[name].startswith("no "), rows[name]
    assert "export ANTHROPIC_API_KEY" in done.out
    assert "apt install git" in done.out
    assert "ripgrep" in done.out


def test_the_doctor_does_not_promise_list_prices_elsewhere(program: Program) -> None:
    done = program.run("doctor")
    assert "no price known for claude-opus-5-5 at 127.0.0.1:" in done.out


def test_the_doctor_names_the_file_of_a_price_that_is_the_persons(program: Program) -> None:
    program.config.mkdir()
    file = program.config / "config.toml"
    file.write_text('[prices."claude-opus-5-5"]\ninput = 1\noutput = 2\n')
    done = program.run("doctor")
    assert f"claude-opus-5-5, yours from {file}" in done.out
    assert "genai-prices" not in done.out


def test_sessions_as_a_table_and_as_json(program: Program) -> None:
    assert program.run("sessions").out.startswith("No saved sessions in ")
    program.run("run", "say hello")
    program.run("run", "read the notes")
    table = program.run("sessions")
    assert table.code == 0
    ids = [log.parent.name for log in program.sessions()]
    assert [line.split()[0] for line in table.lines[1:3]] == ids[::-1]
    assert table.lines[1].endswith("read the notes")
    assert "–" in table.lines[1], "a cost that is not known is not $0.00"
    rows = [json.loads(line) for line in program.run("sessions", "--json").lines]
    assert [row["session"] for row in rows] == ids[::-1]
    assert len(program.run("sessions", "--json", "--limit", "1").lines) == 1


def test_a_replay_prints_what_the_run_printed(program: Program) -> None:
    done = program.run("run", "read the notes")
    log = program.log()
    for target in (log.parent.name, log.parent.name[:17], str(log), str(log.parent)):
        shown = program.run("replay", "--plain", target)
        assert (shown.code, shown.out, shown.err) == (0, done.err, "")


def test_the_demo_as_lines_ends_by_itself_and_leaves_nothing(keyless: Program) -> None:
    done = keyless.run("demo", "--plain")
    assert (done.code, done.err) == (0, "")
    assert "The model is scripted" in done.out
    assert "answered by the scenario's scripted person" in done.out
    assert "the sample's tests: OK" in done.out
    assert "forks      4, 4 done" in done.out
    assert "simulated at list price" in done.out
    assert not list((keyless.base / "tmp").iterdir())
    assert not keyless.state.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_demo_that_is_stopped_leaves_nothing(keyless: Program, number: signal.Signals) -> None:
    with keyless.started("demo", "--plain") as process:
        assert process.stdout is not None
        assert any(b"FORK" in line for line in process.stdout), "it forks before it ends"
        process.send_signal(number)
        _, err = process.communicate(timeout=15)
    no_traceback(err.decode())
    left = keyless.base / "tmp"
    if number is signal.SIGKILL:
        assert list(left.iterdir()), "nobody was there to tidy"
        assert keyless.run("demo", "--plain").code == 0, "the next demo tidies"
    else:
        assert process.returncode == (130 if number is signal.SIGINT else 143)
    assert not list(left.iterdir())


def test_worktrees_cleans_only_what_is_saved(program: Program) -> None:
    assert program.run("worktrees").out == ("No worktrees and no saved work in this repository.\n")
    assert program.run("worktrees", "--clean").out == "0 removed, 0 kept.\n"


def test_columns_of_which_nothing_is_known_are_left_out() -> None:
    table = [("work", "files", "size"), ("s/f1", "–", "–"), ("s/f2", "–", "1.0 MB")]
    assert told_columns(table) == [("work", "size"), ("s/f1", "–"), ("s/f2", "1.0 MB")]


@pytest.mark.needs_sandbox
def test_a_worktree_left_by_a_kill_is_listed_saved_and_cleaned(program: Program) -> None:
    with program.started("run", "fork and wait") as process:
        assert eventually(
            lambda: program.fork_wrote("from the fork"),
            20,
        )
        process.kill()
        process.wait()
    session = program.log().parent.name
    listed = program.run("worktrees")
    assert f"{session}/f2" in listed.out
    assert "unsaved" in listed.out
    cleaned = program.run("worktrees", "--clean")
    saved = git(program.project, "for-each-ref", "--format=%(refname)", "refs/forkdeck").split()
    work = [name for name in saved if f"{session}/f2/work/" in name]
    if work:
        assert "from the fork" in git(program.project, "show", f"{work[-1]}:notes.txt")
    else:
        assert "kept" in cleaned.err + cleaned.out
        assert program.fork_wrote("from the fork")
