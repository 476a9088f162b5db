"""Small moves that the families of the reducer share: find, replace, append.

Called by the reducer's files only. Pure; every function takes a state or a run and gives a new
one. Missing runs are made, so that any event can meet any state.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from forkdeck.model.ids import PARENT, is_handle
from forkdeck.model.items import Chunk, Item, ToolFacts
from forkdeck.model.raw import JsonDict, clean_text, from_raw
from forkdeck.model.shared_list import SharedList
from forkdeck.model.state import DeckState, ForkState, RunState
from forkdeck.model.words import ForkStatus

_ENDING: frozenset[ForkStatus] = frozenset(("STOP", "SAVE"))
_FORK_TOOLS = frozenset(("fork_join", "fork", "agent"))


def new_run(run: str) -> RunState:
    """Return an empty run whose lists are its own."""
    return RunState(run=run, transcript=SharedList(), history=SharedList(), stream=SharedList())


def no_chunks() -> SharedList[Chunk]:
    """Return the stream between answers; a new one, for the next answer to grow in."""
    return SharedList()


def run_of(state: DeckState, run: str) -> RunState:
    """Return a run, or a new empty one."""
    return state.runs.get(run) or new_run(run)


def with_run(state: DeckState, run: RunState) -> DeckState:
    """Return `state` with `run` in its place."""
    return replace(state, runs={**state.runs, run.run: run})


def with_fork(state: DeckState, fork: ForkState) -> DeckState:
    """Return `state` with `fork` in its place."""
    return replace(state, forks={**state.forks, fork.handle: fork})


def with_item(run: RunState, *items: Item) -> RunState:
    """Return `run` with `items` at the end of its transcript."""
    return replace(run, transcript=run.transcript.appended(*items)) if items else run


def fork_of(state: DeckState, handle: str) -> ForkState | None:
    """Return a fork for one of its own events; made when the log lost its beginning.

    None when `handle` is no fork's handle: such an event changes nothing.
    """
    fork = state.forks.get(handle)
    if fork is not None or not is_handle(handle):
        return fork
    return ForkState(
        handle=handle, batch="", index=0, name=handle, task="", seed="none", from_run=PARENT,
        depth=1, write=False, queued_at_ms=state.at_ms,
    )  # fmt: skip


def has_ask(state: DeckState, run: str) -> bool:
    """Tell whether a run has an open request."""
    return any(ask.run == run for ask in state.asks)


def with_status(state: DeckState, handle: str, status: ForkStatus) -> DeckState:
    """Move a living fork to `status`.

    Terminal states absorb; a fork that is being stopped or saved does not go back to work; an
    open request keeps a fork at ASK.
    """
    fork = state.forks.get(handle)
    if fork is None or fork.status == status or fork.settled:
        return state
    if fork.status in _ENDING and (status not in _ENDING or fork.status == "SAVE"):
        return state
    if fork.status == "ASK" and status not in _ENDING and has_ask(state, handle):
        return state
    return with_fork(state, replace(fork, status=status))


def blocks_of(message: msgspec.Raw) -> list[JsonDict]:
    """Return the content blocks of a message; what cannot be read gives none."""
    try:
        value: Any = from_raw(message)
    except (ValueError, RecursionError):
        return []
    content: Any = cast("JsonDict", value).get("content") if isinstance(value, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    return [cast("JsonDict", block) for block in cast("list[Any]", content) if _is_dict(block)]


def _is_dict(block: object) -> bool:
    return isinstance(block, dict)


def answer_items(message: msgspec.Raw, at_ms: int) -> list[Item]:
    """Return an assistant message's text and thinking as items, in block order."""
    items: list[Item] = []
    for block in blocks_of(message):
        kind = block.get("type")
        if kind not in ("text", "thinking"):
            continue
        text = block.get(cast("str", kind))
        if isinstance(text, str) and text.strip():
            items.append(
                Item(
                    kind="text" if kind == "text" else "thinking",
                    at_ms=at_ms,
                    text=clean_text(text),
                )
            )
    return items


def streamed_text(chunks: SharedList[Chunk], *, every_kind: bool = False) -> str:
    """Join the chunks of an answer: its text, or with `every_kind` all that was seen of it."""
    parts: list[str] = []
    last: tuple[str, int] | None = None
    for chunk in chunks:
        if chunk.kind != "text" and not every_kind:
            continue
        if last is not None and (chunk.kind, chunk.index) != last:
            parts.append("\n\n")
        if chunk.kind == "call" and (chunk.kind, chunk.index) != last:
            parts.append(f"{chunk.name} ")
        last = (chunk.kind, chunk.index)
        parts.append(chunk.text)
    return "".join(parts)


def cut_item(run: RunState, at_ms: int, remark: str) -> Item:
    """Return the `cut` item that keeps what an unfinished answer had shown."""
    return Item(
        kind="cut",
        at_ms=at_ms,
        text=streamed_text(run.stream, every_kind=True),
        severity="warning",
        remedy=remark,
    )


def at_rest(run: RunState, at_ms: int, remark: str) -> RunState:
    """Return `run` with nothing open: an unfinished answer and open calls become items."""
    items: list[Item] = []
    if run.stream:
        items.append(cut_item(run, at_ms, remark))
    for tool in run.tools:
        if tool.name in _FORK_TOOLS:
            continue
        duration_ms = max(at_ms - tool.started_at_ms, 0)
        ended = replace(tool, status="aborted", summary=remark, duration_ms=duration_ms, tail="")
        items.append(Item(kind="tool", at_ms=at_ms, tool=ended))
    run = with_item(run, *items)
    return replace(run, stream=no_chunks(), tools=(), delay=None, requested=False)


def is_fork_tool(name: str) -> bool:
    """Tell whether a tool call admits forks, which are drawn as a batch."""
    return name in _FORK_TOOLS


def running_tool(run: RunState, call: str) -> ToolFacts | None:
    """Return the running call of that id."""
    return next((tool for tool in run.tools if tool.call == call), None)


def money(text: str | None) -> Decimal | None:
    """Read decimal text; None when it is no amount of money."""
    if text is None:
        return None
    try:
        return sane_usd(Decimal(text))
    except InvalidOperation:
        return None


def sane_usd(value: Decimal | None) -> Decimal | None:
    """Return an amount of money that can be summed; None for NaN, infinities and absurd sizes."""
    if value is None or not value.is_finite():
        return None
    return value if not value or -20 < value.adjusted() < 12 else None
