"""The JSON face: every event as the log's own line. Fed by the command line from the hub."""

from __future__ import annotations

from collections.abc import Callable

from forkdeck.model.events import Event
from forkdeck.model.state import DeckState
from forkdeck.sessionlog.codec import encode


class JsonFace:
    """Writes every event as one line of JSON, exactly as it stands in the log.

    Args:
        write: Takes each line, with its line end.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def event(self, event: Event, state: DeckState) -> None:
        """Write a stamped event."""
        self._write(encode(event).decode() + "\n")
