"""Declarations of `fork_join`, `fork` and `agent`; the engine runs them, not a workspace.

The three together stay under 700 tokens: they are sent with every request.
"""

from __future__ import annotations

from typing import Final

from forkdeck.model.raw import JsonDict
from forkdeck.model.tooling import ToolSpec
from forkdeck.tools.texts import text

_S: JsonDict = {"type": "string"}
_B: JsonDict = {"type": "boolean"}
_N: JsonDict = {"type": "number"}
_I: JsonDict = {"type": "integer"}

THINKING: Final = ("off", "minimal", "low", "medium", "high", "xhigh")
"""What `fork` takes as ``thinking``."""

EFFORT: Final = ("low", "medium", "high", "xhigh", "max")
"""What every fork takes as ``effort``."""

FORK_JOIN = ToolSpec(
    name="fork_join",
    description=text("fork_join"),
    input_schema={
        "type": "object",
        "properties": {
            "tasks": {
                "type": "array",
                "minItems": 1,
                "maxItems": 8,
                "items": {
                    "type": "object",
                    "properties": {
                        "id": _S,
                        "task": _S,
                        "write": _B,
                        "seed": _S,
                        "model": _S,
                        "effort": _S,
                        "max_turns": _I,
                        "timeout_s": _N,
                        "budget_usd": _N,
                        "base": {"enum": ["head", "dirty"]},
                        "output_schema": {"type": "object"},
                        "profile": _S,
                        "tools": {"type": "array", "items": _S},
                    },
                    "required": ["id", "task"],
                },
            },
            "max_concurrency": {"type": "integer", "minimum": 1, "maximum": 8},
            "write": _B,
            "background": _B,
        },
        "required": ["tasks"],
    },
)

FORK = ToolSpec(
    name="fork",
    description=text("fork"),
    input_schema={
        "type": "object",
        "properties": {
            "task": _S,
            "model": _S,
            "thinking": {"enum": list(THINKING)},
            "effort": _S,
            "background": _B,
            "write": _B,
            "seed": _S,
        },
        "required": ["task"],
    },
)

AGENT = ToolSpec(
    name="agent",
    description=text("agent"),
    input_schema={
        "type": "object",
        "properties": {
            "prompt": _S,
            "description": _S,
            "subagent_type": _S,
            "isolation": {"enum": ["worktree"]},
            "run_in_background": _B,
            "model": _S,
        },
        "required": ["prompt", "description"],
    },
)

ALL: Final = (FORK_JOIN, FORK, AGENT)
"""In the order of declaration."""
