"""Events that cannot be encoded as they are, made encodable. Called by the hub alone.

Names of files may hold bytes that are no UTF-8; decoded they are lone surrogates, which no
encoder takes. They become U+FFFD, everywhere in the event.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

from forkdeck.model.raw import clean_text

S = TypeVar("S", bound=msgspec.Struct)


def cleaned(value: S) -> S:
    """Return a copy of a struct without lone surrogates; raw JSON is left as it is."""
    changes: dict[str, Any] = {
        name: _clean(getattr(value, name)) for name in type(value).__struct_fields__
    }
    return msgspec.structs.replace(value, **changes)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, msgspec.Struct):
        return cleaned(value)
    if isinstance(value, tuple):
        return tuple(_clean(entry) for entry in cast("tuple[Any, ...]", value))
    return value
