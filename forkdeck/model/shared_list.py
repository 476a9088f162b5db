"""An append-only list value: many states share one list, each knows its own length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class SharedList(Generic[T]):
    """An immutable sequence whose `appended` is O(1) in the usual, linear case.

    It is a pair of a shared list and a length. Appending to the longest value grows the list
    in place; appending to an older value copies, so every older state stays true.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T] | None = None, length: int | None = None) -> None:
        self._items: list[T] = [] if items is None else items
        self._length = len(self._items) if length is None else length

    def appended(self, *new: T) -> SharedList[T]:
        """Return this sequence with `new` at its end; this value does not change."""
        items = self._items
        if self._length != len(items):
            items = items[: self._length]
        items.extend(new)
        return SharedList(items, len(items))

    def __len__(self) -> int:
        return self._length

    def __bool__(self) -> bool:
        return self._length > 0

    def __getitem__(self, index: int) -> T:
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self._items[index]

    def __iter__(self) -> Iterator[T]:
        items = self._items
        for index in range(self._length):
            yield items[index]

    def since(self, start: int) -> list[T]:
        """Return the entries from `start` on, as a new list."""
        return self._items[start : self._length]

    def shares(self, other: SharedList[T]) -> bool:
        """Tell whether `other` grows from the same list (one is a prefix of the other)."""
        return self._items is other._items

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SharedList):
            return NotImplemented
        theirs = cast("SharedList[object]", other)
        return self._length == len(theirs) and self.since(0) == theirs.since(0)

    def __hash__(self) -> int:
        return hash((id(self._items), self._length))

    def __repr__(self) -> str:
        return f"SharedList({self.since(0)!r})"
