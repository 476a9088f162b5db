"""Actions that every screen has: help, palette, session list, repaint, mouse, quit.

A part of the app; screens fall back on it for keys they do not handle themselves.
"""

from __future__ import annotations

from typing import cast

from textual.app import App

from forkdeck.model.ports import Deck
from forkdeck.ui.bindings import Zone
from forkdeck.ui.screens.help import HelpScreen
from forkdeck.ui.screens.palette import Entry, PaletteScreen
from forkdeck.ui.screens.sessions import SessionsScreen
from forkdeck.ui.terminal import Terminal
from forkdeck.ui.widgets.line_widget import DrawOptions


class AppActions(App[int], inherit_bindings=False):
    """See `ForkDeckApp`, which gives what is declared here."""

    deck: Deck | None
    draw_options: DrawOptions
    terminal: Terminal

    def tell(self, text: str) -> None:
        """Show a line on the topmost screen that can."""
        raise NotImplementedError

    def open_replay(self, target: str) -> None:
        """Replay a saved session or a file."""
        raise NotImplementedError

    def do_quit(self) -> None:
        """Quit, after asking."""
        raise NotImplementedError

    # --- actions of every screen

    @property
    def _zone(self) -> tuple[Zone, ...]:
        return cast("tuple[Zone, ...]", getattr(self.screen, "zones", ("start",)))

    def _able(self) -> tuple[bool, bool]:
        if self.deck is None:
            return True, True
        able = self.deck.capabilities
        return able.live and not able.recorded, able.worktrees

    def do_help(self) -> None:
        """The keys of this zone."""
        live, worktrees = self._able()
        self.push_screen(
            HelpScreen(self._zone[0], live=live, worktrees=worktrees,
                       ascii_only=self.draw_options.ascii_only)
        )  # fmt: skip

    do_prompt_help = do_help

    def do_palette(self) -> None:
        """Every command."""
        live, worktrees = self._able()
        asked_on = self.screen

        def chosen(entry: Entry | None) -> None:
            if entry is not None:
                self.run_worker(self._do_entry(asked_on, entry), group="screens")

        self.push_screen(PaletteScreen(self._zone, live=live, worktrees=worktrees), chosen)

    async def _do_entry(self, screen: object, entry: Entry) -> None:
        if entry.command:
            put = getattr(screen, "put_command", None)
            if callable(put):
                put(entry.command)
            return
        act = getattr(screen, "act", None)
        if act is not None:
            setattr(screen, "key", entry.key)  # noqa: B010 - screens of several types
            await act(entry.action)

    def do_sessions(self, *, searching: bool = False, replaying: bool = False) -> None:
        """The list of saved sessions; Enter goes on with one, or plays it."""
        self.push_screen(SessionsScreen(searching=searching, replaying=replaying))

    def do_replay(self, target: str = "") -> None:
        """Replay a session, or choose one."""
        if target:
            self.open_replay(target)
        else:
            self.do_sessions(replaying=True)

    def do_repaint(self) -> None:
        """Paint the whole screen anew."""
        self.terminal.clear()
        self.screen.refresh(layout=True)

    def do_mouse(self) -> None:
        """Give the mouse to the terminal, or take it back."""
        on = self.terminal.toggle_mouse()
        self.tell("mouse on" if on else "mouse off: the terminal selects; F8 turns it on")

    def do_interrupt(self) -> None:
        """Ctrl+C where nothing else wants it: the quit dialog."""
        self.do_quit()

    def do_out(self) -> None:
        """Esc where nothing is further out."""
