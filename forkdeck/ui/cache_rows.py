"""The page of the prompt cache by run: verdicts, tokens, the first difference; pure.

Data comes from the store's view of the cache. What an endpoint did not tell is ``–``.
"""

from __future__ import annotations

from collections.abc import Callable

from forkdeck.store.cache_view import CacheRow, CacheView
from forkdeck.store.cells import fit
from forkdeck.store.figures import UNKNOWN, money, percent, plural, tokens
from forkdeck.ui.lines import BLANK, Row, Span, line, outside, rule, wrapped

FIRST_RUN = 4
"""Row of the parent: under the title, a blank, heads and a rule."""

_COLUMNS: tuple[tuple[str, int, int, Callable[[CacheRow], str]], ...] = (
    ("read", 9, 0, lambda row: tokens(row.read)),
    ("expected", 10, 48, lambda row: tokens(row.expected)),
    ("written", 9, 66, lambda row: tokens(row.written)),
    ("fresh", 8, 76, lambda row: tokens(row.fresh)),
    ("all read", 10, 116, lambda row: tokens(row.total_read)),
    ("share", 7, 58, lambda row: percent(row.share)),
    ("saved", 9, 88, lambda row: money(row.saved_usd)),
    ("head", 11, 104, lambda row: row.head[:8] or UNKNOWN),
)
"""Heading, cells, width of the page it needs, and its figure."""

VERDICTS: tuple[tuple[str, str], ...] = (
    ("HIT", "the shared prefix was read from the cache"),
    ("PARTIAL", "only a part of it was read, though all of it was expected"),
    ("MISS", "nothing of it was read, though expected; its reason is told"),
    (
        "COLD",
        "not all of it was read, as expected: a first request, a seed without the messages, "
        "another model or effort, a summary, five minutes without use, or no cache marks",
    ),
    ("BELOW MINIMUM", "too short: the model caches nothing under its least length"),
    ("UNKNOWN", "the endpoint does not say what it read from a cache"),
)
"""What each verdict means; the README has the same words."""

_WORDS: tuple[tuple[str, str], ...] = (
    ("read", "from the cache: by a fork's first request, the parent's last"),
    ("expected", "tokens of the prefix it shares with the run it came from"),
    ("written", "tokens this request put into the cache, for the next ones"),
    ("fresh", "tokens behind the last mark: not cached, at the full price"),
    ("saved", "what reading cost less than sending the same tokens uncached"),
    ("head", "fingerprint of model, system, tools, thinking and effort"),
)


def cache_rows(
    view: CacheView, *, selected: int, width: int, costs: bool = True, ascii_: bool = False
) -> list[Row]:
    """Return the page's rows for `width` cells."""
    right: list[Span] = [("muted", "share "), ("text", percent(view.share))]
    if costs:
        right += [("muted", "   saved "), ("strong", money(view.saved_usd))]
    forks = plural(len(view.rows) - 1, "fork")
    rows = [
        line([("heading", "cache"), ("muted", f"   1 parent, {forks}")], right,
             width=width, margin=1, fill="panel"),
        BLANK,
    ]  # fmt: skip
    columns = [column for column in _COLUMNS if width >= column[2]]
    head = "".join(f"{name:>{cells}}" for name, cells, _, _ in columns)
    rows.append(line([("muted", "      run")], [("muted", f"     {fit('verdict', 15)}{head}")],
                     width=width, margin=1))  # fmt: skip
    rows.append(rule(width, margin=2, glyph="-" if ascii_ else "─"))
    for index, row in enumerate(view.rows):
        rows.append(_run(row, columns, selected=index == selected, width=width))
    rows.append(BLANK)
    if not view.told:
        rows += [line([("muted", "  No answer has told anything of a cache so far.")],
                      width=width), BLANK]  # fmt: skip
    rows += _chosen(view.rows[selected], width)
    rows += [BLANK, *_legend(width)]
    return rows


def _run(
    row: CacheRow,
    columns: list[tuple[str, int, int, Callable[[CacheRow], str]]],
    *,
    selected: bool,
    width: int,
) -> Row:
    missed = row.verdict in ("MISS", "PARTIAL")
    word = f"{'! ' if missed else '  '}{row.verdict or UNKNOWN}"
    figures: list[Span] = [("warn-strong" if missed else "muted", f"   {fit(word, 17)}")]
    for name, cells, _, figure in columns:
        figures.append(("text" if name == "read" else "muted", f"{figure(row):>{cells}}"))
    slot = row.run[1:] if row.seed else ""
    return line(
        [("muted", f"  {slot:>2}  "), ("strong" if selected else "text", outside(row.name))],
        figures, width=width, margin=1,
        fill="selected" if selected else "", bar="focus" if selected else "",
    )  # fmt: skip


def _chosen(row: CacheRow, width: int) -> list[Row]:
    name = outside(row.name)
    if row.verdict is None:
        return [line([("heading", f"  {name}"), ("muted", "   no answer yet")], width=width)]
    missed = row.verdict in ("MISS", "PARTIAL")
    fill, bar = ("warn", "warn") if missed else ("", "")
    style = "warn-strong" if missed else "heading"
    facts = [
        (row.verdict.lower(), dict(VERDICTS)[row.verdict]),
        ("first difference" if missed else "note", row.difference),
        ("seed", row.seed),
        ("head", f"{row.head}   {row.model}".strip()),
        ("sent prefix", row.prefix),
    ]
    rows = [line([(style, f"  {name}")], width=width, fill=fill, bar=bar)]
    for label, text in facts:
        if not text:
            continue
        for index, part in enumerate(wrapped(text, width=width - 22)):
            lead: Span = ("muted", f"    {fit(label if not index else '', 17)}")
            rows.append(Row(spans=(lead, *part.spans), fill=fill, bar=bar))
    return rows


def _legend(width: int) -> list[Row]:
    rows = [line([("heading", "  the words")], width=width)]
    for word, meaning in (*_WORDS, *VERDICTS):
        for index, part in enumerate(wrapped(meaning, width=width - 20, style="muted")):
            lead: Span = ("text", f"    {fit(word if not index else '', 15)}")
            rows.append(Row(spans=(lead, *part.spans)))
    return rows
