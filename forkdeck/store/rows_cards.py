"""Cards: the tinted blocks after a transcript's tail that say what needs the person.

Called by the row buffer. An open request shows tool, argument, place and rule; an ended fork
shows what happened, what was kept and what to do next.
"""

from __future__ import annotations

from typing import Final

from forkdeck.model.ids import PARENT
from forkdeck.model.state import Ask, DeckState, ForkState, RunState
from forkdeck.store.card import Card
from forkdeck.store.figures import clock, plural
from forkdeck.store.flags import reason_words, slow_clock_words
from forkdeck.store.rows_text import clean_line
from forkdeck.store.rows_tools import verb_of
from forkdeck.store.rows_types import Bar, Fill, Grid, Row, Span, Style

ARGUMENT_LINES: Final = 1_000
"""Most logical lines of an argument a card shows; the rest is counted, and cannot be allowed."""

ARGUMENT_CHARACTERS: Final = 131_072
"""Most characters of an argument a card shows, likewise."""


def hides_some(argument: str) -> bool:
    """Tell whether a card cannot show the whole argument, so that nobody can have read it."""
    return argument.count("\n") >= ARGUMENT_LINES or len(argument) > ARGUMENT_CHARACTERS


def visible_escapes(text: str) -> str:
    """Return text with every control and invisible character written out, lines kept."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(
        char
        if char == "\n" or (char.isprintable() and not _invisible(char))
        else f"\\u{{{ord(char):x}}}"
        for char in text
    )


def _invisible(char: str) -> bool:
    code = ord(char)
    return (
        0x200B <= code <= 0x200F
        or 0x202A <= code <= 0x202E
        or 0x2060 <= code <= 0x206F
        or 0x180B <= code <= 0x180F
        or (
            code in (0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x3164, 0xFEFF, 0xFFA0)
            or code in (0x17B4, 0x17B5, 0x2800)
            or 0xFE00 <= code <= 0xFE0F
            or 0xE0000 <= code <= 0xE0FFF
        )
    )


def ask_keys(ask: Ask, same: int) -> list[tuple[str, str]]:
    """Return the answer keys of a request; `same` counts identical ones elsewhere."""
    if ask.event.plan is not None:
        return [("y", "launch"), ("-", "refuse"), ("_", "say why")]
    keys = [("y", "both, once" if same == 1 else "once")] if same < 2 else [("y", "all, once")]
    if ask.event.grant is not None:
        if ask.run != PARENT:
            keys += [("a", "this fork"), ("A", "this batch")]
        else:
            keys += [("a", "the parent"), ("A", "every run, this session")]
    if ask.event.tool == "bash":
        keys.append(("e", "edit"))
    return [*keys, ("-", "deny"), ("_", "say why")]


def ask_card(
    ask: Ask, state: DeckState, grid: Grid, now_ms: int, *, compact: bool, recorded: bool
) -> list[Row]:
    """Return the card of an open request."""
    event = ask.event
    card = Card(grid, "warn", "warn", compact=compact)
    waited = clock(now_ms - ask.at_ms)
    wide = grid.width >= 48
    right: list[Span] = [("muted", f"waiting {waited}" if wide else waited)]
    shown = event.argument[:ARGUMENT_CHARACTERS]
    lines = visible_escapes(shown).replace("\t", "    ").split("\n")
    for index, line in enumerate(lines[:ARGUMENT_LINES]):
        name: Span = ("ask", verb_of(event.tool)) if not index else ("ask", "")
        card.field(name, [("strong", line)], right if not index else ())
    if hides_some(event.argument):
        more = event.argument.count("\n") + 1 - min(len(lines), ARGUMENT_LINES)
        words = f"+{more} lines: too long to be read here, so it can only be denied"
        card.field(("muted", ""), [("warn", words)])
    place: list[Span] = [("text", clean_line(event.cwd))]
    if event.note:
        place.append(("muted", f"   {clean_line(event.note)}"))
    card.field(("muted", "in"), place)
    if event.rule:
        rule = clean_line(event.rule).removeprefix("rule ")
        card.field(("muted", "rule"), [("text", rule)])
    if event.grant is not None:
        # What both wide answers grant; the keys below say to whom.
        allows: list[Span] = [("muted", "allows "), ("text", clean_line(event.grant))]
        card.field(("muted", "a A"), allows)
    others = same_requests(state, ask)
    if others:
        names = ", ".join(_run_name(state, other.run) for other in others)
        card.field(("muted", "also"), [("text", names)])
    card.gap()
    if recorded:
        card.field(("muted", "replay"), [("muted", "recorded, cannot be answered here")])
    else:
        card.keys(ask_keys(ask, len(others)))
    return card.done()


def same_requests(state: DeckState, ask: Ask) -> list[Ask]:
    """Return the other open requests that one answer would serve too."""
    wanted = (ask.event.tool, ask.event.argument, ask.event.view)
    return [
        other
        for other in state.asks
        if other.event.request != ask.event.request
        and (other.event.tool, other.event.argument, other.event.view) == wanted
    ]


def _run_name(state: DeckState, run: str) -> str:
    fork = state.forks.get(run)
    return f"{run[1:]} {clean_line(fork.name)}" if fork else "parent"


def end_card(
    fork: ForkState, run: RunState, grid: Grid, *, compact: bool, recorded: bool
) -> list[Row]:
    """Return the card of a fork that did not end well; empty for every other."""
    labels: dict[str, tuple[str, Style, Fill, Bar]] = {
        "FAIL": ("error", "bad-strong", "error", "error"),
        "PART": ("limit", "warn-strong", "warn", "warn"),
        "INTR": ("ended", "warn-strong", "warn", "warn"),
        "ABRT": ("ended", "strong", "panel", "rest"),
    }
    if fork.status not in labels:
        return []
    label, style, fill, bar = labels[fork.status]
    card = Card(grid, fill, bar, compact=compact)
    card.field((style, label), [("text", reason_words(fork, run) or "no reason was given")])
    if fork.started_at_ms is None and not run.history:
        # Nothing of it is there to go on with.
        card.field(("muted", "next"), [("text", "it never started; /fork gives the task anew")])
        if fork.owed and not recorded:
            card.keys([(".", "settle")])
        return card.done()
    card.field(("muted", "kept"), [("text", kept_words(fork, run))])
    if fork.remedy:
        card.field(("muted", "next"), [("text", clean_line(fork.remedy))])
    if not recorded:
        card.gap()
        keys = [("r", RESUME_WORDS[fork.status])]
        if fork.work is not None:
            keys.append(("d", "diff"))
        keys.append(("Enter", "transcript"))
        if fork.owed:
            keys.append((".", "settle"))
        card.keys(keys)
    return card.done()


RESUME_WORDS: Final = {
    "FAIL": "retry", "PART": "continue", "INTR": "resume", "ABRT": "resume", "DONE": "follow up",
}  # fmt: skip
"""What `r` does with a fork in each terminal state."""


def slow_card(
    fork: ForkState, run: RunState, grid: Grid, now_ms: int, *, compact: bool, recorded: bool
) -> list[Row]:
    """Return the card of a fork that makes no headway; it says what could be done about it."""
    slow = fork.slow
    if slow is None or fork.settled:
        return []
    card = Card(grid, "warn", "warn", compact=compact)
    since: Span = ("muted", clock(now_ms - slow.since_ms))
    card.field(("warn-strong", "slow"), [("text", clean_line(slow.what))], [since])
    card.field(("muted", "clock"), [("text", slow_clock_words(slow.clock))])
    card.field(("muted", "next"), [("muted", "Nothing stops it by itself.")])
    if not recorded:
        card.gap()
        stop = [("K", "stop tool")] if run.tools else []
        card.keys([("Space", "steer"), *stop, ("x", "abort")])
    return card.done()


def kept_words(fork: ForkState, run: RunState) -> str:
    """Say what of an ended fork is kept."""
    parts = ["transcript"]
    if fork.report:
        parts.append(f"{plural(len(fork.report.split()), 'word')} of report")
    if run.counters.tool_calls:
        parts.append(plural(run.counters.tool_calls, "tool result"))
    if fork.work is not None:
        parts.append(f"{plural(len(fork.files), 'file')} in {clean_line(fork.work.ref)}")
    elif fork.worktree is not None and fork.worktree.kept_why:
        parts.append(f"the worktree at {clean_line(fork.worktree.path)}")
    return ", ".join(parts)
