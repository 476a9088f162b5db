"""The list of saved sessions: search, open, replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events

from forkdeck.model.ports import SessionSummary
from forkdeck.ui.bindings import Keys, Zone
from forkdeck.ui.keyboard import key_of
from forkdeck.ui.lines import BLANK, Row, Span, line, outside, rule
from forkdeck.ui.screens.page import Page
from forkdeck.ui.start_rows import session_row


class SessionsScreen(Page):
    """Every saved session, newest first; typing after ``/`` narrows.

    Args:
        searching: Whether it opens with the search ready.
    """

    ZONE: ClassVar[Zone] = "sessions"

    def __init__(self, *, searching: bool = False, replaying: bool = False) -> None:
        super().__init__()
        self._replaying = replaying
        self._all: Sequence[SessionSummary] | None = None
        self._trouble = ""
        self._query = ""
        self._searching = searching

    def on_mount(self) -> None:
        """Read the list off the first paint."""
        self.run_worker(self._load(), exit_on_error=False)

    async def _load(self) -> None:
        self._all, self._trouble = await self.deck_app.saved_sessions(200)
        self.refresh_rows()

    @property
    def found(self) -> list[SessionSummary]:
        """The sessions that match the search."""
        words = self._query.casefold().split()
        return [
            session
            for session in self._all or ()
            if all(
                word in f"{session.title} {session.project} {session.branch} {session.session}"
                .casefold()
                for word in words
            )
        ]  # fmt: skip

    def page_rows(self, width: int, height: int) -> Sequence[Row]:
        """Return head and list."""
        found = self.found
        self.selected = max(0, min(self.selected, len(found) - 1))
        total = len(self._all or ())
        search: list[Span] = [("key", "/"), ("muted", " search")]
        if self._searching or self._query:
            cursor = "_" if self._searching else ""
            search = [("muted", "search "), ("strong", outside(self._query) + cursor)]
        rows = [
            BLANK,
            line([("heading", "sessions"), ("muted", f"   {len(found)} of {total}")], search,
                 width=width, margin=2),
            rule(width, margin=2),
        ]  # fmt: skip
        if self._all is None:
            return [*rows, line([("note", "reading")], width=width, margin=2)]
        if not found:
            text = self._trouble or ("Nothing matches." if total else "No saved session yet.")
            return [*rows, line([("muted", outside(text))], width=width, margin=2)]
        now = self.deck_app.clock.now()
        ascii_only = self.deck_app.draw_options.ascii_only
        for index, session in enumerate(found):
            rows.append(
                session_row(session, str(index + 1), width=width, now=now,
                            selected=index == self.selected, ascii_=ascii_only)
            )  # fmt: skip
        return rows

    def page_keys(self) -> tuple[Keys, Keys]:
        """Return the footer's keys."""
        if self._searching:
            word = "play" if self._replaying else "open"
            return [("Enter", word), ("↑ ↓", "move"), ("Esc", "end search")], []
        left, right = super().page_keys()
        if self._replaying:
            left = [("Enter", "play"), *(each for each in left if each[0] not in ("Enter", "r"))]
        return [("Esc", "back"), *left], right

    def entries(self) -> int:
        """The matching sessions."""
        return len(self.found)

    def row_of(self, entry: int) -> int:
        """The list begins under a blank, the head and a rule."""
        return entry + 3

    async def on_key(self, event: events.Key) -> None:
        """While searching, letters are letters."""
        if not self._searching:
            return
        key = key_of(event)
        if key == "escape":
            self._searching = False
        elif key == "backspace":
            self._query = self._query[:-1]
        elif event.is_printable and event.character:
            self._query += event.character
        else:
            return
        event.stop()
        event.prevent_default()
        self.refresh_rows()

    def do_sessions_search(self) -> None:
        """Type to narrow the list."""
        self._searching = True
        self.refresh_rows()

    def do_start_open(self) -> None:
        """Go on with the session under the cursor, or play it when a replay was asked for."""
        if self._replaying:
            self.do_start_replay()
        elif self.found:
            self.deck_app.open_session(self.found[self.selected].session)

    def do_start_replay(self) -> None:
        """Replay the session under the cursor."""
        if self.found:
            self.deck_app.open_replay(self.found[self.selected].session)
