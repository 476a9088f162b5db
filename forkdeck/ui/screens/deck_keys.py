"""Keys of the deck screen as such: the table, the leader, the two zones, the way outward."""

from __future__ import annotations

from textual import events

from forkdeck.model.ids import PARENT
from forkdeck.ui.bindings import LEADER
from forkdeck.ui.keyboard import CTRL_D, key_of
from forkdeck.ui.screens.deck_moves import DeckMoves

_QUIET_KEYS = frozenset(("up", "down", "j", "k", "pageup", "pagedown"))
"""Keys that leave the last message where it is."""


class DeckKeys(DeckMoves):
    """From a key to its action, and from zone to zone."""

    async def on_key(self, event: events.Key) -> None:
        """Do what the key means in this zone."""
        key = key_of(event)
        led = self.leader or event is self.led
        handled = await self._lead(key) if led else await self._plain(event, key)
        if handled:
            event.stop()
        if self.is_attached:
            self.guard.key_came(self.now_ms())
            self.flusher.key()

    async def _lead(self, key: str) -> bool:
        self.leader, self.led = False, None
        action = LEADER.get(key)
        if action is None:
            self.say("Ctrl+X is followed by 1–9, 0, w or x")
            return True
        self.key = key
        self.message = None
        await self.act(action)
        return True

    async def _plain(self, event: events.Key, key: str) -> bool:
        if self.in_prompt and key == "ctrl+x" and self.area.selected_text:
            return False
        if self.in_prompt and key == "ctrl+d" and self.area.text:
            if self.area.cursor_at_end_of_text:
                self.say(CTRL_D)
            return False
        return await self.press(event)

    def before_key(self, key: str) -> None:
        """A key that acts takes the last message away."""
        if self.message is not None and key not in _QUIET_KEYS:
            self.message = None
            self.draw_lines()

    def do_leader(self) -> None:
        """Wait for the second key."""
        self.leader = True

    def do_zone_deck(self) -> None:
        """From the prompt to the deck; without a selection, to who needs the person most."""
        if self.view.selected == PARENT and self.view.order and not self.view.zoomed:
            self.view.order = tuple(self.fresh_order())
            self.select(self.view.order[0] if self.view.order else PARENT)
        self.focus_deck()

    def do_zone_prompt(self) -> None:
        """From the deck to the prompt."""
        if self.replaying:
            self.say("a replay takes no prompt: : has every command")
            return
        self.focus_prompt()

    def do_out(self) -> None:
        """One step outward, at last the prompt; nothing is stopped."""
        if self.in_prompt and self.area.purpose.kind not in {"parent", "steer", "resume"}:
            self.focus_deck()
        elif self.view.zoomed:
            self.do_zoom_toggle()
        elif self.in_prompt and self.area.purpose.kind != "parent":
            self.view.peeking = False
            self.focus_deck()
        elif not self.in_prompt and not self.replaying:
            self.focus_prompt()
        elif self.state.parent.turn.running and not self.replaying:
            self.say("Ctrl+C interrupts the parent; Esc stops nothing")
