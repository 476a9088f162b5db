"""The launch plan as a card: what forks would do and cost, before any of them has started.

Called by the row buffer for the pane of the run that asks and for its planned forks. Data comes
from the plan in the request; what is not known is said, never guessed.
"""

from __future__ import annotations

from typing import Final

from forkdeck.model.launching import LaunchPlan
from forkdeck.model.state import Ask, DeckState
from forkdeck.store.card import Card
from forkdeck.store.cells import cell_width, cut_end, fit
from forkdeck.store.figures import clock, dollars, money, plural, tokens
from forkdeck.store.plan_figures import kept_forks, kept_price, launch_price, warmth_words
from forkdeck.store.rows_cards import ask_keys
from forkdeck.store.rows_text import clean_line
from forkdeck.store.rows_types import Grid, Row, Span

_FORKS: Final = 6
_FORKS_COMPACT: Final = 2
_TASK_LINES: Final = 12


def launch_words(plan: LaunchPlan, state: DeckState) -> str:
    """Return how many forks a plan would start: ``launch 3 of 4 forks``."""
    kept, every = len(kept_forks(plan, state)), len(plan.forks)
    count = plural(every, "fork") if kept == every else f"{kept} of {plural(every, 'fork')}"
    return f"launch {count}"


def price_words(plan: LaunchPlan, state: DeckState) -> str:
    """Return the price range of the forks that are left, or that none is known."""
    price, for_all = kept_price(plan, kept_forks(plan, state))
    if price is None:
        return "not known for this model"
    return f"{money(price.low)} to {money(price.high)}{_whose(plan, for_all=for_all)}"


def usual_words(plan: LaunchPlan, state: DeckState) -> str:
    """Return what the forks that are left cost as a rule; empty when that is not known."""
    price, for_all = kept_price(plan, kept_forks(plan, state))
    if price is None or (for_all and dollars(plan.likely_usd) is None):
        return ""
    return f"usually {money(price.likely)}"


def why_words(ask: Ask, state: DeckState) -> str:
    """Return why a launch is asked about, as it holds for the forks that are left."""
    plan = ask.event.plan
    if plan is None or plan.above_usd is None:
        return ask.event.rule
    kept = kept_forks(plan, state)
    above, price = dollars(plan.above_usd), launch_price(kept)
    if len(kept) == len(plan.forks) or above is None or price is None:
        return ask.event.rule
    word = "more" if price.likely > above else "no more"
    return (
        f"what is left usually costs {money(price.likely)}, {word} than forks.plan_above_usd "
        f"({money(above)})"
    )


def prefix_words(plan: LaunchPlan, state: DeckState) -> str:
    """Return the shared prefix in words: its tokens, and whether the cache holds it."""
    warmth = clean_line(warmth_words(plan, kept_forks(plan, state)))
    if plan.prefix_tokens is None:
        return "not measured yet"
    return f"{tokens(plan.prefix_tokens)} tokens{f', {warmth}' if warmth else ''}"


def at_once_words(plan: LaunchPlan, state: DeckState) -> str:
    """Return how many of the forks that are left run at once: ``4``, or ``4 of 30``."""
    count, most = len(kept_forks(plan, state)), plan.max_concurrency
    return str(count) if most >= count else f"{most} of {count}"


def _whose(plan: LaunchPlan, *, for_all: bool) -> str:
    return f" for all {len(plan.forks)}" if for_all else ""


def base_words(plan: LaunchPlan) -> str:
    """Return the commit and the uncommitted files that forks start from; empty when unknown."""
    parts = [clean_line(plan.base_commit)[:7]] if plan.base_commit else []
    if plan.dirty_files:
        parts.append(plural(plan.dirty_files, "uncommitted file"))
    return ", ".join(parts)


