"""Text from an endpoint or a library, made fit for a message: one line, short, without secrets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_PLAIN_WORD = r"[A-Za-z]?[a-z]{0,18}[^\w\s]*(?!\S)"
"""What may follow "bearer" in a sentence, as in "invalid bearer token"."""
_KEY_LIKE = re.compile(
    r"\bsk-[A-Za-z0-9_*.-]{6,}|(?i:bearer)\s+(?!"
    + _PLAIN_WORD
    + r")\S+|\beyJ[A-Za-z0-9_=-]{8,}[.\w=-]*"
)
_URL_USER = re.compile(r"(https?://)[^/\s@]+@")
_LONGEST = 400


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` in one line of at most 400 characters, every secret replaced by ``[hidden]``.

    Args:
        text: Any text from outside.
        secrets: Values that must not appear; what merely looks like a key goes as well.
    """
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "[hidden]")
    text = _URL_USER.sub(r"\1[hidden]@", _KEY_LIKE.sub("[hidden]", text[:20_000]))
    text = "".join(
        char if char == " " or unicodedata.category(char)[0] not in "CZ" else " " for char in text
    )
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
