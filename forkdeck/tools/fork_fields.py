"""Takes fields out of a fork call one by one, with their aliases; what is left over is unknown.

Used by `tools.fork_calls` only. Every refusal is an `AdmissionRefused` that names the field.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from forkdeck.errors import AdmissionRefused
from forkdeck.model.raw import JsonDict, clean_text

_MAX_TEXT = 200_000


class Fields:
    """The fields of one object of a call; null counts as not given.

    Args:
        tool: Tool name, for messages.
        where: Place of the object, such as ``tasks[0].``, or empty.
        value: The object.

    Raises:
        AdmissionRefused: It is no object.
    """

    def __init__(self, tool: str, where: str, value: object) -> None:
        self._tool = tool
        self._where = where
        if not isinstance(value, dict):
            raise self.refuse("", "must be an object")
        pairs = cast("dict[Any, Any]", value)
        self._left = {str(name): item for name, item in pairs.items() if item is not None}

    def refuse(self, name: str, why: str, remedy: str = "") -> AdmissionRefused:
        """Return the refusal of a field."""
        field = f"{self._where}{name}".rstrip(".") or "the arguments"
        return AdmissionRefused(f"{self._tool}: {field} {why}.", remedy)

    def take(self, name: str, *aliases: str) -> Any:
        """Return a field's value under any of its names, or None; it counts as known now.

        Raises:
            AdmissionRefused: It is given under two names with different values.
        """
        value: Any = None
        first = ""
        for alias in (name, *aliases):
            if alias not in self._left:
                continue
            other = self._left.pop(alias)
            if first and other != value:
                raise self.refuse(alias, f"contradicts {first}")
            value, first = other, first or alias
        return value

    def text(self, name: str, *aliases: str, limit: int = 200) -> str | None:
        """Return a text that is not blank, or None.

        Raises:
            AdmissionRefused: It is no text, blank, or too long.
        """
        value = self.take(name, *aliases)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.refuse(name, "must be a text")
        value = clean_text(value)
        if not value.strip():
            raise self.refuse(name, "must not be blank")
        if len(value) > limit:
            raise self.refuse(name, f"is longer than {limit} characters")
        if limit < _MAX_TEXT and not value.isprintable():
            raise self.refuse(name, "must be one line without control characters")
        return value

    def prose(self, name: str, *aliases: str) -> str | None:
        """Return a text of any number of lines that is not blank, or None."""
        return self.text(name, *aliases, limit=_MAX_TEXT)

    def flag(self, name: str, *aliases: str) -> bool | None:
        """Return true, false or None.

        Raises:
            AdmissionRefused: It is something else.
        """
        value = self.take(name, *aliases)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(name, "must be true or false")
        return value

    def integer(self, name: str, *aliases: str, least: int, most: int) -> int | None:
        """Return a whole number in a range, or None.

        Raises:
            AdmissionRefused: It is something else.
        """
        value = self.take(name, *aliases)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.refuse(name, f"must be a whole number from {least} to {most}")
        return value

    def amount(self, name: str, *aliases: str, most: float) -> float | None:
        """Return a number above zero, or None.

        Raises:
            AdmissionRefused: It is something else.
        """
        value = self.take(name, *aliases)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
            or not 0 < value <= most
        ):
            raise self.refuse(name, f"must be a number above 0 and at most {most:g}")
        return float(value)

    def choice(self, name: str, *aliases: str, options: Sequence[str]) -> str | None:
        """Return one of the options, or None.

        Raises:
            AdmissionRefused: It is something else.
        """
        value = self.take(name, *aliases)
        if value is not None and value not in options:
            raise self.refuse(name, f"must be one of {', '.join(options)}")
        return value

    def mapping(self, name: str, *aliases: str) -> JsonDict | None:
        """Return an object, or None.

        Raises:
            AdmissionRefused: It is something else.
        """
        value = self.take(name, *aliases)
        if value is not None and not isinstance(value, dict):
            raise self.refuse(name, "must be an object")
        return cast("JsonDict | None", value)

    def finish(self, known: str) -> None:
        """Refuse what is left.

        Args:
            known: The names that exist, for the message.

        Raises:
            AdmissionRefused: There is a field that nobody took.
        """
        for name in self._left:
            raise self.refuse(name, "is not known", f"Known here: {known}.")
