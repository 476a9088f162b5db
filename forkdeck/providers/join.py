"""Deltas joined over a short while, so that eight fast streams do not become a flood of events.

Used by `client`. `Joiner` is filled by the task that reads the network and emptied by the one that
draws and logs. Text of one block is joined over about 50 ms; every other part goes at once, after
what was joined before it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TypeAlias

from forkdeck.model.ports import Clock
from forkdeck.model.stream import CallPart, StreamPart, TextPart, ThinkingPart
from forkdeck.providers.accumulate import mended

Delta: TypeAlias = TextPart | ThinkingPart | CallPart

WINDOW_S = 0.05
_FULL_CHARS = 1_048_576


class Joiner:
    """Joins deltas on their way from the reader to the caller.

    Args:
        clock: Time of the window.
        window_s: How long deltas are joined, in seconds.
    """

    def __init__(self, clock: Clock, window_s: float = WINDOW_S) -> None:
        self._clock = clock
        self._window_s = window_s
        self._ready: deque[StreamPart] = deque()
        self._tail: Delta | None = None
        self._texts: list[str] = []
        self._chars = 0
        self._something = asyncio.Event()
        self._urgent = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._ended = False
        self._error: Exception | None = None

    def add(self, part: StreamPart) -> None:
        """Take a part from the network."""
        if isinstance(part, TextPart | ThinkingPart | CallPart):
            tail = self._tail
            if tail is None or type(tail) is not type(part) or tail.index != part.index:
                if tail is not None:
                    self._close_tail()
                    self._urgent.set()
                self._tail = part
            self._texts.append(part.text)
            self._chars += len(part.text)
            if self._chars > _FULL_CHARS:
                self._room.clear()
                self._urgent.set()
        else:
            self._close_tail()
            self._ready.append(part)
            self._urgent.set()
        self._something.set()

    def end(self, error: Exception | None = None) -> None:
        """Note that nothing follows; `error` is raised to the caller after what was joined."""
        self._close_tail()
        self._ended = True
        self._error = error
        self._something.set()
        self._urgent.set()

    async def room(self) -> None:
        """Wait until the caller has taken enough, so that a slow caller stops the network."""
        await self._room.wait()

    async def parts(self) -> AsyncGenerator[StreamPart, None]:
        """Yield the parts in order until the end.

        Raises:
            Exception: What `end` was given.
        """
        while True:
            await self._something.wait()
            if not self._urgent.is_set():
                await self._window()
            self._something.clear()
            self._urgent.clear()
            if not self._ended:
                self._close_tail(keep_half=True)
            self._chars = 0
            self._room.set()
            while self._ready:
                yield self._ready.popleft()
            if self._ended and not self._ready:
                if self._error is not None:
                    raise self._error
                return

    async def _window(self) -> None:
        """Wait for the window to pass or for something that must not wait."""
        timer = asyncio.ensure_future(self._clock.sleep(self._window_s))
        urgent = asyncio.ensure_future(self._urgent.wait())
        try:
            await asyncio.wait((timer, urgent), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (timer, urgent):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(timer, urgent, return_exceptions=True)

    def _close_tail(self, *, keep_half: bool = False) -> None:
        """Move the joined text to the parts that are ready.

        With `keep_half` a high surrogate at its end waits for its other half.
        """
        tail = self._tail
        if tail is None:
            return
        text = "".join(self._texts)
        half = text[-1:] if keep_half and "\ud800" <= text[-1:] <= "\udbff" else ""
        text = mended(text[: len(text) - len(half)])
        if text:
            match tail:
                case TextPart():
                    self._ready.append(TextPart(tail.index, text))
                case ThinkingPart():
                    self._ready.append(ThinkingPart(tail.index, text))
                case CallPart():
                    self._ready.append(CallPart(tail.index, tail.name, text))
        self._texts = [half] if half else []
        self._tail = tail if half else None
