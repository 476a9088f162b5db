"""The seed policies: pure functions of the parent's history, frozen once per launch and mode.

Every policy keeps these laws: nothing of the parent is changed, no assistant turn is invented,
every call in the seed is answered, roles alternate once neighbours are joined, and all
children of a launch get the same bytes up to the directive.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from forkdeck.errors import AdmissionRefused, SeedRefused
from forkdeck.model.ports import Seed, SeedPolicy
from forkdeck.model.prefix import message_blocks
from forkdeck.model.raw import JsonDict, from_raw, to_raw
from forkdeck.model.state import HistoryEntry
from forkdeck.model.thinking import stripped
from forkdeck.seeds.directive import PLACEHOLDER_RESULT, fresh_rules_block, shared_rules_block
from forkdeck.seeds.request import block_count
from forkdeck.seeds.validity import check, merged, tool_use_ids

_TURNS = re.compile(r"turns:([1-9][0-9]{0,3})\Z")

MODES = ("before_call", "placeholder", "completed_turns", "turns:N", "none")
"""The seed modes, as they are written."""


def policy(mode: str) -> SeedPolicy:
    """Return the policy of a seed mode.

    Raises:
        AdmissionRefused: There is no such mode.
    """
    found = _POLICIES.get(mode)
    if found is not None:
        return found
    turns = _TURNS.match(mode)
    if turns is None:
        raise AdmissionRefused(
            f"seed: there is no seed mode {mode!r}.", f"Use one of {', '.join(MODES)}."
        )
    return LastTurns(int(turns[1]))


def with_directive(seed: Seed, directive: JsonDict) -> list[msgspec.Raw]:
    """Return the child's own first messages: the seed's, with the directive as their last block."""
    messages = [from_raw(raw) for raw in seed.messages]
    last: JsonDict = messages[-1]
    messages[-1] = {"role": "user", "content": [*message_blocks(last), directive]}
    return [to_raw(message) for message in messages]


def without_thinking(seed: Seed, history: Sequence[HistoryEntry]) -> Seed:
    """Return `seed` with all inherited thinking left out, for a child of another model.

    Signed thinking is only valid for the model that made it; it goes whole or stays whole.

    Raises:
        SeedRefused: For a placeholder seed, whose last message must keep its thinking.
    """
    if seed.mode == Placeholder.name:
        raise SeedRefused(
            "seed: placeholder cannot be combined with another model or with thinking off.",
            "Use before_call.",
        )
    whole = [from_raw(entry.message) for entry in history[: seed.inherited_messages]]
    messages = merged([stripped(each) for each in (*whole, *map(from_raw, seed.messages))])
    check(messages)
    return Seed(
        mode=seed.mode,
        inherited_messages=0,
        messages=tuple(to_raw(message) for message in messages),
        inherited_blocks=len(message_blocks(messages[-1])) - 1,
        boundary=block_count(messages) - 1,
        notes=(*seed.notes, "message cache cold: inherited thinking is left out"),
    )


class BeforeCall:
    """Everything before the assistant message that holds the call; the call is not seen."""

    name = "before_call"

    def plan(self, history: Sequence[HistoryEntry], call: str | None) -> Seed:
        """Cut before the call's message; see `SeedPolicy.plan`."""
        cut = _cut(history, call)
        if cut == 0:
            raise _no_conversation()
        return _ending_in_user(self.name, history[:cut])


class Placeholder:
    """Everything, with a neutral result for each open call of the last message."""

    name = "placeholder"

    def plan(self, history: Sequence[HistoryEntry], call: str | None) -> Seed:
        """Keep the last message and answer its calls; see `SeedPolicy.plan`."""
        if not history:
            raise _no_conversation()
        if call is not None and _locate(history, call) != len(history) - 1:
            raise SeedRefused(
                f"seed: call {call} does not stand in the last message, so it cannot be answered "
                "with a placeholder.",
                "Use before_call.",
            )
        open_calls = tool_use_ids(from_raw(history[-1].message))
        if history[-1].role == "user" or not open_calls:
            return _ending_in_user(self.name, history)
        results: list[JsonDict] = [
            {"type": "tool_result", "tool_use_id": each, "content": PLACEHOLDER_RESULT}
            for each in open_calls
        ]
        tail = {"role": "user", "content": [*results, shared_rules_block()]}
        return _seed(self.name, history, [tail], 0, boundary=_blocks(history))


class CompletedTurns:
    """The prefix that ends at the last finished turn; nothing when there is none."""

    name = "completed_turns"

    def plan(self, history: Sequence[HistoryEntry], call: str | None) -> Seed:
        """Cut behind the last answer that ended its turn; see `SeedPolicy.plan`."""
        cut = _cut(history, call)
        while cut and not _ends_turn(history[cut - 1]):
            cut -= 1
        if cut == 0:
            return _fresh(self.name, "no turn is complete yet: the fork starts fresh")
        return _ending_in_user(self.name, history[:cut])


