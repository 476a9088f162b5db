"""Help: the keys of a zone, from the table of bindings; ``/`` searches, Tab turns pages."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from forkdeck.ui.bindings import Zone
from forkdeck.ui.help_rows import ZONES, help_rows
from forkdeck.ui.keyboard import key_of
from forkdeck.ui.lines import Row
from forkdeck.ui.screens.dialog import SheetDialog


class HelpScreen(SheetDialog[None]):
    """Help for one zone at a time.

    Args:
        zone: The zone whose page is shown first.
        live: Whether the deck takes live keys.
        worktrees: Whether write forks work here.
        ascii_only: Whether states are drawn in ASCII.
    """

    def __init__(self, zone: Zone, *, live: bool, worktrees: bool, ascii_only: bool) -> None:
        super().__init__("", ())
        names = [name for name, _ in ZONES]
        self._page = names.index(zone) if zone in names else 0
        self._live = live
        self._worktrees = worktrees
        self._ascii = ascii_only
        self._query: str | None = None

    def fill(self) -> None:
        """Draw the page; the head says what is searched for."""
        following = ZONES[(self._page + 1) % len(ZONES)][0]
        if self._query is None:
            self.dialog_title = f"keys in the {ZONES[self._page][0]}"
            self.keys = (("/", "search"), ("Tab", following), ("Esc", "close"))
        else:
            self.dialog_title = f"search: {self._query}_"
            self.keys = (("Esc", "all keys"),)
        super().fill()

    def dialog_rows(self, width: int) -> Sequence[Row]:
        """Return the page."""
        return help_rows(
            self._page,
            width=width,
            query=self._query or "",
            live=self._live,
            worktrees=self._worktrees,
            ascii_=self._ascii,
        )

    def on_key(self, event: events.Key) -> None:
        """Turn pages, search, scroll, close."""
        event.stop()
        key = key_of(event)
        if self._query is not None:
            self._search_key(event, key)
        elif key in {"escape", "q", "?", "f1", "ctrl+c"}:
            self.dismiss()
        elif key == "/":
            self._query = ""
            self.fill()
        elif key in {"tab", "shift+tab"}:
            step = 1 if key == "tab" else -1
            self._page = (self._page + step) % len(ZONES)
            self.sheet.top = 0
            self.fill()
        else:
            self.scroll_key(key)

    def _search_key(self, event: events.Key, key: str) -> None:
        if key == "escape":
            self._query = None
        elif key == "backspace":
            self._query = (self._query or "")[:-1]
        elif event.is_printable and event.character:
            self._query = (self._query or "") + event.character
        else:
            self.scroll_key(key)
            return
        self.fill()
