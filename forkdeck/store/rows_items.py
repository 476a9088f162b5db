"""Finished transcript items as rows.

Called by the row buffer once per item (and again when the item is folded or the width
changes). Data comes from the reduced state; nothing here looks at a clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from forkdeck.model.ids import PARENT
from forkdeck.model.items import Item, ItemKind
from forkdeck.model.state import DeckState, ForkState
from forkdeck.store.cells import cell_width, cut_end
from forkdeck.store.figures import plural, readable_instants, tokens
from forkdeck.store.rows_text import clean_line, hanging, inline_spans, text_rows
from forkdeck.store.rows_tools import VERB, batch_rows, is_fork_tool, tool_line, tool_rows
from forkdeck.store.rows_types import Bar, Fill, Grid, Row, Span, Style
from forkdeck.store.text import plain_text

REPORT_LABELS: Final = {
    "scope": "Scope",
    "result": "Result",
    "key files": "Files",
    "files changed": "Changed",
    "issues": "Issues",
    "blocked": "Blocked",
}
"""Labels of a report's fields and the words that stand for them, 7 cells at most."""

_FIELD: Final = re.compile(
    r"\s*(?:[-*#]+\s*)?\**(scope|result|key files|files changed|issues|blocked)\**\s*:\**\s*(.*)",
    re.IGNORECASE,
)
_THOUGHT_ROWS: Final = 3


class Place(NamedTuple):
    """What an item is drawn into."""

    grid: Grid
    state: DeckState
    run: str

    @property
    def speaker(self) -> str:
        """The label of the model's own text."""
        return "deck" if self.run == PARENT else "fork"


def opens_by_itself(item: Item, grid: Grid) -> bool:
    """Tell whether an item is open until the person folds it: changes, in the zoom."""
    return grid.kind == "zoom" and item.tool is not None and bool(item.tool.patch)


def foldable(item: Item) -> bool:
    """Tell whether there is something to open or fold."""
    if item.kind == "thinking":
        return True
    tool = item.tool
    return tool is not None and bool(tool.patch or tool.content.strip())


def joins(before: Item | None, item: Item, grid: Grid) -> bool:
    """Tell whether an item follows the one before without a blank row."""
    if before is None or before.kind != "tool" or item.kind != "tool":
        return False
    if grid.kind != "zoom":
        return not (before.tool and before.tool.status in ("error", "timeout"))
    return not opens_by_itself(before, grid) and not opens_by_itself(item, grid)


_Draw: TypeAlias = Callable[[Item, Place, bool], list[Row]]


def item_rows(item: Item, place: Place, *, opened: bool) -> list[Row]:
    """Return the rows of one item, without the blank row before it."""
    return _DRAW[item.kind](item, place, opened)


def _said(label: str, text: str, grid: Grid) -> list[Row]:
    if grid.label:
        return text_rows(text, grid, ("title", label))
    rows = text_rows(text, grid, None)
    head: Row = Row((("text", " " * grid.indent), ("title", label)))
    return [head, *rows]


def _thought(text: str, grid: Grid, *, opened: bool) -> list[Row]:
    rows = text_rows(text, grid, None, "note")
    if opened or len(rows) <= _THOUGHT_ROWS:
        return rows
    more: Span = ("muted", f"{grid.glyphs.folded} {len(rows) - _THOUGHT_ROWS + 1} more rows")
    return [*rows[: _THOUGHT_ROWS - 1], Row((("text", " " * grid.indent), more))]


def _tool(item: Item, place: Place, *, opened: bool) -> list[Row]:
    if item.tool is None:
        return []
    if is_fork_tool(item.tool.name) and not opened:
        # The fan-out is drawn by its batch item; its result is the forks' reports.
        return [tool_line(item.tool, place.grid, now_ms=0)]
    return tool_rows(item.tool, place.grid, opened=opened)


def _boundary(item: Item, place: Place) -> Row:
    grid = place.grid
    fork = place.state.forks.get(place.run)
    text = clean_line(item.text)
    if fork is not None and fork.inherited_messages:
        owner = "parent" if fork.from_run == PARENT else f"fork {fork.from_run[1:]}"
        text = f"inherited from {owner}, {plural(fork.inherited_messages, 'message')}"
        if fork.inherited_tokens is not None:
            text += f", {tokens(fork.inherited_tokens)} tokens"
    start = grid.left
    room = grid.width - start - grid.right
    rule = grid.glyphs.rule
    while cell_width(text) > room - 8 and ", " in text:
        text = text.rpartition(", ")[0]
    shown = cut_end(text or "starts with no history", max(4, room - 8))
    rest = max(0, room - cell_width(shown) - 5)
    spans: tuple[Span, ...] = (
        ("text", " " * start),
        ("rule", rule * 3),
        ("muted", f" {shown} "),
        ("rule", rule * rest),
    )
    return Row(spans)


def report_fields(text: str) -> list[tuple[str, str]]:
    """Return a report as (label, text) pairs; text before the first label has an empty one."""
    fields: list[tuple[str, list[str]]] = [("", [])]
    for line in plain_text(text).split("\n"):
        if found := _FIELD.fullmatch(line):
            fields.append((REPORT_LABELS[found[1].lower()], [found[2]]))
        else:
            fields[-1][1].append(line)
    return [(label, "\n".join(lines).strip("\n")) for label, lines in fields]


