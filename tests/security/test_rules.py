"""What an allow rule must not be talked into."""

from __future__ import annotations

import time

import pytest

from forkdeck.config.command import parse
from forkdeck.config.keys import BY_NAME
from forkdeck.config.rules import Rule, judge


@pytest.mark.parametrize(
    "command",
    [
        "find . {-exec,touch,x,\\;}",
        "find . -{exec,print} touch x \\;",
        "find . -exe? touch x \\;",
        "find . ?exec touch x \\;",
        "find . [-]exec touch x \\;",
        "find . *",
        "find . {1..9}",
    ],
)
def test_expansions_that_become_options_are_not_allowed(command: str) -> None:
    assert judge([Rule.parse("bash(find .)", "allow")], "bash", {"command": command}).kind is None


@pytest.mark.parametrize("command", ["find . -name '*.py'", "find . '{a,b}'", "find . src/*.py"])
def test_quoted_and_plain_patterns_still_are(command: str) -> None:
    judged = judge([Rule.parse("bash(find .)", "allow")], "bash", {"command": command})
    assert judged.kind == "allow"


def test_a_command_of_megabytes_costs_nothing() -> None:
    began = time.monotonic()
    assert parse("a b ; " * 3_000_000).barred == "too long to be run"
    assert time.monotonic() - began < 1


def test_an_amount_with_a_million_digits_is_not_kept() -> None:
    amount = BY_NAME["forks.budget_usd"].read("1E-999999")
    assert len(f"{amount:f}") < 20
