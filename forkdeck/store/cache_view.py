"""What every run did with the prompt cache, as rows for the screen, the plain faces and JSON.

Pure functions over the folded state. What the endpoint did not tell is None, never zero.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from forkdeck.model.ids import PARENT
from forkdeck.model.state import DeckState, RunState
from forkdeck.model.words import Verdict
from forkdeck.store.selectors import cache_share, saved_usd


class CacheRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run and the cache: the parent's last request, a fork's first one; tokens."""

    run: str
    name: str
    seed: str = ""
    verdict: Verdict | None = None
    """None before the first answer."""
    expected: int | None = None
    read: int | None = None
    written: int | None = None
    fresh: int | None = None
    """Tokens behind the last mark: neither read nor written."""
    total_read: int | None = None
    """Read in all requests of the run so far."""
    share: float | None = None
    """Part of all its prompts that was read, 0 to 1."""
    saved_usd: Decimal | None = None
    difference: str = ""
    """Why not all was read: the first differing block, the age, the endpoint's reason."""
    head: str = ""
    """Begin of the request head's fingerprint: runs with another one share nothing."""
    prefix: str = ""
    """Begin of the fingerprint of the last request."""
    model: str = ""


class CacheView(msgspec.Struct, frozen=True, kw_only=True):
    """The cache in this session."""

    rows: tuple[CacheRow, ...]
    share: float | None
    saved_usd: Decimal | None
    told: bool
    """Whether the endpoint tells what is read from the cache."""


_SHOWN = 12
"""Hex digits of a fingerprint that are shown."""


def cache_view(state: DeckState) -> CacheView:
    """Return the rows of the parent and every fork, in order of admission."""
    rows = tuple(_row(state, run) for run in (PARENT, *state.forks))
    judged = [row.verdict for row in rows if row.verdict is not None]
    return CacheView(
        rows=rows,
        share=cache_share(state),
        saved_usd=saved_usd(state),
        told=any(verdict != "UNKNOWN" for verdict in judged),
    )


def _row(state: DeckState, name: str) -> CacheRow:
    run = state.runs.get(name) or RunState(run=name)
    fork = state.forks.get(name)
    cache, head = run.cache, run.head
    row = CacheRow(
        run=name,
        name=fork.name if fork is not None else "parent",
        seed=fork.seed if fork is not None else "",
        total_read=run.usage.cache_read_input_tokens,
        share=run.usage.cache_share,
        head=head.sha256[:_SHOWN] if head is not None else "",
        prefix=run.sent_sha256[:_SHOWN],
        model=head.model if head is not None else "",
    )
    if cache is None:
        return row
    return msgspec.structs.replace(
        row,
        verdict=cache.verdict,
        expected=cache.expected_tokens,
        read=cache.read_tokens,
        written=cache.written_tokens,
        fresh=cache.fresh_tokens,
        saved_usd=cache.saved_usd,
        difference=cache.difference,
    )
