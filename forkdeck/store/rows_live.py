"""What is still moving at the end of a transcript: the streamed answer and running calls.

`StreamRows` consumes the chunks of the answer as they come, each once; `tail_rows` draws what
changes with the clock. Both are owned by the row buffer of one run.
"""

from __future__ import annotations

from forkdeck.model.ids import PARENT
from forkdeck.model.items import Chunk
from forkdeck.model.shared_list import SharedList
from forkdeck.model.state import DeckState, Delay, ForkState, RunState
from forkdeck.model.words import TERMINAL
from forkdeck.store.asking import asks_of
from forkdeck.store.cells import cut_end
from forkdeck.store.figures import clock, plural
from forkdeck.store.rows_cards import ask_card, end_card, slow_card
from forkdeck.store.rows_plan import plan_card
from forkdeck.store.rows_text import TextFlow, clean, clean_line
from forkdeck.store.rows_tools import VERB, tool_rows, verb_of
from forkdeck.store.rows_types import BLANK, Grid, Row, Span

_CALL_SHOWN = 400


class StreamRows:
    """Rows of the answer that is being streamed; appending costs what is new."""

    def __init__(self, grid: Grid, speaker: str) -> None:
        self._grid = grid
        self._speaker = speaker
        self._source: SharedList[Chunk] = SharedList()
        self.rows: list[Row] = []
        self._reset_block()
        self._fixed = 0
        self._key: tuple[str, int] | None = None
        self._labelled = False

    def _reset_block(self) -> None:
        self._flow: TextFlow | None = None
        self._tail = ""
        self._call = ""

    def update(self, stream: SharedList[Chunk]) -> int | None:
        """Take in what is new; returns the first row that changed, or None."""
        seen = len(self._source)
        if stream is self._source:
            return None
        first = len(self.rows)
        if len(stream) < seen or (seen and not stream.shares(self._source)):
            self.rows.clear()
            self._fixed, self._key, self._labelled, seen, first = 0, None, False, 0, 0
            self._reset_block()
        self._source = stream
        for chunk in stream.since(seen):
            first = min(first, self._take(chunk))
        return first

    def _take(self, chunk: Chunk) -> int:
        key = (chunk.kind, chunk.index)
        if key != self._key:
            self._begin(chunk, key)
        if chunk.kind == "call":
            return self._take_call(chunk)
        flow = self._flow
        assert flow is not None
        parts = (self._tail + clean(chunk.text)).split("\n")
        self._tail = parts.pop()
        before = self.rows[self._fixed :]
        start = self._fixed
        del self.rows[start:]
        self.rows += flow.lines(parts)
        self._fixed = len(self.rows)
        if self._tail:
            self.rows += flow.copy().lines([self._tail])
        fresh = self.rows[start:]
        same = 0
        while same < min(len(before), len(fresh)) and before[same] == fresh[same]:
            same += 1
        # The same objects again: whoever has drawn these rows need not draw them anew.
        self.rows[start : start + same] = before[:same]
        return start + same

    def _begin(self, chunk: Chunk, key: tuple[str, int]) -> None:
        while self.rows and self.rows[-1] is BLANK:
            self.rows.pop()
        if self.rows:
            self.rows.append(BLANK)
        self._fixed = len(self.rows)
        self._reset_block()
        self._key = key
        if chunk.kind == "thinking":
            self._flow = TextFlow(self._grid, None, "note")
        elif chunk.kind == "text":
            label: Span | None = None if self._labelled else ("muted", self._speaker)
            self._labelled = True
            self._flow = TextFlow(self._grid, label)

    def _take_call(self, chunk: Chunk) -> int:
        if len(self._call) < _CALL_SHOWN:
            self._call += clean_line(chunk.text)
        grid = self._grid
        name = verb_of(chunk.name)
        lead = " " * (3 if grid.kind == "zoom" else grid.indent)
        verb = name.ljust(7 if grid.kind == "zoom" else VERB)
        room = max(4, grid.width - len(lead) - len(verb) - grid.right)
        row = Row((("text", lead), ("live", verb), ("note", cut_end(self._call, room))))
        del self.rows[self._fixed :]
        self.rows.append(row)
        return self._fixed

    @property
    def ends_open(self) -> bool:
        """Whether the last row is text that still grows, and gets the cursor mark."""
        return self._flow is not None and bool(self._tail)


