"""Templates of scenario texts: what was asked, and what the tools really answered.

Used by the script player. ``{{task}}``, ``{{prompt}}``, ``{{handle}}`` and ``{{name}}`` stand
for the conversation; ``{{LABEL}}`` for the result of the call with that label, ``{{LABEL ~
REGEX}}`` for the first match in it (its first group, when it has one) and ``{{LABEL # REGEX}}``
for the number of matches. What is not there becomes ``(not found)``: a script never invents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from forkdeck.errors import ConfigError
from forkdeck.model.raw import JsonDict

ABSENT: Final = "(not found)"
_HOLE: Final = re.compile(r"\{\{\s*([A-Za-z_][\w-]*)\s*(?:([~#])\s*(.+?)\s*)?\}\}(?!\})", re.DOTALL)
_CONDITION: Final = re.compile(r"([A-Za-z_][\w-]*)\s*~\s*(.+)\Z", re.DOTALL)


def fill(template: str, words: Mapping[str, str]) -> str:
    """Fill a template from named texts."""

    def one(hole: re.Match[str]) -> str:
        name, operator, pattern = hole.groups()
        value = words.get(name)
        if value is None:
            return ABSENT if operator != "#" else "0"
        if operator is None:
            return value
        if operator == "#":
            return str(len(re.findall(pattern, value, re.MULTILINE)))
        found = re.search(pattern, value, re.MULTILINE)
        if found is None:
            return ABSENT
        return (found[1] if found.re.groups else found[0]) or ABSENT

    return _HOLE.sub(one, template)


def fill_all(value: Any, words: Mapping[str, str]) -> Any:
    """Fill every string of a JSON value; keys and numbers stay as they are."""
    if isinstance(value, str):
        return fill(value, words)
    if isinstance(value, dict):
        fields = cast("JsonDict", value)
        return {key: fill_all(item, words) for key, item in fields.items()}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [fill_all(item, words) for item in items]
    return value


def holds(condition: str, words: Mapping[str, str]) -> bool:
    """Tell whether ``LABEL ~ REGEX`` holds; a missing result never matches."""
    parts = _CONDITION.match(condition)
    if parts is None:
        return False
    value = words.get(parts[1])
    return value is not None and re.search(parts[2], value, re.MULTILINE) is not None


def check(template: str, where: str) -> None:
    """Check the regular expressions of a template.

    Raises:
        ConfigError: One does not compile.
    """
    for hole in _HOLE.finditer(template):
        if hole[3] is not None:
            compiled(hole[3], where)


def check_condition(condition: str, where: str) -> None:
    """Check a condition's form.

    Raises:
        ConfigError: It is not ``LABEL ~ REGEX``.
    """
    parts = _CONDITION.match(condition)
    if parts is None:
        raise ConfigError(f"{where}: a condition reads LABEL ~ REGEX, not {condition!r}.")
    compiled(parts[2], where)


def compiled(pattern: str, where: str) -> re.Pattern[str]:
    """Compile a regular expression of a scenario; case does not matter.

    Raises:
        ConfigError: It does not compile.
    """
    try:
        return re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    except re.error as wrong:
        raise ConfigError(f"{where}: {pattern!r} is no regular expression: {wrong}.") from wrong
