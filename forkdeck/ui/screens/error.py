"""The error card: what happened, what was kept, what to do; never a traceback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events

from forkdeck.errors import ForkDeckError
from forkdeck.ui.bindings import Keys, Zone
from forkdeck.ui.keyboard import key_of
from forkdeck.ui.lines import BLANK, Row, line, wrapped
from forkdeck.ui.screens.page import Page


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a card says."""

    what: str
    kept: str = ""
    remedy: str = ""

    @classmethod
    def of(cls, error: BaseException, kept: str = "") -> Trouble:
        """Return the card of an error; one of ours says itself what to do."""
        if isinstance(error, ForkDeckError):
            return cls(error.what, kept, error.remedy)
        if isinstance(error, OSError):
            where = f" ({error.filename})" if error.filename else ""
            return cls(f"The system refused: {error.strerror or error}{where}.", kept,
                       "Free the way (space, permissions), then try again.")  # fmt: skip
        return cls(f"Something inside failed: {type(error).__name__}: {error}", kept,
                   "This is a fault of ForkDeck; what was saved can be opened again.")  # fmt: skip


def card(trouble: Trouble, width: int, *, margin: int = 4) -> list[Row]:
    """Return the card's rows: tinted, with its bar, label by label."""
    inner = max(20, width - 2 * margin)
    rows: list[Row] = [line([], width=width, fill="error", bar="error")]
    labels = (("error", trouble.what), ("kept", trouble.kept), ("next", trouble.remedy))
    for label, text in labels:
        if not text:
            continue
        style = "strong" if label == "error" else "text"
        for index, row in enumerate(wrapped(text, width=inner - 9, style=style)):
            head = f" {label:<8}" if index == 0 else " " * 9
            tone = "bad-strong" if label == "error" and index == 0 else "muted"
            rows.append(line([("text", "  "), (tone, head), *row.spans], width=width,
                             fill="error", bar="error"))  # fmt: skip
    return [*rows, line([], width=width, fill="error", bar="error")]


class ErrorScreen(Page):
    """A card over the whole screen, with the ways out as keys.

    Args:
        trouble: What to say.
    """

    ZONE: ClassVar[Zone] = "cost"
    CHIP: ClassVar[str] = "ERROR"

    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self._trouble = trouble

    def page_rows(self, width: int, height: int) -> Sequence[Row]:
        """Return the card, a third down."""
        rows = card(self._trouble, width)
        above = max(1, (height - len(rows)) // 3)
        return [BLANK] * above + rows

    def page_keys(self) -> tuple[Keys, Keys]:
        """Return the ways out."""
        return [("Enter", "start screen"), ("d", "demo"), ("q", "quit")], []

    async def on_key(self, event: events.Key) -> None:
        """The card's own keys."""
        key = key_of(event)
        ways = {"enter": "start", "escape": "start", "d": "demo", "q": "leave", "ctrl+d": "leave",
                "ctrl+c": "leave"}  # fmt: skip
        way = ways.get(key)
        if way is None:
            return
        event.stop()
        event.prevent_default()
        if way == "start":
            self.deck_app.open_start()
        elif way == "demo":
            self.deck_app.open_demo()
        else:
            self.deck_app.exit(return_code=1)
