"""What the start screen and the session list show, as rows; pure.

Data comes from `StartFacts` and `SessionSummary` values that the deck factory returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from forkdeck.model.ports import SessionSummary, StartFacts
from forkdeck.store.cells import fit
from forkdeck.store.figures import UNKNOWN, money, plural
from forkdeck.ui.lines import BLANK, Row, Span, beside, line, outside, rule, shifted, wrapped

MAX_WIDTH = 96
"""The start page is never wider than this."""

RECENT = 5
"""Sessions listed on the start page."""

_CLAIM = "One conversation, many forks, every one of them in sight."

_TWO_FROM = 84
"""From this width of the page on, what begins and what is ready stand side by side."""

_CHECK_LEAD = 14
"""Cells of a check's mark and name."""


def when(started_at: str, now: datetime) -> str:
    """Return an instant as a person says it: ``2 min ago``, ``yesterday``, ``Tue 24 Nov``."""
    try:
        then = datetime.fromisoformat(started_at)
    except ValueError:
        return UNKNOWN
    if then.tzinfo is None:
        then = then.replace(tzinfo=now.tzinfo)
    seconds = (now - then).total_seconds()
    if seconds < 60:
        return "just now" if seconds >= -60 else f"{then:%d %b %Y}"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    days = (now.date() - then.astimezone(now.tzinfo).date()).days
    if days == 0:
        return f"{int(seconds // 3600)} h ago"
    if days == 1:
        return "yesterday"
    return f"{then:%a %d %b}" if days < 300 else f"{then:%d %b %Y}"


def here_first(sessions: Sequence[SessionSummary], cwd: str) -> list[SessionSummary]:
    """Return sessions with those of this directory before the others, each part as it was."""
    return sorted(sessions, key=lambda session: session.cwd != cwd)


def session_row(
    session: SessionSummary, slot: str, *, width: int, now: datetime, selected: bool, ascii_: bool
) -> Row:
    """Return one session: slot, title, project and branch, age, forks, what it owes, cost."""
    wide = width >= 90
    title_cells = 20 if wide else 18
    title = outside(session.title or session.project or session.session)
    forks = "no forks" if not session.forks else plural(session.forks, "fork")
    spans: list[Span] = [
        ("muted", f" {slot:>2}  "),
        ("strong" if selected else "text", fit(title, title_cells)),
        ("text", "  "),
    ]
    if wide:
        where = f"{outside(session.project)} {outside(session.branch or '')}".rstrip()
        spans += [("muted", fit(where, 18)), ("text", "  ")]
    spans += [("muted", fit(when(session.started_at, now), 11)), ("muted", f"  {forks:>8}   ")]
    spans += _owes(session, ascii_=ascii_)
    cost = money(Decimal(session.cost_usd)) if session.cost_usd else UNKNOWN
    return line(
        spans,
        [("muted", "simulated  ")] * session.simulated + [("text", f"{cost} ")],
        width=width,
        fill="selected" if selected else "",
        bar="focus" if selected else "",
    )


def _owes(session: SessionSummary, *, ascii_: bool) -> list[Span]:
    marks = (
        ("warn-strong", "?" if ascii_ else "◆", session.asks, "ask"),
        ("bad-strong", "x" if ascii_ else "×", session.failed, "failed"),
        ("warn-strong", "^" if ascii_ else "†", session.interrupted, "interrupted"),
        ("good-strong", "+" if ascii_ else "✓", session.new, "new"),
    )
    spans: list[Span] = []
    for style, glyph, count, word in marks:
        if count:
            gap: list[Span] = [("text", "   ")] if spans else []
            spans += [*gap, (style, f"{glyph} {count} {word}")]
    return spans or [("muted", "settled" if session.forks else "")]