def waiting_note(run: RunState, state: DeckState, now_ms: int) -> str:
    """Say in a few words what a run that shows nothing new is waiting for; else empty."""
    if run.delay is not None:
        return delay_words(run.delay, now_ms)
    if run.run == PARENT:
        asked = [
            batch
            for batch in state.batches.values()
            if not (batch.ended or batch.background or batch.planned)
        ]
        handles = [handle for batch in asked if batch.run == PARENT for handle in batch.handles]
        open_forks = [
            handle
            for handle in handles
            if handle in state.forks and state.forks[handle].status not in TERMINAL
        ]
        if run.turn.running and open_forks and not run.stream and not run.requested:
            return f"Waiting for {len(open_forks)} of {plural(len(handles), 'fork')}"
    return "Waiting for the first word" if run.requested and not run.stream else ""


def delay_words(delay: Delay, now_ms: int) -> str:
    """Return why a run waits and until when: ``429, retry in 0:18, try 2 of 6``."""
    names = {
        "cache": "for the first fork to warm the cache",
        "place": "for a free place",
        "budget": "for a shared budget",
        "connection": "connection lost",
        "cut": "answer cut",
    }
    if delay.places:
        held = f"{delay.elsewhere} of {delay.places}"
        return f"waits for a place ({held} held by another forkdeck)"
    words = names.get(delay.reason, clean_line(delay.reason))
    if delay.until_ms is not None and delay.until_ms > now_ms:
        words += f", retry in {clock(delay.until_ms - now_ms + 999)}"
    if delay.attempt > 1 or delay.attempts is not None:
        words += f", try {delay.attempt}"
        words += f" of {delay.attempts}" if delay.attempts is not None else ""
    return words


def brief_delay(delay: Delay, now_ms: int) -> str:
    """Return the same for a row, where its end would be cut: ``429 0:18 (2/6)``."""
    if delay.until_ms is None or delay.until_ms <= now_ms:
        return delay_words(delay, now_ms)
    words = f"{clean_line(delay.reason)} {clock(delay.until_ms - now_ms + 999)}"
    if delay.attempts is not None:
        return f"{words} ({delay.attempt}/{delay.attempts})"
    return f"{words} ({delay.attempt})" if delay.attempt > 1 else words


def _steer_waits(fork: ForkState | None, run: RunState) -> str:
    """Return what a message to a fork waits for before the fork gets it."""
    if fork is None or fork.settled:
        never = fork is not None and fork.started_at_ms is None
        return "not delivered, it never started" if never else "not delivered, r goes on with it"
    if fork.status in ("PLAN", "QUE"):
        return "waits for the fork to start"
    return "waits for the tool to end" if run.tools else "waits for the answer to end"


def tail_rows(
    run: RunState, state: DeckState, grid: Grid, now_ms: int, *, compact: bool, recorded: bool
) -> list[Row]:
    """Return the rows after the text: running calls, what is waited for, steering, cards."""
    rows: list[Row] = []
    asked = {ask.event.call for ask in state.asks if ask.run == run.run}
    for tool in run.tools:
        if tool.call not in asked:
            rows += tool_rows(tool, grid, opened=False, now_ms=now_ms)
    if note := waiting_note(run, state, now_ms):
        pad: Span = ("text", " " * grid.indent)
        rows += [BLANK] if rows else []
        rows.append(Row((pad, ("note", cut_end(note, grid.room)))))
    fork = state.forks.get(run.run)
    for text in fork.steering if fork else ():
        pad = ("text", " " * grid.indent)
        line = cut_end(f"steer, {_steer_waits(fork, run)}: {clean_line(text)}", grid.room)
        rows.append(Row((pad, ("note", line))))
    cards: list[Row] = []
    asks = asks_of(state, run.run)
    if len(asks) > 1:
        # One card at a time: a key must not answer another question than the one that is read.
        rows += [BLANK] if rows else []
        more = plural(len(asks) - 1, "more question")
        words = cut_end(f"{more} after this one", grid.room)
        rows.append(Row((("text", " " * grid.indent), ("note", words))))
    for ask in asks[:1]:
        if ask.event.plan is None:
            cards += ask_card(ask, state, grid, now_ms, compact=compact, recorded=recorded)
            continue
        handle = "" if ask.run == run.run else run.run
        cards += plan_card(
            ask, state, grid, now_ms, compact=compact, recorded=recorded, handle=handle
        )
    if fork is not None:
        if not cards:
            cards += slow_card(fork, run, grid, now_ms, compact=compact, recorded=recorded)
        cards += end_card(fork, run, grid, compact=compact, recorded=recorded)
    if cards and rows:
        rows.append(BLANK)
    return rows + cards