def plan_card(
    ask: Ask,
    state: DeckState,
    grid: Grid,
    now_ms: int,
    *,
    compact: bool,
    recorded: bool,
    handle: str = "",
) -> list[Row]:
    """Return the card of a plan that is asked about; empty when the request has none.

    Args:
        ask: The question.
        state: The deck's state.
        grid: Where text stands in the pane.
        now_ms: The session's time.
        compact: Whether the pane is low.
        recorded: Whether it cannot be answered.
        handle: The planned fork whose pane it stands in: only its part is told.
    """
    plan = ask.event.plan
    if plan is None:
        return []
    if handle:
        return _fork_card(ask, plan, state, grid, handle, compact=compact, recorded=recorded)
    card = Card(grid, "warn", "warn", compact=compact)
    if not compact:
        _count_and_price(card, ask, plan, state, now_ms)
    card.field(("muted", "prefix"), [("text", prefix_words(plan, state))])
    seeds = ", ".join(clean_line(seed) for seed in plan.seeds)
    card.field(("muted", "seed"), [("text", f"{seeds}, {at_once_words(plan, state)} at once")])
    if base := base_words(plan):
        card.field(("muted", "base"), [("warn" if plan.dirty_files else "text", base)])
    card.field(("muted", "apart"), [("text", ", ".join(map(clean_line, plan.isolation)))])
    if plan.limits:
        card.field(("muted", "limits"), [("text", "; ".join(map(clean_line, plan.limits)))])
    for note in plan.notes:
        card.field(("muted", "note"), [("warn", clean_line(note))])
    _forks(card, plan, state, _FORKS_COMPACT if compact else _FORKS)
    if why := why_words(ask, state):
        card.field(("muted", "why"), [("muted", clean_line(why))])
    if compact:
        # A low pane shows the end of a card: what is answered stands right above the keys.
        _count_and_price(card, ask, plan, state, now_ms)
    card.gap()
    if recorded:
        card.field(("muted", "replay"), [("muted", "recorded, cannot be answered here")])
    else:
        leave = [("x", "leave one out")] if len(plan.forks) > 1 else []
        card.keys([*ask_keys(ask, 0), *leave, ("/plan", "shows all of it")])
    return card.done()


def _count_and_price(card: Card, ask: Ask, plan: LaunchPlan, state: DeckState, now_ms: int) -> None:
    """Add what the answer is about: how many forks, and what they cost."""
    waited = clock(now_ms - ask.at_ms)
    right: list[Span] = [("muted", f"waiting {waited}" if card.wide else waited)]
    card.field(("ask", "plan"), [("strong", launch_words(plan, state))], right)
    price: list[Span] = [("text", price_words(plan, state))]
    if usual := usual_words(plan, state):
        price.append(("muted", f", {usual}"))
    card.field(("muted", "price"), price)


def _fork_card(
    ask: Ask,
    plan: LaunchPlan,
    state: DeckState,
    grid: Grid,
    handle: str,
    *,
    compact: bool,
    recorded: bool,
) -> list[Row]:
    """Return what a planned fork's own pane shows: its task, and the question in short."""
    card = Card(grid, "panel", "rest", compact=compact)
    fork = next(each for each in plan.forks if each.handle == handle)
    price: Span = ("muted", f"   {price_words(plan, state)}")
    card.field(("ask", "plan"), [("strong", launch_words(plan, state)), price])
    kind = "its own worktree" if fork.write else "read-only"
    card.field(("muted", "apart"), [("text", f"{kind}, seed {clean_line(fork.seed)}")])
    lines = [clean_line(line) for line in fork.task.strip().split("\n")]
    shown = [cut_end(" ".join(lines), 2 * card.room - 8)] if compact else lines[:_TASK_LINES]
    for index, line in enumerate(shown):
        card.field(("muted", "" if index else "task"), [("text", line)])
    card.gap()
    if not recorded:
        leave = [("x", "leave this one out")] if len(plan.forks) > 1 else []
        card.keys([*ask_keys(ask, 0), *leave, ("Enter", "shows the plan")])
    return card.done()


def _forks(card: Card, plan: LaunchPlan, state: DeckState, most: int) -> None:
    kept = {fork.handle for fork in kept_forks(plan, state)}
    names = min(14, max(cell_width(clean_line(fork.name)) for fork in plan.forks))
    label = "forks" if len(plan.forks) > 1 else "fork"
    shown = plan.forks if len(plan.forks) <= most + 1 else plan.forks[:most]
    for fork in shown:
        kind = "worktree" if fork.write else "read-only"
        left_out = fork.handle not in kept
        task = clean_line(fork.task.strip().replace("\n", " "))
        head = f"{clean_line(fork.handle[1:])} {fit(clean_line(fork.name), names)}"
        rest = f"  {'left out' if left_out else kind:<9}  {task}"
        rest = cut_end(rest, max(4, card.room - cell_width(head)))
        name: Span = ("muted" if left_out else "text", head)
        card.field(("muted", label), [name, ("muted", rest)])
        label = ""
    if len(shown) < len(plan.forks):
        card.field(("muted", label), [("muted", f"+ {len(plan.forks) - len(shown)} more")])
