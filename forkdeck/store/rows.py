"""A run's transcript as wrapped rows: the buffer a pane looks into.

Owns the rows of one run at one width. `RowBuffer.update` takes the reduced state and appends
what is new; earlier rows are kept as they are. Live deck and replay use it alike; it knows
nothing of the screen but the grid it is given.
"""

from __future__ import annotations

from bisect import bisect_right

from forkdeck.model.ids import PARENT
from forkdeck.model.items import Item
from forkdeck.model.shared_list import SharedList
from forkdeck.model.state import DeckState, RunState
from forkdeck.store.asking import asks_of
from forkdeck.store.rows_items import Place, foldable, item_rows, joins, opens_by_itself
from forkdeck.store.rows_live import StreamRows, tail_rows
from forkdeck.store.rows_types import BLANK, Grid, Row


class RowBuffer:
    """The rows of one run: finished items, the streamed answer, and the moving tail."""

    def __init__(self, run: str, grid: Grid) -> None:
        self.run = run
        self.grid = grid
        self.compact = False
        """Cards without their blank rows, for low panes."""
        self.recorded = False
        """A replay: cards cannot be answered."""
        self._toggled: set[int] = set()
        self._clear()

    def _clear(self) -> None:
        self._items: SharedList[Item] = SharedList()
        self._done: list[Row] = []
        self._starts: list[int] = []
        self._stream = StreamRows(self.grid, "deck" if self.run == PARENT else "fork")
        self._gap = 0
        self._tail: list[Row] = []
        self._tail_key: object = None
        self._card = 0
        self._partial: dict[int, int] = {}
        """Items whose forks were not all admitted when they were drawn: index to how many were."""

    def __len__(self) -> int:
        return (
            len(self._done) + self._gap + len(self._stream.rows) + self._tail_gap + len(self._tail)
        )

    @property
    def _tail_gap(self) -> int:
        return 1 if self._tail and (self._stream.rows or self._done) and self._needs_gap else 0

    @property
    def _needs_gap(self) -> bool:
        if self._stream.rows:
            return True
        last = self._items[-1] if self._items else None
        first = self._tail[0]
        # A running call stands right under the finished calls before it.
        running = any(style == "live" for style, _ in first.spans)
        return not (running and last is not None and last.kind == "tool")

    def __getitem__(self, index: int) -> Row:
        for rows, gap in ((self._done, self._gap), (self._stream.rows, self._tail_gap)):
            if index < len(rows):
                return rows[index]
            index -= len(rows)
            if index < gap:
                return BLANK
            index -= gap
        return self._tail[index]

    def set_grid(self, grid: Grid, state: DeckState, now_ms: int) -> None:
        """Wrap everything anew for another width, kind or glyph set; folds are kept."""
        if grid == self.grid:
            return
        self.grid = grid
        self._clear()
        self.update(state, now_ms)

    def update(self, state: DeckState, now_ms: int) -> int | None:
        """Take in a newer (or, after a seek, older) state.

        Returns the first row that changed, or None when every row is as it was. Rows before it
        are equal to what they were.
        """
        run = state.runs.get(self.run) or RunState(run=self.run)
        before = len(self)
        first = self._update_items(run.transcript, state)
        stream_first = self._stream.update(run.stream)
        gap = 1 if self._stream.rows and self._done else 0
        if stream_first is not None or gap != self._gap:
            start = len(self._done) + (gap if gap == self._gap else 0)
            first = _least(first, start + (stream_first or 0))
            self._gap = gap
        old_tail, old_gap, base = self._tail, self._tail_gap, before - len(self._tail)
        old_base = base - old_gap
        self._update_tail(run, state, now_ms)
        start = len(self) - len(self._tail)
        if start != base or old_gap != self._tail_gap:
            if old_tail or self._tail:
                first = _least(first, min(start - self._tail_gap, old_base))
        elif self._tail is not old_tail:
            same = _same_rows(old_tail, self._tail)
            if same < max(len(old_tail), len(self._tail)):
                first = _least(first, start + same)
        return first

    def _update_items(self, items: SharedList[Item], state: DeckState) -> int | None:
        redrawn = self._redraw_partial(state) if self._partial else None
        if items is self._items:
            return redrawn
        first = self._take_items(items, state)
        return first if redrawn is None else _least(first, redrawn)

    def _redraw_partial(self, state: DeckState) -> int | None:
        for index, known in sorted(self._partial.items()):
            if sum(handle in state.forks for handle in self._items[index].handles) != known:
                first = self._starts[index]
                self._rebuild(index, state)
                return first
        return None

    def _take_items(self, items: SharedList[Item], state: DeckState) -> int | None:
        seen = len(self._items)
        first: int | None = None
        if len(items) < seen or (seen and not items.shares(self._items)):
            seen = self._common(items)
            first = self._starts[seen] if seen < len(self._starts) else len(self._done)
            self._drop(seen)
        elif len(items) == seen:
            self._items = items
            return None
        first = len(self._done) if first is None else first
        self._append(items, seen, state)
        self._items = items
        return first

    def _common(self, items: SharedList[Item]) -> int:
        limit = min(len(items), len(self._items))
        if items.shares(self._items):
            return limit
        same = 0
        while same < limit and items[same] is self._items[same]:
            same += 1
        return same

    def _append(self, items: SharedList[Item], start: int, state: DeckState) -> None:
        place = Place(self.grid, state, self.run)
        before = items[start - 1] if start else None
        for index, item in enumerate(items.since(start), start):
            self._starts.append(len(self._done))
            if item.kind == "batch":
                known = sum(handle in state.forks for handle in item.handles)
                if known < len(item.handles):
                    self._partial[index] = known
            rows = item_rows(item, place, opened=self._opened(index, item))
            if rows:
                if self._done and not joins(before, item, self.grid):
                    self._done.append(BLANK)
                self._done += rows
                before = item

    def _opened(self, index: int, item: Item) -> bool:
        return opens_by_itself(item, self.grid) ^ (index in self._toggled)

    def _update_tail(self, run: RunState, state: DeckState, now_ms: int) -> None:
        fork = state.forks.get(self.run)
        asks = tuple(asks_of(state, self.run))
        slow = fork is not None and fork.slow is not None
        moves = bool(run.tools or asks or run.delay or slow)
        planned = any(ask.event.plan is not None for ask in asks)
        key = (
            id(run.tools), asks, id(run.delay), run.requested, run.turn, bool(run.stream),
            id(fork), id(state.batches) if self.run == PARENT else 0,
            id(state.forks) if planned or (self.run == PARENT and run.turn.running) else 0,
            len(state.asks), self.compact, self.recorded, now_ms // 250 if moves else 0,
        )  # fmt: skip
        if key == self._tail_key:
            return
        self._tail_key = key
        # Objects whose identity is in the key stay alive as long as the key does.
        self._keep = (run.tools, run.delay, fork, state.batches, state.forks)
        self._tail = tail_rows(
            run, state, self.grid, now_ms, compact=self.compact, recorded=self.recorded
        )
        card = [index for index, row in enumerate(self._tail) if row.bar]
        self._card = len(self._tail) - card[0] if card else 0

    @property
    def card_rows(self) -> int:
        """How many of the last rows belong to cards."""
        return self._card

    @property
    def cursor_row(self) -> int | None:
        """The row whose text is still growing, or None."""
        if not self._stream.ends_open:
            return None
        return len(self._done) + self._gap + len(self._stream.rows) - 1

    def item_at(self, row: int) -> int | None:
        """Return the index of the item a row belongs to, or None in the moving part."""
        if row >= len(self._done):
            return None
        return bisect_right(self._starts, row) - 1

    def item_start(self, index: int) -> int:
        """Return the first row of an item, past the blank row before it."""
        row = self._starts[index]
        return row + 1 if row < len(self._done) and self._done[row] is BLANK else row

    def turn_starts(self) -> list[int]:
        """Return the rows at which something said by the person or a task begins."""
        return [
            self.item_start(index)
            for index, item in enumerate(self._items)
            if item.kind in ("you", "task", "steer", "delivery")
        ]

    def toggle(self, index: int, state: DeckState) -> bool:
        """Open or fold an item; False when there is nothing to fold."""
        if not 0 <= index < len(self._items) or not foldable(self._items[index]):
            return False
        self._toggled ^= {index}
        self._rebuild(index, state)
        return True

    def fold_all(self, *, opened: bool, state: DeckState) -> None:
        """Open or fold every item that can be."""
        self._toggled = {
            index
            for index, item in enumerate(self._items)
            if foldable(item) and opens_by_itself(item, self.grid) != opened
        }
        self._rebuild(0, state)

    def _rebuild(self, index: int, state: DeckState) -> None:
        if not self._starts:
            return
        self._drop(index)
        self._append(self._items, index, state)

    def _drop(self, index: int) -> None:
        """Forget the rows of the items from `index` on."""
        if index < len(self._starts):
            del self._done[self._starts[index] :]
            del self._starts[index:]
        self._partial = {at: known for at, known in self._partial.items() if at < index}

    def text(self, start: int = 0, end: int | None = None) -> list[str]:
        """Return the characters of rows, clamped to what there is."""
        stop = len(self) if end is None else min(end, len(self))
        return [self[row].text for row in range(max(0, start), stop)]


def _least(left: int | None, right: int) -> int:
    return right if left is None else min(left, right)


def _same_rows(left: list[Row], right: list[Row]) -> int:
    same = 0
    while same < min(len(left), len(right)) and left[same] == right[same]:
        same += 1
    return same