class LastTurns:
    """The last N real user turns, without inherited thinking; its cache is cold."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.name = f"turns:{turns}"

    def plan(self, history: Sequence[HistoryEntry], call: str | None) -> Seed:
        """Keep from the N-th last prompt on; see `SeedPolicy.plan`."""
        cut = _cut(history, call)
        prompts = [i for i, entry in enumerate(history[:cut]) if entry.kind == "prompt"]
        if not prompts:
            return _fresh(self.name, "there is no user turn yet: the fork starts fresh")
        start = prompts[-min(self.turns, len(prompts))]
        kept = [stripped(from_raw(entry.message)) for entry in history[start:cut]]
        kept[0] = _without_results(kept[0])
        messages = merged(kept)
        boundary = block_count(messages)
        if messages[-1]["role"] == "user":
            last = messages[-1]
            blocks = [*message_blocks(last), shared_rules_block()]
            messages[-1] = {"role": "user", "content": blocks}
        else:
            messages.append({"role": "user", "content": [shared_rules_block()]})
        check(messages)
        return Seed(
            mode=self.name,
            inherited_messages=0,
            messages=tuple(to_raw(message) for message in messages),
            inherited_blocks=len(message_blocks(messages[-1])) - 1,
            boundary=boundary,
            notes=("message cache cold: only the last turns are kept",),
        )


class Fresh:
    """Nothing: a fresh run."""

    name = "none"

    def plan(self, history: Sequence[HistoryEntry], call: str | None) -> Seed:
        """Start without any history; see `SeedPolicy.plan`."""
        return _fresh(self.name)


_POLICIES: dict[str, SeedPolicy] = {
    each.name: each for each in (BeforeCall(), Placeholder(), CompletedTurns(), Fresh())
}


def _no_conversation() -> SeedRefused:
    return SeedRefused(
        "There is no conversation to fork from.", "Send a prompt first, or use --seed none."
    )


def _cut(history: Sequence[HistoryEntry], call: str | None) -> int:
    """Return how many messages stand before `call`, or, for None, before calls that are open."""
    if call is not None:
        return _locate(history, call)
    is_open = bool(history) and bool(tool_use_ids(from_raw(history[-1].message)))
    return len(history) - is_open


def _locate(history: Sequence[HistoryEntry], call: str) -> int:
    """Return the index of the one assistant message that holds `call`."""
    found = [
        index
        for index, entry in enumerate(history)
        if entry.role == "assistant"
        for each in tool_use_ids(from_raw(entry.message))
        if each == call
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise SeedRefused(f"seed: call {call} is not in the conversation.")
    raise SeedRefused(f"seed: call {call} stands {len(found)} times in the conversation.")


def _ends_turn(entry: HistoryEntry) -> bool:
    return entry.role == "assistant" and not tool_use_ids(from_raw(entry.message))


def _blocks(history: Sequence[HistoryEntry]) -> int:
    return block_count([from_raw(entry.message) for entry in history])


def _ending_in_user(mode: str, kept: Sequence[HistoryEntry]) -> Seed:
    """Put the shared rules behind `kept`, in its trailing user message if it has one."""
    boundary = _blocks(kept)
    if kept[-1].role == "assistant":
        tail: JsonDict = {"role": "user", "content": [shared_rules_block()]}
        return _seed(mode, kept, [tail], 0, boundary=boundary)
    last = message_blocks(from_raw(kept[-1].message))
    tail = {"role": "user", "content": [*last, shared_rules_block()]}
    return _seed(mode, kept[:-1], [tail], len(last), boundary=boundary)


def _seed(
    mode: str,
    kept: Sequence[HistoryEntry],
    tail: list[JsonDict],
    inherited_blocks: int,
    *,
    boundary: int,
) -> Seed:
    check(merged([*(from_raw(entry.message) for entry in kept), *tail]))
    return Seed(
        mode=mode,
        inherited_messages=len(kept),
        messages=tuple(to_raw(message) for message in tail),
        inherited_blocks=inherited_blocks,
        boundary=boundary,
    )


def _fresh(mode: str, *notes: str) -> Seed:
    tail = {"role": "user", "content": [fresh_rules_block()]}
    return Seed(mode=mode, inherited_messages=0, messages=(to_raw(tail),), notes=notes)


def _without_results(message: JsonDict) -> JsonDict:
    """Leave out results of calls that stand before the cut: a prompt may begin with them."""
    blocks = message_blocks(message)
    kept = [block for block in blocks if block.get("type") != "tool_result"]
    return {"role": message["role"], "content": kept}
