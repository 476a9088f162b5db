"""The table of cost and cache by run, as rows and as CSV; pure.

Data comes from the deck's state. What an endpoint did not tell is ``–``, never a zero.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from forkdeck.model.ids import PARENT
from forkdeck.model.state import CacheFacts, DeckState
from forkdeck.model.usage import Cost, Usage
from forkdeck.store import selectors
from forkdeck.store.cells import fit
from forkdeck.store.figures import UNKNOWN, cost, limit, money, percent, plural, tokens
from forkdeck.ui.lines import BLANK, Row, Span, line, outside, rule


@dataclass(frozen=True, slots=True)
class CostLine:
    """One run's figures."""

    run: str
    slot: str
    name: str
    usage: Usage
    cost: Cost
    cache: CacheFacts | None
    asked: bool
    """Whether an endpoint has told its usage."""
    word: str = ""
    """Its state, shown while there is no verdict."""


def cost_lines(state: DeckState) -> list[CostLine]:
    """Return the parent and every fork in order of admission."""
    parent = state.parent
    lines = [
        CostLine(PARENT, "", "parent", parent.usage, parent.cost, parent.cache,
                 parent.counters.turns > 0 or parent.usage != Usage())
    ]  # fmt: skip
    for handle, fork in state.forks.items():
        run = state.runs.get(handle)
        usage = run.usage if run else Usage()
        lines.append(
            CostLine(
                handle, handle[1:], fork.name, usage, run.cost if run else Cost(),
                run.cache if run else None, usage != Usage(),
            )
        )  # fmt: skip
    return lines


_Column = tuple[str, int, int, Callable[[CostLine], str]]


def _fresh(item: CostLine) -> str:
    return tokens(item.usage.input_tokens) if item.asked else UNKNOWN


def _output(item: CostLine) -> str:
    return tokens(item.usage.output_tokens) if item.asked else UNKNOWN


def _money(item: CostLine) -> str:
    return cost(item.cost) if item.asked else UNKNOWN


def _saved(item: CostLine) -> str:
    return money(item.cache.saved_usd) if item.cache else UNKNOWN


_COLUMNS: tuple[_Column, ...] = (
    ("input", 10, 78, _fresh),
    ("written", 11, 88, lambda item: tokens(item.usage.cache_creation_input_tokens)),
    ("read", 11, 66, lambda item: tokens(item.usage.cache_read_input_tokens)),
    ("output", 11, 98, _output),
    ("cost", 11, 0, _money),
    ("saved", 10, 56, _saved),
    ("share", 9, 110, lambda item: percent(item.usage.cache_share)),
)
"""Heading, cells, width of the page it needs, and its figure."""


def cost_rows(state: DeckState, *, selected: int, width: int, ascii_: bool = False) -> list[Row]:
    """Return the page's rows for `width` cells."""
    lines = cost_lines(state)
    forks = plural(len(state.forks), "fork")
    title: list[Span] = [("heading", "cost and cache"), ("muted", f"   1 parent, {forks}")]
    since = state.session.started_at[11:16]
    rows = [
        line(title, [("muted", f"since {since} UTC")] if since else [], width=width, margin=1,
             fill="panel"),
        BLANK,
    ]  # fmt: skip
    columns = [column for column in _COLUMNS if width >= column[2]]
    verdicts = width >= 72
    head = "".join(f"{name:>{cells}}" for name, cells, _, _ in columns)
    rows.append(line([("muted", "      run")], [("muted", head + "     cache     " * verdicts)],
                     width=width, margin=1))  # fmt: skip
    glyph = "-" if ascii_ else "─"
    rows.append(rule(width, margin=2, glyph=glyph))
    for index, item in enumerate(lines):
        rows.append(_line(item, columns, selected=index == selected, width=width,
                          verdicts=verdicts))  # fmt: skip
    rows.append(rule(width, margin=2, glyph=glyph))
    rows.append(_total(state, columns, width=width, verdicts=verdicts))
    rows += [BLANK, *_below(state, lines[selected], width)]
    return rows


