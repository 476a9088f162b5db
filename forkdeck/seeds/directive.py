"""The words a fork is started with: shared rules (equal for all) and its own directive.

Only the directive may name the fork, its worktree or its limits: what stands before it is
shared by all children of a launch and must be equal byte for byte.
"""

from __future__ import annotations

from string import Template
from typing import Literal

from forkdeck.model.raw import JsonDict
from forkdeck.model.state import ForkState
from forkdeck.seeds.texts import text

READ_ONLY_POLICY = (
    "read-only. You see `edit` and `write`, but they are refused. `bash` runs in the look view."
)
WRITE_POLICY = (
    "read, and change files in your own copy of the repository. Nothing you do there touches the "
    "files of the conversation above. Committing is welcome, not needed: all your work is saved."
)
PLACEHOLDER_RESULT = (
    "The result of this call is not available to this copy of the conversation. "
    "It is being handled elsewhere; do not repeat the call."
)
"""The same for every open call and every child, so that the shared tail is equal."""


def shared_rules_block() -> JsonDict:
    """Return the text block that ends the shared tail."""
    return {"type": "text", "text": text("shared_rules")}


def directive_block(
    fork: ForkState,
    *,
    notice: str = "",
    persona: str = "",
    report: Literal["free", "scope"] = "scope",
    template: str | None = None,
) -> JsonDict:
    """Return the text block with a fork's task, limits, policy and report form.

    Args:
        fork: The fork: its handle, name, task, write access and limits are told.
        notice: Words on the worktree and the working directory, or an empty string.
        persona: Who it should be, from a profile or an agent file.
        report: How the report should look.
        template: The person's own template instead of the built-in one.
    """
    task = fork.task.strip()
    words = Template(template or text("directive")).safe_substitute(
        handle=fork.handle,
        name=fork.name,
        task=f"{persona.strip()}\n\n{task}" if persona.strip() else task,
        limits=_limits(fork),
        policy=WRITE_POLICY if fork.write else READ_ONLY_POLICY,
        notice=f"{notice.strip()}\n" if notice.strip() else "",
        report_style=report,
        report_form=text("report_scope") if report == "scope" else "Free form, short and concrete.",
    )
    return {"type": "text", "text": words}


def _limits(fork: ForkState) -> str:
    limits = [
        f"{fork.max_turns} turns" if fork.max_turns else "",
        f"{fork.timeout_s:g} seconds" if fork.timeout_s else "",
        f"${fork.budget_usd}" if fork.budget_usd else "",
    ]
    return ", ".join(limit for limit in limits if limit) or "none set; be brief anyway"
