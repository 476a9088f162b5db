"""The seams: what each side may expect of the other, and nothing more.

`Deck` and `DeckFactory` are what the user interface talks to; the others are what the engine
talks to. Fakes of these live in the tests.
"""

from __future__ import annotations

from forkdeck.model.ports.deck import (
    Capabilities,
    Deck,
    DeckFactory,
    PlaybackFacts,
    SessionSummary,
    StartFacts,
    Transport,
)
from forkdeck.model.ports.endpoint import (
    EndpointFacts,
    Gate,
    ModelFacts,
    PriceBook,
    Provider,
    Seed,
    SeedPolicy,
)
from forkdeck.model.ports.machine import (
    ChangeListener,
    Enforcement,
    Tool,
    TreeState,
    Workspace,
    Worktrees,
)
from forkdeck.model.ports.time_and_log import Clock, LogSink

__all__ = [
    "Capabilities",
    "ChangeListener",
    "Clock",
    "Deck",
    "DeckFactory",
    "EndpointFacts",
    "Enforcement",
    "Gate",
    "LogSink",
    "ModelFacts",
    "PlaybackFacts",
    "PriceBook",
    "Provider",
    "Seed",
    "SeedPolicy",
    "SessionSummary",
    "StartFacts",
    "Tool",
    "Transport",
    "TreeState",
    "Workspace",
    "Worktrees",
]
