"""The page of keys of one zone, made from the table of bindings; pure."""

from __future__ import annotations

from collections.abc import Sequence

from forkdeck.store.cells import fit
from forkdeck.ui.bindings import Binding, Section, Zone, of_zones, usable
from forkdeck.ui.commands import COMMANDS
from forkdeck.ui.glyphs import badge
from forkdeck.ui.lines import BLANK, Row, Span, beside, line, rule, shifted

ZONES: tuple[tuple[str, tuple[Zone, ...]], ...] = (
    ("deck", ("deck",)),
    ("prompt", ("prompt",)),
    ("zoom", ("zoom",)),
    ("diff", ("diff",)),
    ("cost", ("cost",)),
    ("plan", ("plan",)),
    ("cache", ("cache",)),
    ("notices", ("notices",)),
    ("replay", ("replay", "deck")),
    ("start", ("start",)),
    ("sessions", ("sessions",)),
)
"""The pages, in the order Tab turns them."""

_SECTIONS: tuple[Section, ...] = (
    "move", "needs you", "steer and stop", "results", "view", "anywhere",
)  # fmt: skip

_STATES: tuple[tuple[str, str, str], ...] = (
    ("PLAN", "muted", "waits for your yes"),
    ("QUE", "muted", "waits for a place"), ("START", "muted", "setting up"),
    ("WAIT", "muted", "cache, 429, network"), ("RUN", "live", "working"),
    ("ASK", "chip-ask", "needs an answer"), ("SLOW", "warn-strong", "no headway"),
    ("STOP", "muted", "stopping"),
    ("SAVE", "muted", "saving its work"), ("NEW", "good-strong", "report to read"),
    ("DONE", "muted", "read, settled"), ("PART", "warn-strong", "hit a limit"),
    ("FAIL", "bad-strong", "error, all kept"), ("ABRT", "muted", "you stopped it"),
    ("INTR", "warn-strong", "the app died"),
)  # fmt: skip


_PAIRS: dict[str, tuple[str, str, str]] = {
    "move.down": ("move.up", "j k ↑ ↓", "next, previous fork"),
    "zoom.down": ("zoom.up", "j k ↑ ↓", "one line, in the zoom"),
    "list.down": ("list.up", "j k ↑ ↓", "next, previous line"),
    "move.left": ("move.right", "h l ← →", "sideways, (un)fold"),
    "move.first": ("move.last", "g G", "first, last"),
    "turn.previous": ("turn.next", "{ }", "previous, next turn"),
    "page.up": ("page.down", "PgUp PgDn", "scroll a page"),
    "prompt.scroll-up": ("prompt.scroll-down", "PgUp PgDn", "scroll the talk"),
    "prompt.older": ("prompt.newer", "↑ ↓", "older, newer prompt"),
    "zoom.previous": ("zoom.next", "[ ]", "fork before, after"),
    "owed.next": ("owed.only", "w W", "next owed, only owed"),
    "answer.once": ("answer.fork", "y a", "allow once, this fork"),
    "answer.batch": ("answer.edit", "A e", "its batch, edit first"),
    "answer.deny": ("answer.reason", "- _", "deny, and say why"),
    "fork.abort": ("fork.abort-all", "x X", "abort this fork, all"),
    "copy.report": ("copy.diff", "c C", "copy report, diff"),
    "view.denser": ("view.roomier", "v V", "denser, roomier"),
    "search.next": ("search.previous", "n N", "match after, before"),
    "replay.next": ("replay.previous", ". ,", "one event on, back"),
    "replay.forward": ("replay.back", "← →", "5 seconds on, back"),
    "replay.slower": ("replay.faster", "< >", "half, twice the speed"),
    "replay.turn-next": ("replay.turn-previous", "{ }", "next, previous turn"),
}
"""Bindings that help lists on one line: first → (second, keys, words)."""


def _paired(entries: Sequence[Binding]) -> list[tuple[str, str, str]]:
    """Return (keys, sentence, short) a line; a pair whose both halves are there is one line."""
    known = {binding.id for binding in entries}
    seconds = {pair[0] for first, pair in _PAIRS.items() if first in known and pair[0] in known}
    lines: list[tuple[str, str, str]] = []
    for binding in entries:
        pair = _PAIRS.get(binding.id)
        if pair is not None and pair[0] in known:
            lines.append((pair[1], pair[2], pair[2]))
        elif binding.id not in seconds:
            lines.append((binding.shown, binding.help, binding.word))
    return lines


