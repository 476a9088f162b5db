"""Checks a call's arguments against its tool's schema; errors name the field.

A small part of JSON Schema: what the built-in schemas use, and no more.
"""

from __future__ import annotations

from typing import Any, cast

from forkdeck.errors import ToolError
from forkdeck.model.raw import JsonDict

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def check(tool: str, schema: JsonDict, arguments: object) -> JsonDict:
    """Return the arguments without those that are null, once they fit the schema.

    Raises:
        ToolError: They do not fit; the message names the field and what it must be.
    """
    if not isinstance(arguments, dict):
        raise ToolError(f"{tool}: the arguments must be an object.")
    given = {
        str(name): value
        for name, value in cast("dict[Any, Any]", arguments).items()
        if value is not None
    }
    fields: JsonDict = schema["properties"]
    for name in given:
        if name not in fields:
            raise ToolError(f"{tool}: there is no argument {name!r}.", f"It takes {_list(fields)}.")
    for name in schema.get("required", ()):
        if name not in given:
            raise ToolError(f"{tool}: {name} is missing.", f"It takes {_list(fields)}.")
    for name, value in given.items():
        _check_value(f"{tool}: {name}", fields[name], value)
    return given


def _list(fields: JsonDict) -> str:
    return ", ".join(fields)


def _check_value(where: str, rule: JsonDict, value: Any) -> None:
    kind: str = rule["type"]
    is_number_like_bool = isinstance(value, bool) and kind in {"integer", "number"}
    if not isinstance(value, _TYPES[kind]) or is_number_like_bool:
        raise ToolError(f"{where} must be of type {kind}.")
    if "enum" in rule and value not in rule["enum"]:
        raise ToolError(f"{where} must be one of {', '.join(map(str, rule['enum']))}.")
    if "minimum" in rule and value < rule["minimum"]:
        raise ToolError(f"{where} must be at least {rule['minimum']}.")
    if "maximum" in rule and value > rule["maximum"]:
        raise ToolError(f"{where} must be at most {rule['maximum']}.")
    if isinstance(value, str) and len(value) < rule.get("minLength", 0):
        raise ToolError(f"{where} must not be empty.")
