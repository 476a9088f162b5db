"""Admission: checks a launch as a whole, freezes its seeds and plans every fork of it.

`Supervisor` calls `Admission.plan` with all that one answer (or the person) asks for. Nothing is
started and no event is appended here: what is refused leaves no trace but its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

from forkdeck.engine.estimates import override_note
from forkdeck.engine.frozen import Frozen
from forkdeck.engine.launch_plan import plan_of
from forkdeck.engine.limits import NO_LIMITS, Limits
from forkdeck.engine.plans import BatchPlan, ForkPlan
from forkdeck.engine.run import Policy, Run
from forkdeck.engine.step_price import DIRECTIVE_TOKENS
from forkdeck.errors import AdmissionRefused, ForkDeckError, HistoryError
from forkdeck.model.ids import handle, handle_number, slug

if TYPE_CHECKING:
    from forkdeck.engine.heads import Heads
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.profiles import Profile, Profiles
    from forkdeck.engine.wishes import Wish
    from forkdeck.seeds.head import RequestHead
    from forkdeck.tools.fork_calls import TaskSpec

_T = TypeVar("_T", int, float, Decimal)

LEVELS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh"}
"""What a thinking level of the settings means as an effort."""


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
        try:
            frozen = Frozen(run, state)
        except HistoryError as error:
            raise AdmissionRefused(error.what, error.remedy) from error
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
        lost = [
            override_note(plan, run.warmth.tokens, self._parts.prices)
            for plan in plans
            if self._parts.provider.endpoint_for(plan.head.model).cache_control
        ]
        agents = map(self._profiles.agent, (spec.agent_type for spec in wish.tasks))
        told = (
            *wish.notes,
            *(note for agent in agents if agent is not None for note in agent.notes),
            *(note for plan in plans for note in plan.seed.notes),
            *filter(None, lost),
        )
        notes = tuple(dict.fromkeys(told))
        settings = self._parts.settings
        concurrency = min(wish.max_concurrency, settings.forks.max_per_directory)
        plan = plan_of(self._parts, run, plans, concurrency, notes)
        return BatchPlan(
            batch=plans[0].batch,
            tool=wish.tool,
            call=wish.call,
            plans=plans,
            max_concurrency=concurrency,
            background=wish.background,
            notes=notes,
            prefix_tokens=plan.prefix_tokens,
            plan=plan,
        )

    def _fork(
        self, run: Run, wish: Wish, index: int, frozen: Frozen, batch: str, name: str
    ) -> ForkPlan:
        spec = wish.tasks[index]
        profile = self._profiles.profile(spec.profile)
        agent = self._profiles.agent(spec.agent_type)
        head = self._head(run, spec, profile, agent)
        mode = "none" if agent is not None else self._mode(wish, spec, profile)
        seed = frozen.seed(mode, wish.call, head)
        facts = self._parts.prices.facts(head.model)
        _check_fits(frozen.tokens(seed, head), facts.context_tokens, seed.mode)
        settings = self._parts.settings.forks
        own = profile or agent
        given = own.limits if own is not None else NO_LIMITS
        limits = Limits(
            max_turns=_least(_least(spec.max_turns, given.max_turns), settings.max_turns),
            timeout_s=_least(_least(spec.timeout_s, given.timeout_s), settings.timeout_s),
            budget_usd=_least(_least(spec.budget_usd, given.budget_usd), settings.budget_usd),
            budget_tokens=_least(given.budget_tokens, settings.budget_tokens),
        )
        same = head is run.head
        return ForkPlan(
            handle=name,
            batch=batch,
            index=index,
            name=spec.id or slug(spec.task),
            task_id=spec.id or slug(spec.task),
            task=spec.task,
            seed=seed,
            head=head,
            facts=facts,
            source=run.run,
            inherited=tuple(run.messages[: seed.inherited_messages]),
            record=frozen.record(seed) if same else (),
            source_record=frozen.source_record,
            source_message_id=run.previous_message_id,
            thinking_from=min(run.thinking_from, seed.inherited_messages),
            shared_marks=frozen.marks(seed, same=same),
            warmth=frozen.warmth(seed, head),
            policy=_policy(spec, profile, agent),
            limits=limits,
            depth=run.depth + 1,
            dirty_base=(spec.base or settings.base) == "dirty",
            persona=profile.hint if profile else "",
            profile=profile.name if profile else None,
            output_schema=spec.output_schema,
            model=head.model if head.model != run.head.model else None,
            effort=head.effort if head.effort != run.head.effort else None,
            agent_type=spec.agent_type,
            private=wish.private,
        )

    def _mode(self, wish: Wish, spec: TaskSpec, profile: Profile | None) -> str:
        """Return the seed mode: of the call, the profile, the tool, the settings."""
        if spec.seed:
            return spec.seed
        if profile is not None and profile.seed:
            return profile.seed
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
        level = (own.thinking if own else None) or settings.thinking
        effort = effort or LEVELS.get(level or "")
        system = agent.body if agent is not None else None
        thinking = (spec.thinking or level) != "off"
        return self._heads.like(
            run.head,
            model=model,
            effort=effort,
            system=system,
            thinking=thinking,
            tools=self._lean(agent),
        )

    def _lean(self, agent: Profile | None) -> frozenset[str] | None:
        """Return the tools a lean typed agent declares: only those it may call.

        Its head is its own anyway, so nothing of a shared prefix is lost.
        """
        if agent is None or not self._parts.settings.agents.lean:
            return None
        given = agent.tools if agent.tools is not None else frozenset(self._parts.tools)
        return given & frozenset(self._parts.tools) - agent.denied


def _check_fits(tokens: int, context_tokens: int | None, mode: str) -> None:
    """Refuse a seed that the child's model cannot take, when its context is known.

    Raises:
        AdmissionRefused: The first request would not fit.
    """
    if context_tokens is not None and tokens + DIRECTIVE_TOKENS > context_tokens:
        raise AdmissionRefused(
            f"seed: {mode} is about {tokens:,} tokens and does not fit the model's context of "
            f"{context_tokens:,}.",
            "Use turns:1 or none, or make room with /compact.",
        )


def _policy(spec: TaskSpec, profile: Profile | None, agent: Profile | None) -> Policy:
    own = profile or agent
    tools = own.tools if own else None
    denied = own.denied if own else frozenset[str]()
    if spec.tools is not None:
        given = frozenset(spec.tools)
        tools = given if tools is None else tools & given
    name = own.name if own else "tools"
    rules = own.rules if own else ()
    return Policy("write" if spec.write else "look", tools, denied, name, rules)


def _named(plan: ForkPlan, names: set[str]) -> ForkPlan:
    """Make a name unique in the session: `-2` and so on when it is taken."""
    name, number = plan.name, 1
    while name in names:
        number += 1
        name = f"{plan.name}-{number}"
    names.add(name)
    return replace(plan, name=name)


def _least(left: _T | None, right: _T | None) -> _T | None:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)
