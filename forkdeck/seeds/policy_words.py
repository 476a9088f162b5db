"""What a fork may do, in words for its directive: only what is true for this one run.

The dispatcher enforces it (`engine.approvals`); a fork that knows it beforehand does not spend
steps on refusals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from forkdeck.config.rules import Rule
from forkdeck.model.state import ForkState

EDITING: Final = frozenset(("edit", "write"))
CHANGING: Final = EDITING | {"bash"}


@dataclass(frozen=True)
class Gives:
    """What a run's request and its session give it, before its own policy.

    Attributes:
        declared: Names of the tools in its request head, in order.
        barred: Tools that are refused whatever its own policy says.
    """

    declared: tuple[str, ...]
    barred: frozenset[str] = frozenset()


def policy_words(fork: ForkState, gives: Gives) -> str:
    """Return a fork's tool policy in sentences.

    Args:
        fork: Its write access, tools, denied tools and rules are read.
        gives: What it sees, and what is refused to it anyway.
    """
    usable = [name for name in gives.declared if _may_call(fork, name, gives.barred)]
    refused = [name for name in gives.declared if name not in usable]
    if fork.write and CHANGING.intersection(usable):
        words = [
            "read, and change files in your own copy of the repository. Nothing you do there "
            "touches the original files.",
            "Committing is welcome, not needed: all your work is saved."
            if "bash" in usable
            else "All your work is saved.",
        ]
    else:
        words = ["read-only."]
        if "bash" in usable and not fork.write:
            words.append("`bash` runs in the look view.")
    if not usable:
        words.append("You can call no tool: work from what you have been given.")
    elif fork.tools is not None and refused:
        words.append(f"You may call only {_listed(usable, 'and')}; other tools are refused.")
    elif refused:
        are = "they are" if len(refused) > 1 else "it is"
        words.append(f"You see {_listed(refused, 'and')}, but {are} refused.")
    return " ".join([*words, *_rules(fork.rules, usable)])


def _may_call(fork: ForkState, name: str, barred: frozenset[str]) -> bool:
    given = fork.tools is None or name in fork.tools
    reading = name not in EDITING or fork.write
    return given and reading and name not in fork.denied and name not in barred


def _rules(logged: Iterable[str], usable: Sequence[str]) -> list[str]:
    """Say which arguments the tools take, one sentence for each tool and kind of rule."""
    rules = [rule for rule in map(Rule.from_log, logged) if rule.tool in usable]
    found: list[str] = []
    for name in usable:
        what = "commands that begin with" if name == "bash" else "paths that match"
        for kind, verb in (("allow", "takes only"), ("deny", "refuses")):
            inner = [str(rule.inner) for rule in rules if (rule.tool, rule.kind) == (name, kind)]
            if inner:
                found.append(f"`{name}` {verb} {what} {_listed(inner, 'or')}.")
    return found


def _listed(names: Sequence[str], last: str) -> str:
    quoted = [f"`{name}`" for name in names]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
