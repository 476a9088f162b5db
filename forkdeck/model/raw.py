"""JSON that must keep its bytes: API messages, tool inputs, request heads.

Such values are made once by `to_raw`, logged as they are, and never typed or re-ordered. What
cannot be encoded (lone surrogates, non-finite numbers) is replaced here, where it enters.
"""

from __future__ import annotations

import json
import math
from typing import Any, TypeAlias, cast

import msgspec

JsonDict: TypeAlias = dict[str, Any]
"""A JSON object in insertion order, which is part of the cached prefix."""


def clean_text(text: str) -> str:
    """Return `text` with lone surrogates replaced by ``?``."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8") if _has_surrogate(text) else text


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def clean(value: Any) -> Any:
    """Return a copy of a JSON value that every encoder takes.

    Lone surrogates become ``?``; NaN and infinities become null; key order is kept.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value)
        return {clean_text(str(key)): clean(item) for key, item in pairs.items()}
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        return [clean(item) for item in items]
    return value


def to_raw(value: Any) -> msgspec.Raw:
    """Encode a JSON value once, in insertion order."""
    text = json.dumps(clean(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return msgspec.Raw(text.encode("ascii"))


def from_raw(raw: msgspec.Raw) -> Any:
    """Decode what `to_raw` made; object keys keep their order."""
    return json.loads(bytes(raw))
