"""Whether a fork's last text is a report: not empty, no pointer to something else, right shape.

A shape is a JSON schema that the call asked for. `check_schema` looks at the schema before
anything starts, `problem` at the report. No schema is fetched and no pattern of one is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from forkdeck.errors import AdmissionRefused
from forkdeck.model.raw import JsonDict

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

ASK_AGAIN: Final = (
    "[report] {problem} Only your last message returns to the conversation that started you. "
    "Write the whole report now, as one message, without calling tools."
)
POINTER_CHARS: Final = 240
"""A pointer is short; a longer text is a report, whatever it mentions."""

SCHEMA_CHARS: Final = 32_768
SCHEMA_DEPTH: Final = 64
FAULT_CHARS: Final = 300

_POINTER = re.compile(
    r"\b(?:see|as|in|per) (?:the |my )?(?:\w+ )?"
    r"(?:above|previous(?:ly)?|earlier|prior)\b"
    r"|\b(?:report|summary|findings?) (?:is |are )?above\b",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)
_PATTERNS: Final = ("pattern", "patternProperties")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


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


@dataclass(frozen=True)
class Found:
    """The JSON value of a report: as it was written, without a fence, and decoded."""

    text: str
    value: Any


def value_in(text: str) -> Found | None:
    """Return the JSON value of a report: the last fenced one, or the whole text; None: none."""
    fenced: list[str] = _FENCE.findall(text)
    for candidate in (*reversed(fenced), text):
        try:
            value: Any = json.loads(candidate, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            continue
        return Found(candidate.strip(), value)
    return None


def longest(texts: Sequence[str]) -> str:
    """Return the longest of a run's own texts."""
    return max(texts, key=len, default="")


def check_schema(schema: JsonDict) -> None:
    """Check that a schema can be used; loads the validator, so call it off the loop.

    Raises:
        AdmissionRefused: It is no JSON schema (draft 2020-12), too large or too deep, or has
            references or patterns: either could run for ever.
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - only calls with a schema need it
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - as above

    if len(json.dumps(schema)) > SCHEMA_CHARS:
        raise _refused(f"it is larger than {SCHEMA_CHARS} characters")
    _walk(schema, SCHEMA_DEPTH)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise _refused(_one_line(error.message)) from error


def mismatch(value: Any, schema: JsonDict) -> str:
    """Return how a JSON value breaks a schema, the first fault in reading order, or nothing."""
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415 - as above

    try:
        _validator(json.dumps(schema)).validate(value)  # pyright: ignore[reportUnknownMemberType] - the library's own type is partial
    except ValidationError as error:
        where = error.json_path if error.json_path != "$" else "the value"
        return f"{where}: {_one_line(error.message)}"
    return ""


@lru_cache(maxsize=16)
def _validator(schema: str) -> Validator:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - as above
    from referencing import Registry  # noqa: PLC0415 - as above

    # An empty registry of its own: a reference that leads elsewhere is never fetched.
    registry: Registry[Any] = Registry()
    return Draft202012Validator(json.loads(schema), registry=registry)


def _schema_problem(text: str, schema: JsonDict) -> str:
    found = value_in(text)
    if found is None:
        return f"A JSON value of this shape was asked for: {json.dumps(schema)[:2000]}"
    wrong = mismatch(found.value, schema)
    return f"The JSON does not fit the asked shape: {wrong}." if wrong else ""


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _walk(value: Any, depth: int) -> None:
    """Refuse what must not be evaluated, wherever it stands."""
    if depth <= 0:
        raise _refused(f"it is nested more than {SCHEMA_DEPTH} deep")
    if isinstance(value, dict):
        for key, item in cast("JsonDict", value).items():
            if key in _PATTERNS and isinstance(item, str | dict):
                raise _refused(f"{key} is not supported, since a pattern could run for ever")
            if key in _REFERENCES and isinstance(item, str):
                raise _refused(f"{key} is not supported; write the part out where it is used")
            _walk(item, depth - 1)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            _walk(item, depth - 1)


def _refused(why: str) -> AdmissionRefused:
    return AdmissionRefused(f"output_schema: {why}.", "Send a plain JSON schema (draft 2020-12).")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:FAULT_CHARS].rstrip(".")
