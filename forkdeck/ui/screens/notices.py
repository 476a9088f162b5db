"""Everything the session has said: ``/notices``, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from forkdeck.model.ports import Deck
from forkdeck.model.state import DeckState
from forkdeck.store.cells import fit
from forkdeck.store.figures import clock, plural
from forkdeck.store.flags import pace_words
from forkdeck.ui.bindings import Keys, Zone, footer_keys
from forkdeck.ui.lines import BLANK, Row, Span, line, wrapped
from forkdeck.ui.screens.page import Page

_MARKS = {"info": ("muted", "note"), "warning": ("warn-strong", "!"), "error": ("bad-strong", "×")}
_LEAD = 18


def notice_rows(state: DeckState, width: int) -> list[Row]:
    """Return every notice with its time, what was kept and what to do."""
    rows = [
        line([("heading", "notices"), ("muted", f"   {plural(len(state.notices), 'notice')}")],
             width=width, margin=1, fill="panel"),
        BLANK,
    ]  # fmt: skip
    if words := pace_words(state):
        now: list[Span] = [("muted", "      now  "), ("warn-strong", fit("!", 7)), ("text", words)]
        rows += [line(now, width=width), BLANK]
    for notice in reversed(state.notices):
        style, mark = _MARKS[notice.severity]
        lead: list[Span] = [("muted", f"  {clock(notice.at_ms):>7}  "), (style, fit(mark, 7))]
        for label, text in (("", notice.what), ("kept", notice.kept), ("next", notice.remedy)):
            for index, part in enumerate(wrapped(text, width=width - _LEAD - 2) if text else []):
                named = label if not index else ""
                own: list[Span] = [("muted", f"           {fit(named, 7)}")]
                head = lead if not label and not index else own
                rows.append(Row(spans=(*head, *part.spans)))
        rows.append(BLANK)
    if not state.notices:
        rows.append(line([("muted", "Nothing had to be said so far.")], width=width, margin=2))
    return rows


class NoticesScreen(Page):
    """The list of notices, drawn from the deck's state as it grows.

    Args:
        deck: Whose notices.
    """

    ZONE: ClassVar[Zone] = "notices"

    def __init__(self, deck: Deck) -> None:
        super().__init__()
        self._deck = deck

    def on_mount(self) -> None:
        """Follow the deck, twice a second."""
        self.set_interval(0.5, self.refresh_rows)

    def page_rows(self, width: int, height: int) -> Sequence[Row]:
        """Return the list."""
        return notice_rows(self._deck.state, width)

    def page_keys(self) -> tuple[Keys, Keys]:
        """Return the footer's keys."""
        left, right = footer_keys(self.zones)
        return [("Esc", "back"), *left], right
