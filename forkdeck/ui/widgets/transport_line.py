"""`TransportLine`: where a replay is, how fast it goes, and what it skips.

Data is the transport's `PlaybackFacts`; it is no deck state and nothing here is kept.
"""

from __future__ import annotations

from textual.strip import Strip

from forkdeck.model.ports import PlaybackFacts
from forkdeck.ui import formats
from forkdeck.ui.glyphs import meter_cells
from forkdeck.ui.widgets.line_widget import LineWidget, Spans, between, width_of


class TransportLine(LineWidget):
    """Three rows on `panel`: a blank one, the bar, and the event's number."""

    ALLOW_SELECT = False
    DEFAULT_SHADE = "panel"

    def __init__(
        self,
        facts: PlaybackFacts | None = None,
        *,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._facts = facts
        self._rows: list[Spans] = []

    def update_facts(self, facts: PlaybackFacts) -> None:
        """Show where the replay is now."""
        self._facts = facts
        self._relay()

    def on_resize(self) -> None:
        """Lay out for the new width."""
        self._rows = []
        self._relay()

    def _relay(self) -> None:
        width = self.size.width
        if not width or self._facts is None:
            return
        rows = self._lay(self._facts, width)
        if rows != self._rows:
            self._rows = rows
            self.repaint()

    def _lay(self, facts: PlaybackFacts, width: int) -> list[Spans]:
        mark, word = (self.marks.play, "playing") if facts.playing else (self.marks.pause, "paused")
        at_end = facts.position_ms >= facts.duration_ms and not facts.playing
        word = "ended" if at_end else word
        left: Spans = [
            ("text", "  "), ("strong", f"{mark} {word:<7}"),
            ("text", f"   {formats.duration(facts.position_ms)}"),
            ("muted", f" of {formats.duration(facts.duration_ms)}   "),
        ]  # fmt: skip
        right: Spans = [("text", formats.speed(facts.speed)), ("muted", " speed   skip idle ")]
        right.append(("text", "on" if facts.skip_idle else "off"))
        cells = width - width_of(left) - width_of(right) - 6
        bar: Spans = []
        if cells >= 8:
            share = facts.position_ms / facts.duration_ms if facts.duration_ms else 0.0
            part = min(cells - 1, meter_cells(min(1.0, share), cells))
            bar = [
                ("live", self.marks.meter * part),
                ("text", self.marks.knob),
                ("rule", self.marks.rest * (cells - part - 1)),
            ]
        event: Spans = [
            ("text", "  "), ("muted", "event "), ("text", f"{facts.event:,}"),
            ("muted", f" of {facts.events:,}"),
        ]  # fmt: skip
        line = between([*left, *bar], right, width, margin=2)
        return [[], line, between(event, [], width, margin=2)]

    def render_line(self, y: int) -> Strip:
        """Return one row; a widget one row high shows the bar alone."""
        index = y if self.size.height > 1 else 1
        return self.strip(self._rows[index]) if index < len(self._rows) else self.blank()
