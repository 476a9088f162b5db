"""What a live deck is made of: the command line composes it, the whole engine reads it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from forkdeck.config.instructions import Instruction
from forkdeck.config.rules import Rule
from forkdeck.config.settings import Settings
from forkdeck.model.events.session import SessionOpened
from forkdeck.model.events.tool import ApprovalAsked
from forkdeck.model.ports import (
    Clock,
    Enforcement,
    Gate,
    PriceBook,
    Provider,
    Tool,
    Workspace,
    Worktrees,
)
from forkdeck.model.tooling import ToolSpec
from forkdeck.model.words import Answer
from forkdeck.seeds.head import RequestHead
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.store.hub import Hub


class Person(Protocol):
    """Answers requests in place of someone at the keyboard; a scenario's scripted person."""

    async def answer(self, asked: ApprovalAsked) -> tuple[Answer, str] | None:
        """Return the answer and its reason, or None to have the request denied."""
        ...


class ProjectFiles(Protocol):
    """The project's own files that count only when they are trusted; blocking."""

    def read(self, relative: str, limit: int) -> bytes | None:
        """Return at most `limit` bytes of a file as it was trusted, or None."""
        ...

    def paths(self) -> tuple[str, ...]:
        """Return the paths of those files, sorted, relative to the root."""
        ...


@dataclass(frozen=True, kw_only=True)
class EngineParts:
    """Everything a live deck needs, behind ports where it touches the world.

    Attributes:
        hub: Takes every event; its state is the deck's.
        clock: All time.
        provider: The endpoint.
        gate: The one gate of that endpoint and key.
        prices: Prices and facts of models.
        settings: The settings in force.
        paths: The session's own directory.
        tools: The built-in tools that run in a workspace.
        specs: Every tool the model sees, in the fixed order of the request head.
        parent_workspace: What the parent sees of the machine.
        fork_workspace: Makes a read-only fork's view, by its handle.
        enforcement: What the host enforces.
        opened: The log's first line, for a new session; ignored when one is resumed.
        head: The parent's stored head when a session is resumed; None builds one.
        worktrees: Worktrees of write forks; None when there is no git here.
        instructions: The project's own texts, quoted as data in the first message.
        offered: Lines of the first message that name what forks can be made of.
        rules: Rules of the settings, already parsed.
        trusted: Whether the project's agent files and profiles may be used.
        attached: Whether a person can answer requests.
        person: Answers instead, when nobody is attached.
        places: Directory of the leases of concurrency places, one folder per working directory
            below it; None counts this process alone.
        share: Shows a host file (a fork's report) to the parent, read-only, under a name; None
            when its view cannot.
        project: Reads the project's trusted files; None reads them through the parent's view.
        user_file: Reads a file of the person's own configuration directory, or gives None.
        discard: Removes the private directories of a run that is over; blocking.
        trust: Trusts the project's files as they are now and says what that means.
        rng: Randomness of spacing; seeded in tests.
    """

    hub: Hub
    clock: Clock
    provider: Provider
    gate: Gate
    prices: PriceBook
    settings: Settings
    paths: SessionPaths
    tools: Mapping[str, Tool]
    specs: Sequence[ToolSpec]
    parent_workspace: Workspace
    fork_workspace: Callable[[str], Workspace]
    enforcement: Enforcement
    opened: SessionOpened
    head: RequestHead | None = None
    worktrees: Worktrees | None = None
    instructions: Sequence[Instruction] = ()
    offered: Sequence[str] = ()
    rules: Sequence[Rule] = ()
    trusted: bool = False
    attached: bool = True
    person: Person | None = None
    places: Path | None = None
    share: Callable[[str, Path], str] | None = None
    project: ProjectFiles | None = None
    user_file: Callable[[str, int], bytes | None] | None = None
    discard: Callable[[str], None] | None = None
    trust: Callable[[], str] | None = None
    rng: random.Random = field(default_factory=random.Random)
