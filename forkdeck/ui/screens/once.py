"""A screen that leaves once, however many closing keys arrive in one burst."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import Screen

T = TypeVar("T")


class LeavesOnce(Screen[T], inherit_bindings=False):
    """Ignores every `dismiss` behind the first.

    Textual pops whatever is on top: the second of two fast keys, still addressed to a dialog
    that is gone, would take the deck's own screen with it.
    """

    _left = False

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Leave with a result; nothing when this screen left already."""
        if self._left:
            return AwaitComplete()
        self._left = True
        return super().dismiss(result)
