"""`EmptyDeck`: what stands where the forks will be, until there is one.

Draws the idea in three lines, says what a fork is, and gives literal things to type. Data: the
parent's context, for the price of one fork where it is known.
"""

from __future__ import annotations

from decimal import Decimal

from textual.strip import Strip

from forkdeck.model.state import EMPTY, DeckState
from forkdeck.store.rows_text import wrap_spans
from forkdeck.ui import formats
from forkdeck.ui.widgets.line_widget import LineWidget, Spans, between

_DRAWING = ("━━━━┳━━━━━━━━━━━━━━", "    ┣━━━━━━━━━", "    ┗━━━━━━━━━━━━")
_ASCII_DRAWING = ("----+--------------", "    +---------", "    `------------")
_EXAMPLES = (
    ("ask", "“read each layer in its own fork”"),
    ("/fork", "find every retry in src/http"),
    ("/fork --write", "make the helper take a clock"),
    ("/fork --n 3", "three tries at the flaky test"),
)
_INDENT = 8


class EmptyDeck(LineWidget):
    """The deck's side before the first fork."""

    ALLOW_SELECT = False
    DEFAULT_SHADE = "surface"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._state: DeckState = EMPTY
        self._price: Decimal | None = None
        self._rows: list[tuple[Spans, str]] = []

    def update_state(
        self, state: DeckState, now_ms: int = 0, *, price: Decimal | None = None
    ) -> None:
        """Show a state; `price` is what one fork's first request would cost, when known."""
        del now_ms
        self._state, self._price = state, price
        self._relay()

    def on_resize(self) -> None:
        """Lay out for the new size."""
        self._relay()

    def _relay(self) -> None:
        width, height = self.size
        if not width:
            return
        left = _INDENT if width >= 56 else 2
        body = self._body(width, left)
        head = between([("text", " "), ("strong", "forks"), ("muted", " 0")], [], width)
        room = height - 1
        if len(body) > room:
            body = body[4:] if len(body) - 4 <= room else body[4:7]
        above = max(0, min(6, (room - len(body)) // 2))
        rows: list[tuple[Spans, str]] = [(head, "panel"), *[([], "")] * above]
        rows += [(spans, "") for spans in body]
        if rows != self._rows:
            self._rows = rows
            self.repaint()

    def _body(self, width: int, left: int) -> list[Spans]:
        pad: Spans = [("text", " " * left)]
        drawing = _ASCII_DRAWING if self.options.ascii_only else _DRAWING
        rows: list[Spans] = [[*pad, ("rule", line)] for line in drawing]
        rows += [[], [*pad, ("strong", "No forks yet.")]]
        words = "A fork starts from this conversation, does one task, and hands back a report."
        rows += [
            [*pad, *line] for line in wrap_spans([("muted", words)], max(12, width - left - 2))
        ]
        rows.append([])
        for typed, example in _EXAMPLES:
            shown = (
                example.strip("“”").join('""')
                if self.options.ascii_only and "“" in example
                else example
            )
            rows.append([*pad, ("key", f"{typed:<15}"), ("muted", shown)])
        context = self._state.parent.context_tokens
        if context:
            line: Spans = [
                *pad,
                ("muted", "prefix "),
                ("text", f"{formats.tokens(context)} tokens"),
            ]
            if self._price is not None:
                line += [
                    ("muted", ", about "),
                    ("text", formats.money(self._price)),
                    ("muted", " a fork"),
                ]
            rows += [[], line]
        return rows

    def render_line(self, y: int) -> Strip:
        """Return one row."""
        if y >= len(self._rows):
            return self.blank()
        spans, fill = self._rows[y]
        return self.strip(between(spans, [], self.size.width, margin=0), fill)