def _line(
    item: CostLine, columns: list[_Column], *, selected: bool, width: int, verdicts: bool
) -> Row:
    figures: list[Span] = []
    for name, cells, _, figure in columns:
        style: str = "text" if name == "cost" else "muted"
        figures.append((style, f"{figure(item):>{cells}}"))
    if verdicts:
        word = item.cache.verdict if item.cache else ""
        missed = word in {"MISS", "PARTIAL"}
        shown = ("! " if missed else "") + (word or ("" if item.asked else item.word))
        figures.append(("warn-strong" if missed else "muted", f"     {fit(shown, 10)}"))
    return line(
        [("muted", f"  {item.slot:>2}  "), ("strong" if selected else "text", outside(item.name))],
        figures,
        width=width,
        margin=1,
        fill="selected" if selected else "",
        bar="focus" if selected else "",
    )


def _total(state: DeckState, columns: list[_Column], *, width: int, verdicts: bool) -> Row:
    usage = selectors.total_usage(state)
    saved = selectors.saved_usd(state)
    total = CostLine("", "", "total", usage, selectors.total_cost(state), None, usage != Usage())
    texts = [
        f"{money(saved) if name == 'saved' else figure(total):>{cells}}"
        for name, cells, _, figure in columns
    ]
    return line([("strong", "      total")],
                [("strong", "".join(texts)), ("text", " " * 15 * verdicts)],
                width=width, margin=1)  # fmt: skip


def _below(state: DeckState, item: CostLine, width: int) -> list[Row]:
    rows: list[Row] = []
    cache = item.cache
    if cache is not None and cache.verdict in {"MISS", "PARTIAL"}:
        name = outside(item.name)
        rows.append(line([("warn-strong", f"  ! {name} {cache.verdict.lower()} of the cache")],
                         width=width, fill="warn", bar="warn"))  # fmt: skip
        expected = f"read {tokens(cache.read_tokens)} of {tokens(cache.expected_tokens)} expected"
        for label, text in (("tokens", expected), ("differs", cache.difference)):
            if text:
                rows.append(line([("muted", f"    {fit(label, 9)}"), ("text", outside(text))],
                                 width=width, fill="warn", bar="warn"))  # fmt: skip
        rows.append(BLANK)
    spent = selectors.total_cost(state)
    budget = state.session.budget_usd
    forks = sum((run.cost for name, run in state.runs.items() if name != PARENT), Cost())
    facts: list[tuple[str, str]] = [
        ("spent", cost(spent) + (f" of {limit(budget)}" if budget is not None else "")),
        ("parent", cost(state.parent.cost)),
        ("forks", cost(forks)),
        ("cache", percent(selectors.cache_share(state))),
        ("saved", f"{money(selectors.saved_usd(state))} by sharing one prefix"),
    ]
    if budget is None:
        facts.append(("budget", "no limit; b sets one"))
    if not spent.known:
        facts.append(("note", "a model's price is not known: sums are not shown as if they were"))
    if state.session.simulated:
        facts.append(("note", outside(state.session.simulated)))
    for label, text in facts:
        rows.append(line([("muted", f"  {fit(label, 9)}"), ("text", text)], width=width))
    return rows


def as_csv(state: DeckState) -> str:
    """Return the table as CSV with exact figures; an unknown one is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["run", "name", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
         "output_tokens", "cost_usd", "saved_usd", "verdict"]
    )  # fmt: skip
    for item in cost_lines(state):
        usage = item.usage
        saved = item.cache.saved_usd if item.cache else None
        writer.writerow(
            [item.run, _formula_safe(item.name), usage.input_tokens,
             _cell(usage.cache_creation_input_tokens), _cell(usage.cache_read_input_tokens),
             usage.output_tokens, _cell(item.cost.usd if item.cost.known else None),
             _cell(saved), item.cache.verdict if item.cache else ""]
        )  # fmt: skip
    return out.getvalue()


def _cell(value: int | Decimal | None) -> str:
    return "" if value is None else str(value)


def _formula_safe(text: str) -> str:
    """A name from outside must not become a formula in a spreadsheet."""
    return f"'{text}" if text[:1] in {"=", "+", "-", "@"} else text
