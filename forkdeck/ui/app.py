"""The app: it opens decks through the factory, changes screens, and owns what all screens share.

Made by the command line, which hands in a `DeckFactory`, a clock and plain start values. It
never sees an engine, a network or git.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.screen import Screen

from forkdeck.errors import ForkDeckError
from forkdeck.model.intents import Intent, SendPrompt
from forkdeck.model.ports import Clock, Deck, DeckFactory, SessionSummary, StartFacts
from forkdeck.model.state import EMPTY, DeckState
from forkdeck.store import selectors
from forkdeck.ui import clipboard, theme
from forkdeck.ui.app_actions import AppActions
from forkdeck.ui.attention import Attention
from forkdeck.ui.commands import interpret
from forkdeck.ui.history import PromptHistory
from forkdeck.ui.screens.error import ErrorScreen, Trouble
from forkdeck.ui.screens.quit import quit_dialog
from forkdeck.ui.screens.start import StartScreen
from forkdeck.ui.start_request import StartRequest, speaks_utf8
from forkdeck.ui.terminal import Terminal
from forkdeck.ui.widgets.line_widget import DrawOptions

if TYPE_CHECKING:
    from forkdeck.ui.screens.deck import DeckScreen

_WATCH_AFTER_S = 2.0
"""Theme files are watched only once the first screens stand."""
_WARM_AFTER_S = 0.3
"""Quiet after the first typed character before slow modules are loaded."""


def _deck_screen() -> type[DeckScreen]:
    """Return the deck's screen, loaded when the first deck opens: the first paint is without it."""
    from forkdeck.ui.screens.deck import DeckScreen  # noqa: PLC0415 - as said above

    return DeckScreen


