"""The priced plan of a launch: what a person sees before forks start, and the log keeps."""

from __future__ import annotations

import msgspec

from forkdeck.model.words import SeedMode


class ForkPrice(msgspec.Struct, frozen=True, kw_only=True):
    """What one fork costs, in US dollars as decimal text: one short step, as a rule, at most."""

    low_usd: str
    likely_usd: str
    high_usd: str


class PlannedFork(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fork of a plan."""

    handle: str
    name: str
    task: str
    write: bool = False
    seed: SeedMode = "before_call"
    model: str | None = None
    """Only when overridden."""
    effort: str | None = None
    warm: bool | None = None
    """Whether what it inherits should be in the cache now; None when that cannot be known."""
    cold_why: str = ""
    """Why it is not, or cannot be known, in words."""
    prefix: str = ""
    """Forks of one launch with the same text here share a prefix."""
    price: ForkPrice | None = None
    """What it costs when its prefix is in the cache, or nothing is cached; None: not known."""
    lead_price: ForkPrice | None = None
    """What it costs as the first one of its prefix, which it must write; None: no need to."""


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a launch will do and what it will cost, as far as that is known.

    Prices are US dollars as decimal text: one short step per fork, what forks like these cost as
    a rule, and the most that the limits or long work let them cost. None: no known price.
    """

    forks: tuple[PlannedFork, ...]
    prefix_tokens: int | None = None
    """Tokens of the shared prefix; None when nothing was measured yet."""
    warm: bool | None = None
    """Whether every fork should find its prefix in the cache now; None when there is none to share
    or the endpoint does not tell."""
    cold_why: str = ""
    """Why not all of them do, or why that cannot be known, in words."""
    low_usd: str | None = None
    likely_usd: str | None = None
    high_usd: str | None = None
    base_commit: str | None = None
    """Commit that write forks start from; None when nothing is written or there is no git."""
    dirty_files: int | None = None
    """Uncommitted files of the parent's tree; write forks see them only with base ``dirty``."""
    isolation: tuple[str, ...] = ()
    """How the forks are kept apart: ``read-only``, ``worktree``, ``worktree with dirty files``."""
    limits: tuple[str, ...] = ()
    """The limits that hold for each fork, the batch and the session, in words."""
    seeds: tuple[SeedMode, ...] = ()
    max_concurrency: int = 1
    notes: tuple[str, ...] = ()
    above_usd: str | None = None
    """The usual price from which the person is asked; None when it is not why they are asked."""
