"""A small app that lays the widgets out as the deck does, fed with states by hand."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.geometry import Region

from forkdeck.model.ids import PARENT
from forkdeck.model.state import DeckState
from forkdeck.store import selectors
from forkdeck.ui.theme import load_themes, shipped_folder, variable_defaults
from forkdeck.ui.widgets.ask_strip import AskStrip
from forkdeck.ui.widgets.board import Board
from forkdeck.ui.widgets.empty import EmptyDeck
from forkdeck.ui.widgets.facts import Facts
from forkdeck.ui.widgets.facts_of import deck_sections
from forkdeck.ui.widgets.line_widget import DrawOptions, Gap, LineWidget
from forkdeck.ui.widgets.pane import Pane
from forkdeck.ui.widgets.status_line import FooterLine, TitleLine

KEYS = (
    ("Tab", "prompt"), ("j k", "move"), ("Enter", "zoom"), ("Space", "peek"), ("x", "abort"),
    ("d", "diff"), ("m", "merge"), ("w", "next owed"),
)  # fmt: skip


class ThemedApp(App[None]):
    """An app with our themes and nothing else."""

    def __init__(self, *, theme: str = "forkdeck-dark", options: DrawOptions | None = None) -> None:
        super().__init__()
        self.draw_options = options or DrawOptions()
        folder = shipped_folder()
        assert folder is not None
        for found in load_themes([folder])[0]:
            self.register_theme(found)
        self.theme = theme

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()


class DeckHost(ThemedApp):
    """Parent, panes or board, strip and footer at any size."""

    CSS = """
    #parent { width: 48%; }
    #list { width: 1fr; }
    #facts { height: 1fr; }
    #right { width: 1fr; }
    """

    def __init__(
        self,
        state: DeckState,
        now_ms: int,
        *,
        panes: tuple[str, ...] = (),
        theme: str = "forkdeck-dark",
        options: DrawOptions | None = None,
        selected: str | None = None,
    ) -> None:
        super().__init__(theme=theme, options=options)
        self.state, self.now_ms, self.selected = state, now_ms, selected
        self.pane_runs = panes

    def compose(self) -> ComposeResult:
        yield TitleLine(id="title")
        with Horizontal():
            yield Pane(PARENT, id="parent")
            yield Gap(id="gap")
            with Vertical(id="right"):
                if not self.state.forks:
                    yield EmptyDeck(id="empty")
                for run in self.pane_runs:
                    yield Pane(run, id=f"pane-{run}")
                if self.state.forks and not self.pane_runs:
                    yield Board(id="board")
                    yield Facts(id="facts")
        yield AskStrip(id="strip")
        yield FooterLine(id="footer")

    def on_mount(self) -> None:
        self.call_after_refresh(self.feed)

    def feed(self, state: DeckState | None = None) -> None:
        self.state = state or self.state
        state, now = self.state, self.now_ms
        self.query_one(TitleLine).update_state(state, now)
        for pane in self.query(Pane):
            pane.update_state(state, now)
            pane.selected = pane.run == self.selected
        for board in self.query(Board):
            board.update_state(state, now, self.selected, selectors.attention_order(state))
        for facts in self.query(Facts):
            facts.update_sections(deck_sections(state, now))
        for empty in self.query(EmptyDeck):
            empty.update_state(state, now)
        self.query_one(AskStrip).update_state(state, now)
        self.query_one(FooterLine).update_state("DECK", KEYS)


class OneHost(ThemedApp):
    """One widget over the whole screen."""

    def __init__(
        self,
        widget: LineWidget,
        *,
        theme: str = "forkdeck-dark",
        options: DrawOptions | None = None,
    ) -> None:
        super().__init__(theme=theme, options=options)
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


def text_of(widget: LineWidget) -> list[str]:
    """Return what a widget shows, row by row, without trailing blanks."""
    width, height = widget.size
    strips = widget.render_lines(Region(0, 0, width, height))
    return [strip.text.rstrip() for strip in strips]
