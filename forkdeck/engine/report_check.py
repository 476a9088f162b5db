"""Whether a fork's last text is a report: not empty, no pointer to something else, right shape."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from forkdeck.model.raw import JsonDict

ASK_AGAIN = (
    "[report] {problem} Only your last message returns to the conversation that started you. "
    "Write the whole report now, as one message, without calling tools."
)
POINTER_CHARS = 240
"""A pointer is short; a longer text is a report, whatever it mentions."""

_POINTER = re.compile(
    r"\b(?:see|as|in|per) (?:the |my )?(?:\w+ )?"
    r"(?:above|previous(?:ly)?|earlier|prior)\b"
    r"|\b(?:report|summary|findings?) (?:is |are )?above\b",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def problem(text: str, schema: JsonDict | None) -> str:
    """Return what is wrong with a report in one sentence, or nothing when it will do."""
    stripped = text.strip()
    if not stripped:
        return "Your last message holds no text."
    if schema is not None:
        return _schema_problem(stripped, schema)
    if len(stripped) <= POINTER_CHARS and _POINTER.search(stripped):
        return "Your last message only points to something else."
    return ""


def longest(texts: Sequence[str]) -> str:
    """Return the longest of a run's own texts."""
    return max(texts, key=len, default="")


def _schema_problem(text: str, schema: JsonDict) -> str:
    fenced = _FENCE.findall(text)
    for candidate in (*reversed(fenced), text):
        try:
            value: Any = json.loads(candidate)
        except ValueError:
            continue
        wrong = mismatch(value, schema, "the value")
        return f"The JSON does not fit the asked shape: {wrong}." if wrong else ""
    return f"A JSON value of this shape was asked for: {json.dumps(schema)[:2000]}"


def mismatch(value: Any, schema: JsonDict, where: str) -> str:
    """Return how a JSON value breaks a schema, or nothing.

    Knows ``type``, ``enum``, ``const``, ``required``, ``properties``, ``additionalProperties``
    (as a boolean), ``items``, ``minItems`` and ``maxItems``; other keywords are not checked.
    """
    kind = schema.get("type")
    kinds: list[str] = [kind] if isinstance(kind, str) else cast("list[str]", kind or [])
    if kinds and not any(_is(value, each) for each in kinds):
        return f"{where} is not of type {' or '.join(kinds)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is none of the allowed values"
    if "const" in schema and value != schema["const"]:
        return f"{where} is not the one allowed value"
    if isinstance(value, dict):
        return _object_mismatch(cast("JsonDict", value), schema, where)
    if isinstance(value, list):
        return _array_mismatch(cast("list[Any]", value), schema, where)
    return ""


def _object_mismatch(value: JsonDict, schema: JsonDict, where: str) -> str:
    known: JsonDict = schema.get("properties") or {}
    for name in cast("list[str]", schema.get("required") or []):
        if name not in value:
            return f"{where} has no {name}"
    for name, each in value.items():
        if name in known:
            wrong = mismatch(each, known[name], f"{where}.{name}")
            if wrong:
                return wrong
        elif schema.get("additionalProperties") is False:
            return f"{where} may not have {name}"
    return ""


def _array_mismatch(value: list[Any], schema: JsonDict, where: str) -> str:
    if len(value) < schema.get("minItems", 0):
        return f"{where} has too few items"
    if len(value) > schema.get("maxItems", len(value)):
        return f"{where} has too many items"
    items: Any = schema.get("items")
    if isinstance(items, dict):
        for index, each in enumerate(value):
            wrong = mismatch(each, cast("JsonDict", items), f"{where}[{index}]")
            if wrong:
                return wrong
    return ""


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, (object,)))
