"""The JSON face: every event as the log's own line. Fed by the command line from the hub."""

from __future__ import annotations

import re
from collections.abc import Callable

from forkdeck.model.events import Event
from forkdeck.model.state import DeckState
from forkdeck.sessionlog.codec import encode

_ACTS = re.compile(
    "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
"""What a terminal acts on or a reader cannot see, where JSON lets it stand as it is."""


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


class JsonFace:
    """Writes every event as one line of JSON: the log's own value, safe for a terminal.

    Args:
        write: Takes each line, with its line end.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def event(self, event: Event, state: DeckState) -> None:
        """Write a stamped event."""
        self._write(_ACTS.sub(_escaped, encode(event).decode()) + "\n")
