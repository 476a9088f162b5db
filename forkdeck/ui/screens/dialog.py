"""Dialogs: a panel over the screen below, one row of head, a sheet, perhaps a line of text.

`Confirm` asks before what destroys; help and the palette are dialogs too. Nothing in a dialog
acts by a timer, and Esc always only closes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from forkdeck.ui.lines import BLANK, Row, Span, line, outside, wrapped
from forkdeck.ui.screens.once import LeavesOnce
from forkdeck.ui.sheet import Sheet

T = TypeVar("T")

WIDTH = 106
"""Widest dialog."""


class SheetDialog(LeavesOnce[T], ModalScreen[T], inherit_bindings=False):
    """A head, a sheet of rows, and the keys to scroll and close.

    Args:
        title: Bold, at the left of the head.
        keys: (key, word) pairs at its right.
        rows_wanted: Rows the sheet would like; the screen's height limits it.
    """

    CSS_PATH = "dialog.tcss"
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, title: str, keys: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self.dialog_title = title
        self.keys = tuple(keys)
        self.head = Sheet(id="dialog-head", shade="selected")
        self.sheet = Sheet(id="dialog-sheet", focusable=True, shade="panel")

    def compose(self) -> ComposeResult:
        """Lay the panel out."""
        with Vertical(id="dialog"):
            yield self.head
            yield from self.between()
            yield self.sheet

    def between(self) -> ComposeResult:
        """Yield what stands between head and sheet."""
        yield from ()

    def on_mount(self) -> None:
        """Draw once the panel has its width."""
        self.sheet.focus()
        self.fill()

    def on_resize(self) -> None:
        """Draw for the new width."""
        self.fill()

    def fill(self) -> None:
        """Draw head and rows for the screen's size."""
        width = min(WIDTH, self.size.width * 9 // 10)
        if width <= 0:
            return
        right: list[Span] = []
        for key, word in self.keys:
            right += [("key", key), ("muted", f" {word}   ")]
        title: list[Span] = [("heading", f"  {outside(self.dialog_title)}")]
        self.head.show([line(title, right, width=width, bar="focus", fill="selected")])
        rows = [BLANK, *self.dialog_rows(width), BLANK]
        limit = max(3, self.size.height * 9 // 10 - 2)
        self.sheet.styles.height = min(len(rows), limit)
        self.sheet.show(rows)

    def dialog_rows(self, width: int) -> Sequence[Row]:
        """Return the rows of the sheet."""
        raise NotImplementedError

    def scroll_key(self, key: str) -> bool:
        """Scroll by a key; returns whether it was one."""
        if key in {"down", "j"}:
            self.sheet.scroll_rows(1)
        elif key in {"up", "k"}:
            self.sheet.scroll_rows(-1)
        elif key == "pagedown":
            self.sheet.scroll_page(1)
        elif key == "pageup":
            self.sheet.scroll_page(-1)
        else:
            return False
        return True


class Confirm(SheetDialog[bool]):
    """Asks before something that destroys, or that changes files.

    Args:
        title: The question.
        lines: What it is about, and what is kept; texts from outside are neutralised.
        yes: The word for Enter.
        extra: Another key that also means yes, such as the one that opened the dialog.
    """

    def __init__(self, title: str, lines: Sequence[str], *, yes: str, extra: str = "") -> None:
        super().__init__(title, (("Enter", yes), ("Esc", "leave it")))
        self._lines = tuple(lines)
        self._extra = extra

    def dialog_rows(self, width: int) -> Sequence[Row]:
        """Return the lines, wrapped."""
        rows: list[Row] = []
        for text in self._lines:
            rows += wrapped(text, width=width, margin=2)
        return rows

    def on_key(self, event: events.Key) -> None:
        """Enter does it, Esc leaves it; nothing else closes the dialog."""
        event.stop()
        if event.key == "enter" or (self._extra and event.key == self._extra):
            self.dismiss(True)
        elif event.key in {"escape", "q", "ctrl+c"}:
            self.dismiss(False)
        else:
            self.scroll_key(event.key)
