"""Admission: checks a launch as a whole, freezes its seeds and plans every fork of it.

`Supervisor` calls `Admission.plan` with all that one answer (or the person) asks for. Nothing is
started and no event is appended here: what is refused leaves no trace but its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

from forkdeck.engine.cache_verdict import ENTRY_LIFE_MS
from forkdeck.engine.estimates import estimate, override_note
from forkdeck.engine.limits import Limits
from forkdeck.engine.plans import BatchPlan, ForkPlan
from forkdeck.engine.run import Policy, Run, Warmth
from forkdeck.errors import AdmissionRefused, ForkDeckError
from forkdeck.model.ids import handle, handle_number, slug
from forkdeck.model.ports import Seed
from forkdeck.model.raw import from_raw
from forkdeck.model.state import HistoryEntry
from forkdeck.seeds.policies import policy, without_thinking
from forkdeck.seeds.request import block_count

if TYPE_CHECKING:
    from forkdeck.engine.heads import Heads
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.profiles import Profile, Profiles
    from forkdeck.engine.wishes import Wish
    from forkdeck.seeds.head import RequestHead
    from forkdeck.tools.fork_calls import TaskSpec

_T = TypeVar("_T", float, Decimal)

LEVELS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh"}
"""What a thinking level of the settings means as an effort."""

COLD_SEEDS = ("turns:", "none")


@dataclass(frozen=True)
class Launch:
    """An admitted launch: its batches, and why other calls of it were refused."""

    batches: tuple[BatchPlan, ...]
    refused: dict[str, ForkDeckError]


class Admission:
    """Plans launches.

    Args:
        parts: The deck's parts.
        heads: Request heads, shared when equal.
        profiles: Profiles and agent files of the project.
    """

    def __init__(self, parts: EngineParts, heads: Heads, profiles: Profiles) -> None:
        self._parts = parts
        self._heads = heads
        self._profiles = profiles

    def plan(self, run: Run, wishes: Sequence[Wish], *, plan_mode: bool) -> Launch:
        """Plan a launch of `run`; a wish that is refused does not stop the others.

        Args:
            run: The run that asks.
            wishes: What is asked for, in call order.
            plan_mode: The mode is `plan`: nothing that writes may start.

        Raises:
            AdmissionRefused: Nobody at this depth may fork; nothing of it is looked at.
        """
        self._check_depth(run)
        state = self._parts.hub.state
        history = state.runs[run.run].history.since(0) if run.run in state.runs else []
        frozen = _Frozen(run, history, self._parts)
        number = max((handle_number(each) for each in state.forks), default=0)
        names = {fork.name for fork in state.forks.values()}
        batch = len(state.batches)
        batches: list[BatchPlan] = []
        refused: dict[str, ForkDeckError] = {}
        for wish in wishes:
            try:
                self._check(wish, plan_mode)
                plans = [
                    self._fork(
                        run, wish, index, frozen, f"b{batch + 1}", handle(number + index + 1)
                    )
                    for index in range(len(wish.tasks))
                ]
            except ForkDeckError as error:
                refused[wish.call or ""] = error
                continue
            named = tuple(_named(plan, names) for plan in plans)
            batch += 1
            number += len(named)
            batches.append(self._batch(run, wish, named))
        return Launch(tuple(batches), refused)

    def _check_depth(self, run: Run) -> None:
        limit = self._parts.settings.forks.max_depth
        if limit <= 0:
            raise AdmissionRefused(
                "Forks are switched off in this session.", "Do the work yourself."
            )
        if run.depth + 1 > limit:
            raise AdmissionRefused(
                f"A fork at depth {run.depth} may not fork: the limit is {limit}.",
                "Do the work yourself, and name in your report what you could not do.",
            )

    def _check(self, wish: Wish, plan_mode: bool) -> None:
        writes = any(spec.write for spec in wish.tasks)
        if not writes:
            return
        if plan_mode:
            raise AdmissionRefused("write: the mode is plan; nothing that writes may start.")
        if self._parts.worktrees is None:
            raise AdmissionRefused(
                "write: a write fork needs git and a repository with a commit.",
                "Leave `write` out, or do the work yourself.",
            )

    def _batch(self, run: Run, wish: Wish, plans: tuple[ForkPlan, ...]) -> BatchPlan:
        prefix = plans[0].warmth.shared_tokens
        lost = [override_note(plan, run.warmth.tokens, self._parts.prices) for plan in plans]
        told = (*wish.notes, *(n for plan in plans for n in plan.seed.notes), *filter(None, lost))
        notes = dict.fromkeys(told)
        return BatchPlan(
            batch=plans[0].batch,
            tool=wish.tool,
            call=wish.call,
            plans=plans,
            max_concurrency=min(wish.max_concurrency, self._parts.settings.forks.max_per_directory),
            background=wish.background,
            notes=tuple(notes),
            estimate_usd=estimate(self._parts.prices, plans, self._parts.hub.now_ms()),
            prefix_tokens=prefix if prefix is not None else run.warmth.tokens,
        )

    def _fork(
        self, run: Run, wish: Wish, index: int, frozen: _Frozen, batch: str, name: str
    ) -> ForkPlan:
        spec = wish.tasks[index]
        profile = self._profiles.profile(spec.profile)
        agent = self._profiles.agent(spec.agent_type)
        head = self._head(run, spec, profile, agent)
        mode = "none" if agent is not None else self._mode(wish, spec, run)
        seed = frozen.seed(mode, wish.call, head)
        settings = self._parts.settings.forks
        limits = Limits(
            max_turns=min(spec.max_turns or settings.max_turns, settings.max_turns),
            timeout_s=_least(spec.timeout_s, settings.timeout_s),
            budget_usd=_least(spec.budget_usd, settings.budget_usd),
        )
        same = head is run.head
        return ForkPlan(
            handle=name,
            batch=batch,
            index=index,
            name=spec.id or slug(spec.task),
            task=spec.task,
            seed=seed,
            head=head,
            facts=self._parts.prices.facts(head.model),
            source=run.run,
            inherited=tuple(run.messages[: seed.inherited_messages]),
            record=frozen.record(seed) if same else (),
            shared_marks=frozen.marks(seed, same=same),
            warmth=frozen.warmth(seed, same=same),
            policy=_policy(spec, profile, agent),
            limits=limits,
            depth=run.depth + 1,
            dirty_base=(spec.base or settings.base) == "dirty",
            persona=profile.hint if profile else "",
            output_schema=spec.output_schema,
            model=head.model if head.model != run.head.model else None,
            effort=head.effort if head.effort != run.head.effort else None,
            agent_type=spec.agent_type,
            private=wish.private,
        )

    def _mode(self, wish: Wish, spec: TaskSpec, run: Run) -> str:
        if spec.seed:
            return spec.seed
        if wish.tool == "agent":
            return "placeholder"
        return self._parts.settings.forks.seed

    def _head(
        self, run: Run, spec: TaskSpec, profile: Profile | None, agent: Profile | None
    ) -> RequestHead:
        settings = self._parts.settings.forks
        own = profile or agent
        model = spec.model or (own.model if own else None) or settings.model or run.head.model
        effort = spec.effort or (own.effort if own else None) or settings.effort
        effort = effort or LEVELS.get(settings.thinking or "")
        system = agent.body if agent is not None else None
        thinking = (spec.thinking or settings.thinking) != "off"
        return self._heads.like(
            run.head, model=model, effort=effort, system=system, thinking=thinking
        )


class _Frozen:
    """The seeds of one launch, made once per mode and shared by all its children."""

    def __init__(self, run: Run, history: Sequence[HistoryEntry], parts: EngineParts) -> None:
        self._run = run
        self._history = history
        self._parts = parts
        self._seeds: dict[tuple[str, str | None, bool], Seed] = {}

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
        key = (mode, None, strip)
        if key not in self._seeds:
            seed = policy(mode).plan(self._history, call)
            self._seeds[key] = without_thinking(seed, self._history) if strip else seed
        return self._seeds[key]

    def record(self, seed: Seed) -> tuple[bytes, ...]:
        """Return the positions of the source's last request that this seed must repeat."""
        head = self._head_positions()
        if (
            seed.mode.startswith(COLD_SEEDS)
            or seed.inherited_messages == 0 == seed.inherited_blocks
        ):
            return tuple(self._run.record[:head])
        return tuple(self._run.record[: head + seed.boundary])

    def marks(self, seed: Seed, *, same: bool) -> tuple[int, ...]:
        """Return P (the block the source marked last) and T (end of the shared tail)."""
        tail = _blocks_of(seed) + block_count(self._run.messages[: seed.inherited_messages]) - 1
        parent = self._run.previous_mark
        if not same or parent is None or parent >= seed.boundary or self._is_cold(seed):
            return (tail,)
        return (parent, tail)

    def warmth(self, seed: Seed, *, same: bool) -> Warmth:
        """Return what a child of this seed should find in the cache."""
        source = self._run.warmth
        if self._is_cold(seed):
            cold = f"the seed {seed.mode} does not share the messages"
            return Warmth(cold=cold, at_ms=source.at_ms)
        if not same:
            cold = "another model, effort or system prompt has a cache of its own"
            return Warmth(tokens=None, at_ms=source.at_ms, cold=cold)
        tokens = source.tokens
        sent = (self._run.previous_mark or 0) + 1
        if tokens is not None and seed.boundary < sent:
            tokens = round(tokens * seed.boundary / sent)
        return replace(source, tokens=tokens, shared_tokens=tokens)

    def _is_cold(self, seed: Seed) -> bool:
        return seed.mode.startswith(COLD_SEEDS) or (
            seed.inherited_messages == 0 and seed.inherited_blocks == 0
        )

    def _head_positions(self) -> int:
        parts = self._run.head.parts()
        return 1 + len(parts["tools"]) + len(parts["system"])


