"""The start screen: recent sessions, ways to begin, what is ready, and a prompt.

The first message opens the deck. Without credentials it says what was looked for and offers
the demo and replay.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen

from forkdeck.errors import UsageError
from forkdeck.model.intents import SendPrompt
from forkdeck.model.ports import SessionSummary, StartFacts
from forkdeck.ui.bindings import Zone, footer_keys
from forkdeck.ui.commands import UiAction, completions, interpret, runs_alone
from forkdeck.ui.editor import edit
from forkdeck.ui.keyboard import CTRL_D, Keyed, key_of
from forkdeck.ui.lines import wrapped
from forkdeck.ui.prompt import PromptArea, Purpose
from forkdeck.ui.prompt_box import PromptBox
from forkdeck.ui.sheet import Sheet
from forkdeck.ui.start_rows import RECENT, here_first, start_rows
from forkdeck.ui.widgets.status_line import FooterLine

_HINT = "What should we work on?     / commands     @ file     ! shell"
_HINT_NO_KEY = "No key yet: d plays the demo; Tab comes here for / commands"


class StartScreen(Keyed, Screen[None], inherit_bindings=False):
    """The page of `start_rows` over a prompt."""

    CSS_PATH = ["start.tcss", "../prompt_box.tcss"]
    ESCAPE_TO_MINIMIZE = False

    def __init__(self) -> None:
        super().__init__()
        self.sheet = Sheet(id="start-sheet", focusable=True)
        self.footer = FooterLine(id="start-footer")
        self.note = Sheet(id="start-note", shade="background")
        self.selected = 0
        self.facts: StartFacts | None = None
        self.sessions: Sequence[SessionSummary] | None = None
        self._trouble = ""
        self._box: PromptBox | None = None

    @property
    def zones(self) -> tuple[Zone, ...]:
        """The prompt's zone, or the page's."""
        return ("prompt",) if self.box.area.has_focus else ("start",)

    @property
    def box(self) -> PromptBox:
        """The prompt, made for this app's settings."""
        if self._box is None:
            app = self.deck_app
            self._box = PromptBox(app.history, self._complete, blink=app.draw_options.motion,
                                  ascii_only=app.draw_options.ascii_only)  # fmt: skip
        return self._box

    def compose(self) -> ComposeResult:
        """Lay out page, prompt and footer."""
        yield self.sheet
        yield self.note
        yield self.box
        yield self.footer

    def on_mount(self) -> None:
        """Look around off the first paint."""
        self.box.area.purpose = Purpose(hint=_HINT)
        self.box.area.placeholder = _HINT
        self.note.display = False
        self.box.area.focus()
        self.run_worker(self._load(), exit_on_error=False)
        self.refresh_page()

    async def _load(self) -> None:
        self.sessions, trouble = await self.deck_app.saved_sessions(50)
        self.refresh_page()
        self.facts, more = await self.deck_app.start_facts()
        if self.facts is not None and not self.facts.can_start:
            self.box.area.placeholder = _HINT_NO_KEY
            if not self.box.area.text:
                # Without a key the page is what there is to use: its keys act at once.
                self.sheet.focus()
        if self.facts is not None and self.sessions:
            chosen = self.sessions[min(self.selected, len(self.sessions) - 1)]
            self.sessions = here_first(self.sessions, self.facts.cwd)
            if self.selected:
                self.selected = min(self.sessions.index(chosen), RECENT - 1)
        self._trouble = trouble or more
        self.refresh_page()
        if self._trouble:
            self.say(self._trouble)

    async def _complete(self, before: str) -> Sequence[tuple[str, str]]:
        return completions(before, (), self.deck_app.theme_names)

    def refresh_page(self) -> None:
        """Draw the page and the footer for focus and size."""
        width, height = self.sheet.size
        focused = self.sheet.has_focus
        if width and height:
            rows = start_rows(
                self.facts, self.sessions, selected=self.selected, width=width, height=height,
                now=self.deck_app.clock.now(), focused=focused,
                ascii_=self.deck_app.draw_options.ascii_only,
            )  # fmt: skip
            self.sheet.show(rows)
        self.box.set_low(self.size.height < 30)
        self.box.set_focused(not focused)
        self.box.show_facts("new session")
        left, right = footer_keys(self.zones)
        idle = {"open", "move"} if not self.sessions else set[str]()
        if self.facts is not None and not self.facts.can_start:
            idle |= {"open", "new"}
        if focused:
            # The footer names what acts here: no key opens what is not there.
            left = [pair for pair in left if pair[1] not in idle]
        self.footer.update_state("START" if focused else "PROMPT", left, right)

    def say(self, text: str) -> None:
        """Show a message above the prompt, whole, until the next key."""
        self.note.display = bool(text)
        width = max(10, self.size.width)
        rows = wrapped(f"! {text}", width=width, margin=1, style="text", fill="warn")
        self.note.styles.height = len(rows)
        self.note.show(rows)

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.call_after_refresh(self.refresh_page)

    def on_descendant_focus(self) -> None:
        """The zone changed."""
        self.refresh_page()

    async def on_key(self, event: events.Key) -> None:
        """Do what the key means here."""
        if self.note.display and not self._trouble:
            self.note.display = False
        if key_of(event) == "ctrl+d" and self.box.area.has_focus and self.box.area.text:
            if self.box.area.cursor_at_end_of_text:
                self.say(CTRL_D)
            return
        if await self.press(event):
            event.stop()

    def on_sheet_clicked(self, event: Sheet.Clicked) -> None:
        """Open a session that was clicked twice, select it when clicked once."""
        if event.sheet is not self.sheet or not self.sessions:
            return
        heads = [
            index
            for index, row in enumerate(self.sheet.rows)
            if row.text.strip().startswith("recent")
        ]
        if heads and 0 <= event.index - heads[0] - 2 < min(RECENT, len(self.sessions)):
            self.selected = event.index - heads[0] - 2
            self.refresh_page()

    # --- the prompt

    def on_prompt_area_choices(self, event: PromptArea.Choices) -> None:
        """Show completions."""
        self.box.show_choices(event.choices, event.chosen)

    async def on_prompt_area_sent(self, event: PromptArea.Sent) -> None:
        """The first message opens the deck; a command acts here."""
        await self._sent(event.text)

    async def _sent(self, typed: str) -> None:
        try:
            outcome = interpret(typed)
        except UsageError as error:
            self.say(f"{error.what} {error.remedy}")
            return
        if isinstance(outcome, UiAction):
            if not await self.act(outcome.name, *([outcome.argument] * bool(outcome.argument))):
                self.say("That needs an open session: type a prompt to begin one.")
            return
        if self.facts is not None and not self.facts.can_start:
            self.box.area.put(typed)
            self.say(self.facts.missing.partition("\n")[0] or "There is no key for a live session.")
            return
        text = typed if isinstance(outcome, SendPrompt) else ""
        self.deck_app.open_live(text, None if text else outcome)

    # --- keys

    def do_zone_deck(self) -> None:
        """From the prompt to the page."""
        self.sheet.focus()

    def do_zone_prompt(self) -> None:
        """From the page to the prompt."""
        self.box.area.focus()

    def do_out(self) -> None:
        """Esc ends at the prompt."""
        self.box.area.focus()

    def do_list_down(self) -> None:
        """Next session."""
        self._choose(self.selected + 1)

    def do_list_up(self) -> None:
        """Previous session."""
        self._choose(self.selected - 1)

    def _choose(self, index: int) -> None:
        count = min(RECENT, len(self.sessions or ()))
        if not count:
            self.sheet.scroll_rows(1 if index > self.selected else -1)
            return
        self.selected = max(0, min(index, count - 1))
        self.refresh_page()

    def _open(self, index: int) -> None:
        if self.sessions and index < len(self.sessions):
            self.deck_app.open_session(self.sessions[index].session)

    def do_start_open(self) -> None:
        """Go on with the selected session."""
        self._open(self.selected)

    def do_start_number(self) -> None:
        """Go on with a session by its number."""
        self._open(int(self.key) - 1)

    def do_start_new(self) -> None:
        """Open an empty deck here."""
        self.deck_app.open_live("")

    def do_start_demo(self) -> None:
        """Open the demo."""
        self.deck_app.open_demo()

    def do_start_replay(self) -> None:
        """Replay the selected session."""
        if self.sessions and self.selected < len(self.sessions):
            self.deck_app.open_replay(self.sessions[self.selected].session)

    def do_start_sessions(self) -> None:
        """All sessions, ready to search."""
        self.deck_app.do_sessions(searching=True)

    def do_trust(self) -> None:
        """The project's files, and whether to trust them, before a session begins."""
        from forkdeck.ui.screens.trust import TrustScreen  # noqa: PLC0415 - after the first paint

        def grant() -> None:
            self.run_worker(self._trust(), exit_on_error=False)

        self.deck_app.push_screen(TrustScreen(grant))

    async def _trust(self) -> None:
        said = await self.deck_app.trust_project()
        await self._load()
        self.say(said)

    async def do_prompt_editor(self) -> None:
        """Write the prompt in the person's editor."""
        try:
            text = await edit(self.deck_app, self.box.area.whole_text, self.deck_app.environ)
        except UsageError as error:
            self.say(f"{error.what} {error.remedy}".strip())
            return
        self.box.area.put(text)

    def put_command(self, command: str) -> None:
        """Begin a command in the prompt, as the palette does; one without arguments runs."""
        if runs_alone(command):
            self.run_worker(self._sent(command), group="screens")
            return
        self.box.area.focus()
        self.box.area.put(f"{command} ")

    def on_prompt_area_typed(self, event: PromptArea.Typed) -> None:
        """Someone types: what the first request needs can be loaded."""
        event.stop()
        if self.box.area.text:
            self.deck_app.typed()

    def do_interrupt(self) -> None:
        """Clear the prompt; with nothing in it, the quit dialog."""
        if self.box.area.text:
            self.box.area.clear_text()
        else:
            self.deck_app.do_quit()
