"""The transport keys: they exist only in a replay."""

from __future__ import annotations

import re

from forkdeck.model.ports import Transport
from forkdeck.ui.prompt import Purpose
from forkdeck.ui.screens.deck_base import DeckBase

_STEP_MS = 5_000
_MIN_SPEED, _MAX_SPEED = 0.25, 32.0


def place_ms(text: str, duration_ms: int) -> int | None:
    """Return the place a person names: ``50%``, ``2:31``, ``1:02:03`` or seconds; else None."""
    text = text.strip()
    percent = re.fullmatch(r"(\d{1,3}(?:\.\d+)?)\s*%", text)
    if percent:
        return int(duration_ms * min(100.0, float(percent[1])) / 100)
    parts = re.fullmatch(r"(?:(\d{1,3}):)?(?:(\d{1,3}):)?(\d{1,6}(?:\.\d+)?)", text)
    if not parts:
        return None
    numbers = [float(part) for part in parts.groups() if part]
    seconds = 0.0
    for number in numbers:
        seconds = seconds * 60 + number
    return int(seconds * 1000)


class DeckReplay(DeckBase):
    """Play, pause, step, seek, speed."""

    _timeline: bool = True

    def _transport(self) -> Transport | None:
        return self.deck.transport

    def moved(self) -> None:
        """Draw the place after a key."""
        self.flusher.flush()

    def do_replay_toggle(self) -> None:
        """Play or pause."""
        transport = self._transport()
        if transport is not None:
            if transport.facts.playing:
                transport.pause()
            else:
                transport.play()
            self.moved()

    def do_replay_next(self) -> None:
        """One event forward."""
        self._step_events(1)

    def do_replay_previous(self) -> None:
        """One event back."""
        self._step_events(-1)

    def _step_events(self, events: int) -> None:
        transport = self._transport()
        if transport is not None:
            transport.step(events)
            self.moved()

    def do_replay_forward(self) -> None:
        """Five seconds forward."""
        self._seek(_STEP_MS)

    def do_replay_back(self) -> None:
        """Five seconds back."""
        self._seek(-_STEP_MS)

    def _seek(self, by_ms: int) -> None:
        transport = self._transport()
        if transport is not None:
            transport.seek_ms(transport.facts.position_ms + by_ms)
            self.moved()

    def do_replay_slower(self) -> None:
        """Half the speed."""
        self._speed(0.5)

    def do_replay_faster(self) -> None:
        """Twice the speed."""
        self._speed(2.0)

    def _speed(self, factor: float) -> None:
        transport = self._transport()
        if transport is not None:
            wanted = transport.facts.speed * factor
            transport.set_speed(max(_MIN_SPEED, min(_MAX_SPEED, wanted)))
            self.moved()

    def do_replay_idle(self) -> None:
        """Cut idle time, or play it in full."""
        transport = self._transport()
        if transport is not None:
            transport.set_skip_idle(not transport.facts.skip_idle)
            self.moved()

    def do_replay_owed(self) -> None:
        """On to the next moment that needed someone, and select who."""
        transport = self._transport()
        if transport is None:
            return
        if not transport.seek_next("owed"):
            self.say("nothing more needed anyone")
            return
        self.moved()
        newest = [ask.run for ask in self.deck.state.asks]
        newest += [
            fork.handle
            for fork in sorted(
                self.deck.state.forks.values(), key=lambda fork: fork.owed_at_ms or -1
            )
            if fork.owed
        ]
        if newest:
            self.select(newest[-1])

    def do_replay_turn_next(self) -> None:
        """On to the next turn."""
        self._turn(back=False)

    def do_replay_turn_previous(self) -> None:
        """Back to the turn before."""
        self._turn(back=True)

    def _turn(self, *, back: bool) -> None:
        transport = self._transport()
        if transport is None:
            return
        if not transport.seek_next("turn", back):
            self.say("there is no turn " + ("before this one" if back else "after this one"))
        self.moved()

    def do_replay_goto(self) -> None:
        """Ask for a time or a percentage."""
        self.focus_prompt(Purpose("goto", "", "Go to: 2:31, 90 (seconds) or 50%"))

    def goto(self, text: str) -> None:
        """Go to the place that was typed."""
        transport = self._transport()
        self.focus_deck()
        if transport is None:
            return
        place = place_ms(text, transport.facts.duration_ms)
        if place is None:
            self.say(f"{text.strip()!r} is no time: type 2:31, 90 or 50%", "warning")
            return
        transport.seek_ms(place)
        self.moved()

    def do_replay_timeline(self) -> None:
        """Show or hide the timeline of all lanes."""
        self._timeline = not self._timeline
        self.replan()
