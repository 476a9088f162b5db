"""The house rules that no linter checks: sizes, pairs of files, words that do not belong."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = sorted(
    path
    for path in (ROOT / "forkdeck").rglob("*.py")
    if "sample" not in path.relative_to(ROOT).parts
)
STYLES = sorted((ROOT / "forkdeck").rglob("*.tcss"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PRODUCT, ids=name)
def test_files_are_short_and_documented(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= 400
    assert ast.get_docstring(ast.parse(source)), "every module says what it owns"


@pytest.mark.parametrize("path", STYLES, ids=name)
def test_styles_use_theme_variables_only(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    colours = [
        line for line in source.splitlines() if re.search(r":[^;]*#[0-9a-fA-F]{3,8}\b", line)
    ]
    assert not colours
    assert not re.search(r"(^|[\s,>])\*\s*[:{]", source), "no universal selector"
    assert source.count("\n") <= 150


def test_every_tool_has_its_text() -> None:
    tools = ROOT / "forkdeck" / "tools"
    texts = {path.stem for path in tools.glob("*.md")}
    assert {"read", "bash", "grep", "find", "ls", "edit", "write"} <= texts
    assert {"fork_join", "fork", "agent"} <= texts


def test_broad_excepts_stand_at_few_doors() -> None:
    doors = [
        f"{name(path)}: {line.strip()}"
        for path in PRODUCT
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"except Exception\b", line)
    ]
    undocumented = [door for door in doors if "noqa: BLE001" not in door]
    assert not undocumented, undocumented


def test_no_unfinished_marks() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    found = [name(path) for path in PRODUCT if marks.search(path.read_text(encoding="utf-8"))]
    assert not found
