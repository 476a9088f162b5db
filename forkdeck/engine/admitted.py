"""The events of an admitted launch: one for each batch, one for each of its forks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from forkdeck.model.events.fork import BatchAdmitted, ForkQueued

if TYPE_CHECKING:
    from forkdeck.engine.plans import BatchPlan, ForkPlan
    from forkdeck.engine.run import Run
    from forkdeck.model.state import SessionFacts


def batch_event(
    run: Run, batch: BatchPlan, session: SessionFacts, *, planned: bool
) -> BatchAdmitted:
    """Return the event of a batch that `run` asked for.

    Args:
        run: The run that asks.
        batch: Its plan.
        session: Where base and dirty files are told.
        planned: Its forks wait for the person's yes.
    """
    plan = batch.plan
    price = None
    if plan is not None and plan.low_usd is not None and plan.high_usd is not None:
        price = (plan.low_usd, plan.high_usd)
    return BatchAdmitted(
        run=run.run,
        batch=batch.batch,
        tool=batch.tool,
        call=batch.call,
        handles=tuple(each.handle for each in batch.plans),
        max_concurrency=batch.max_concurrency,
        background=batch.background,
        prefix_tokens=batch.prefix_tokens,
        estimate_usd=price,
        base_commit=session.git_head,
        dirty_files=session.dirty_files,
        plan=plan,
        planned=planned,
    )


def fork_event(plan: ForkPlan, *, planned: bool) -> ForkQueued:
    """Return the event that gives a fork its handle; what a later process needs stands in it."""
    policy, limits = plan.policy, plan.limits
    return ForkQueued(
        run=plan.handle,
        batch=plan.batch,
        index=plan.index,
        name=plan.name,
        task_id=plan.task_id,
        task=plan.task,
        seed=plan.seed.mode,
        from_run=plan.source,
        depth=plan.depth,
        write=plan.write,
        model=plan.model,
        effort=plan.effort,
        agent_type=plan.agent_type,
        private=plan.private,
        max_turns=limits.max_turns,
        timeout_s=limits.timeout_s,
        budget_usd=None if limits.budget_usd is None else str(limits.budget_usd),
        budget_tokens=limits.budget_tokens,
        profile=plan.profile,
        tools=None if policy.tools is None else tuple(sorted(policy.tools)),
        denied=tuple(sorted(policy.denied)),
        rules=tuple(rule.logged for rule in policy.rules),
        output_schema="" if plan.output_schema is None else json.dumps(plan.output_schema),
        planned=planned,
    )
