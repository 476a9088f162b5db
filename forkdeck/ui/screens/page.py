"""The common shape of full-screen pages: title, a sheet with a cursor, footer.

Cost, sessions, trust and the error card are pages; each says what its rows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult

from forkdeck.ui.bindings import Keys, Zone, footer_keys
from forkdeck.ui.keyboard import Keyed
from forkdeck.ui.lines import Row, line, outside
from forkdeck.ui.screens.once import LeavesOnce
from forkdeck.ui.sheet import Sheet
from forkdeck.ui.widgets.status_line import FooterLine


class Page(Keyed, LeavesOnce[None], inherit_bindings=False):
    """A sheet over the whole screen, with a footer."""

    CSS_PATH = "page.tcss"
    ZONE: ClassVar[Zone] = "sessions"
    CHIP: ClassVar[str] = ""
    ESCAPE_TO_MINIMIZE = False

    def __init__(self) -> None:
        super().__init__()
        self.sheet = Sheet(id="page-sheet", focusable=True)
        self.note = Sheet(id="page-note")
        self.footer = FooterLine(id="page-footer")
        self.selected = 0

    @property
    def zones(self) -> tuple[Zone, ...]:
        """The page's own zone."""
        return (self.ZONE,)

    def compose(self) -> ComposeResult:
        """Lay out the sheet and the footer."""
        yield self.sheet
        yield self.note
        yield self.footer

    def on_mount(self) -> None:
        """Focus the sheet: a page is a deck zone, letters are commands."""
        self.note.display = False
        self.sheet.focus()
        self.refresh_rows()

    def say(self, text: str) -> None:
        """Show one line above the footer until the next key."""
        self.note.display = bool(text)
        self.note.show([line([("muted", outside(text))], width=self.size.width, margin=1)])

    async def on_key(self, event: events.Key) -> None:
        """Do what the key means here."""
        self.note.display = False
        if await self.press(event):
            event.stop()

    def on_resize(self) -> None:
        """Draw for the new width."""
        self.call_after_refresh(self.refresh_rows)

    def refresh_rows(self) -> None:
        """Draw rows and footer anew."""
        if self.sheet.size.width:
            self.sheet.show(self.page_rows(self.sheet.size.width, self.sheet.size.height))
        left, right = self.page_keys()
        self.footer.update_state(self.CHIP or self.ZONE.upper(), left, right)

    def page_rows(self, width: int, height: int) -> Sequence[Row]:
        """Return the rows of the page."""
        raise NotImplementedError

    def page_keys(self) -> tuple[Keys, Keys]:
        """Return the footer's keys, and those that stay."""
        return footer_keys(self.zones)

    def entries(self) -> int:
        """How many entries the cursor can stand on."""
        return 0

    def row_of(self, entry: int) -> int:
        """Return the row of an entry, for scrolling it into view."""
        return entry

    def choose(self, entry: int) -> None:
        """Move the cursor to an entry."""
        if self.entries():
            self.selected = max(0, min(entry, self.entries() - 1))
            self.refresh_rows()
            self.sheet.reveal(self.row_of(self.selected))

    # --- keys of every page

    def do_list_down(self) -> None:
        """Next entry, or scroll."""
        self.choose(self.selected + 1) if self.entries() else self.sheet.scroll_rows(1)

    def do_list_up(self) -> None:
        """Previous entry, or scroll."""
        self.choose(self.selected - 1) if self.entries() else self.sheet.scroll_rows(-1)

    def do_move_first(self) -> None:
        """To the first entry."""
        self.choose(0)
        self.sheet.scroll_rows(-len(self.sheet.rows))

    def do_move_last(self) -> None:
        """To the last entry."""
        self.choose(self.entries() - 1)
        self.sheet.scroll_rows(len(self.sheet.rows))

    def do_page_up(self) -> None:
        """One page up."""
        self.sheet.scroll_page(-1)

    def do_page_down(self) -> None:
        """One page down."""
        self.sheet.scroll_page(1)

    def do_out(self) -> None:
        """Back to the screen below."""
        self.dismiss()
