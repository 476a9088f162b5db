"""The table of modes: which view a call needs, and whether a mode gives it without a question.

Pure functions, used by `Approvals`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forkdeck.config.rules import judge
from forkdeck.model.raw import JsonDict
from forkdeck.model.words import Access, Level, Mode

if TYPE_CHECKING:
    from forkdeck.engine.run import Run

LOOKING = frozenset(("read", "grep", "find", "ls"))


@dataclass(frozen=True)
class Need:
    """What a call needs.

    Attributes:
        access: The view.
        edits: Whether it is an edit or write of the project's files.
        words: Why it asks, for the person and the model.
    """

    access: Access
    edits: bool = False
    words: str = ""


def wanted(run: Run, tool: str, arguments: JsonDict, mode: Mode, allowed: bool) -> Need | str:
    """Return the view a call needs, or why the run's policy never gives it.

    Args:
        run: The run that calls.
        tool: The tool's name.
        arguments: Its input.
        mode: The mode that holds for the run.
        allowed: Whether an allow rule matches the call.
    """
    barred = narrowed(run, tool, arguments)
    if barred:
        return barred
    kind = run.policy.kind
    own: Access = "fork" if kind == "write" else "work"
    if tool in LOOKING:
        return Need("fork" if kind == "write" else "look")
    if tool != "bash":
        return Need(own, edits=True, words=f"{tool} changes files, and no rule allows it")
    return _shell_view(run, arguments.get("access"), mode, allowed)


def narrowed(run: Run, tool: str, arguments: JsonDict) -> str:
    """Say why the run's profile does not give this call, or nothing.

    A profile narrows and never grants: what passes here is still asked about as usual.
    """
    rules, root, cwd = run.policy.rules, run.workspace.root, run.workspace.cwd
    judged = judge(rules, tool, arguments, root=root, cwd=cwd)
    if judged.kind == "deny":
        return f"Refused by the profile {run.policy.name}: deny {judged.rule_text}."
    given = [rule.text for rule in rules if rule.tool == tool and rule.kind == "allow"]
    if given and judged.kind != "allow":
        return f"Refused by the profile {run.policy.name}: it gives only {', '.join(given)}."
    return ""


def _shell_view(run: Run, asked: object, mode: Mode, allowed: bool) -> Need | str:
    kind = run.policy.kind
    if kind == "look":
        if asked in ("work", "outside"):
            return "Refused by the rule of read-only forks: bash runs in the look view only."
        return Need("look")
    if asked == "outside":
        return Need("outside", words="leaving the sandbox always asks")
    if kind == "write":
        return Need("fork", words="no rule allows this command without a sandbox")
    sandboxed = run.workspace.level != "tool-policy only"
    if asked == "work" or (asked is None and (allowed or (mode == "auto" and sandboxed))):
        return Need("work", words="no rule allows this command as work")
    return Need("look")


def mode_allows(mode: Mode, need: Need, level: Level) -> bool | None:
    """Say whether a mode gives what a call needs: yes, no, or None to ask.

    A write fork's own view needs no question when the operating system keeps it inside.
    """
    if need.access == "look" or (need.access == "fork" and not need.words):
        return True
    if mode == "plan":
        return False
    if need.access == "outside":
        return None
    sandboxed = level != "tool-policy only"
    if need.access == "fork" and sandboxed:
        return True
    if need.edits:
        return True if mode in ("accept-edits", "auto") else None
    return True if mode == "auto" and sandboxed else None
