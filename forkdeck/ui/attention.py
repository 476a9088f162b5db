"""Bell, desktop notification and tab title, on edges only and never while someone looks.

The app feeds it every drawn state; it remembers what it has announced. Text that leaves for the
terminal is neutralised and cut.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from forkdeck.model.state import DeckState

MAX_CELLS = 120
"""Longest title or notification."""


def safe_line(text: str, limit: int = MAX_CELLS) -> str:
    """Return `text` as one line without control, format or bidi characters, cut to `limit`."""
    flat = " ".join(text.split())
    kept = "".join(char for char in flat if unicodedata.category(char)[0] != "C")
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


class Attention:
    """Announces what entered ASK or FAIL, and a batch that settled.

    Args:
        write: Writes a sequence to the terminal.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._asks: set[str] = set()
        self._failed: set[str] = set()
        self._settled: set[str] = set()
        self._title = ""
        self._primed = False

    def notice(self, state: DeckState, *, focused: bool, quiet: bool = False) -> list[str]:
        """Look at a new state; returns what was announced, for the tests.

        Args:
            state: The state that is drawn now.
            focused: Whether the terminal has the focus: then nothing rings.
            quiet: A replay, or the first state after opening: only remember and set the title.
        """
        news: list[str] = []
        asks = {ask.event.request: ask.run for ask in state.asks}
        failed = {handle for handle, fork in state.forks.items() if fork.status == "FAIL"}
        settled = {name for name, batch in state.batches.items() if batch.ended}
        for request in asks.keys() - self._asks:
            news.append(f"{self._name(state, asks[request])} asks")
        news += [f"{self._name(state, handle)} failed" for handle in failed - self._failed]
        for name in settled - self._settled:
            news.append(f"{len(state.batches[name].handles)} forks settled")
        self._asks, self._failed, self._settled = set(asks), failed, settled
        self._set_title(state)
        silent = focused or quiet or not self._primed
        self._primed = True
        if silent or not news:
            return []
        self._write("\x07" + "\x1b]9;" + safe_line("forkdeck: " + ", ".join(sorted(news))) + "\x07")
        return sorted(news)

    def _set_title(self, state: DeckState) -> None:
        waiting = sum(1 for fork in state.forks.values() if fork.owed)
        waiting += sum(1 for ask in state.asks if ask.run not in state.forks)
        name = safe_line(state.session.title or state.session.project, 40)
        title = f"({waiting}) " if waiting else ""
        title += f"forkdeck {name}".rstrip()
        if title != self._title:
            self._title = title
            self._write(f"\x1b]2;{title}\x07")

    def leave(self) -> None:
        """Clear the title when the deck closes."""
        if self._title:
            self._title = ""
            self._write("\x1b]2;\x07")

    @staticmethod
    def _name(state: DeckState, run: str) -> str:
        fork = state.forks.get(run)
        return "the parent" if fork is None else fork.name
