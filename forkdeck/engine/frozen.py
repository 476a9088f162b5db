"""The seeds of one launch: made once per mode, shared by all its children, with what they share.

`Admission` asks it while it plans; everything is taken from the source's last request (or the one
that is out), so children repeat it byte for byte and find it in the cache.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from forkdeck.engine.cache_verdict import why_cold
from forkdeck.engine.recorded import head_positions
from forkdeck.engine.run import PrefixUse, Run, Sent, Warmth, characters
from forkdeck.model.ports import Seed
from forkdeck.model.prefix import positions
from forkdeck.model.raw import from_raw
from forkdeck.model.thinking import as_sent
from forkdeck.seeds.policies import policy, without_thinking
from forkdeck.seeds.request import block_count, build_body, check_recorded, request_ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forkdeck.engine.plans import ForkPlan
    from forkdeck.model.ports import EndpointFacts
    from forkdeck.model.state import DeckState
    from forkdeck.seeds.head import RequestHead

_OTHERS = ("model", "system prompt", "tool list")
_LEFT_OUT = frozenset(("effort", "thinking"))
"""Parts of a head that an endpoint may not take."""

COLD_SEEDS = ("turns:", "none")
WHOLE_SEEDS = ("before_call", "completed_turns")
"""Modes whose seed ends inside what the source has sent already: nothing to warm."""


class Frozen:
    """What all children of one launch start from.

    Args:
        run: The source.
        state: The deck's state at admission.
    """

    def __init__(self, run: Run, state: DeckState) -> None:
        self._run = run
        facts = state.runs.get(run.run)
        history = facts.history.since(0) if facts is not None else []
        self._history = as_sent(history, run.thinking_from)
        self._seeds: dict[tuple[str, bool], Seed] = {}
        self._head = head_positions(run.head)
        self._sent = run.flight or _last_sent(run, self._head)
        self.source_record: Sequence[bytes] = self._sent.record

    def seed(self, mode: str, call: str | None, head: RequestHead) -> Seed:
        """Return the frozen seed of a mode.

        Raises:
            AdmissionRefused: There is no such mode.
            SeedRefused: The history cannot give it.
        """
        run = self._run
        strip = head.model != run.head.model or head.thinking != run.head.thinking
        strip = strip and mode != "none"
        # Calls of one message have one place in the history: the seed is the same for all.
        key = (mode, strip)
        if key not in self._seeds:
            seed = policy(mode).plan(self._history, call)
            self._seeds[key] = without_thinking(seed, self._history) if strip else seed
        return self._seeds[key]

    def record(self, seed: Seed) -> tuple[bytes, ...]:
        """Return the positions of the source's request that this seed must repeat."""
        end = self._head if self._is_cold(seed) else self._head + seed.boundary
        return tuple(self._sent.record[:end])

    def marks(self, seed: Seed, *, same: bool) -> tuple[int, ...]:
        """Return P (the last block the source marked inside the seed) and T (its shared tail)."""
        before = block_count(self._run.messages[: seed.inherited_messages])
        tail = before + block_count([from_raw(message) for message in seed.messages]) - 1
        if not same or self._is_cold(seed):
            return (tail,)
        ends = (*request_ends(self._run.messages), self._sent.mark)
        inside = [end for end in ends if 0 <= end < seed.boundary]
        return (max(inside), tail) if inside else (tail,)

    def warmth(self, seed: Seed, head: RequestHead) -> Warmth:
        """Return what a child of this seed and head should find in the cache."""
        source = self._run.warmth
        if self._is_cold(seed):
            return Warmth(cold=f"the seed {seed.mode} does not share the messages")
        changed = self._run.head.changes(head)
        if changed - _LEFT_OUT:
            what = next(name for name in _OTHERS if name in changed)
            return Warmth(cold=f"another {what} has a cache of its own")
        tokens = source.tokens
        sent = self._sent.mark + 1
        if tokens is not None and 0 < seed.boundary < sent:
            tokens = round(tokens * seed.boundary / sent)
        shared = replace(source, tokens=tokens, shared_tokens=tokens)
        if not changed or source.cold:
            return shared
        # Whether it was sent, and so has a cache of its own, is known when it is answered.
        return replace(
            shared,
            use=PrefixUse(source.at_ms),
            cold=f"another {' and '.join(sorted(changed))} has a cache of its own",
            overrides=changed,
        )

    def tokens(self, seed: Seed, head: RequestHead) -> int:
        """Return the rough tokens of a child's first request before its directive."""
        messages = [*self._run.messages[: seed.inherited_messages], *map(from_raw, seed.messages)]
        size = characters(messages)
        if self._is_cold(seed):
            return head.estimated_tokens + size // 4
        whole = characters(self._run.messages)
        return round(self._run.estimated_tokens() * min(1.0, size / whole)) if whole else 0

    def _is_cold(self, seed: Seed) -> bool:
        return seed.mode.startswith(COLD_SEEDS) or (
            seed.inherited_messages == 0 and seed.inherited_blocks == 0
        )


def _last_sent(run: Run, head: int) -> Sent:
    """Return the source's last request, also when an earlier process has sent it.

    Raises:
        PrefixChanged: The recorded messages are not what was sent.
    """
    mark = -1 if run.previous_mark is None else run.previous_mark
    if run.record or mark < 0:
        return Sent(run.record, mark)
    body = build_body(run.head, run.messages, (), 1)
    record = positions(body)[: head + mark + 1]
    if run.recorded is not None:
        check_recorded(run.recorded, record, f"A fork of {run.run}")
    return Sent(record, mark)


def is_warm(plan: ForkPlan, now_ms: int, endpoint: EndpointFacts) -> bool:
    """Tell whether a child's whole shared prefix is in the cache already."""
    return plan.seed.mode in WHOLE_SEEDS and not why_cold(plan.warmth, now_ms, endpoint)