class ForkDeckApp(AppActions, inherit_bindings=False):
    """ForkDeck in a terminal.

    Args:
        factory: Opens decks.
        clock: Time.
        start: What to open first.
        theme_name: The theme; an unknown one is said and the default taken.
        ascii_only: ASCII glyphs; None: only where the locale has no UTF-8.
        reduced_motion: No spinner, no blinking cursor.
        cost_footer: Whether forks and title show what they cost.
        state_dir: Where the prompt history is kept and a copy lands without a clipboard.
        environ: The environment, for the terminal and the editor; never for credentials.
        warm: Loads slow modules, called once when someone begins to type.
    """

    CSS_PATH = None
    BINDINGS: ClassVar[list[BindingType]] = []
    ENABLE_COMMAND_PALETTE = False
    ESCAPE_TO_MINIMIZE = False
    TITLE = "forkdeck"

    def __init__(  # noqa: PLR0913 - each is one plain start value
        self,
        factory: DeckFactory,
        *,
        clock: Clock,
        start: StartRequest | None = None,
        theme_name: str = theme.DEFAULT_THEME,
        ascii_only: bool | None = None,
        reduced_motion: bool = False,
        cost_footer: bool = True,
        state_dir: Path | None = None,
        environ: Mapping[str, str] | None = None,
        warm: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__()
        self.factory = factory
        self.clock = clock
        self.environ = dict(os.environ if environ is None else environ)
        self.state_dir = state_dir
        self.deck: Deck | None = None
        self.draw_options = DrawOptions()
        self.draw_options.ascii_only = (
            not speaks_utf8(self.environ) if ascii_only is None else ascii_only
        )
        self.draw_options.motion = not reduced_motion
        self.draw_options.costs = cost_footer
        self.history = PromptHistory(state_dir / "history.jsonl" if state_dir else None)
        self.terminal = Terminal(self._write)
        self.attention = Attention(self._write)
        self.theme_faults: list[str] = []
        self._start = start or StartRequest()
        self._warm = warm
        self._opening = False
        self._leaving = False
        self._announced: DeckState = EMPTY
        self._themes_end = asyncio.Event()
        self._use_themes(theme_name)

    # --- themes

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Give every variable a value, whatever theme is on."""
        return theme.variable_defaults()

    def _use_themes(self, wanted: str) -> None:
        found, self.theme_faults = theme.load_themes()
        for item in found:
            self.register_theme(item)
        self.theme_names: tuple[str, ...] = tuple(item.name for item in found)
        if wanted not in self.theme_names:
            self.theme_faults.append(f"there is no theme {wanted!r}: {theme.DEFAULT_THEME} is used")
            wanted = theme.DEFAULT_THEME
        self.theme = wanted
        self._theme_changed()

    def _theme_changed(self) -> None:
        self.draw_options.divider = "contrast" in self.theme or self.no_color

    def do_theme(self, name: str = "") -> None:
        """Use another theme, or the next one."""
        if name and name not in self.theme_names:
            self.tell(f"there is no theme {name!r}; there are {', '.join(self.theme_names)}")
            return
        at = self.theme_names.index(self.theme) if self.theme in self.theme_names else -1
        self.theme = name or self.theme_names[(at + 1) % len(self.theme_names)]
        self._theme_changed()
        self.tell(f"theme {self.theme}, for this session; to keep it set ui.theme")

    def reload_themes(self) -> None:
        """Read all theme files again and draw with them; a broken file is named, no theme lost."""
        found, faults = theme.load_themes()
        for item in found:
            self.register_theme(item)
        self.theme_names = tuple(item.name for item in found)
        if self.theme not in self.theme_names:
            # Its file is gone or broken: the colours on screen stay.
            self.theme_names = (*self.theme_names, self.theme)
        self.mutate_reactive(ForkDeckApp.theme)
        self.tell("; ".join(faults) or f"themes read again, {self.theme} is on")

    async def _watch_themes(self) -> None:
        """Follow the person's theme files while the app runs."""
        await theme.watch_themes(
            theme.user_folder(self.environ), self.reload_themes, self._themes_end
        )

    def on_unmount(self) -> None:
        """Let the watcher of the theme files end."""
        self._themes_end.set()

    # --- opening

    async def on_mount(self) -> None:
        """Open what was asked for; the first paint waits for nothing slow."""
        self.run_worker(asyncio.to_thread(self.history.load), group="history")
        start = self._start
        if start.kind in {"start", "sessions"}:
            await self.push_screen(StartScreen())
            if start.kind == "sessions":
                self.do_sessions(replaying=True)
        else:
            await self.push_screen(StartScreen())
            self._open_first(start)
        if not self.is_headless:
            self.call_after_refresh(self._freeze)
            self.set_timer(_WATCH_AFTER_S, self._begin_watching)
        if self.theme_faults:
            self.tell("; ".join(self.theme_faults))

    def _open_first(self, start: StartRequest) -> None:
        match start.kind:
            case "demo":
                self.open_demo()
            case "resume":
                self.open_session(start.target)
            case "replay":
                self.open_replay(start.target)
            case _:
                self.open_live(start.prompt)

    def _begin_watching(self) -> None:
        self.run_worker(self._watch_themes(), group="themes", exit_on_error=False)

    def _freeze(self) -> None:
        """What lives as long as the app is kept out of every later collection."""
        gc.collect()
        gc.freeze()

    def open_start(self) -> None:
        """Show the start screen."""
        self.run_worker(self._replace(StartScreen()), group="screens")

    def open_live(self, prompt: str, first: Intent | None = None) -> None:
        """Open a live session here; `prompt` (or another intent) is sent at once."""
        if prompt.strip():
            outcome = interpret(prompt)
            first = outcome if isinstance(outcome, SendPrompt) else first
            self.history.add(prompt)
        self._open(self.factory.open_live, first)

    def open_demo(self) -> None:
        """Open the demo."""
        self._open(lambda: self.factory.open_live(demo=True))

    def open_session(self, session: str) -> None:
        """Go on with a saved session."""
        self._open(lambda: self.factory.open_live(resume=session))

    def open_replay(self, target: str) -> None:
        """Replay a saved session or a file."""
        self._open(lambda: self.factory.open_replay(target))

    def _open(self, opening: Callable[[], Awaitable[Deck]], first: Intent | None = None) -> None:
        def go() -> None:
            if not self._opening and not self._leaving:
                self._opening = True
                self.tell("opening")
                self.run_worker(self._opened(opening, first), group="open")

        self._after_asking("Close this session?", go)

    async def _opened(self, opening: Callable[[], Awaitable[Deck]], first: Intent | None) -> None:
        try:
            deck = await opening()
        except Exception as error:  # noqa: BLE001 - whatever an opening raises becomes its card
            await self._not_opened(error, asked=isinstance(first, SendPrompt))
            return
        finally:
            self._opening = False
        await self.close_deck()
        self.deck = deck
        self._announced = EMPTY
        screen = (await asyncio.to_thread(_deck_screen))(deck)
        await self._replace(screen)
        if first is not None:
            screen.submit(first)

    async def _not_opened(self, error: Exception, *, asked: bool) -> None:
        if self.deck is not None:
            trouble = Trouble.of(error)
            self.tell(f"{trouble.what} {trouble.remedy}".strip())
            return
        kept = "Your prompt is in the history: press ↑." if asked else ""
        await self._replace(ErrorScreen(Trouble.of(error, kept)))

    async def _replace(self, screen: Screen[None]) -> None:
        while len(self.screen_stack) > 1:
            await self.pop_screen()
        await self.push_screen(screen)

    # --- leaving

    def _after_asking(self, title: str, go: Callable[[], None]) -> None:
        """Do `go`; while something runs, only after the person agreed that it stops."""
        deck = self.deck
        busy = deck is not None and deck.capabilities.live and (
            bool(selectors.living(deck.state)) or deck.state.parent.turn.running
        )  # fmt: skip
        if deck is None or not busy:
            go()
            return

        def answered(yes: bool | None) -> None:
            if yes:
                go()

        self.push_screen(quit_dialog(deck.state, live=True, title=title), answered)

    def clear_session(self, deck: Deck, living: bool) -> None:
        """Close this session and open a new one; `_open` asks when forks live."""
        del deck, living
        self.open_live("")

    def do_quit(self) -> None:
        """Ask, saying what becomes of the forks; without a deck there is nothing to ask."""
        deck = self.deck
        if deck is None:
            self.exit(0)
            return
        if isinstance(self.screen, _deck_screen()) and self._leaving:
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.run_worker(self.leave(), group="leave")

        self.push_screen(quit_dialog(deck.state, live=deck.capabilities.live), answered)

    async def leave(self, return_code: int = 0) -> None:
        """Close the deck (forks stop, work is saved, the log is synced), then exit.

        For the quit dialog and for signals; safe to call twice.
        """
        if self._leaving:
            return
        self._leaving = True
        self.tell("stopping forks, saving their work")
        try:
            await self.close_deck()
        finally:
            self.attention.leave()
            self.exit(return_code, return_code=return_code)

    async def close_deck(self) -> None:
        """Close the deck if one is open."""
        deck, self.deck = self.deck, None
        if deck is not None:
            await deck.close()

    # --- what screens ask for

    async def saved_sessions(self, limit: int) -> tuple[Sequence[SessionSummary], str]:
        """Return saved sessions, and why they cannot be read if they cannot."""
        try:
            return await self.factory.sessions(limit), ""
        except (ForkDeckError, OSError) as error:
            return (), Trouble.of(error).what

    async def start_facts(self) -> tuple[StartFacts | None, str]:
        """Return what is ready here, and why that cannot be told if it cannot."""
        try:
            return await self.factory.start_facts(), ""
        except (ForkDeckError, OSError) as error:
            return None, Trouble.of(error).what

    async def trust_project(self) -> str:
        """Trust the project's files as they are now; returns what was done, or why not."""
        try:
            return await self.factory.trust()
        except (ForkDeckError, OSError) as error:
            return Trouble.of(error).what

    def tell(self, text: str) -> None:
        """Show a line on the screen that can, the topmost first."""
        for screen in reversed(self.screen_stack):
            say = getattr(screen, "say", None)
            if callable(say):
                say(text)
                return

    def typed(self) -> None:
        """Someone types: load what the first request needs, once keys rest a moment."""
        if self._warm is not None:
            warm, self._warm = self._warm, None
            self.set_timer(_WARM_AFTER_S, lambda: self._start_warming(warm))

    def _start_warming(self, warm: Callable[[], Awaitable[None]]) -> None:
        async def run() -> None:
            await warm()

        self.run_worker(run(), group="warm", exit_on_error=False)

    def announce(self, state: DeckState, *, quiet: bool) -> None:
        """Ring and set the title on edges of a newly drawn state."""
        before = self._announced
        if state.asks is before.asks and state.forks is before.forks and (
            state.batches is before.batches and state.session is before.session
        ):  # fmt: skip
            return
        self._announced = state
        self.attention.notice(state, focused=self.app_focus, quiet=quiet)

    async def copy_text(self, text: str) -> None:
        """Copy, and say which way it went."""
        folder = self.state_dir or Path.cwd()
        done = await clipboard.copy(
            text, write=self._write, environ=self.environ, fallback=folder / "copied.txt"
        )
        self.tell(done.text)

    def ask_in_deck(self, action: str) -> None:
        """Go to the deck screen and do one of its actions."""
        for screen in self.screen_stack:
            if isinstance(screen, _deck_screen()):
                self.run_worker(screen.act(action), group="screens")

    def _write(self, sequence: str) -> None:
        """Write a control sequence to the terminal; nothing without one."""
        driver = self._driver
        if driver is not None and not self.is_headless:
            driver.write(sequence)
            driver.flush()
