"""The prompt cache by run: ``/cache``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from forkdeck.model.ports import Deck
from forkdeck.store.cache_view import cache_view
from forkdeck.ui.bindings import Keys, Zone, footer_keys
from forkdeck.ui.cache_rows import FIRST_RUN, cache_rows
from forkdeck.ui.lines import Row
from forkdeck.ui.screens.page import Page


class CacheScreen(Page):
    """The table of `cache_rows`, drawn from the deck's state as it changes.

    Args:
        deck: Whose runs.
        zoom: Called with a run to look at.
        selected: The run the cursor begins on.
    """

    ZONE: ClassVar[Zone] = "cache"

    def __init__(self, deck: Deck, zoom: Callable[[str], None], selected: str = "") -> None:
        super().__init__()
        self._deck = deck
        self._zoom = zoom
        runs = [row.run for row in cache_view(deck.state).rows]
        self.selected = runs.index(selected) if selected in runs else 0

    def on_mount(self) -> None:
        """Follow the deck, twice a second."""
        self.set_interval(0.5, self.refresh_rows)

    def page_rows(self, width: int, height: int) -> Sequence[Row]:
        """Return the table."""
        view = cache_view(self._deck.state)
        self.selected = min(self.selected, len(view.rows) - 1)
        options = self.deck_app.draw_options
        return cache_rows(view, selected=self.selected, width=width, costs=options.costs,
                          ascii_=options.ascii_only)  # fmt: skip

    def page_keys(self) -> tuple[Keys, Keys]:
        """Return the footer's keys."""
        left, right = footer_keys(self.zones, live=self._deck.capabilities.live)
        return [("Esc", "back"), *left], right

    def entries(self) -> int:
        """The parent and every fork."""
        return 1 + len(self._deck.state.forks)

    def row_of(self, entry: int) -> int:
        """Runs begin under the heads."""
        return entry + FIRST_RUN

    def do_cache_open(self) -> None:
        """Zoom into the run under the cursor."""
        run = cache_view(self._deck.state).rows[self.selected].run
        self.dismiss()
        self._zoom(run)
