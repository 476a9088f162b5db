"""The deck screen: parent, forks, strips, prompt and footer, drawn from one state.

It holds the deck's state in one reactive value, which only the flush assigns; the watcher hands
what changed to the widgets. Live and replay are the same to it but for the transport.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from textual import events
from textual.app import ComposeResult

from forkdeck.model.ids import PARENT
from forkdeck.model.intents import NoteTyping, SettleFork
from forkdeck.model.ports import Deck, Transport
from forkdeck.model.state import DeckState
from forkdeck.store import selectors
from forkdeck.store.flags import pace_words
from forkdeck.store.rows_cards import hides_some
from forkdeck.ui import formats
from forkdeck.ui.approvals import AnswerGuard
from forkdeck.ui.bindings import footer_keys
from forkdeck.ui.flush import Flush, Flusher, Ticker
from forkdeck.ui.layout import MIN_HEIGHT, MIN_WIDTH, assign, plan
from forkdeck.ui.lines import Row
from forkdeck.ui.prompt import PromptArea
from forkdeck.ui.prompt_box import PromptBox
from forkdeck.ui.screens.deck_acts import DeckActs
from forkdeck.ui.screens.deck_base import View
from forkdeck.ui.screens.deck_body import DeckBody
from forkdeck.ui.screens.deck_keys import DeckKeys
from forkdeck.ui.screens.deck_talk import DeckTalk
from forkdeck.ui.sheet import Sheet
from forkdeck.ui.widgets.ask_strip import AskStrip
from forkdeck.ui.widgets.pane import Pane
from forkdeck.ui.widgets.status_line import FooterLine, TitleLine
from forkdeck.ui.widgets.timeline import Timeline, lanes_of
from forkdeck.ui.widgets.transport_line import TransportLine

_LOW = 30
"""Below this height the prompt has no blank row."""

MAX_TIMELINE = 12
"""Rows of the timeline at most; it scrolls with the selection."""


class DeckScreen(DeckKeys, DeckActs, DeckTalk):
    """A running or replayed session.

    Args:
        deck: The session.
    """

    CSS_PATH = ["deck.tcss", "../prompt_box.tcss"]
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, deck: Deck) -> None:
        super().__init__()
        self.deck = deck
        self.view = View()
        self.guard = AnswerGuard()
        self.plan = None
        self.flush = Flush(urgent=True)
        self.message, self.message_until = None, bool
        self.leader, self.led = False, None
        self.asked_to_settle = set()
        self.body = DeckBody()
        self.title_line = TitleLine(id="title")
        self.strip = AskStrip(id="strip")
        self.footer = FooterLine(id="footer")
        self.small = Sheet(id="small")
        self._prompt_waits = False
        self.timeline = Timeline(id="timeline")
        self.transport_line = TransportLine(id="transport")
        self._lanes_of: DeckState | None = None
        self._typing = False
        self._strip_rows = 1
        self._unsubscribe: Callable[[], None] = lambda: None

    def compose(self) -> ComposeResult:
        """Lay out: the body takes what title, strips, prompt and footer leave."""
        app = self.deck_app
        options = app.draw_options
        self.box = PromptBox(app.history, self.complete, blink=options.motion,
                             ascii_only=options.ascii_only)  # fmt: skip
        yield self.small
        yield self.title_line
        yield self.body
        yield self.timeline
        yield self.transport_line
        yield self.strip
        yield self.box
        yield self.footer

    def on_mount(self) -> None:
        """Begin to follow the deck."""
        self.small.display = False
        self.strip.display = False
        self.timeline.display = self.replaying
        self.transport_line.display = self.replaying
        self.area.hold_key = self._holds
        loop = asyncio.get_running_loop()
        self.flusher = Flusher(
            self._draw,
            set_interval=self._paused_interval,
            call_soon=loop.call_soon,
            seconds=time.perf_counter,
        )
        self._unsubscribe = self.deck.subscribe(self.flusher.wake)
        if self.replaying:
            self.box.display = False
            self.body.focus()
        else:
            self.area.focus()
        self.flusher.flush()

    def _paused_interval(self, seconds: float, callback: Callable[[], None]) -> Ticker:
        return self.set_interval(seconds, callback, pause=True)

    def on_unmount(self) -> None:
        """Stop following; the app closes the deck."""
        self._unsubscribe()
        self.flusher.close()

    # --- drawing

    def _draw(self, flush: Flush) -> None:
        """Draw one flush: a newer state, or only the time."""
        self.flush = flush
        state = self.deck.state
        if flush.spin and state is self.state:
            self._show(state, state)
        else:
            self.state = state

    def watch_state(self, old: DeckState, new: DeckState) -> None:
        """Hand what changed to the widgets."""
        if new.forks is not old.forks:
            self._forks_changed(old, new)
        self._show(old, new)

    def _forks_changed(self, old: DeckState, new: DeckState) -> None:
        if self.view.selected != PARENT and self.view.selected not in new.forks:
            self.view.selected = PARENT
            self.view.zoomed = False
        self.view.order = tuple(self.kept_order())
        if len(new.forks) != len(old.forks) or self.plan is None:
            self.replan()

    def _show(self, old: DeckState, new: DeckState) -> None:
        flush = self.flush
        now_ms = self.deck.now_ms()
        if self.plan is None:
            self.replan()
        self.body.draw(old, new, now_ms, self.view, board=flush.board, spin=flush.spin,
                       recorded=self.replaying)  # fmt: skip
        self.draw_lines()
        self.flusher.running(self._runs(new))
        self._seen(new)
        self.deck_app.announce(new, quiet=self.replaying)

    def _runs(self, state: DeckState) -> bool:
        transport = self.deck.transport
        if transport is not None:
            return transport.facts.playing
        return state.parent.turn.running or bool(state.asks) or bool(selectors.living(state))

    def draw_lines(self) -> None:
        """Draw title, strip, prompt facts, transport and footer."""
        if not self.is_attached:
            return
        state, now_ms = self.state, self.deck.now_ms()
        self.title_line.update_state(state, now_ms, chip="REPLAY" if self.replaying else "")
        if self.message is not None and self.message_until(state):
            self.message = None
        ask = self.shown_ask
        card = ask is not None and any(pane.card_visible for pane in self.ask_panes(ask))
        keys = ask is not None and not (card or self.in_prompt or self.replaying)
        self.strip.paced = self._paced(state)
        self.strip.update_state(state, now_ms, keys=keys, ask=None if self.in_prompt else ask,
                                typing=self.in_prompt,
                                selected=None if self.replaying else self.view.selected,
                                trouble=self.trouble(), message=self.message)  # fmt: skip
        if self.strip.display != self.strip.wanted:
            self.strip.display = self.strip.wanted
        if self.strip.rows_shown != self._strip_rows:
            self._strip_rows = self.strip.rows_shown
            self.strip.styles.height = self._strip_rows
        self.box.show_facts(self._facts(state))
        self.box.set_focused(self.in_prompt)
        transport = self.deck.transport
        if transport is not None:
            self.transport_line.update_facts(transport.facts)
            if self.timeline.display:
                self._draw_timeline(state, transport)
        self._draw_footer()

    def _paced(self, state: DeckState) -> str:
        """Say that requests are held back, unless the board's head says it already."""
        return "" if self.plan is not None and self.plan.board else pace_words(state)

    def _draw_timeline(self, state: DeckState, transport: Transport) -> None:
        facts = transport.facts
        whole = getattr(transport, "final_state", None)
        last = whole if isinstance(whole, DeckState) else state
        if last is not self._lanes_of:
            self._lanes_of = last
            self.timeline.update_lanes(lanes_of(last, facts.duration_ms), last, facts.duration_ms)
            self.timeline.styles.height = min(MAX_TIMELINE, self.timeline.wanted_height)
        self.timeline.update_position(facts.position_ms, self.view.selected)

    def trouble(self) -> str:
        """Return why lines of the log are unsaved, or an empty string."""
        found = getattr(self.deck, "trouble", None)
        return found if isinstance(found, str) else ""

    def _draw_footer(self) -> None:
        able = self.deck.capabilities
        left, right = footer_keys(self.zones, live=able.live and not able.recorded,
                                  worktrees=able.worktrees)  # fmt: skip
        if self.in_prompt:
            chip = (
                "PROMPT" if self.area.purpose.kind == "parent" else self.area.purpose.kind.upper()
            )
            if self.area.purpose.kind != "parent":
                left = [("Enter", "send"), ("Esc", "back")]
        elif self.view.zoomed:
            chip = f"ZOOM {self.fork[1:]}" if self.fork else "ZOOM"
            left = [("Esc", "deck"), *left]
        else:
            chip = "REPLAY" if self.replaying else "DECK"
        self.footer.update_state(chip, left, right)

    def _facts(self, state: DeckState) -> str:
        run = state.parent
        if self.view.zoomed and self.fork is not None:
            run = state.runs.get(self.fork, run)
        head = run.head or state.parent.head
        model = head.model if head else state.session.model
        context = formats.context(run.context_tokens, head.context_tokens if head else None)
        queued = f"{len(state.prompts)} queued" if state.prompts else ""
        level = "" if state.session.level in {None, "sandboxed"} else str(state.session.level)
        parts = (queued, level, state.session.mode, model, context)
        return "   ".join(part for part in parts if part)

    # --- layout

    def replan(self) -> None:
        """Lay the body out for size, forks and view; then draw it."""
        width, height = self.body.size
        tiny = self.size.width < MIN_WIDTH or self.size.height < MIN_HEIGHT
        self._set_tiny(tiny)
        if tiny or not width or not height:
            return
        if not self.view.order:
            self.view.order = tuple(self.kept_order())
        count = len(self.view.order) if self.view.only_owed else len(self.state.forks)
        self.plan = plan(width, height, count, density=self.view.density, zoomed=self.view.zoomed)
        if self.plan.zoomed:
            shown = [self.view.selected]
        else:
            places = len(self.plan.panes)
            order = list(self.view.order)
            if places >= len(order):
                order = [handle for handle in self.state.forks if handle in set(order)]
                self.view.panes = ()
            selected = self.view.selected if self.view.selected != PARENT else None
            shown = assign(places, self.view.panes, order, selected)
            self.view.panes = tuple(shown)
        self.box.set_low(self.size.height < _LOW)
        self.body.apply(self.plan, shown)
        self.body.draw_all(self.state, self.deck.now_ms(), self.view, recorded=self.replaying)
        self.mark_selection()
        self.after_scroll()

    def _set_tiny(self, tiny: bool) -> None:
        if tiny == self.small.display:
            return
        if tiny:
            # What is hidden loses the focus; it gets it back with the room.
            self._prompt_waits = self.in_prompt
        self.small.display = tiny
        for widget in (self.title_line, self.body, self.footer):
            widget.display = not tiny
        self.box.display = not tiny and not self.replaying
        self.strip.display = not tiny and self.strip.wanted
        self.timeline.display = not tiny and self.replaying
        self.transport_line.display = not tiny and self.replaying
        if tiny:
            text = f"forkdeck needs {MIN_WIDTH}x{MIN_HEIGHT} cells, here are"
            text += f" {self.size.width}x{self.size.height}; all goes on running"
            self.small.show([Row(spans=(("text", text),))])
        elif self._prompt_waits:
            self.box.area.focus()

    def on_resize(self) -> None:
        """Lay out again; a timeline needs room of its own."""
        if self.replaying:
            self.timeline.display = self._timeline and self.size.height >= 26
        self.call_after_refresh(self.replan)

    def mark_selection(self) -> None:
        """Draw the focus bar where it is now."""
        self.body.mark(self.view.selected, focused=not self.in_prompt)

    # --- reading

    def _seen(self, state: DeckState) -> None:
        """Note what is on screen: a card that may be answered, a report that was read."""
        ask, pane = self.shown_ask, self.pane
        panes = [] if ask is None else self.ask_panes(ask)
        request = "" if ask is None else ask.event.request
        strip = bool(request) and self.strip.shows_whole == request
        shown = request if request and (panes or strip) else None
        read = ask is not None and (
            ask.event.plan is not None or not hides_some(ask.event.argument)
        )
        whole = strip or (read and any(each.card_visible for each in panes))
        self.guard.showing(shown, self.now_ms(), whole=whole)
        handle = self.fork
        reading = self.view.zoomed or self.view.peeking
        if handle is None or not reading or pane is None or self.replaying:
            return
        fork = state.forks[handle]
        mark = (handle, fork.owed_at_ms)
        if fork.owed and fork.settled and pane.at_end and mark not in self.asked_to_settle:
            self.asked_to_settle.add(mark)
            self.submit(SettleFork(handle=handle, how="read"))

    def after_scroll(self) -> None:
        """A card or a report may have come on screen to its last line."""
        self.draw_lines()
        self._seen(self.state)

    def on_pane_laid_out(self, event: Pane.LaidOut) -> None:
        """A pane has its new size only after the layout: what is on screen is judged again."""
        event.stop()
        if self.plan is not None:
            self.after_scroll()

    # --- keys

    def _holds(self, event: events.Key) -> bool:
        """Keys the prompt leaves to the screen: what follows Ctrl+X, and ↑ for a queued prompt.

        The leader is taken here: bubbling up, it would be overtaken by the key after it.
        """
        if self.leader:
            self.leader, self.led = False, event
            return True
        if event.key == "ctrl+x" and not self.area.selected_text:
            self.do_leader()
            self.guard.key_came(self.now_ms())
            event.stop()
            return True
        return event.key == "up" and self.take_back()

    def on_descendant_focus(self) -> None:
        """The zone changed."""
        self._zone_changed()

    def on_descendant_blur(self) -> None:
        """The zone changed."""
        self._zone_changed()

    def _zone_changed(self) -> None:
        if self.plan is not None:
            self.mark_selection()
            self.draw_lines()

    def on_deck_body_picked(self, event: DeckBody.Picked) -> None:
        """A click selects; a click on what is selected already, in the deck zone, zooms."""
        if event.run == self.view.selected and not self.in_prompt:
            if not self.view.zoomed:
                self.do_zoom_toggle()
            return
        self.select(event.run)
        if self.in_prompt:
            self.focus_deck()

    async def on_deck_body_asked(self, event: DeckBody.Asked) -> None:
        """A click on a fact that stands for an action."""
        await self.act(event.action)

    def on_prompt_area_typed(self, event: PromptArea.Typed) -> None:
        """The prompt's rows may have changed the body's height."""
        event.stop()
        typing = bool(self.area.text)
        if typing:
            self.deck_app.typed()
        if typing != self._typing and not self.replaying:
            self._typing = typing
            self.submit(NoteTyping(typing=typing))
        self._draw_footer()