def _fitting(sentence: str, short: str, cells: int) -> str:
    """Return the sentence, else its part before the semicolon, else the short word."""
    for text in (sentence, sentence.partition(";")[0]):
        if len(text) <= cells:
            return text
    return short


def help_rows(
    page: int,
    *,
    width: int,
    query: str = "",
    live: bool = True,
    worktrees: bool = True,
    ascii_: bool = False,
) -> list[Row]:
    """Return the rows of one page of help.

    Args:
        page: Index into `ZONES`.
        width: Cells of the sheet.
        query: Show only what contains this text.
        live: Whether live keys act on this deck.
        worktrees: Whether write forks work here.
        ascii_: Whether to draw states with ASCII glyphs.
    """
    _, zones = ZONES[page % len(ZONES)]
    columns = 3 if width >= 100 else 2 if width >= 70 else 1
    cells = (width - 4 - 2 * (columns - 1)) // columns
    wanted = query.casefold()
    blocks: list[list[Row]] = []
    for section in _SECTIONS:
        entries = [
            binding
            for binding in of_zones(zones)
            if binding.section == section
            and usable(binding, live=live, worktrees=worktrees)
            and wanted in f"{binding.shown} {binding.help} {binding.word}".casefold()
        ]
        if entries:
            blocks.append(_section(section, entries, cells, ascii_=ascii_))
    rows = _in_columns(blocks, columns, cells)
    rows += _commands(zones, wanted, width)
    if not wanted:
        rows += _states(width, ascii_=ascii_)
        rows += _closing(width)
    if not rows:
        rows = [line([("muted", "nothing here has that in it")], width=width, margin=2)]
    return rows


def _section(name: str, entries: Sequence[Binding], cells: int, *, ascii_: bool) -> list[Row]:
    rows = [line([("heading", name)], width=cells), rule(cells, glyph="-" if ascii_ else "─")]
    label = 11
    for keys, sentence, short in _paired(entries):
        text = _fitting(sentence, short, cells - label)
        rows.append(line([("key", fit(keys, label)), ("muted", text)], width=cells))
    return [*rows, BLANK]


def _in_columns(blocks: Sequence[list[Row]], columns: int, cells: int) -> list[Row]:
    """Spread the blocks over columns in order, each to the column that is shortest so far."""
    stacks: list[list[Row]] = [[] for _ in range(columns)]
    for block in blocks:
        min(stacks, key=len).extend(block)
    joined = stacks[0]
    for index, stack in enumerate(stacks[1:], start=1):
        joined = beside(joined, stack, at=index * (cells + 2))
    return [shifted(row, 2) for row in joined]


def _commands(zones: Sequence[Zone], wanted: str, width: int) -> list[Row]:
    if "prompt" not in zones and not wanted:
        return []
    found = [
        command
        for command in COMMANDS
        if wanted in f"/{command.name} {command.help}".casefold() or not wanted
    ]
    if not found:
        return []
    rows = [line([("heading", "commands")], width=width, margin=2), rule(width, margin=2)]
    for command in found:
        rows.append(
            line([("key", fit(command.usage, 30)), ("muted", f"  {command.help}")], width=width,
                 margin=2)
        )  # fmt: skip
    return [*rows, BLANK]


def _states(width: int, *, ascii_: bool) -> list[Row]:
    columns = max(1, min(4, (width - 4) // 27))
    cells = (width - 4) // columns
    rows = [line([("heading", "states")], width=width, margin=2),
            rule(width, margin=2, glyph="-" if ascii_ else "─")]  # fmt: skip
    for start in range(0, len(_STATES), columns):
        spans: list[Span] = []
        for word, style, text in _STATES[start : start + columns]:
            glyph = badge(word, ascii_only=ascii_).glyph
            shown = f" {glyph} {word} " if style == "chip-ask" else f" {glyph} {word}"
            spans += [(style, shown), ("text", " " * (9 - len(shown))),
                      ("muted", fit(text, cells - 9))]  # fmt: skip
        rows.append(line(spans, width=width, margin=2))
    return [*rows, BLANK]


def _closing(width: int) -> list[Row]:
    texts: tuple[list[Span], ...] = (
        [("muted", "Small letters can be taken back, capitals ask first, and "), ("key", "u"),
         ("muted", " undoes either.")],
        [("muted", "A state is never told by colour alone. Esc goes outward and stops nothing.")],
    )  # fmt: skip
    return [line(spans, width=width, margin=2) for spans in texts]
