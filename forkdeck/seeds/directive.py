"""The words a fork is started with: shared rules (equal for all) and its own directive.

Only the directive may name the fork, its worktree or its limits: what stands before it is
shared by all children of a launch and must be equal byte for byte.
"""

from __future__ import annotations

from string import Template
from typing import Literal

from forkdeck.model.raw import JsonDict
from forkdeck.model.state import ForkState
from forkdeck.seeds.policy_words import Gives, policy_words
from forkdeck.seeds.texts import text

PLACEHOLDER_RESULT = (
    "The result of this call is not available to this copy of the conversation. "
    "It is being handled elsewhere; do not repeat the call."
)
"""The same for every open call and every child, so that the shared tail is equal."""


def shared_rules_block() -> JsonDict:
    """Return the text block that ends the shared tail, behind inherited history."""
    return {"type": "text", "text": text("shared_rules")}


def fresh_rules_block() -> JsonDict:
    """Return the same for a run that inherits no history."""
    return {"type": "text", "text": text("fresh_rules")}


def directive_block(
    fork: ForkState,
    *,
    gives: Gives,
    notice: str = "",
    persona: str = "",
    report: Literal["free", "scope"] = "scope",
    template: str | None = None,
) -> JsonDict:
    """Return the text block with a fork's task, limits, policy and report form.

    Args:
        fork: The fork: its handle, name, task, tool policy and limits are told.
        gives: The tools it sees, and those that are refused to it anyway.
        notice: Words on the worktree and the working directory, or an empty string.
        persona: Who it should be, from a profile or an agent file.
        report: How the report should look.
        template: The person's own template instead of the built-in one.
    """
    task = fork.task.strip()
    words = Template(template or text("directive")).safe_substitute(
        kind="fork" if fork.boundary else "agent",
        handle=fork.handle,
        name=fork.name,
        task=f"{persona.strip()}\n\n{task}" if persona.strip() else task,
        limits=_limits(fork),
        policy=policy_words(fork, gives),
        notice=f"{notice.strip()}\n" if notice.strip() else "",
        report_style=report,
        report_form=text("report_scope") if report == "scope" else "Free form, short and concrete.",
    )
    return {"type": "text", "text": words}


def _limits(fork: ForkState) -> str:
    limits = [
        f"{fork.max_turns} turns" if fork.max_turns else "",
        f"{fork.timeout_s:.10g} seconds" if fork.timeout_s else "",
        f"${fork.budget_usd}" if fork.budget_usd else "",
        f"{fork.budget_tokens} tokens" if fork.budget_tokens else "",
    ]
    return ", ".join(limit for limit in limits if limit) or "none set; be brief anyway"
