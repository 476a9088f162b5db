"""The settings as rows: key, value and origin, for ``forkdeck config``.

Secrets do not stand in a row: of the headers only the names are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from forkdeck.config.keys import KEYS
from forkdeck.config.loading import LoadedSettings
from forkdeck.config.settings import ModelPrice, value_of


@dataclass(frozen=True)
class Row:
    """One setting, ready to be printed.

    Attributes:
        key: Dotted name.
        value: Its value in words; ``–`` when unset.
        origin: Where it comes from; ``default`` for a value nobody set.
    """

    key: str
    value: str
    origin: str


def rows(loaded: LoadedSettings) -> list[Row]:
    """Return every setting in the order of the table; prices and headers one row each."""
    found: list[Row] = []
    for key in KEYS:
        value = value_of(loaded.settings, key.name)
        origin = loaded.origins.get(key.name, "default")
        if isinstance(value, Mapping) and value:
            inner = cast("Mapping[str, Any]", value)
            found += [
                Row(f"{key.name}.{name}", _shown(key.name, item), origin)
                for name, item in inner.items()
            ]
        else:
            found.append(Row(key.name, _shown(key.name, value), origin))
    return found


def _shown(key: str, value: Any) -> str:
    if key == "endpoint.headers" and isinstance(value, str):
        return "set (not shown)"
    if isinstance(value, ModelPrice):
        shown = [
            f"{name} {amount}"
            for name, amount in (
                ("input", value.input),
                ("output", value.output),
                ("cache_read", value.cache_read),
                ("cache_write", value.cache_write),
            )
            if amount is not None
        ]
        return ", ".join(shown) + " USD per MTok"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(cast("tuple[str, ...]", value)) or "–"
    if value is None or isinstance(value, Mapping):
        return "–"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)
