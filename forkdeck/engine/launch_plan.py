"""The launch plan: what a launch will do and cost, as data for the log, the card and the question.

`Admission` makes one per batch; the supervisor joins them for the question whether they may start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from forkdeck.engine.cache_verdict import why_cold
from forkdeck.engine.estimates import Habit, estimate, habit
from forkdeck.engine.scopes import Limits, batch_limits, session_limits
from forkdeck.model.launching import LaunchPlan, PlannedFork
from forkdeck.store.plan_figures import launch_price, warmth_words

if TYPE_CHECKING:
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.plans import BatchPlan, ForkPlan
    from forkdeck.engine.run import Run

NOT_TOLD = "the endpoint does not say what it caches"


def plan_of(
    parts: EngineParts,
    run: Run,
    plans: Sequence[ForkPlan],
    max_concurrency: int,
    notes: tuple[str, ...] = (),
) -> LaunchPlan:
    """Return the plan of forks that would be started now.

    Args:
        parts: The deck's parts: prices, settings, the state.
        run: The run that asks.
        plans: The forks.
        max_concurrency: How many of them run at once.
        notes: What else the person should know.
    """
    state, settings = parts.hub.state, parts.settings.forks
    forks = tuple(_planned(parts, plan, habit(state)) for plan in plans)
    found = launch_price(forks)
    low, likely, high = found.texts() if found is not None else (None, None, None)
    shared = [plan.warmth.tokens for plan in plans if plan.warmth.tokens is not None]
    inherits = any(plan.inherited or plan.seed.inherited_blocks for plan in plans)
    told = inherits and all(fork.warm is not None for fork in forks)
    writes = any(plan.write for plan in plans)
    return LaunchPlan(
        forks=forks,
        prefix_tokens=max(shared) if shared else run.warmth.tokens,
        warm=all(fork.warm for fork in forks) if told else None,
        cold_why="; ".join(_unique(f.cold_why for f in forks if f.cold_why)) if inherits else "",
        low_usd=low,
        likely_usd=likely,
        high_usd=high,
        base_commit=state.session.git_head if writes else None,
        dirty_files=state.session.dirty_files,
        isolation=tuple(dict.fromkeys(_isolation(plan) for plan in plans)),
        limits=_limits(parts, plans),
        seeds=tuple(dict.fromkeys(plan.seed.mode for plan in plans)),
        max_concurrency=max_concurrency,
        notes=notes,
        above_usd=str(settings.plan_above_usd) if settings.plan == "auto" else None,
    )


def joined(batches: Sequence[BatchPlan]) -> LaunchPlan:
    """Return one plan over all batches of a launch; sums are known only when every part is."""
    plans = [batch.plan for batch in batches if batch.plan is not None]
    if len(plans) == 1:
        return plans[0]
    warm = [plan.warm for plan in plans if plan.warm is not None]
    shared = [plan.prefix_tokens for plan in plans if plan.prefix_tokens is not None]
    forks = tuple(fork for plan in plans for fork in plan.forks)
    found = launch_price(forks)
    low, likely, high = found.texts() if found is not None else (None, None, None)
    return LaunchPlan(
        forks=forks,
        prefix_tokens=max(shared) if shared else None,
        warm=all(warm) if warm else None,
        cold_why="; ".join(_unique(plan.cold_why for plan in plans if plan.cold_why)),
        low_usd=low,
        likely_usd=likely,
        high_usd=high,
        base_commit=next((plan.base_commit for plan in plans if plan.base_commit), None),
        dirty_files=plans[0].dirty_files if plans else None,
        isolation=_unique(each for plan in plans for each in plan.isolation),
        limits=_unique(each for plan in plans for each in plan.limits),
        seeds=_unique(each for plan in plans for each in plan.seeds),
        max_concurrency=max((plan.max_concurrency for plan in plans), default=1),
        notes=_unique(each for plan in plans for each in plan.notes),
        above_usd=next((plan.above_usd for plan in plans), None),
    )


def plan_text(plan: LaunchPlan) -> str:
    """Return a launch plan in words: the argument of the question, and what plain faces print."""
    count = len(plan.forks)
    price = "price not known"
    if plan.low_usd is not None and plan.high_usd is not None:
        price = f"${plan.low_usd} to ${plan.high_usd}, usually ${plan.likely_usd}"
    tokens = "not measured yet" if plan.prefix_tokens is None else f"{plan.prefix_tokens:,} tokens"
    warmth = warmth_words(plan, plan.forks)
    lines = [
        f"{count} fork{'s' if count != 1 else ''}, {price}, {plan.max_concurrency} at once",
        f"prefix {tokens}{f', {warmth}' if warmth else ''}; seed {', '.join(plan.seeds)}",
    ]
    if plan.base_commit is not None:
        dirty = f", {plan.dirty_files} uncommitted files" if plan.dirty_files else ""
        lines.append(f"base {plan.base_commit[:12]}{dirty}")
    lines.append(f"isolation {', '.join(plan.isolation)}")
    if plan.limits:
        lines.append(f"limits {'; '.join(plan.limits)}")
    lines += plan.notes
    for fork in plan.forks:
        kind = "write" if fork.write else "read-only"
        lines.append(f"{fork.handle} {fork.name} ({kind}): {fork.task.strip()}")
    return "\n".join(lines)


def asks(plan: LaunchPlan, policy: str, above_usd: Decimal) -> str:
    """Return why a launch needs the person's yes, or an empty string when it may start.

    Args:
        plan: The whole launch.
        policy: ``auto``, ``confirm`` or ``never``.
        above_usd: With ``auto``: the usual price from which it is asked about.
    """
    if policy == "confirm":
        return "every launch is asked about (forks.plan = confirm)"
    if policy == "never" or plan.likely_usd is None:
        return ""
    if Decimal(plan.likely_usd) <= above_usd:
        return ""
    return (
        f"such a launch usually costs ${plan.likely_usd}, more than forks.plan_above_usd "
        f"(${above_usd})"
    )


def _planned(parts: EngineParts, plan: ForkPlan, usual: Habit) -> PlannedFork:
    endpoint = parts.provider.endpoint_for(plan.head.model)
    why = why_cold(plan.warmth, parts.hub.now_ms(), endpoint)
    price, lead = estimate(parts.prices, plan, usual, endpoint, warm=not why)
    told = endpoint.cache_fields or not endpoint.cache_control
    return PlannedFork(
        handle=plan.handle,
        name=plan.name,
        task=plan.task,
        write=plan.write,
        seed=plan.seed.mode,
        model=plan.model,
        effort=plan.effort,
        warm=not why if told else None,
        cold_why=why if told else NOT_TOLD,
        prefix=f"{plan.head.sha256[:12]} {plan.seed.mode}" if endpoint.caches else "",
        price=price,
        lead_price=lead,
    )


def _isolation(plan: ForkPlan) -> str:
    if not plan.write:
        return "read-only"
    return "worktree with uncommitted files" if plan.dirty_base else "worktree"


def _limits(parts: EngineParts, plans: Sequence[ForkPlan]) -> tuple[str, ...]:
    own = _unique(_words(plan.limits, "each fork") for plan in plans)
    batch = _words(batch_limits(parts.settings), "the batch")
    session = _words(session_limits(parts.settings, parts.hub.state), "the session")
    return tuple(text for text in (*own, batch, session) if text)


def _words(limits: Limits, whose: str) -> str:
    parts = [
        f"{limits.max_turns} turns" if limits.max_turns else "",
        f"{limits.timeout_s:g} s" if limits.timeout_s else "",
        f"${limits.budget_usd}" if limits.budget_usd is not None else "",
        f"{limits.budget_tokens:,} tokens" if limits.budget_tokens else "",
    ]
    told = ", ".join(part for part in parts if part)
    return f"{whose} {told}" if told else ""


def _unique(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
