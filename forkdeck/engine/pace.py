"""How many requests may be at the endpoint at once, told whenever the gate has changed it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forkdeck.model.events.step import PaceChanged

if TYPE_CHECKING:
    from forkdeck.engine.parts import EngineParts


def note_pace(parts: EngineParts, reason: str) -> None:
    """Append how many requests may be out at once, when that has changed."""
    gate, known = parts.gate, parts.hub.state.pace
    width = gate.width
    before = gate.most if known is None else known.width
    if width != before:
        parts.hub.append(PaceChanged(width=width, most=gate.most, reason=reason))
