"""A request as a conversation: who asks, what was asked last, and what was answered since.

Made from the request body alone, so that the server keeps no state per run: the same history
always stands at the same place of the script. Read by the script player and the investigator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from forkdeck.model.raw import JsonDict
from forkdeck.providers.rehearsal.positions import blocks_of

Role = Literal["parent", "fork", "agent"]

_OPENING: Final = re.compile(r'You are (fork|agent) ([A-Za-z0-9_.-]+) ?(?:\("(.*)"\))?')
"""A directive's fixed first line."""
_INTERRUPTED: Final = re.compile(r"aborted|interrupted|moved to background", re.IGNORECASE)
"""What the result of a call says when its turn ended before it did."""
_MACHINE: Final = re.compile(r"[<\[]")
"""How texts begin that no person typed."""
NOTIFICATION: Final = "<task-notification"
"""How the report of a background fork begins."""
_TASK: Final = re.compile(r"^Task:\n(.*?)(?=\n\nLimits: |\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Answered:
    """One assistant message since the prompt: its calls, and their results in call order."""

    calls: tuple[JsonDict, ...]
    results: tuple[JsonDict, ...]


@dataclass(frozen=True)
class Conversation:
    """Where a request stands."""

    role: Role
    prompt: str
    """The text that is being worked on: a prompt, or a fork's whole directive."""
    task: str
    """A fork's task without the words around it; the prompt for others."""
    handle: str
    name: str
    depth: int
    turn: int
    """Number of the prompt, from 1; 1 for a fork."""
    rounds: tuple[Answered, ...]
    tools: frozenset[str]
    text: str = ""
    """The last text in the request, which may be younger than the prompt (a steer)."""


def texts_of(blocks: Sequence[JsonDict]) -> list[str]:
    """Return the texts of the text blocks."""
    return [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]


def result_text(result: JsonDict) -> str:
    """Return a tool result as text."""
    return "\n".join(texts_of(blocks_of(result.get("content", ""))))


def _turns(body: JsonDict) -> list[tuple[str, list[JsonDict]]]:
    turns: list[tuple[str, list[JsonDict]]] = []
    for message in body["messages"]:
        blocks = blocks_of(message["content"])
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        elif message["role"] != "system":
            turns.append((str(message["role"]), list(blocks)))
    return turns


def look(body: JsonDict, is_prompt: Callable[[str], bool]) -> Conversation:
    """Find out where a request stands.

    A user turn that holds tool results is a new prompt when the turn before was interrupted,
    or when `is_prompt` knows its last text; otherwise that text is a steer or a notice.

    Args:
        body: A checked request body.
        is_prompt: Whether the scenario has an answer for a text.
    """
    turns = _turns(body)
    tools: Any = body.get("tools") or ()
    names = frozenset(str(tool.get("name")) for tool in tools)
    prompts: list[tuple[int, str]] = []
    directives: list[tuple[int, str]] = []
    last = ""
    for index, (role, blocks) in enumerate(turns):
        if role != "user":
            continue
        texts = texts_of(blocks)
        found = [text for text in texts if _OPENING.match(text)]
        last = texts[-1] if texts else last
        if found:
            directives.append((index, found[-1]))
        goes_on = _goes_on(blocks) and not found and not (texts and is_prompt(texts[-1]))
        if texts and not goes_on:
            prompts.append((index, found[-1] if found else texts[-1]))
    # A fork has one task: what is said to it later is a steer, or asks for its report again.
    at, prompt = directives[-1] if directives else prompts[-1] if prompts else (0, last)
    return _described(turns, at, prompt, directives, last, (names, len(prompts)))


def _goes_on(blocks: Sequence[JsonDict]) -> bool:
    """Tell whether a user turn only carries on: results, and at most a steer or a notice."""
    results = [block for block in blocks if block.get("type") == "tool_result"]
    last = next(iter(reversed(texts_of(blocks))), "")
    if not last or _MACHINE.match(last):
        return bool(results)
    return bool(results) and not any(_INTERRUPTED.search(result_text(each)) for each in results)


def _described(
    turns: Sequence[tuple[str, list[JsonDict]]],
    at: int,
    prompt: str,
    directives: Sequence[tuple[int, str]],
    last: str,
    counted: tuple[frozenset[str], int],
) -> Conversation:
    names, count = counted
    role: Role = "parent"
    handle = name = ""
    task = prompt
    if directives:
        opening = _OPENING.match(directives[-1][1])
        before = texts_of(turns[0][1])[:-1]
        first = directives[-1][0] == 0 and all(_MACHINE.match(text) for text in before)
        word = opening[1] if opening else "fork"
        role = "agent" if word == "agent" or first else "fork"
        handle, name = (opening[2], opening[3] or "") if opening else ("", "")
        inner = _TASK.search(prompt)
        task = inner[1].strip() if inner else prompt
    return Conversation(
        role=role,
        prompt=prompt,
        task=task,
        handle=handle,
        name=name,
        depth=len(directives),
        turn=1 if directives else max(count, 1),
        rounds=_rounds(turns[at + 1 :]),
        tools=names,
        text=last,
    )


def _rounds(turns: Sequence[tuple[str, list[JsonDict]]]) -> tuple[Answered, ...]:
    found: list[Answered] = []
    for index, (role, blocks) in enumerate(turns):
        if role != "assistant":
            continue
        calls = tuple(block for block in blocks if block.get("type") == "tool_use")
        after = turns[index + 1][1] if index + 1 < len(turns) else []
        by_id = {str(b.get("tool_use_id")): b for b in after if b.get("type") == "tool_result"}
        results = tuple(by_id.get(str(call["id"]), {}) for call in calls)
        found.append(Answered(calls, results))
    return tuple(found)
