"""Scenarios that are made for one row: texts of TOML for the rehearsal model."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

HOLD_MS = 120_000
"""A first token nobody waits for: the request stays open."""

SLEEP = "sleep 291.5"
"""A command that never ends by itself here, and that no other program runs."""

_WORDS = [
    "fork", "parent", "cache", "prefix", "token", "report", "merge", "branch", "abort", "retry",
    "stream", "panel", "update", "store", "budget", "schema", "prompt", "turn", "tool", "result",
    "diff", "hunk", "commit", "index", "state", "event", "reducer", "widget",
]  # fmt: skip


def prose(tokens: int, seed: int) -> str:
    """Return text of about `tokens` tokens (four characters each), in lines and paragraphs."""
    chance = random.Random(seed)
    lines: list[str] = []
    size = 0
    while size < tokens * 4:
        line = " ".join(chance.choices(_WORDS, k=chance.randint(8, 40)))
        lines += [line, ""] if chance.random() < 0.3 else [line]
        size += len(line) + 1
    return "\n".join(lines)


def scenario(answers: Sequence[str], *, rate: float = 2000, ttft_ms: float = 20) -> str:
    """Return a whole scenario of answers."""
    head = f'name = "bench row"\n[pace]\nttft_ms = {ttft_ms}\nrate = {rate}\ncall_rate = 20000\n'
    return head + "\n".join(answers)


def answer(role: str, match: str, rounds: Sequence[str]) -> str:
    """Return an answer for prompts that match."""
    head = f"[[answer]]\nrole = {_text(role)}\nmatch = {_text(match)}\n"
    return head + "\n".join(rounds)


def says(text: str, *, ttft_ms: float | None = None) -> str:
    """Return a round that says a text."""
    return _round(ttft_ms) + f"text = {_text(text)}\n"


def calls(tool: str, *, ttft_ms: float | None = None, **arguments: Any) -> str:
    """Return a round that calls a tool."""
    return (
        _round(ttft_ms) + f"[[answer.round.call]]\ntool = {_text(tool)}\n"
        f"input = {_inline(arguments)}\n"
    )


def fan_out(names: Sequence[str], *, background: bool = False) -> str:
    """Return a round that calls `fork_join` with a task of each name."""
    tasks = [{"id": name, "task": f"{name}: do your part and report."} for name in names]
    return calls("fork_join", tasks=tasks, max_concurrency=len(names), background=background)


def _round(ttft_ms: float | None) -> str:
    return "[[answer.round]]\n" + ("" if ttft_ms is None else f"ttft_ms = {ttft_ms}\n")


def _text(text: str) -> str:
    # A basic string of TOML escapes as JSON does.
    return json.dumps(text)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_inline(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(part) for part in value) + "]"
    return json.dumps(value)