def _report(text: str, place: Place) -> list[Row]:
    grid = place.grid
    rows: list[Row] = []
    start = grid.left if grid.kind == "zoom" else grid.indent
    hang = grid.label if grid.kind == "zoom" else VERB
    for label, body in report_fields(text):
        if not label:
            rows += text_rows(body, grid, None) if body.strip() else []
            continue
        first: Span = ("muted", label)
        for line in [line for line in body.split("\n") if line.strip()] or ["–"]:
            spans = inline_spans(clean_line(line))
            rows += hanging(first, spans, grid, hang=hang, left=start)
            first = ("muted", "")
    fork = place.state.forks.get(place.run)
    words = plural(len(text.split()), "word")
    tail: list[Span] = [("text", " " * grid.indent)]
    if fork is not None and fork.degraded:
        tail += [("warn", "! no report of its own"), ("muted", f"   {words}")]
    elif fork is not None and fork.outcome in ("aborted", "interrupted", "failed"):
        tail += [("muted", f"what it had written, {words}")]
    else:
        tail += [("good", grid.glyphs.good), ("muted", f" report, {words}")]
    if not rows:
        return []
    return [*rows, Row(), Row(flush_right_tail(tail, grid)), *_claim_rows(fork, grid)]


def _claim_rows(fork: ForkState | None, grid: Grid) -> list[Row]:
    """Return what of a report was compared with what the fork did, and what does not hold."""
    claims = None if fork is None or not fork.settled else fork.claims
    if claims is None:
        return []
    pad: Span = ("text", " " * grid.indent)
    if not claims.unverified:
        text = f" {claims.verified} of {claims.checked} claims confirmed"
        return [Row(flush_right_tail([pad, ("good", grid.glyphs.good), ("muted", text)], grid))]
    missing = claims.checked - claims.verified
    head: Span = ("warn", f"! {missing} of {claims.checked} not confirmed")
    rows = [Row(flush_right_tail([pad, head], grid))]
    for wrong in claims.unverified:
        rows += hanging(("warn", "!"), [("text", clean_line(wrong))], grid, hang=2)
    return rows


def flush_right_tail(spans: list[Span], grid: Grid) -> tuple[Span, ...]:
    """Return spans cut at the grid's right margin."""
    room = grid.width - grid.right
    kept: list[Span] = []
    for style, text in spans:
        shown = cut_end(text, room)
        if shown:
            kept.append((style, shown))
        room -= cell_width(shown)
    return tuple(kept)


def _delivery(item: Item, place: Place) -> list[Row]:
    names = [
        f"{handle[1:]} {clean_line(place.state.forks[handle].name)}"
        for handle in item.handles
        if handle in place.state.forks
    ]
    label = "report" if len(names) == 1 else "reports"
    text = ", ".join(names) or clean_line(item.text)
    return hanging(("muted", label), [("muted", text)], place.grid, hang=VERB + 1)


def _cut(item: Item, grid: Grid) -> list[Row]:
    rows = text_rows(item.text, grid, None, "muted") if item.text.strip() else []
    why = clean_line(item.remedy) or "resent"
    note: Span = ("warn", cut_end(f"! cut, {why}", grid.room))
    return [*rows, Row((("text", " " * grid.indent), note))]


def _shell(item: Item, grid: Grid, *, opened: bool) -> list[Row]:
    tool = item.tool
    if tool is None:
        command, _, output = item.text.partition("\n")
        rows = hanging(("muted", "!"), [("strong", clean_line(command))], grid, hang=VERB)
        return rows + (text_rows(output, grid, None, "muted")[:12] if output.strip() else [])
    return tool_rows(tool, grid, opened=opened)


def _notice(item: Item, place: Place) -> list[Row]:
    grid, fork = place.grid, place.state.forks.get(place.run)
    if fork is not None and fork.ended_at_ms == item.at_ms and fork.settled:
        # How the fork ended is said by its card, with the keys that help.
        return []
    styles: dict[str, tuple[Style, str, Fill, Bar]] = {
        "info": ("muted", "note", "", ""),
        "warning": ("warn-strong", "!", "warn", "warn"),
        "error": ("bad-strong", "error", "error", "error"),
    }
    style, word, fill, bar = styles[item.severity]
    what, _, kept = item.text.partition("\n")
    rows = hanging(
        (style, word), inline_spans(readable_instants(clean_line(what))), grid, hang=VERB
    )
    for label, text in (("kept", kept), ("next", item.remedy)):
        if text:
            rows += hanging(("muted", label), inline_spans(clean_line(text)), grid, hang=VERB)
    return [row._replace(fill=fill, bar=bar) for row in rows] if fill else rows


def _batch(item: Item, place: Place, opened: bool) -> list[Row]:
    del opened
    batch = place.state.batches.get(item.batch or "")
    return batch_rows(batch, place.state, place.grid) if batch else []


_DRAW: Final[dict[ItemKind, _Draw]] = {
    "you": lambda item, place, _: _said("you", item.text, place.grid),
    "text": lambda item, place, _: text_rows(item.text, place.grid, ("muted", place.speaker)),
    "task": lambda item, place, _: _said("task", item.text, place.grid),
    "steer": lambda item, place, _: _said("you", item.text, place.grid),
    "thinking": lambda item, place, opened: _thought(item.text, place.grid, opened=opened),
    "tool": lambda item, place, opened: _tool(item, place, opened=opened),
    "batch": _batch,
    "boundary": lambda item, place, _: [_boundary(item, place)],
    "report": lambda item, place, _: _report(item.text, place),
    "delivery": lambda item, place, _: _delivery(item, place),
    "cut": lambda item, place, _: _cut(item, place.grid),
    "shell": lambda item, place, opened: _shell(item, place.grid, opened=opened),
    "notice": lambda item, place, _: _notice(item, place),
}
