"""Cost and cache by run: ``/cost``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from forkdeck.model.ports import Deck
from forkdeck.ui.bindings import Keys, Zone, footer_keys
from forkdeck.ui.cost_rows import as_csv, cost_lines, cost_rows
from forkdeck.ui.lines import Row
from forkdeck.ui.screens.page import Page


class CostScreen(Page):
    """The table of `cost_rows`, drawn from the deck's state as it changes.

    Args:
        deck: Whose costs.
        zoom: Called with a run to look at.
    """

    ZONE: ClassVar[Zone] = "cost"

    def __init__(self, deck: Deck, zoom: Callable[[str], None]) -> None:
        super().__init__()
        self._deck = deck
        self._zoom = zoom

    def on_mount(self) -> None:
        """Follow the deck, twice a second: money does not need more."""
        self.set_interval(0.5, self.refresh_rows)

    def page_rows(self, width: int, height: int) -> Sequence[Row]:
        """Return the table."""
        self.selected = min(self.selected, self.entries() - 1)
        ascii_only = self.deck_app.draw_options.ascii_only
        return cost_rows(self._deck.state, selected=self.selected, width=width, ascii_=ascii_only)

    def page_keys(self) -> tuple[Keys, Keys]:
        """Return the footer's keys for this deck."""
        left, right = footer_keys(self.zones, live=self._deck.capabilities.live)
        return [("Esc", "back"), *left], right

    def entries(self) -> int:
        """The parent and every fork."""
        return len(cost_lines(self._deck.state))

    def row_of(self, entry: int) -> int:
        """Entries begin under the title, a blank, heads and a rule."""
        return entry + 4

    def do_cost_open(self) -> None:
        """Zoom into the run under the cursor."""
        run = cost_lines(self._deck.state)[self.selected].run
        self.dismiss()
        self._zoom(run)

    async def do_cost_copy(self) -> None:
        """Copy the table as CSV."""
        await self.deck_app.copy_text(as_csv(self._deck.state))

    def do_budget(self) -> None:
        """Set the session's budget, in the prompt of the deck."""
        self.dismiss()
        self.deck_app.ask_in_deck("session_budget")
