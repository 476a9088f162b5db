"""The prompt of the deck: what a sent text means, completion, and what commands do here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation

from forkdeck.errors import ForkDeckError, UsageError
from forkdeck.model.intents import (
    AbortFork,
    AnswerRequest,
    Intent,
    IntentResult,
    RenameSession,
    ResumeFork,
    SendPrompt,
    SetBudget,
    SteerFork,
    TrustProject,
    WithdrawPrompt,
)
from forkdeck.store import selectors
from forkdeck.store.figures import limit_words
from forkdeck.ui import formats
from forkdeck.ui.commands import Outcome, UiAction, completions, interpret, runs_alone
from forkdeck.ui.editor import edit
from forkdeck.ui.limit_text import EXAMPLE, limits_of
from forkdeck.ui.prompt import PARENT as TO_PARENT
from forkdeck.ui.prompt import PromptArea, Purpose
from forkdeck.ui.screens.cache import CacheScreen
from forkdeck.ui.screens.cost import CostScreen
from forkdeck.ui.screens.deck_moves import DeckMoves
from forkdeck.ui.screens.deck_replay import DeckReplay
from forkdeck.ui.screens.notices import NoticesScreen
from forkdeck.ui.screens.plan import PlanScreen
from forkdeck.ui.screens.trust import TrustScreen

_COMPLETIONS = 20
_MODEL_HINTS = "type /model NAME or /model NAME EFFORT"


class DeckTalk(DeckMoves, DeckReplay):
    """Texts from the prompt, and slash commands."""

    # --- completion

    async def complete(self, before: str) -> Sequence[tuple[str, str]]:
        """Return completions of a command line or of an ``@file``."""
        if before.startswith("/") and "@" not in before.rpartition(" ")[2]:
            return completions(before, list(self.state.forks), self.deck_app.theme_names)
        word = before.rpartition("\n")[2].rpartition(" ")[2]
        if not word.startswith("@"):
            return []
        prefix = word[1:]
        try:
            paths = await self.deck.complete_path(prefix, _COMPLETIONS)
        except (ForkDeckError, OSError):
            return []
        start = before[: len(before) - len(prefix)]
        return [(f"{start}{path}{'' if path.endswith('/') else ' '}", "") for path in paths]

    def on_prompt_area_choices(self, event: PromptArea.Choices) -> None:
        """Show or close the list of completions."""
        self.box.show_choices(event.choices, event.chosen)

    # --- sending

    async def on_prompt_area_sent(self, event: PromptArea.Sent) -> None:
        """Do what the text is for."""
        purpose, text = event.purpose, event.text
        self.message = None
        if purpose.kind == "parent":
            await self._to_parent(text)
            return
        intent = self._intent_of(purpose, text)
        if intent is not None:
            self.submit(intent)
        if purpose.kind in {"steer", "resume"} and self.view.zoomed:
            self.area.turn_to(self.prompt_purpose())
            return
        if purpose.kind not in {"goto", "search"}:
            self.view.peeking = False
            self.focus_deck()

    async def _to_parent(self, text: str) -> None:
        try:
            outcome = interpret(text)
        except UsageError as error:
            self.area.put(text.rstrip("\n"))
            self.say(f"{error.what} {error.remedy}".strip(), "warning")
            return
        await self.do_outcome(outcome, text)

    async def do_outcome(self, outcome: Outcome, text: str = "") -> None:
        """Do what a command line, a shell line or a prompt asks for."""
        if isinstance(outcome, UiAction):
            known = await self.act(outcome.name, *([outcome.argument] * bool(outcome.argument)))
            if not known:
                self.say("that does nothing here")
            return
        if isinstance(outcome, AbortFork) and outcome.handle not in self.state.forks:
            self.area.put(text.rstrip("\n"))
            known = ", ".join(list(self.state.forks)[-8:])
            ways = f"Its forks are {known}." if known else "None was started."
            self.say(f"There is no fork {outcome.handle}. {ways}", "warning")
            return
        self.submit(outcome, self._give_back(text) if isinstance(outcome, SendPrompt) else None)

    def _give_back(self, text: str) -> Callable[[IntentResult], None]:
        """A prompt that was refused goes back into the empty prompt: nothing typed is lost."""

        def after(result: IntentResult) -> None:
            if not result.ok and not self.area.text and self.area.purpose.kind == "parent":
                self.area.put(text)

        return after

    def _intent_of(self, purpose: Purpose, text: str) -> Intent | None:
        match purpose.kind:
            case "steer" if text.strip():
                return SteerFork(handle=purpose.about, text=text)
            case "resume":
                return ResumeFork(handle=purpose.about, text=text.strip())
            case "reason":
                return AnswerRequest(request=purpose.about, answer="deny", reason=text.strip())
            case "edit" if text.strip():
                return AnswerRequest(request=purpose.about, answer="once", edited=text)
            case "rename" if text.strip():
                return RenameSession(title=" ".join(text.split()))
            case "budget":
                return self._budget(text)
            case "limits":
                return self._limits(purpose.about, text)
            case "goto":
                self.goto(text)
            case "search":
                self.search(text.strip())
            case _:
                pass
        return None

    def _budget(self, text: str) -> Intent | None:
        words = text.strip().lstrip("$")
        if words in {"", "none", "no"}:
            return SetBudget(budget_usd=None)
        try:
            amount = Decimal(words)
        except InvalidOperation:
            amount = Decimal(0)
        if not amount.is_finite() or amount <= 0:
            self.say(f"{text.strip()!r} is no amount: type 5 or 0.50, or none", "warning")
            return None
        return SetBudget(budget_usd=str(amount))

    def _limits(self, handle: str, text: str) -> Intent | None:
        fork = self.state.forks.get(handle)
        if fork is None or not text.strip(" ,"):
            self.say("the limits stay as they are")
            return None
        try:
            return limits_of(text, handle, fork)
        except UsageError as error:
            self.say(f"{error.what} {error.remedy} The limits stay as they are.", "warning")
            return None

    # --- one-line questions

    def do_budget(self) -> None:
        """Ask for the limits of the selected fork; else for the session's budget."""
        if self.fork is None:
            self.do_session_budget()
            return
        fork = self.state.forks[self.fork]
        now = limit_words(fork.max_turns, fork.timeout_s, fork.budget_usd, fork.budget_tokens)
        hint = f"Limits of {self.fork}, now {now}; type {EXAMPLE}"
        self.focus_prompt(Purpose("limits", self.fork, hint))

    def do_session_budget(self) -> None:
        """Ask for the session's budget."""
        now = self.state.session.budget_usd
        known = "there is none now" if now is None else f"now {formats.money(now)}"
        hint = f"Budget in $, {known}; none: no limit"
        self.focus_prompt(Purpose("budget", "", hint))

    def do_session_rename(self) -> None:
        """Ask for the session's title."""
        self.focus_prompt(Purpose("rename", "", "Title of this session"), self.state.session.title)

    # --- screens and commands

    def do_cost(self) -> None:
        """Cost and cache by run."""
        self.deck_app.push_screen(CostScreen(self.deck, self.zoom_into))

    def do_cache(self) -> None:
        """The shared prefix by run: what was read of it, and why not all."""
        self.deck_app.push_screen(CacheScreen(self.deck, self.zoom_into, self.view.selected))

    def do_notices(self) -> None:
        """Everything the session has said."""
        self.deck_app.push_screen(NoticesScreen(self.deck))

    def do_plan(self) -> None:
        """The launch that waits for a yes: the selected run's, else the oldest."""
        plans = [ask for ask in self.state.asks if ask.event.plan is not None]
        ask = self.shown_ask
        if ask is None or ask.event.plan is None:
            ask = plans[0] if plans else None
        if ask is None:
            self.say("no launch waits for a yes")
            return
        self.deck_app.push_screen(
            PlanScreen(self.deck, ask, submit=self.submit, reason=self._refuse_plan,
                       selected=self.view.selected)
        )  # fmt: skip

    def _refuse_plan(self, request: str) -> None:
        self.focus_prompt(Purpose("reason", request, "Why not? The model reads it"))

    def do_trust(self) -> None:
        """The project's files, and whether to trust them."""
        self.deck_app.push_screen(TrustScreen(lambda: self.submit(TrustProject())))

    def do_model(self) -> None:
        """Say which model is asked, and how to change it."""
        head = self.state.parent.head
        model = head.model if head else self.state.session.model
        effort = f", effort {head.effort}" if head and head.effort else ""
        self.say(f"{model}{effort}; {_MODEL_HINTS}")

    def do_clear(self) -> None:
        """Close this session and open a new one; with living forks it asks."""
        self.deck_app.clear_session(self.deck, bool(selectors.living(self.state)))

    async def do_prompt_editor(self) -> None:
        """Write the prompt in the person's editor."""
        try:
            text = await edit(self.deck_app, self.area.whole_text, self.deck_app.environ)
        except UsageError as error:
            self.say(f"{error.what} {error.remedy}".strip(), "warning")
            return
        self.area.put(text)

    def put_command(self, command: str) -> None:
        """Begin a command in the prompt, as the palette does; one without arguments runs."""
        if self.replaying or runs_alone(command):
            self.run_worker(self._to_parent(command), group="screens")
            return
        self.focus_prompt(TO_PARENT)
        self.area.put(f"{command} ")

    def take_back(self) -> bool:
        """Take the last queued prompt back into the empty prompt."""
        if not self.state.prompts or self.area.text or self.area.purpose != TO_PARENT:
            return False
        queued = self.state.prompts[-1]

        def after(result: IntentResult) -> None:
            if result.ok and not self.area.text:
                self.area.put(queued.text)

        self.submit(WithdrawPrompt(prompt=queued.prompt), after)
        return True
