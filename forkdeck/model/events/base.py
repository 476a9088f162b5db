"""The envelope every event carries."""

from __future__ import annotations

import msgspec

from forkdeck.model.ids import PARENT


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """One thing that happened.

    ``seq`` and ``at_ms`` (milliseconds since the session began, monotonic) are 0 until the hub
    stamps the event; ``run`` is the run it belongs to.
    """

    seq: int = 0
    at_ms: int = 0
    run: str = PARENT


class UnknownEvent(Event, frozen=True, kw_only=True, tag="unknown"):
    """A line whose ``type`` this version does not know: kept, shown nowhere, changes nothing."""

    name: str = ""
    line: str = ""
