"""What the scripted model answers to one request, before it is written as HTTP.

Made by the script player and the investigator, read by the renderer and the faults.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from forkdeck.model.raw import JsonDict
from forkdeck.providers.rehearsal.faults import Fault


@dataclass(frozen=True)
class Call:
    """One tool call of an answer."""

    tool: str
    input: JsonDict
    label: str = ""
    """Name under which templates find its result."""


@dataclass(frozen=True)
class Reply:
    """One assistant message and how it is written.

    ``ttft_ms`` is the time to the first token; rates are tokens per second.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    ttft_ms: float = 300
    rate: float = 60
    call_rate: float = 240
    stop_reason: str = ""
    """Empty: ``tool_use`` when there are calls, else ``end_turn``."""
    fault: Fault | None = None
    source: str = ""
    """Which answer and round of the scenario it is, for the journal."""
    extra: JsonDict = field(default_factory=dict[str, object])

    @property
    def stops_for(self) -> str:
        """The stop reason of the whole answer."""
        return self.stop_reason or ("tool_use" if self.calls else "end_turn")
