"""The closed sets of words that stand in events, state and on the screen."""

from __future__ import annotations

from typing import Literal, TypeAlias

Mode: TypeAlias = Literal["plan", "default", "accept-edits", "auto"]
"""What needs a question (DECK "Approvals"); acts in the dispatcher only."""

Level: TypeAlias = Literal["sandboxed", "write-guarded", "tool-policy only"]
"""How far the operating system enforces what a run may do."""

Access: TypeAlias = Literal["look", "work", "outside", "fork"]
"""The view a command runs in."""

ForkStatus: TypeAlias = Literal[
    "PLAN", "QUE", "START", "WAIT", "RUN", "ASK", "STOP", "PAUSE", "SAVE",
    "DONE", "PART", "FAIL", "ABRT", "INTR",
]  # fmt: skip
"""States of a fork; the last five are terminal."""

TERMINAL: frozenset[ForkStatus] = frozenset(("DONE", "PART", "FAIL", "ABRT", "INTR"))
"""States that absorb: nothing that happens later changes them."""

Outcome: TypeAlias = Literal["done", "partial", "failed", "aborted", "interrupted"]
"""How a fork ended."""

STATUS_OF: dict[Outcome, ForkStatus] = {
    "done": "DONE",
    "partial": "PART",
    "failed": "FAIL",
    "aborted": "ABRT",
    "interrupted": "INTR",
}
"""The state word of each outcome."""

Verdict: TypeAlias = Literal["HIT", "PARTIAL", "MISS", "COLD", "BELOW MINIMUM", "UNKNOWN"]
"""What the endpoint's usage says about the shared prefix."""

SeedMode: TypeAlias = str
"""``before_call``, ``placeholder``, ``completed_turns``, ``turns:N`` or ``none``."""

ForkTool: TypeAlias = Literal["fork_join", "fork", "agent", "user"]
"""Who asked for a batch: one of the model's tools, or the person."""

ToolStatus: TypeAlias = Literal["ok", "error", "denied", "aborted", "timeout"]
"""How a tool call ended."""

Answer: TypeAlias = Literal["once", "fork", "batch", "session", "deny"]
"""The person's answer to a request; ``fork`` means this run, ``batch`` all of its batch."""

RuleKind: TypeAlias = Literal["allow", "ask", "deny"]
"""What a rule does with a call it matches; deny over ask over allow."""

Severity: TypeAlias = Literal["info", "warning", "error"]
"""How a notice is shown."""

MessageKind: TypeAlias = Literal[
    "prompt", "answer", "tool_results", "notification", "seed", "directive", "summary"
]
"""Why a message stands in a history."""

SlowClock: TypeAlias = Literal["silence", "tool", "repeats", "errors"]
"""Which clock says a fork is slow: no byte of an answer, a long tool, the same call again, the
same error again."""
