"""Which pictures there are: the moment, the size, the keys that lead there, the theme."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from forkdeck.model.events import Event
from forkdeck.model.events.fork import BatchEnded, ForkEnded
from forkdeck.model.events.tool import ApprovalAsked
from forkdeck.model.events.turn import TurnEnded
from forkdeck.model.events.work import WorkApplied
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


def shots() -> list[Shot]:
    """Return every picture; moments count events, so they are made anew each time."""
    return [
        Shot("start", MIDDLE),
        Shot("deck", MIDDLE, asking(), ("tab", "4")),
        Shot("deck-small", SMALL, asking(), ("tab", "4")),
        Shot("deck-large", LARGE, asking(), ("tab", "4")),
        Shot("zoom", MIDDLE, Moment("demo-v1", first(ForkEnded, 3)), ("tab", "4", "enter")),
        Shot("diff", MIDDLE, settled(), ("tab", "4", "d")),
        Shot("cost", MIDDLE, settled(), ("tab", ":", *"cost", "enter")),
        Shot("help", MIDDLE, asking(), ("tab", "?")),
        Shot("settled", MIDDLE, Moment("demo-v1", first(WorkApplied)), ("tab",)),
        Shot("light", MIDDLE, asking(), ("tab", "4"), "forkdeck-light"),
        Shot("contrast", MIDDLE, asking(), ("tab", "4"), "forkdeck-contrast"),
        Shot("daltonised", MIDDLE, Moment("demo-v1", first(BatchEnded)), ("tab", "4"),
             "forkdeck-daltonised"),
    ]  # fmt: skip
