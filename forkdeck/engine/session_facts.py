"""Changes of the session itself: mode, model, budget, title, trust; routed here by the deck."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from forkdeck.engine.limit_words import PRICE_REMEDY, not_kept
from forkdeck.engine.run import Warmth
from forkdeck.model.events.session import (
    BudgetChanged,
    ModeChanged,
    NoticeRaised,
    SessionRenamed,
)
from forkdeck.model.ids import PARENT
from forkdeck.model.intents import IntentResult, SetModel
from forkdeck.model.raw import clean_text
from forkdeck.model.words import Mode
from forkdeck.sandbox.files import in_thread

if TYPE_CHECKING:
    from forkdeck.engine.durability import Durable
    from forkdeck.engine.heads import Heads
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.run import Run

LONGEST_TITLE = 120


async def tell_unpriced_budget(parts: EngineParts, model: str) -> None:
    """Say that no step will start, when there is a budget and no price of `model`."""
    budget = parts.hub.state.session.budget_usd
    if budget is None or await in_thread(parts.prices.per_token_usd, model) is not None:
        return
    parts.hub.append(
        NoticeRaised(
            severity="warning",
            what=not_kept(str(budget), model),
            kept="Nothing is sent while it holds.",
            remedy=f"{'Lift it with b' if parts.attached else 'Leave --budget-usd out'}, or "
            f"{PRICE_REMEDY}",
        )
    )


class SessionFactsKeeper:
    """Changes what holds for the whole session.

    Args:
        parts: The deck's parts.
        durable: The hub with joined syncs.
        heads: Request heads.
        parent: The parent's conversation.
    """

    def __init__(self, parts: EngineParts, durable: Durable, heads: Heads, parent: Run) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._durable = durable
        self._heads = heads
        self._parent = parent

    def set_mode(self, mode: Mode, handle: str | None) -> IntentResult:
        """Change the mode of the session, or of one fork."""
        if handle is not None and handle not in self._hub.state.forks:
            return IntentResult(ok=False, text=f"There is no fork {handle}.")
        self._hub.append(ModeChanged(run=handle or PARENT, mode=mode))
        return IntentResult(ok=True, text=f"mode {mode}{f' for {handle}' if handle else ''}")

    async def set_model(self, intent: SetModel, *, busy: bool) -> IntentResult:
        """Make a new request head for the parent; says that the cache is lost."""
        if busy:
            return IntentResult(ok=False, text="A turn is running; change the model after it.")
        name = intent.model.strip()
        if not name:
            return IntentResult(ok=False, text="Name a model.")
        run = self._parent
        head = self._heads.like(run.head, model=name, effort=intent.effort)
        if head is run.head:
            return IntentResult(ok=True, text=f"{name} is the model already.")
        if head.model != run.head.model:
            run.drop_thinking()
        await self._heads.record(PARENT, head, thinking_from=run.thinking_from)
        run.head, run.facts = head, self._parts.prices.facts(head.model)
        run.record, run.previous_mark, run.previous_message_id = (), None, None
        run.recorded = None
        run.warmth = Warmth(cold="a new model or effort has a cache of its own")
        what = f"The model is {head.model}{f', effort {head.effort}' if head.effort else ''} now."
        note = "The next request is read in full: its cache starts anew."
        self._hub.append(NoticeRaised(severity="info", what=what, kept=note))
        await tell_unpriced_budget(self._parts, head.model)
        return IntentResult(ok=True, text=f"{what} {note}")

    def set_budget(self, text: str | None) -> IntentResult:
        """Set or lift the session's budget."""
        if text is None:
            self._hub.append(BudgetChanged(budget_usd=None))
            return IntentResult(ok=True, text="no budget")
        try:
            amount = Decimal(text.strip().lstrip("$"))
        except InvalidOperation:
            return IntentResult(ok=False, text=f"{text!r} is no amount in US dollars.")
        if not amount.is_finite() or amount <= 0:
            return IntentResult(ok=False, text="The budget must be more than $0.")
        model = self._parent.head.model
        if self._parts.prices.per_token_usd(model) is None:
            return IntentResult(
                ok=False, text=f"{not_kept(str(amount), model)} You can {PRICE_REMEDY}"
            )
        self._hub.append(BudgetChanged(budget_usd=str(amount)))
        return IntentResult(ok=True, text=f"budget ${amount}")

    def rename(self, title: str) -> IntentResult:
        """Give the session a title."""
        title = " ".join(clean_text(title).split())[:LONGEST_TITLE]
        if not title:
            return IntentResult(ok=False, text="The title is empty.")
        self._hub.append(SessionRenamed(title=title))
        return IntentResult(ok=True)

    async def trust(self) -> IntentResult:
        """Trust the project's files as they are now."""
        if self._parts.trust is None:
            return IntentResult(ok=False, text="There is nothing to trust here.")
        said = await in_thread(self._parts.trust)
        self._hub.append(NoticeRaised(severity="info", what=said))
        return IntentResult(ok=True, text=said)
