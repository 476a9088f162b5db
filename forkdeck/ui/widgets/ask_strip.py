"""The strip above the prompt: what is owed next, or a message that wraps over a few rows.

It takes its facts through `update_state`; what does not fit leaves in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from forkdeck.model.state import Ask, DeckState
from forkdeck.model.words import Severity
from forkdeck.store import selectors
from forkdeck.store.flags import context_words, slow_words
from forkdeck.store.rows_cards import ask_keys, same_requests, visible_escapes
from forkdeck.store.rows_plan import launch_words, price_words
from forkdeck.store.rows_text import clean_line, wrap_spans
from forkdeck.ui import formats
from forkdeck.ui.widgets.line_widget import Spans, between, width_of
from forkdeck.ui.widgets.status_line import StatusLine, key_spans

MOST_ROWS = 3
"""Rows of a message above the prompt."""


class AskStrip(StatusLine):
    """What waits for the person, oldest first; or, before it, trouble and the last answer."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._state: DeckState | None = None
        self._now_ms = 0
        self._keys = False
        self._more: list[Spans] = []
        self._typing = False
        self._ask: Ask | None = None
        self._message: tuple[str, Severity] | None = None
        self._trouble = ""
        self._selected: str | None = ""
        self.paced = ""
        """That requests are held back, where no board says it; shown while nothing else waits."""
        self.shows_whole = ""
        """The request whose whole argument stands here beside its answer keys, or empty."""

    @property
    def wanted(self) -> bool:
        """Whether there is anything to show; the screen hides the row otherwise."""
        state = self._state
        if state is None:
            return bool(self._trouble or self._message)
        quiet = not (self._trouble or self._message or state.asks)
        return not quiet or bool(self._standing(state))

    def update_state(
        self,
        state: DeckState,
        now_ms: int,
        *,
        keys: bool = False,
        ask: Ask | None = None,
        typing: bool = False,
        selected: str | None = "",
        trouble: str = "",
        message: tuple[str, Severity] | None = None,
    ) -> None:
        """Show what waits.

        Args:
            state: The deck's state.
            now_ms: The session's time.
            keys: Whether answer keys would act on `ask`, whose card is out of sight: they are
                repeated here when its whole argument fits beside them.
            ask: The request of the selected run; None: the oldest is shown.
            typing: Whether letters are letters now, so that ``w`` needs its leader.
            selected: The run that keys act on; None: a replay, where they act on none.
            trouble: Why the log cannot be written; goes before everything.
            message: What came of the last key; goes before the requests.
        """
        self._state, self._now_ms, self._keys = state, now_ms, keys and ask is not None
        self._ask, self._typing, self._selected = ask, typing, selected
        self._trouble, self._message = trouble, message
        self.compose_spans()

    def compose_spans(self) -> None:
        """Lay out for the present width."""
        state, width = self._state, self.size.width
        if state is None or not width:
            return
        self.shows_whole = ""
        if self._trouble:
            self._show_text(
                [("bad-strong", f"{self.marks.times} log  "), ("text", clean_line(self._trouble))],
                "error",
            )
        elif self._message is not None:
            text, severity = self._message
            style = {"info": "muted", "warning": "warn", "error": "bad"}[severity]
            fill = {"info": "", "warning": "warn", "error": "error"}[severity]
            self._show_text([(style, clean_line(text))], fill)
        elif state.asks:
            self._compose_asks(state, width)
        else:
            self.show_spans(between(*(self._standing(state) or ([], [])), width), "warn")

    def show_spans(self, spans: Spans, fill: str = "") -> None:
        """Show one row."""
        self._more = []
        super().show_spans(spans, fill)

    def _show_text(self, spans: Spans, fill: str) -> None:
        """Show a text whole, on as many rows as it needs: its end is often what to do."""
        width = self.size.width
        rows = wrap_spans(spans, max(8, width - 2))
        shown = [*rows[: MOST_ROWS - 1], [span for row in rows[MOST_ROWS - 1 :] for span in row]]
        lines = [between([("text", " "), *row], [], width) for row in shown if row]
        changed = lines[1:] != self._more
        super().show_spans(lines[0] if lines else [], fill)
        self._more = lines[1:]
        if changed:
            self.repaint()

    def render_line(self, y: int) -> Strip:
        """Return one of the rows."""
        if not 1 <= y <= len(self._more):
            return super().render_line(y)
        return self.strip(self._more[y - 1], self._fill)

    @property
    def rows_shown(self) -> int:
        """Rows that what is said needs."""
        return 1 + len(self._more)

    def _standing(self, state: DeckState) -> tuple[Spans, Spans] | None:
        """Return what stands here while nobody asks: a full context, slow forks, pace; or None."""
        if words := context_words(state):
            return [("text", " "), ("warn-strong", "!"), ("text", f" {words}")], []
        slow = [
            fork for name, fork in state.forks.items() if selectors.badge(state, name) == "SLOW"
        ]
        if not slow:
            held: Spans = [("text", " "), ("warn", self.paced)]
            return (held, []) if self.paced else None
        first = min(slow, key=lambda fork: fork.slow.since_ms if fork.slow else 0)
        left: Spans = [
            ("text", " "), ("warn-strong", f"{self.badge('SLOW').glyph} {len(slow)} slow"),
            ("muted", f"   {first.handle[1:]} "), ("text", clean_line(first.name)),
            ("muted", f"   {clean_line(slow_words(first, self._now_ms))}"),
        ]  # fmt: skip
        if self._selected is None:
            return left, []
        if first.handle == self._selected and not self._typing:
            tools = state.runs[first.handle].tools if first.handle in state.runs else ()
            stop = [("K", "stop tool")] if tools else []
            return left, key_spans([("Space", "steer"), *stop, ("x", "abort")])
        if len(first.handle) > 2:
            return left, []
        digit = first.handle[1:]
        return left, key_spans([(f"Ctrl+X {digit}" if self._typing else digit, "goes there")])

    def _compose_asks(self, state: DeckState, width: int) -> None:
        oldest = state.asks[0]
        ask = self._ask or oldest
        count = len(state.asks)
        glyph = self.badge("ASK").glyph
        same = same_requests(state, ask)
        head: Spans = [("chip-ask", f" {glyph} {count} ask "), *_who(state, ask, same)]
        request = _request_spans(ask, state)
        waits: Spans = [("muted", f"oldest waits {formats.duration(self._now_ms - oldest.at_ms)}")]
        onward = [("Ctrl+X w" if self._typing else "w", "next")]
        right: Spans = [*waits, ("text", "   "), *key_spans(onward)]
        if self._keys:
            keys = self._answer_keys(ask, len(same), width - width_of([*head, *request]) - 5)
            if keys and "\n" not in ask.event.argument:
                self.shows_whole = ask.event.request
                right = key_spans(keys)
            else:
                right = key_spans([("Enter", "shows it whole"), *onward])
        if width_of(head) + width_of(right) + 4 > width:
            right = key_spans(onward)
        self.show_spans(between([*head, *request], right, width), "warn")

    def _answer_keys(self, ask: Ask, same: int, room: int) -> list[tuple[str, str]]:
        """Return as many answer keys as fit, once and deny at least; none when those do not."""
        keys = [*ask_keys(ask, same), ("w", "next")]
        dropped = ("_", "e", "A", "a", "w")
        for key in dropped:
            if width_of(key_spans(keys)) <= room:
                return keys
            keys = [pair for pair in keys if pair[0] != key]
        return keys if width_of(key_spans(keys)) <= room else []


def _request_spans(ask: Ask, state: DeckState) -> Spans:
    plan = ask.event.plan
    if plan is not None:
        return [
            ("text", f"   {launch_words(plan, state)}"),
            ("muted", f"   {price_words(plan, state)}"),
        ]
    whole = clean_line(visible_escapes(ask.event.argument.replace("\n", "\u21b5 ")))
    return [("muted", f"   {clean_line(ask.event.tool)} "), ("text", whole)]


def _who(state: DeckState, ask: Ask, same: Sequence[Ask]) -> Spans:
    """Return the runs that ask the same, three at most."""
    who: Spans = []
    for run in [ask.run, *(other.run for other in same)][:3]:
        fork = state.forks.get(run)
        name = clean_line(fork.name) if fork else "parent"
        gap = "   " if who else "  "
        who += [("muted", f"{gap}{run[1:]} " if fork else gap), ("text", name)]
    return who