def start_rows(
    facts: StartFacts | None,
    sessions: Sequence[SessionSummary] | None,
    *,
    selected: int,
    width: int,
    height: int,
    now: datetime,
    focused: bool,
    ascii_: bool = False,
) -> list[Row]:
    """Return the whole page for a screen of `width` by `height`; None: still looking."""
    page = min(MAX_WIDTH, max(38, width - 4))
    left = max(0, (width - page) // 2)
    rows = _head(facts, page, ascii_=ascii_)
    if facts is not None and not facts.can_start:
        rows += [BLANK, *_missing(facts, page)]
    rows += [BLANK, *_recent(sessions, page, selected if focused else -1, now, ascii_=ascii_)]
    rows += [BLANK, *_begin_and_ready(facts, page, height - len(rows) - 1, ascii_=ascii_)]
    if height > len(rows) + 4:
        tip: list[Span] = [
            ("muted", "tip  "), ("text", "In the deck "), ("key", "w"),
            ("text", " walks what needs you, oldest first. "), ("key", "Esc"),
            ("text", " never stops a fork."),
        ]  # fmt: skip
        rows += [BLANK, line(tip, width=page)]
    spare = height - len(rows)
    above = min(3, max(0, spare // 3))
    return [BLANK] * above + [shifted(row, left) for row in rows]


def _head(facts: StartFacts | None, page: int, *, ascii_: bool) -> list[Row]:
    drawing = (
        ("--+--------------- *", "  +--------- ?", "  `------------- +")
        if ascii_
        else ("━━━━┳━━━━━━━━━━━━━━ ●", "    ┣━━━━━━━━━ ◆", "    ┗━━━━━━━━━━━━ ✓")
    )
    styles = ("live", "warn", "good")
    texts: list[list[Span]] = [
        [("heading", "forkdeck"), ("muted", f" {facts.version}" if facts else "")],
        [("muted", _CLAIM)],
        [("muted", _place(facts))],
    ]
    if page < _TWO_FROM:
        narrow = [line(texts[0], width=page), *wrapped(_CLAIM, width=page, style="muted")]
        return [*narrow, line(texts[2], width=page)]
    rows: list[Row] = []
    for picture, style, spans in zip(drawing, styles, texts, strict=True):
        rows.append(
            line(
                [
                    ("live", picture[:-1]),
                    (style, picture[-1]),
                    ("text", " " * (27 - len(picture))),
                    *spans,
                ],
                width=page,
            )
        )
    return rows


def _place(facts: StartFacts | None) -> str:
    if facts is None:
        return "looking at this directory"
    parts = [outside(facts.project)]
    if facts.branch:
        parts.append(outside(facts.branch))
    if facts.dirty_files:
        parts.append(plural(facts.dirty_files, "dirty file"))
    return "   ".join(parts)


def _missing(facts: StartFacts, page: int) -> list[Row]:
    """Return what was looked for and the way out, whole: it wraps, it is never cut."""
    text = facts.missing or "No credentials were found."
    head, _, rest = text.partition("\n")
    lead = 9
    rows: list[Row] = []
    for part, style in ((head, "strong"), (rest, "text")):
        if part:
            rows += [
                Row(spans=(("text", " " * lead), *row.spans), fill="warn", bar="warn")
                for row in wrapped(part, width=page - lead - 1, style=style)
            ]
    _, *spans = rows[0].spans
    rows[0] = rows[0]._replace(spans=(("warn-strong", " no key  "), *spans))
    ways: list[list[Span]] = [
        [("key", "d"), ("muted", " demo, offline and free   ")],
        [("key", "r"), ("muted", " replay a saved session")],
    ]
    if page >= 60:
        ways = [[*ways[0], *ways[1]]]
    rows += [
        line([("text", " " * lead), *way], width=page, fill="warn", bar="warn") for way in ways
    ]
    return rows


def _recent(
    sessions: Sequence[SessionSummary] | None,
    page: int,
    selected: int,
    now: datetime,
    *,
    ascii_: bool,
) -> list[Row]:
    if sessions is None:
        return [
            line([("heading", "recent")], width=page),
            rule(page),
            line([("note", " looking")], width=page),
        ]
    count = f"{min(RECENT, len(sessions))} of {len(sessions)}   "
    right: list[Span] = [("muted", count), ("key", "/"), ("muted", " search")] if sessions else []
    rows = [line([("heading", "recent")], right, width=page), rule(page)]
    if not sessions:
        note = "None yet. Each session is saved as it goes and can be replayed."
        return [*rows, *wrapped(note, width=page, margin=1, style="muted")]
    for index, session in enumerate(sessions[:RECENT]):
        rows.append(
            session_row(
                session,
                str(index + 1),
                width=page,
                now=now,
                selected=index == selected,
                ascii_=ascii_,
            )
        )
    return rows


def _begin_and_ready(facts: StartFacts | None, page: int, room: int, *, ascii_: bool) -> list[Row]:
    if page >= _TWO_FROM:
        half = (page - 4) // 2
        ready = _ready(facts, half, ascii_=ascii_, short=False)
        if len(ready) > room:
            ready = _ready(facts, half, ascii_=ascii_, short=True)
        return beside(_begin(facts, half), ready, at=half + 4)
    begin = [*_begin(facts, page), BLANK]
    ready = _ready(facts, page, ascii_=ascii_, short=False)
    if len(begin) + len(ready) > room:
        ready = _ready(facts, page, ascii_=ascii_, short=True)
    return [*begin, *ready]


def _begin(facts: StartFacts | None, width: int) -> list[Row]:
    entries = (
        ("n", "new session here", "or Tab, and type"),
        ("d", "demo", "offline, 40 s, no key"),
        ("r", "replay a session", "plays in this same deck"),
        ("/", "all sessions", "search, open, replay"),
    )
    rows = [line([("heading", "begin")], width=width), rule(width)]
    for key, word, about in entries:
        dim = key == "n" and facts is not None and not facts.can_start
        note = "needs a key" if dim else about
        rows.append(
            line(
                [
                    ("key", f"  {key}  "),
                    ("muted" if dim else "text", fit(word, 18)),
                    # A note that does not fit is left out: the word says what the key does.
                    ("muted", note if len(note) <= width - 23 else ""),
                ],
                width=width,
            )
        )
    return rows


def _check_rows(name: str, text: str, mark: Span, width: int) -> list[Row]:
    """Return one check: its text hangs from one edge and wraps, it is never cut."""
    rows = wrapped(text, width=width - _CHECK_LEAD, style="muted")
    head: list[Span] = [mark, ("text", fit(outside(name), _CHECK_LEAD - 5))]
    first, *more = rows
    return [
        Row(spans=(*head, *first.spans)),
        *(Row(spans=(("text", " " * _CHECK_LEAD), *row.spans)) for row in more),
    ]


def _ready(facts: StartFacts | None, width: int, *, ascii_: bool, short: bool) -> list[Row]:
    """Return what is ready; `short` joins what is good, what is not keeps its own row."""
    rows = [line([("heading", "ready")], width=width), rule(width)]
    if facts is None:
        return [*rows, line([("note", "  looking")], width=width)]
    good: list[str] = []
    for name, fine, text in facts.checks:
        if fine and short:
            good.append(name)
            continue
        mark = ("+" if ascii_ else "✓") if fine else "!"
        rows += _check_rows(name, text, ("good" if fine else "warn-strong", f"  {mark}  "), width)
    if good:
        mark = "+" if ascii_ else "✓"
        rows += _check_rows("good", ", ".join(good), ("good", f"  {mark}  "), width)
    return rows
