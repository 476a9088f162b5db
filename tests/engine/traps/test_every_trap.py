"""Every trap has a test that names it in its docstring; this table finds the gaps."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
NUMBERS = [*range(1, 28), *range(30, 46), *range(50, 80)]
"""The traps of seeds, recursion, cache, runs and results; numbers between were never given."""


@cache
def table() -> dict[int, list[str]]:
    """Return trap number → tests whose docstring begins with it."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            lead = re.match(r"T\d+(?:, T\d+)*:", ast.get_docstring(node) or "")
            if node.name.startswith("test_") and lead:
                for number in re.findall(r"T(\d+)", lead[0]):
                    found[int(number)].append(f"{path.relative_to(TESTS)}::{node.name}")
    return found


@pytest.mark.parametrize("number", NUMBERS)
def test_trap_is_covered(number: int) -> None:
    assert table()[number], f"no test names T{number}"
