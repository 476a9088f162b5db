"""The person's own acts on forks: start, stop, steer, go on. The deck routes intents here."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from math import inf
from typing import TYPE_CHECKING

from forkdeck.engine.limit_words import PRICE_REMEDY, not_kept
from forkdeck.engine.plans import Fork
from forkdeck.engine.wishes import from_person
from forkdeck.errors import AdmissionRefused, SeedRefused
from forkdeck.model.events.fork import ForkLimited, ForkSteered
from forkdeck.model.intents import IntentResult, SetLimits, StartFork
from forkdeck.model.raw import clean_text
from forkdeck.seeds.validity import tool_use_ids
from forkdeck.store.figures import limit_words

if TYPE_CHECKING:
    from forkdeck.engine.launches import Launches
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.run import Run
    from forkdeck.engine.supervisor import Supervisor


class Forking:
    """What the person does with forks.

    Args:
        parts: The deck's parts.
        supervisor: Owns the forks.
        launches: Admits what the person asks for.
        parent: The parent's conversation.
    """

    def __init__(
        self, parts: EngineParts, supervisor: Supervisor, launches: Launches, parent: Run
    ) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._supervisor = supervisor
        self._launches = launches
        self._parent = parent

    def start(self, intent: StartFork) -> IntentResult:
        """Start what ``/fork`` asks for; the directive never enters the parent's conversation."""
        settings = self._parts.settings.forks
        try:
            wish = from_person(intent, settings, self._seed())
            handles, text = self._launches.start(self._parent, wish)
        except (AdmissionRefused, SeedRefused) as error:
            return IntentResult(ok=False, text=str(error))
        return IntentResult(ok=True, text=text, handles=handles)

    def abort(self, handle: str) -> IntentResult:
        """Stop one fork; its partial report and work are kept."""
        fork = self._hub.state.forks.get(handle)
        if fork is None:
            return IntentResult(ok=False, text=f"There is no fork {handle}.")
        if not self._supervisor.abort(handle):
            over = f"{handle} is over ({fork.status})." if fork.settled else "It is being stopped."
            return IntentResult(ok=False, text=over)
        return IntentResult(ok=True, text=f"stopping {handle}", handles=(handle,))

    def abort_all(self) -> IntentResult:
        """Stop every fork that lives, and say which."""
        stopped = self._supervisor.abort_all()
        if not stopped:
            return IntentResult(ok=False, text="No fork is running.")
        return IntentResult(ok=True, text=f"stopping {', '.join(stopped)}", handles=stopped)

    async def steer(self, handle: str, text: str) -> IntentResult:
        """Queue a message for a fork; it is delivered at its next tool boundary."""
        fork = self._hub.state.forks.get(handle)
        text = clean_text(text).strip()
        if fork is None or not text:
            why = "The message is empty." if fork else f"There is no fork {handle}."
            return IntentResult(ok=False, text=why)
        if fork.settled:
            return IntentResult(ok=False, text=f"{handle} is over; r goes on with it.")
        await self._hub.append_synced(ForkSteered(run=handle, text=text))
        return IntentResult(ok=True, text="queued", handles=(handle,))

    def limit(self, intent: SetLimits) -> IntentResult:
        """Give a fork other limits; one that runs has them from its next step on."""
        handle = intent.handle
        if handle not in self._hub.state.forks:
            return IntentResult(ok=False, text=f"There is no fork {handle}.")
        given = (intent.max_turns, intent.timeout_s, intent.budget_usd, intent.budget_tokens)
        why = self._wrong_limits(intent)
        if why:
            return IntentResult(ok=False, text=why)
        self._hub.append(
            ForkLimited(
                run=handle,
                max_turns=intent.max_turns,
                timeout_s=intent.timeout_s,
                budget_usd=intent.budget_usd,
                budget_tokens=intent.budget_tokens,
            )
        )
        self._supervisor.relimit(handle)
        return IntentResult(ok=True, text=f"limits of {handle}: {limit_words(*given)}")

    def _wrong_limits(self, intent: SetLimits) -> str:
        """Return why limits cannot be set, or nothing."""
        counts = (intent.max_turns, intent.timeout_s, intent.budget_tokens)
        if any(count is not None and not 0 < count < inf for count in counts):
            return "A limit must be more than 0."
        if intent.budget_usd is None:
            return ""
        try:
            amount = Decimal(intent.budget_usd)
        except InvalidOperation:
            return f"{intent.budget_usd!r} is no amount in US dollars."
        if not amount.is_finite() or amount <= 0:
            return "A limit must be more than 0."
        run = self._hub.state.runs.get(intent.handle)
        fork = self._hub.state.forks[intent.handle]
        model = run.head.model if run is not None and run.head is not None else fork.model
        model = model or self._parent.head.model
        if self._parts.prices.per_token_usd(model) is None:
            return f"{not_kept(intent.budget_usd, model)} You can {PRICE_REMEDY}"
        return ""

    async def resume(self, handle: str, text: str) -> IntentResult:
        """Go on with a fork that is over, in its own conversation."""
        known = self._supervisor.forks.get(handle)
        if known is not None and known.resume is not None:
            # Asked before: it waits for a place, or runs; a second time would run it twice.
            return IntentResult(ok=False, text=f"{handle} goes on already.")
        if known is not None and known.task is not None and self._settled(handle):
            # Its last run still writes its files and gives its place back.
            await known.done.wait()
        state = self._hub.state.forks.get(handle)
        if state is None:
            return IntentResult(ok=False, text=f"There is no fork {handle}.")
        if not state.settled or (known is not None and not known.done.is_set()):
            return IntentResult(ok=False, text=f"{handle} is still running.")
        run = self._hub.state.runs.get(handle)
        if run is None or len(run.history) <= state.inherited_messages:
            return IntentResult(
                ok=False, text=f"{handle} never started; start the task again with /fork."
            )
        if state.agent_type is None and state.depth > self._parts.settings.forks.max_depth:
            return IntentResult(ok=False, text="Forks are switched off in this session.")
        batch = self._hub.state.batches.get(state.batch)
        fork = self._supervisor.forks.get(handle) or Fork(
            handle=handle,
            batch=state.batch,
            depth=state.depth,
            max_concurrency=batch.max_concurrency if batch else 1,
        )
        fork.resume = clean_text(text)
        self._supervisor.resume(fork)
        return IntentResult(ok=True, text=f"{handle} goes on", handles=(handle,))

    def _settled(self, handle: str) -> bool:
        fork = self._hub.state.forks.get(handle)
        return fork is not None and fork.settled

    def _seed(self) -> str:
        """Return the seed of ``/fork`` now: the setting's.

        In mid-turn, with calls open, the person means all that they see: the placeholder seed
        stands for the whole conversation then.
        """
        setting, messages = self._parts.settings.forks.seed, self._parent.messages
        open_calls = bool(messages) and bool(tool_use_ids(messages[-1]))
        return "placeholder" if open_calls and setting == "before_call" else setting
