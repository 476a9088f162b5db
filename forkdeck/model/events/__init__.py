"""Everything that can happen, as frozen tagged structs; nothing else changes state.

One file per family. A released event is never renamed or re-typed: add a new one. The log's
lines are these structs as JSON, tagged by ``type``.
"""

from __future__ import annotations

from typing import TypeAlias

from forkdeck.model.events.base import Event, UnknownEvent
from forkdeck.model.events.fork import ForkFamily
from forkdeck.model.events.session import SessionFamily
from forkdeck.model.events.step import StepFamily
from forkdeck.model.events.tool import ToolFamily
from forkdeck.model.events.turn import TurnFamily
from forkdeck.model.events.work import WorkFamily

AnyEvent: TypeAlias = SessionFamily | TurnFamily | StepFamily | ToolFamily | ForkFamily | WorkFamily
"""Every event this version knows; the union that the log's codec decodes."""

FORMAT_VERSION = 1
"""Major version of the log format; a log with a newer one is opened read-only."""

__all__ = [
    "FORMAT_VERSION",
    "AnyEvent",
    "Event",
    "ForkFamily",
    "SessionFamily",
    "StepFamily",
    "ToolFamily",
    "TurnFamily",
    "UnknownEvent",
    "WorkFamily",
]
