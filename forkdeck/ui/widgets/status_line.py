"""The one-row lines around the deck: title and footer.

Each takes its facts through `update_state` and paints one row; none of them changes the layout.
What does not fit leaves in a fixed order, and a number is never cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from forkdeck.model.state import DeckState
from forkdeck.store import selectors
from forkdeck.store.cells import cut_end
from forkdeck.store.rows_text import clean_line
from forkdeck.ui import formats
from forkdeck.ui.widgets.line_widget import LineWidget, Spans, between, width_of

Keys = Sequence[tuple[str, str]]

WORDS_FROM = 100
"""From this width on the title's counts have words."""


class StatusLine(LineWidget):
    """One row of spans on a fill."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    StatusLine { height: 1; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._spans: Spans = []
        self._fill = ""

    def show_spans(self, spans: Spans, fill: str = "") -> None:
        """Paint these spans, if they are not the ones on screen."""
        if spans != self._spans or fill != self._fill:
            self._spans, self._fill = spans, fill
            self.repaint()

    def compose_spans(self) -> None:
        """Lay out again for the present width; subclasses fill it."""

    def on_resize(self) -> None:
        """Lay out for the new width."""
        self.compose_spans()

    def palette_changed(self) -> None:
        """Nothing is cached but the spans, which know no colours."""

    def render_line(self, y: int) -> Strip:
        """Return the row."""
        return self.strip(self._spans, self._fill) if y == 0 else self.blank()


def key_spans(keys: Keys) -> Spans:
    """Return keys and their words, three cells apart."""
    spans: Spans = []
    for index, (key, word) in enumerate(keys):
        spans += [("text", "   ")] if index else []
        spans += [("key", key), ("muted", f" {word}")] if word else [("key", key)]
    return spans


class TitleLine(StatusLine):
    """Name, session, branch; counts in order of attention; money against its budget; cache."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._state: DeckState | None = None
        self._chip = ""
        self._note = ""

    def update_state(
        self, state: DeckState, now_ms: int = 0, *, chip: str = "", note: str = ""
    ) -> None:
        """Show a state; `chip` leads the line (``REPLAY``), `note` stands for the branch."""
        del now_ms
        self._state, self._chip, self._note = state, chip, note
        self.compose_spans()

    def compose_spans(self) -> None:
        """Lay out for the present width."""
        state, width = self._state, self.size.width
        if state is None or not width:
            return
        room = width - 3
        whole, names = self._names(state, short=False)
        brief, _ = self._names(state, short=True)
        right = self._figures(state, words=width >= WORDS_FROM)
        if width_of([*whole, *names]) + width_of(right) > room:
            right = self._figures(state, words=False)
        left = room - width_of(right)
        fixed = brief
        kept: Spans = []
        for start, rest in (
            (whole, names), (whole, names[:1]), (brief, names), (brief, names[:1]),
        ):  # fmt: skip
            if width_of([*start, *rest]) <= left:
                fixed, kept = start, rest
                break
        if width_of(fixed) > left:
            # The program's name goes first, then counts from the least pressing on: never money,
            # nor the word that marks simulated money.
            fixed = [(style, text.lstrip()) for style, text in brief if text != "forkdeck"]
            most = len(selectors.counts(state))
            while most and width_of(fixed) + width_of(right) > room:
                most -= 1
                right = self._figures(state, words=False, most=most)
        lead = fixed if self._chip else [("text", " "), *fixed]
        self.show_spans(between([*lead, *kept], right, width))

    def _names(self, state: DeckState, *, short: bool) -> tuple[Spans, Spans]:
        """Return what always stays at the left, and what leaves from its end when room is short."""
        facts = state.session
        fixed: Spans = [("chip-zone", f" {self._chip} "), ("text", " ")] if self._chip else []
        fixed.append(("strong", "forkdeck"))
        if facts.simulated:
            # Simulated money is marked at every width.
            fixed.append(("warn", "  simulated" if short else f"  {clean_line(facts.simulated)}"))
        left: Spans = []
        title = clean_line(facts.title) or clean_line(facts.project)
        if title:
            left.append(("text", f"  {cut_end(title, 32)}"))
        branch = self._note or branch_words(state)
        if branch:
            left.append(("muted", f"  {branch}"))
        return fixed, left

    def _figures(self, state: DeckState, *, words: bool, most: int | None = None) -> Spans:
        """Return counts by state (`most` of them), money against its budget, and cache."""
        width = self.size.width
        counts: Spans = []
        for word, count in selectors.counts(state)[:most]:
            found = self.badge(word)
            text = f"{found.glyph} {count} {word.lower()}" if words else f"{found.glyph} {count}"
            if found.style == "chip-ask":
                counts += [("chip-ask", f" {text} "), ("text", "   ")]
            else:
                counts += [(found.style, text), ("text", "   " if words else "  ")]
        total = selectors.total_cost(state)
        reported = selectors.total_usage(state).prompt_tokens > 0 or total.usd > 0
        money: Spans = [("warn", "! ")] if state.near_limit.startswith("$") else []
        money.append(("strong", formats.cost(total, known=reported)))
        if state.session.budget_usd is not None:
            money.append(("muted", formats.of_budget("", state.session.budget_usd)[1]))
        if not self.options.costs:
            # Without the cost footer only a limit that can stop the session stays on screen.
            return [*counts, *money] if state.session.budget_usd is not None else counts
        share = selectors.cache_share(state)
        cache: Spans = [("muted", "   cache "), ("text", formats.percent(share))]
        right = [*counts, *money, *cache]
        if width_of(right) + 11 > width:
            right = [*counts, *money]
        return right


def branch_words(state: DeckState) -> str:
    """Return the branch and how many files are dirty: ``main +3``."""
    facts = state.session
    if facts.branch is None:
        return clean_line(facts.git_head or "")[:7]
    dirty = f" +{facts.dirty_files}" if facts.dirty_files else ""
    return f"{clean_line(facts.branch)}{dirty}"


class FooterLine(StatusLine):
    """The zone's chip and its keys; keys leave from the right, ``? help`` stays."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._zone = ""
        self._keys: list[tuple[str, str]] = []
        self._right: list[tuple[str, str]] = []

    def update_state(
        self,
        zone: str,
        keys: Keys,
        right: Keys = ((":", "palette"), ("?", "help")),
    ) -> None:
        """Show the zone and its keys; the last of `right` is the one that always stays."""
        self._zone, self._keys, self._right = zone, list(keys), list(right)
        self.compose_spans()

    def compose_spans(self) -> None:
        """Lay out for the present width."""
        width = self.size.width
        if not width or not self._zone:
            return
        chip: Spans = [("chip-zone", f" {clean_line(self._zone)} "), ("text", "  ")]
        keys, right = list(self._keys), list(self._right)
        while keys and self._needs(chip, keys, right) > width:
            if len(right) > 1 and len(keys) <= 5:
                right.pop(0)
            else:
                keys.pop()
        while len(right) > 1 and self._needs(chip, keys, right) > width:
            right.pop(0)
        self.show_spans(between([*chip, *key_spans(keys)], key_spans(right), width))

    def _needs(self, chip: Spans, keys: list[tuple[str, str]], right: list[tuple[str, str]]) -> int:
        return width_of(chip) + width_of(key_spans(keys)) + width_of(key_spans(right)) + 4
