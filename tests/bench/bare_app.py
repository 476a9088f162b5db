"""The floor: the smallest Textual app with one text and one input, run in a terminal."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Input, Static


class BareApp(App[None]):
    """One text, one input."""

    def compose(self) -> ComposeResult:
        """Lay out both."""
        yield Static("BARE READY")
        yield Input(placeholder="type here")


if __name__ == "__main__":
    BareApp().run()
