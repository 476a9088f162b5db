"""Names of sessions, runs and calls, and the rules for names that come from outside."""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from typing import Final

PARENT: Final = "p"
"""Run id of the parent conversation."""

TASK_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,32}\Z")
"""What a task's ``id`` may be (`fork_join`)."""

_HANDLE: Final = re.compile(r"f[1-9][0-9]{0,5}\Z")
_SESSION: Final = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}\Z")


def new_session_id(now: datetime) -> str:
    """Return a sortable session id, such as ``20261130-202200-1f3a9c``."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def is_session_id(text: str) -> bool:
    """Tell whether `text` is a session id ForkDeck could have made."""
    return _SESSION.match(text) is not None


def is_handle(text: str) -> bool:
    """Tell whether `text` is a fork's handle, such as ``f3``."""
    return _HANDLE.match(text) is not None


def handle(number: int) -> str:
    """Return the handle of the fork that was admitted as `number` (1-based)."""
    return f"f{number}"


def handle_number(name: str) -> int:
    """Return the number in a handle: 3 for ``f3``."""
    return int(name[1:])


def slug(text: str, limit: int = 32) -> str:
    """Return the first words of `text` as a name: lower case ASCII, joined by ``-``."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word
        if len(longer) > limit:
            break
        name = longer
    return name or (words[0][:limit] if words else "fork")