def is_warm(plan: ForkPlan, now_ms: int) -> bool:
    """Tell whether a child's whole shared prefix is in the cache already."""
    warmth = plan.warmth
    if warmth.cold or not warmth.tokens or warmth.at_ms is None:
        return False
    fresh = now_ms - warmth.at_ms <= ENTRY_LIFE_MS
    return fresh and plan.seed.mode in ("before_call", "completed_turns")


def _policy(spec: TaskSpec, profile: Profile | None, agent: Profile | None) -> Policy:
    own = profile or agent
    tools = own.tools if own else None
    denied = own.denied if own else frozenset[str]()
    if spec.tools is not None:
        given = frozenset(spec.tools)
        tools = given if tools is None else tools & given
    name = own.name if own else "tools"
    return Policy("write" if spec.write else "look", tools, denied, name)


def _named(plan: ForkPlan, names: set[str]) -> ForkPlan:
    """Make a name unique in the session: `-2` and so on when it is taken."""
    name, number = plan.name, 1
    while name in names:
        number += 1
        name = f"{plan.name}-{number}"
    names.add(name)
    return replace(plan, name=name)


def _blocks_of(seed: Seed) -> int:
    return block_count([from_raw(message) for message in seed.messages])


def _least(left: _T | None, right: _T | None) -> _T | None:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)
