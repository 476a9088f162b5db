"""What a replay can jump to: events that matter, by kind. Pure; used by the replay deck."""

from __future__ import annotations

from typing import Literal, TypeAlias

from forkdeck.model.events import Event
from forkdeck.model.events.fork import ForkEnded, ForkStarted
from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.events.step import StepCut
from forkdeck.model.events.tool import ApprovalAsked, ToolEnded
from forkdeck.model.events.turn import TurnEnded, TurnStarted
from forkdeck.model.events.work import ApplyStopped
from forkdeck.model.ids import PARENT

Landmark: TypeAlias = Literal["owed", "error", "fork", "turn"]
"""Kinds of places to jump to."""


def is_landmark(event: Event, what: Landmark) -> bool:
    """Tell whether an event is a place of the kind `what`.

    ``owed``: a question, or a fork's end that the person should see. ``error``: a failed tool,
    answer, turn, fork or apply. ``fork``: a fork begins or ends. ``turn``: the parent begins one.
    """
    match what:
        case "owed":
            return isinstance(event, ApprovalAsked) or (
                isinstance(event, ForkEnded) and event.outcome != "aborted"
            )
        case "error":
            return _is_error(event)
        case "fork":
            return isinstance(event, ForkStarted | ForkEnded)
        case "turn":
            return isinstance(event, TurnStarted) and event.run == PARENT


def _is_error(event: Event) -> bool:
    match event:
        case ToolEnded():
            return event.status in ("error", "timeout")
        case ForkEnded() | TurnEnded():
            return event.outcome == "failed"
        case NoticeRaised():
            return event.severity == "error"
        case StepCut() | ApplyStopped():
            return True
        case _:
            return False
