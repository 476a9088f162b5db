"""Which pictures there are: the moment, the size, the keys that lead there, the theme."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from forkdeck.model.events import Event
from forkdeck.model.events.tool import ApprovalAsked
from forkdeck.model.events.turn import TurnEnded
from tests.screenshots.still import Moment

Size = tuple[int, int]
SMALL: Size = (80, 24)
MIDDLE: Size = (120, 40)
LARGE: Size = (200, 60)


@dataclass(frozen=True)
class Shot:
    """One picture."""

    name: str
    size: Size
    moment: Moment | None = None
    """None: the start screen."""
    keys: tuple[str, ...] = ()
    theme: str = "forkdeck-dark"


def first(kind: type[Event], number: int = 1) -> Callable[[Event], bool]:
    """Return what stops behind the `number`-th event of a kind."""
    seen = [0]

    def reached(event: Event) -> bool:
        seen[0] += isinstance(event, kind)
        return seen[0] == number

    return reached


def asking() -> Moment:
    return Moment("demo-v1", first(ApprovalAsked), later_ms=2_000)


def settled() -> Moment:
    return Moment("demo-v1", first(TurnEnded))


def busy() -> Moment:
    return Moment("supervise-v1", lambda event: event.at_ms >= 26_000, later_ms=1_000)


def shots() -> list[Shot]:
    """Return every picture; moments count events, so they are made anew each time."""
    return [
        Shot("start", MIDDLE),
        Shot("deck", MIDDLE, asking(), ("tab", "4")),
        Shot("deck-8-small", SMALL, busy(), ("tab", "2")),
        Shot("deck-8", MIDDLE, busy(), ("tab", "2")),
        Shot("deck-8-large", LARGE, busy(), ("tab", "2")),
        Shot("zoom", MIDDLE, settled(), ("tab", "4", "enter")),
        Shot("diff", MIDDLE, settled(), ("tab", "4", "d")),
        Shot("cost", MIDDLE, busy(), (*"/cost", "enter")),
        Shot("cache", MIDDLE, busy(), (*"/cache", "enter")),
        Shot("help", MIDDLE, asking(), ("tab", "?")),
        Shot("light", MIDDLE, busy(), ("tab", "2"), "forkdeck-light"),
        Shot("contrast", MIDDLE, busy(), ("tab", "2"), "forkdeck-contrast"),
        Shot("daltonised", MIDDLE, busy(), ("tab", "6"), "forkdeck-daltonised"),
    ]
