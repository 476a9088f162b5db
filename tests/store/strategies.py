"""Hypothesis strategies for every event, derived from the structs themselves.

A field of a kind that is not known here raises: a new event cannot slip by untested.
"""

from __future__ import annotations

import types
import typing
from decimal import Decimal
from functools import cache
from typing import Any, Literal, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from forkdeck.model.events import AnyEvent, Event
from forkdeck.model.raw import to_raw

EVENT_TYPES: tuple[type[Event], ...] = get_args(AnyEvent)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
RUNS = st.sampled_from(["p", "f1", "f2", "f3", "../x", ""])
IDS = st.sampled_from(["a", "b", "c"])
COSTS = st.decimals(min_value=0, max_value=100, places=9, allow_nan=False, allow_infinity=False)
BLOCKS = st.lists(
    st.one_of(
        TEXT.map(lambda text: {"type": "text", "text": text}),
        TEXT.map(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}),
        st.just({"type": "tool_use", "id": "a", "name": "bash", "input": {}}),
        st.just({"type": "text", "text": None}),
        st.just(7),
    ),
    max_size=3,
)
MESSAGES = st.one_of(
    st.builds(lambda content: {"role": "assistant", "content": content}, st.one_of(TEXT, BLOCKS)),
    st.just([]),
    st.none(),
).map(to_raw)

# Names that link events to one another are drawn from few values, so that they do meet.
BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "run": RUNS,
    "from_run": RUNS,
    "call": IDS,
    "request": IDS,
    "batch": IDS,
    "prompt": IDS,
    "ref": IDS,
    "undo_ref": IDS,
    "handles": st.lists(RUNS, max_size=3).map(tuple),
    "delivers": st.lists(RUNS, max_size=3).map(tuple),
    "seq": st.integers(0, 50),
    "at_ms": st.integers(0, 10_000),
    "message": MESSAGES,
    "what": st.one_of(st.sampled_from(["apply", "discard", "turn"]), TEXT),
    "saved_usd": st.none() | COSTS,
    "cost_usd": st.none() | COSTS,
}


@cache
def events_of(kind: type[Event]) -> st.SearchStrategy[Event]:
    return struct(kind)


def any_event() -> st.SearchStrategy[Event]:
    return st.one_of(*(events_of(kind) for kind in EVENT_TYPES))


def struct(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(kind)
    fields = {
        # A `message` is text in one event and raw JSON in the others.
        name: BY_NAME[name]
        if name in BY_NAME and not (name == "message" and hints[name] is str)
        else of_type(hints[name], f"{kind.__name__}.{name}")
        for name in kind.__struct_fields__
    }
    return st.builds(kind, **fields)


SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(-5, 10_000),
    float: st.floats(0, 1e6, allow_nan=False),
    bool: st.booleans(),
    type(None): st.none(),
    Decimal: COSTS,
    msgspec.Raw: st.dictionaries(TEXT, TEXT | st.integers(0, 9), max_size=2).map(to_raw),
}


def of_type(hint: Any, where: str) -> st.SearchStrategy[Any]:
    if hint in SIMPLE:
        return SIMPLE[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*(of_type(argument, where) for argument in arguments))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return st.lists(of_type(arguments[0], where), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*(of_type(argument, where) for argument in arguments))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return struct(hint)
    raise NotImplementedError(f"no strategy for {where}: {hint}")
