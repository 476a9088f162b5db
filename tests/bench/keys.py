"""Typing: how long a key takes until its character is on its way to the screen."""

from __future__ import annotations

import time
from itertools import cycle

from tests.bench.terminal import Terminal

# Letters that no text of the rehearsal model holds, so that an echo is seen in the raw bytes.
_LETTERS = "жщюяфцчшэъыёђћџљњ"
_DELETE = "\x7f"


class Typist:
    """Types one letter after another into the prompt and waits for each.

    A letter is taken back when it was seen, so the prompt stays short.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._letters = cycle(_LETTERS)
        self.waits_ms: list[float] = []
        """How long each key took, in milliseconds."""

    def type_once(self, timeout_s: float = 10) -> float:
        """Type a letter, wait until it is drawn, take it back; returns the milliseconds."""
        letter = next(self._letters)
        sent = self._terminal.send(letter)
        seen = self._terminal.until_bytes(letter.encode(), timeout_s)
        self.waits_ms.append((seen - sent) * 1000)
        self._terminal.send(_DELETE)
        return self.waits_ms[-1]

    def type_for(self, seconds: float, every_s: float) -> None:
        """Type for a time, a key about every `every_s` seconds (never in step with a timer)."""
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end:
            self.type_once()
            number += 1
            self._terminal.drain(every_s * (0.7 + 0.6 * ((number * 0.618) % 1)))
