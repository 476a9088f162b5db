"""What the rehearsal server knows of models: data that its cache and its checks follow.

Kept apart from the price book on purpose: a wrong table there must not agree with itself here.
Values are those of the published model and prompt-caching pages; an unknown model gets the
most conservative ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Model:
    """Facts of one model family.

    ``thinking`` holds the ``thinking.type`` values it takes.
    """

    minimum: int
    """Fewest prompt tokens that are cached at all."""
    context: int = 1_000_000
    output: int = 128_000
    thinking: tuple[str, ...] = ("adaptive", "disabled", "between_tools")
    forced_tools: bool = True
    """Whether ``tool_choice`` may be ``any`` or ``tool``."""
    sampling: bool = False
    """Whether temperature, top_p and top_k are taken."""
    prefill: bool = False
    """Whether the last message may be the assistant's."""


_ALWAYS: Final = ("adaptive", "between_tools")
_EXTENDED: Final = ("enabled", "disabled")
_OLD: Final = Model(1024, 200_000, 64_000, thinking=_EXTENDED, prefill=True)
_NEWEST: Final = Model(512)

_FAMILIES: Final[dict[str, Model]] = {
    "claude-fable-5-2": Model(512, thinking=_ALWAYS, forced_tools=False),
    "claude-fable-5-1": Model(512, thinking=_ALWAYS, forced_tools=False),
    "claude-mythos-5-2": Model(512, thinking=_ALWAYS, forced_tools=False),
    "claude-mythos-5-1": Model(512, thinking=_ALWAYS, forced_tools=False),
    "claude-opus-5-5": Model(512, thinking=_ALWAYS),
    "claude-sonnet-5-5": _NEWEST,
    "claude-haiku-5-5": _NEWEST,
    "claude-opus-5": Model(512),
    "claude-sonnet-5": Model(1024),
    "claude-opus-4-8": Model(1024),
    "claude-opus-4-7": Model(2048),
    "claude-opus-4-6": Model(4096, 200_000, thinking=("adaptive", "enabled", "disabled")),
    "claude-sonnet-4-6": Model(1024, 200_000, thinking=("adaptive", "enabled", "disabled")),
    "claude-opus-4-5": Model(4096, 200_000, 64_000, thinking=_EXTENDED, prefill=True),
    "claude-sonnet-4-5": _OLD,
    "claude-haiku-4-5": Model(4096, 200_000, 64_000, thinking=_EXTENDED, prefill=True),
}
UNKNOWN: Final = Model(4096, 200_000, thinking=("adaptive", "enabled", "disabled"))
"""What is assumed of a ``claude-`` model that has no row."""


def known() -> tuple[str, ...]:
    """Return the ids that ``GET /v1/models`` lists."""
    return tuple(_FAMILIES)


def lookup(name: str) -> Model | None:
    """Return a model's facts; a dated id counts as its family; None for a foreign name."""
    if name in _FAMILIES:
        return _FAMILIES[name]
    family, _, date = name.rpartition("-")
    if family in _FAMILIES and len(date) == 8 and date.isdigit():
        return _FAMILIES[family]
    return UNKNOWN if name.startswith("claude-") else None
