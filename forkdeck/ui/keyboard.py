"""From a key event to the method that does it: the same way on every screen.

Screens mix `Keyed` in, say which zones they are in, and have methods ``do_<action>``; what they
lack is looked for on the app.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from textual import events

from forkdeck.ui.bindings import Zone, find

if TYPE_CHECKING:
    from forkdeck.ui.app import ForkDeckApp

CTRL_D = "Ctrl+D quits when the prompt is empty: Ctrl+C clears it"
"""What it says at the end of a text, where there is nothing it could delete."""


def key_of(event: events.Key) -> str:
    """Return a key as the table of bindings writes it: the character, or Textual's name."""
    char = event.character
    if char is not None and event.is_printable and char != " ":
        return char
    return event.key


class Keyed:
    """Mixin for screens: looks a key up in the table and calls its method."""

    key: str = ""
    """The key that is being handled, for actions that serve several."""

    @property
    def zones(self) -> tuple[Zone, ...]:
        """The zones a key is looked for in, the first that binds it wins."""
        raise NotImplementedError

    @property
    def deck_app(self) -> ForkDeckApp:
        """The app, by its own type."""
        return cast("ForkDeckApp", getattr(self, "app"))  # noqa: B009 - Screen gives it

    def before_key(self, key: str) -> None:
        """Called before a key of the table acts."""

    async def press(self, event: events.Key) -> bool:
        """Do what a key means here; returns whether it meant anything.

        Raises:
            asyncio.CancelledError: The screen is going away.
        """
        key = key_of(event)
        binding = find(self.zones, key)
        if binding is None:
            return False
        self.before_key(key)
        self.key = key
        return await self.act(binding.action)

    async def act(self, action: str, *arguments: str) -> bool:
        """Call ``do_<action>`` of this screen or of the app; False when neither has it."""
        for owner in (self, self.deck_app):
            method = cast("Callable[..., object] | None", getattr(owner, f"do_{action}", None))
            if method is not None:
                result = method(*arguments)
                if inspect.isawaitable(result):
                    result = await result
                return result is not False
        return False
