"""Claims of a report against what the fork did; never a claim against a sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forkdeck.engine.claims import Claims, FileFact, check, named_files
from forkdeck.model.events.fork import ClaimsChecked
from forkdeck.model.items import Item, ToolFacts
from forkdeck.model.shared_list import SharedList
from forkdeck.model.state import RunState
from forkdeck.model.tooling import ToolResult
from forkdeck.plain.words import lines_of
from tests.engine.fakes import Asked, Reply
from tests.engine.rig import Rig, join, parent_then


def ran(*tools: tuple[str, str, str, int | None]) -> RunState:
    """A fork that made these calls: name, argument, status, exit code."""
    items = [
        Item(
            kind="tool",
            at_ms=0,
            tool=ToolFacts(
                call=str(n), name=name, argument=argument, started_at_ms=0,
                status=status, exit_code=code,  # type: ignore[arg-type]
            ),
        )
        for n, (name, argument, status, code) in enumerate(tools)
    ]  # fmt: skip
    return RunState(run="f1", transcript=SharedList(items))


def claims(
    report: str,
    run: RunState | None = None,
    *,
    write: bool = False,
    changed: tuple[str, ...] = (),
    files: dict[str, FileFact] | None = None,
) -> Claims:
    return check(report, run or ran(), write=write, changed=changed, files=files or {}, root="/w")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Nothing is wrong and/or missing, e.g. in 24/7 use; see https://docs.example/a/b.html.",
        "You should run `make test` before a release. I did not run `pytest`.",
        "If `pytest -q` fails, look at the log. It could be that tests pass elsewhere.",
        "`Decimal.quantize` rounds half even; `a/b` is a ratio.",
        "Files changed: none",
    ],
)
def test_a_sentence_is_no_claim(text: str) -> None:
    """What cannot be checked is not counted, so a flag means something."""
    assert claims(text) == Claims(0, ())


def test_named_files_are_listed_with_their_highest_line() -> None:
    """Fields, places and code in backticks count; each once."""
    report = (
        "Result: `src/a.py` rounds at src/a.py:12.\nKey files: src/a.py:40, b.toml\nIssues: c.py"
    )
    assert named_files(report) == [("src/a.py", 40), ("b.toml", None)]


def test_files_must_exist_and_have_such_a_line() -> None:
    """T27, FORKS "claim check": files named exist; a bare name that is not found is not judged."""
    report = "Key files: src/a.py:12, src/gone.py:1, src/short.py:9, nowhere.py"
    facts = {
        "src/a.py": FileFact(True, 40),
        "src/gone.py": FileFact(False),
        "src/short.py": FileFact(True, 3),
        "nowhere.py": FileFact(False),
    }
    found = claims(report, files=facts)
    assert (found.checked, found.verified) == (3, 1)
    assert found.unverified == (
        "names src/gone.py, which does not exist",
        "src/short.py:9 is past the end (3 lines)",
    )
    assert claims("Key files: a.py", ran(("read", "deep/a.py:3", "ok", None))).verified == 1


def test_files_changed_is_what_changed() -> None:
    """No more and no less, also with absolute paths and names without a suffix."""
    report = "Files changed: /w/src/a.py, `b.py`, Makefile\nIssues: none"
    good = claims(report, write=True, changed=("src/a.py", "b.py", "Makefile"))
    assert good.unverified == ()
    bad = claims(report, write=True, changed=("src/a.py", "c.py"))
    assert bad.unverified == (
        "says b.py was changed, but it was not",
        "does not name c.py, which changed",
    )
    silent = claims("Files changed: none", write=True, changed=("x.py",))
    assert silent.unverified == ("says no file changed, but x.py did",)
    assert claims("Files changed: none", write=True) == Claims(1, ())
    assert claims("Files changed: src/a.py").unverified != ()


def test_commands_must_have_run_and_ended_as_told() -> None:
    """Named commands, their exit codes, and tests that nobody ran."""
    run = ran(
        ("bash", "cd x &&  pytest   -q tests", "error", 1),
        ("bash", "ruff check .", "ok", 0),
        ("bash", "make docs", "denied", None),
    )
    report = (
        "Result: I ran `pytest -q tests` and it passed. `ruff check .` is clean.\n"
        "I ran `make docs`. All tests pass.\nI ran `ruff check .` and it failed."
    )
    assert claims(report, run).unverified == (
        "says `pytest -q tests` passed, but it ended with exit 1",
        "says `make docs` was run, but it was not",
        "says that tests pass, but the last run ended with exit 1",
    )
    assert claims("Tests pass.").unverified == ("says that tests pass, but no test was run",)
    good = ran(("bash", "python -m pytest -q", "ok", 0))
    assert claims("All tests pass. I ran `pytest -q`.", good) == Claims(2, ())


def test_a_hostile_report_is_looked_at_quickly() -> None:
    """Long runs of anything end; the claims are bounded."""
    for text in ("a" * 200_000, "a/" * 60_000, "a.a" * 60_000, "`" * 90_000, "ran. " * 20_000):
        assert claims("Key files: " + text).checked <= 60


async def test_the_check_is_told_to_the_parent_the_log_and_the_person(rig: Rig) -> None:
    """UNVERIFIED n in the state, a line for the parent, result.json and plain lines."""
    report = (
        "Scope: all\nResult: I ran `pytest -q` and it passed.\n"
        "Key files: a.py:1, src/none.py:3\nFiles changed: none"
    )

    def bash(*_: Any) -> ToolResult:
        return ToolResult(content="2 failed", status="error", exit_code=1)

    rig.tools["bash"].behaviour = bash

    def child(asked: Asked) -> Reply:
        if asked.number == 1:
            return Reply("", [("bash", {"command": "pytest -q"})])
        return Reply(report)

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    found = rig.fork("f1").claims
    assert found is not None
    assert (found.checked, found.verified) == (3, 1)
    assert rig.fork("f1").outcome == "done"
    event = rig.sink.of(ClaimsChecked, "f1")[0]
    assert event.unverified == (
        "names src/none.py, which does not exist",
        "says `pytest -q` passed, but it ended with exit 1",
    )
    assert (
        "(1 of 3 claims of this report checked out. Not verified: " in (rig.results()[0]["content"])
    )
    on_disk = json.loads((rig.directory / "forks" / "f1" / "result.json").read_text())
    assert on_disk["claims"] == {
        "checked": 3, "verified": 1, "unverified": list(event.unverified)
    }  # fmt: skip
    lines = lines_of(event, rig.state)
    assert (lines[0].word, lines[0].text.splitlines()[0]) == ("CHECK", "1 of 3 claims confirmed")


async def test_inherited_work_is_not_the_forks(rig: Rig) -> None:
    """T50: the parent's test run does not verify the fork's claim."""

    def script(asked: Asked) -> Reply:
        if asked.run == "p" and asked.number == 1:
            return Reply("", [("bash", {"command": "pytest -q"})])
        if asked.run == "p" and asked.number == 2:
            return join("a")
        return Reply("Result: I ran `pytest -q` and it passed.")

    rig.provider.script = script
    await rig.say()
    found = rig.fork("f1").claims
    assert found is not None
    assert found.unverified == ("says `pytest -q` was run, but it was not",)
