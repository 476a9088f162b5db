"""The launch plan as a page: its forks as a table, the price on a scale, and what holds for all.

Pure. Data comes from the plan in the open request and from the deck's state; what is not known
is said in words, never as a zero.
"""

from __future__ import annotations

from decimal import Decimal

from forkdeck.model.launching import LaunchPlan, PlannedFork
from forkdeck.model.state import Ask, DeckState
from forkdeck.store import selectors
from forkdeck.store.cells import fit
from forkdeck.store.figures import limit, money
from forkdeck.store.plan_figures import (
    PriceRange,
    fork_prices,
    kept_forks,
    kept_price,
    waits_for_leader,
)
from forkdeck.store.rows_plan import (
    at_once_words,
    base_words,
    launch_words,
    prefix_words,
    price_words,
    usual_words,
    why_words,
)
from forkdeck.ui.glyphs import badge, marks
from forkdeck.ui.lines import BLANK, Row, Span, line, outside, rule, wrapped

_LABEL = 12
_PRICE = 9
_SCALE = 60
_STEPS = (Decimal(1), Decimal(2), Decimal(5), Decimal(10))

FIRST_FORK = 4
"""Row of the first fork: under the title, a blank, heads and a rule."""


def plan_rows(
    ask: Ask, state: DeckState, *, selected: int, width: int, ascii_: bool = False
) -> list[Row]:
    """Return the page's rows for `width` cells; empty for a request without a plan."""
    plan = ask.event.plan
    if plan is None:
        return []
    kept = {fork.handle for fork in kept_forks(plan, state)}
    prices = fork_prices(kept_forks(plan, state))
    found = badge("PLAN", ascii_only=ascii_)
    fork = state.forks.get(ask.run)
    who = "by you" if ask.event.tool == "user" else f"by {fork.name}" if fork else "by the parent"
    rows = [
        line(
            [("muted", f" {found.glyph} {found.word}  "), ("heading", "launch plan"),
             ("muted", f"   asked for {outside(who)}, nothing has started")],
            width=width, margin=1, fill="panel",
        ),
        BLANK,
        line([("muted", f"  #  {fit('fork', 14)}  {fit('isolation', 10)}  task")],
             [("muted", f"seed{'usually':>{_PRICE}}" if prices else "seed")] if width >= 72 else [],
             width=width, margin=1),
        rule(width, margin=2, glyph="-" if ascii_ else "─"),
    ]  # fmt: skip
    for index, each in enumerate(plan.forks):
        rows.append(
            _fork(each, prices, kept=each.handle in kept, selected=index == selected, width=width)
        )
    rows += [BLANK, *_price(plan, state, width, ascii_=ascii_), *_facts(plan, state, width)]
    if why := why_words(ask, state):
        rows += _labelled("asked", why, width)
    if 0 <= selected < len(plan.forks):
        chosen = plan.forks[selected]
        rows += [BLANK, line([("heading", f"  task of {outside(chosen.name)}")], width=width)]
        rows += wrapped(chosen.task.strip(), width=width, margin=4)
    rows += [BLANK, _keys(ask, plan, state, width)]
    return rows


def _fork(
    fork: PlannedFork, prices: dict[str, PriceRange], *, kept: bool, selected: bool, width: int
) -> Row:
    number = outside(fork.handle[1:])
    kind = ("worktree" if fork.write else "read-only") if kept else "left out"
    more = [fork.model or "", f"effort {fork.effort}" if fork.effort else "", fork.seed]
    name = "strong" if selected else "text" if kept else "muted"
    task = " ".join(fork.task.split())
    right = ", ".join(outside(text) for text in more if text)
    price = prices.get(fork.handle)
    usually = f"{'' if price is None else money(price.likely):>{_PRICE}}" if prices else ""
    return line(
        [("muted", f"  {number:>2} "), (name, fit(outside(fork.name), 14)),
         ("muted", f"  {fit(kind, 10)}  "), ("text" if kept else "muted", outside(task))],
        [("muted", right), ("text", usually)] if width >= 72 else [],
        width=width, margin=1, fill="selected" if selected else "", bar="focus" if selected else "",
    )  # fmt: skip


def _price(plan: LaunchPlan, state: DeckState, width: int, *, ascii_: bool) -> list[Row]:
    usual = usual_words(plan, state)
    likely = f", {usual}" if usual else ""
    budget = state.session.budget_usd
    spent = selectors.total_cost(state)
    right: list[Span] = []
    if budget is not None and spent.known:
        left = max(Decimal(0), budget - spent.usd)
        right = [("muted", "budget left "), ("text", f"{money(left)} of {limit(budget)}")]
    rows = [
        line([("muted", f"  {fit('price', _LABEL)}"), ("strong", price_words(plan, state)),
              ("muted", likely)], right, width=width, margin=1)
    ]  # fmt: skip
    price, _ = kept_price(plan, kept_forks(plan, state))
    if price is not None and price.low <= price.high and width >= 60:
        rows.append(_scale(price.low, price.high, width, ascii_=ascii_))
    return rows


def _scale(low: Decimal, high: Decimal, width: int, *, ascii_: bool) -> Row:
    """Return the price range as a part of a scale from nothing to the next round sum."""
    top = Decimal("0.01")
    while top < high:
        top = next(top * step for step in _STEPS if top * step >= high or step == _STEPS[-1])
    cells = min(_SCALE, width - _LABEL - 20)
    start = int(low / top * cells)
    end = max(start + 1, min(cells, int(high / top * cells + Decimal("0.5"))))
    mark = marks(ascii_only=ascii_)
    return line(
        [("text", " " * (_LABEL + 2)), ("muted", "$0 "), ("rule", mark.rest * start),
         ("live", mark.meter * (end - start)), ("rule", mark.rest * (cells - end)),
         ("muted", f" {money(top)}")],
        width=width, margin=1,
    )  # fmt: skip


def _facts(plan: LaunchPlan, state: DeckState, width: int) -> list[Row]:
    facts: list[tuple[str, str]] = [
        ("prefix", prefix_words(plan, state)),
        ("at once", at_once_words(plan, state)),
    ]
    if waits_for_leader(plan, kept_forks(plan, state)):
        facts.append(("warm-up", "the first fork leads, the others follow at its first token"))
    if base := base_words(plan):
        facts.append(("base", base))
    if plan.dirty_files:
        facts.append(("", "readers see these files; writers only with uncommitted files as base"))
    facts.append(("isolation", ", ".join(plan.isolation)))
    facts += [("limits" if not index else "", text) for index, text in enumerate(plan.limits)]
    facts += [("note", text) for text in plan.notes]
    rows: list[Row] = []
    for label, text in facts:
        rows += _labelled(label, text, width)
    return rows


def _labelled(label: str, text: str, width: int) -> list[Row]:
    found = wrapped(text, width=width - _LABEL - 4)
    return [
        Row(spans=(("muted", f"   {fit(label if not index else '', _LABEL)}"), *row.spans))
        for index, row in enumerate(found)
    ]


def _keys(ask: Ask, plan: LaunchPlan, state: DeckState, width: int) -> Row:
    told = "" if ask.event.tool == "user" else " the parent is told,"
    return line(
        [("key", "  Enter"), ("muted", f" {launch_words(plan, state)}   "), ("key", "-"),
         ("muted", f" refuse;{told} nothing was spent   "), ("key", "_"),
         ("muted", " refuse and say why")],
        width=width, margin=1, fill="panel",
    )  # fmt: skip
