"""Stalls: says which fork makes no headway, and by which clock. It never acts on a fork.

Listens to the hub, compares what living forks do with the thresholds of the settings, and
appends `fork.slowed` and `fork.recovered`. Four clocks: no byte of an answer, one long tool call,
the very same call again, the same error again. Owned by the live deck.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from forkdeck.model.events import Event
from forkdeck.model.events.fork import ForkEnded, ForkRecovered, ForkReopened, ForkSlowed
from forkdeck.model.events.step import CallStreamed, TextStreamed, ThinkingStreamed
from forkdeck.model.events.tool import ToolEnded, ToolProgressed, ToolStarted
from forkdeck.model.state import ForkState, RunState, SlowFacts
from forkdeck.store.selectors import open_ask
from forkdeck.store.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from forkdeck.config.settings import StallSettings
    from forkdeck.model.ports import Clock
    from forkdeck.store.hub import Hub

_DELTAS: Final = (TextStreamed, ThinkingStreamed, CallStreamed, ToolProgressed)
_ARGUMENT: Final = 60
_FORKING: Final = ("fork_join", "fork", "agent")


@dataclass
class _Pulse:
    """What was last heard of a fork."""

    heard_ms: int = 0
    call: tuple[str, bytes] = ("", b"")
    call_words: str = ""
    calls: int = 0
    calls_since_ms: int = 0
    error: str = ""
    errors: int = 0
    errors_since_ms: int = 0


class Stalls:
    """Watches the forks of a session.

    Args:
        hub: Tells every event and takes the verdicts.
        clock: Paces the looks; nothing is waited for while no fork could become slow.
        settings: The thresholds; 0 switches a clock off.
    """

    def __init__(self, hub: Hub, clock: Clock, settings: StallSettings) -> None:
        self._hub = hub
        self._clock = clock
        self._settings = settings
        self._pulses: dict[str, _Pulse] = {}
        self._timer: asyncio.Task[None] | None = None
        self._timer_ms: int | None = None
        self._soon = False
        self._stop: Callable[[], None] = hub.listen(self._heard)
        self._closed = False

    async def close(self) -> None:
        """Watch no longer. Safe to call twice."""
        self._closed = True
        self._stop()
        if self._timer is not None:
            self._timer.cancel()
            await asyncio.gather(self._timer, return_exceptions=True)
            self._timer = None

    # --- hearing --------------------------------------------------------------------------

    def _heard(self, event: Event) -> None:
        if event.run not in self._hub.state.forks or isinstance(event, ForkSlowed | ForkRecovered):
            return
        pulse = self._pulses.setdefault(event.run, _Pulse())
        pulse.heard_ms = event.at_ms
        if isinstance(event, ForkEnded | ForkReopened):
            self._pulses[event.run] = _Pulse(heard_ms=event.at_ms)
        elif isinstance(event, ToolStarted):
            self._called(pulse, event)
        elif isinstance(event, ToolEnded):
            self._answered(pulse, event)
        slow = self._hub.state.forks[event.run].slow is not None
        if not self._soon and (slow or not isinstance(event, _DELTAS)):
            # Behind the other listeners: a verdict must not overtake the event it is about.
            self._soon = True
            asyncio.get_running_loop().call_soon(self._look)

    def _called(self, pulse: _Pulse, event: ToolStarted) -> None:
        call = (event.name, bytes(event.input))
        if call == pulse.call:
            pulse.calls += 1
            return
        pulse.call, pulse.calls, pulse.calls_since_ms = call, 1, event.at_ms
        pulse.call_words = one_line(f"{event.name} {event.argument}".strip(), _ARGUMENT)

    def _answered(self, pulse: _Pulse, event: ToolEnded) -> None:
        if event.status not in ("error", "timeout", "denied"):
            pulse.error, pulse.errors = "", 0
            return
        if event.content == pulse.error:
            pulse.errors += 1
            return
        pulse.error, pulse.errors, pulse.errors_since_ms = event.content, 1, event.at_ms

    # --- looking --------------------------------------------------------------------------

    def _look(self) -> None:
        """Compare every living fork with the clocks, and set the timer for the next one."""
        self._soon = False
        if self._closed:
            return
        now_ms = self._hub.now_ms()
        nearest: int | None = None
        for fork in list(self._hub.state.forks.values()):
            if fork.settled or fork.handle not in self._pulses:
                continue
            slow, due_ms = self._verdict(fork, now_ms)
            self._tell(fork, slow)
            if due_ms is not None:
                nearest = due_ms if nearest is None else min(nearest, due_ms)
        self._wake_at(nearest)

    def _verdict(self, fork: ForkState, now_ms: int) -> tuple[SlowFacts | None, int | None]:
        """Return what is slow now, and when a clock that runs will strike."""
        pulse, settings = self._pulses[fork.handle], self._settings
        run = self._hub.state.runs.get(fork.handle)
        if run is None or fork.status in ("STOP", "SAVE"):
            return None, None
        if settings.repeats and pulse.calls >= settings.repeats:
            what = f"{pulse.call_words} called {pulse.calls} times"
            return SlowFacts("repeats", pulse.calls_since_ms, what), None
        if settings.errors and pulse.errors >= settings.errors:
            what = f"the same error {pulse.errors} times: {one_line(pulse.error, _ARGUMENT)}"
            return SlowFacts("errors", pulse.errors_since_ms, what), None
        clock = self._running_clock(fork, run, pulse)
        if clock is None:
            return None, None
        facts, due_ms = clock
        return (facts, None) if now_ms >= due_ms else (None, due_ms)

    def _running_clock(
        self, fork: ForkState, run: RunState, pulse: _Pulse
    ) -> tuple[SlowFacts, int] | None:
        """Return the clock that runs for a fork now, and when it strikes."""
        if open_ask(self._hub.state, fork.handle) is not None:
            return None  # it waits for the person, which its badge says
        if run.tools:
            tool = run.tools[0]
            if tool.name in _FORKING or not self._settings.tool_s:
                return None
            what = one_line(f"{tool.name} {tool.argument}".strip(), _ARGUMENT)
            due_ms = tool.started_at_ms + round(self._settings.tool_s * 1000)
            return SlowFacts("tool", tool.started_at_ms, f"{what} runs long"), due_ms
        if (run.requested or run.stream) and run.delay is None and self._settings.silence_s:
            what = "no answer yet" if run.requested else "the answer stands still"
            due_ms = pulse.heard_ms + round(self._settings.silence_s * 1000)
            return SlowFacts("silence", pulse.heard_ms, what), due_ms
        return None

    def _tell(self, fork: ForkState, slow: SlowFacts | None) -> None:
        """Append a verdict when it is another one than what is shown."""
        if slow == fork.slow:
            return
        if slow is None:
            self._hub.append(ForkRecovered(run=fork.handle))
        else:
            self._hub.append(
                ForkSlowed(
                    run=fork.handle, clock=slow.clock, since_ms=slow.since_ms, what=slow.what
                )
            )

    def _wake_at(self, at_ms: int | None) -> None:
        """Look again at a time; an earlier timer that runs already will do."""
        if self._timer is not None and not self._timer.done():
            if at_ms is not None and self._timer_ms is not None and self._timer_ms <= at_ms:
                return
            self._timer.cancel()
        self._timer, self._timer_ms = None, at_ms
        if at_ms is not None:
            self._timer = asyncio.create_task(self._wait(at_ms), name="stalls")

    async def _wait(self, at_ms: int) -> None:
        await self._clock.sleep(max(0, at_ms - self._hub.now_ms()) / 1000)
        self._timer = None
        self._look()
