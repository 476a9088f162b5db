"""The box at the foot of a screen: completions, the prompt's text, and a line of facts.

Composed by the start and the deck screen. Its height follows the text; everything else on the
screen is laid out after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from forkdeck.store.cells import cut_end
from forkdeck.ui.history import PromptHistory
from forkdeck.ui.lines import Row, Span, line, outside
from forkdeck.ui.prompt import Completer, PromptArea
from forkdeck.ui.sheet import Sheet

MAX_CHOICES = 8
"""Rows of the list of completions."""


class PromptBox(Vertical):
    """The prompt with its surroundings.

    Args:
        history: Prompts sent before.
        complete: Finds completions.
        blink: Whether the cursor blinks.
        ascii_only: Whether the prompt's mark is ASCII.
    """

    def __init__(
        self, history: PromptHistory, complete: Completer, *, blink: bool, ascii_only: bool
    ) -> None:
        super().__init__(id="prompt-box")
        self.area = PromptArea(history, complete, blink=blink)
        self.choices = Sheet(id="prompt-choices", shade="panel")
        self.info = Sheet(id="prompt-info", shade="panel")
        self.top = Sheet(id="prompt-top", shade="panel")
        self.sign = Sheet(id="prompt-sign", shade="panel")
        self._sign = ">" if ascii_only else "›"
        self.set_class(ascii_only, "-ascii")
        self._facts = ""

    def compose(self) -> ComposeResult:
        """Lay out list, blank row, text, facts."""
        yield self.choices
        with Vertical(id="prompt-frame"):
            yield self.top
            with Horizontal(id="prompt-line"):
                yield self.sign
                yield self.area
            yield self.info

    def on_mount(self) -> None:
        """Draw the sign; the list is closed."""
        self.sign.show([Row(spans=(("muted", f" {self._sign} "),))])
        self.choices.display = False

    def set_low(self, low: bool) -> None:
        """Leave out the blank row on a low screen."""
        self.top.display = not low

    def set_focused(self, focused: bool) -> None:
        """Colour the bar: this zone has the focus, or its cursor rests."""
        self.set_class(focused, "-focused")

    def show_facts(self, facts: str) -> None:
        """Show mode, model and context at the right of the last row."""
        self._facts = facts
        width = self.info.size.width
        if width:
            self.info.show([line([], [("muted", cut_end(outside(facts), width - 2) + " ")],
                                 width=width)])  # fmt: skip

    def on_resize(self) -> None:
        """Draw the facts for the new width."""
        self.call_after_refresh(lambda: self.show_facts(self._facts))

    def show_choices(self, choices: Sequence[tuple[str, str]], chosen: int) -> None:
        """Show what the text may become; an empty list closes it."""
        self.choices.display = bool(choices)
        if not choices:
            return
        width = max(20, self.size.width - 1)
        first = max(0, min(chosen - MAX_CHOICES + 1, len(choices) - MAX_CHOICES))
        first = max(0, first)
        rows: list[Row] = []
        for index, (text, note) in enumerate(choices[first : first + MAX_CHOICES], start=first):
            shown = outside(text.strip().rpartition("\n")[2])
            left: list[Span] = [("strong" if index == chosen else "text", f"    {shown}")]
            if not shown.startswith("/") and " " in shown and "@" in shown:
                left = [(left[0][0], f"    {shown[shown.rindex('@') :]}")]
            rows.append(
                line(left, [("muted", f"{outside(note)} ")] if note else [], width=width,
                     fill="selected" if index == chosen else "",
                     bar="focus" if index == chosen else "")
            )  # fmt: skip
        self.choices.styles.height = len(rows)
        self.choices.show(rows)
