"""What the person does to forks, from the deck: answer, abort, steer, apply, copy.

Capitals ask first; everything goes to the deck as an intent and comes back as a line.
"""

from __future__ import annotations

from forkdeck.errors import ForkDeckError
from forkdeck.model.ids import PARENT
from forkdeck.model.intents import (
    AbortAll,
    AbortFork,
    AnswerRequest,
    CancelTool,
    DiscardWork,
    InterruptParent,
    ResendTurn,
    SetMode,
    SettleFork,
    UndoLast,
)
from forkdeck.model.state import Ask, ForkState, UndoEntry
from forkdeck.model.words import Answer
from forkdeck.store import selectors
from forkdeck.store.asking import shown_ask
from forkdeck.store.figures import plural
from forkdeck.store.rows_cards import RESUME_WORDS, visible_escapes
from forkdeck.ui.commands import MODES
from forkdeck.ui.prompt import Purpose
from forkdeck.ui.screens.deck_base import DeckBase
from forkdeck.ui.screens.dialog import Confirm
from forkdeck.ui.screens.diff import DiffScreen
from forkdeck.ui.screens.quit import fork_lines


class DeckActs(DeckBase):
    """Keys that ask the deck for something."""

    # --- answers

    def do_answer_once(self) -> None:
        """Allow the shown request once."""
        self._answer("once")

    def do_answer_fork(self) -> None:
        """Allow it for this run, by the rule on the card."""
        self._answer("fork")

    def do_answer_batch(self) -> None:
        """Allow it for all forks of the call; for the parent, for the session."""
        self._answer("session" if self.view.selected == PARENT else "batch")

    def do_answer_deny(self) -> None:
        """Deny it."""
        self._answer("deny")

    def do_answer_reason(self) -> None:
        """Deny it with a reason that is typed next."""
        ask = self._answerable(allows=False)
        if ask is not None:
            self.focus_prompt(Purpose("reason", ask.event.request, "Why not? The model reads it"))

    def do_answer_edit(self) -> None:
        """Put the asked command into the prompt; what is sent runs instead, once."""
        ask = self._answerable(allows=True)
        if ask is None:
            return
        if ask.event.tool != "bash":
            self.say("only a command can be edited: y or -", "warning")
            return
        if visible_escapes(ask.event.argument) != ask.event.argument:
            self.say("it holds control or invisible characters: deny it", "warning")
            return
        purpose = Purpose("edit", ask.event.request, "Enter runs this instead, once")
        self.focus_prompt(purpose, ask.event.argument)

    def _answer(self, answer: Answer) -> None:
        ask = self._answerable(allows=answer != "deny")
        if ask is None:
            return
        if answer not in {"once", "deny"} and ask.event.grant is None:
            self.say("this request cannot be allowed for more than once: y or -", "warning")
            return
        self.submit(AnswerRequest(request=ask.event.request, answer=answer))

    def _answerable(self, *, allows: bool) -> Ask | None:
        """Return the shown request if an answer counts now; else say why not."""
        ask = self.shown_ask
        if self.replaying:
            self.say("recorded: a replay is not answered")
        elif ask is None:
            more = "w goes to the next" if self.state.asks else "nothing waits"
            self.say(f"no request is shown here: {more}")
        else:
            why = self.guard.refusal(ask.event.request, self.now_ms(), allows=allows)
            if not why:
                return ask
            self.say(why, "warning")
        return None

    # --- stop and steer

    def do_fork_abort(self) -> None:
        """Abort the selected fork only; what it did is kept."""
        handle = self.fork
        if handle is None:
            self.say("no fork is selected; Ctrl+C interrupts the parent")
        elif self.state.forks[handle].settled:
            self.say(f"{self.state.forks[handle].name} is over already")
        else:
            self.submit(AbortFork(handle=handle))

    def do_fork_abort_all(self) -> None:
        """Abort every living fork, after asking."""
        living = selectors.living(self.state)
        if not living:
            self.say("no fork is at work")
            return
        lines = [*fork_lines(self.state, living), "",
                 "Transcripts, partial reports and the work of write forks are kept."]  # fmt: skip

        def answered(yes: bool | None) -> None:
            if yes:
                self.submit(AbortAll())

        title = f"Abort {plural(len(living), 'fork')}?"
        self.deck_app.push_screen(Confirm(title, lines, yes="abort all"), answered)

    def do_fork_cancel_tool(self) -> None:
        """Stop only the tool that runs now; the run goes on."""
        run = self.state.runs.get(self.view.selected)
        if run is None or not run.tools:
            self.say("no tool runs here")
            return
        self.submit(CancelTool(run=self.view.selected))

    def do_fork_steer(self) -> None:
        """Write to the selected fork."""
        handle = self.fork
        if handle is None:
            self.focus_prompt()
        else:
            self.focus_prompt(self.steer_purpose(handle))

    def do_fork_resume(self) -> None:
        """Continue an ended fork; resend the parent's failed turn."""
        handle = self.fork
        if handle is None:
            if self.state.parent.turn.resendable:
                self.submit(ResendTurn())
            else:
                self.say("the parent's last turn did not fail")
        elif not self.state.forks[handle].settled:
            self.say("it is at work: i steers it")
        else:
            fork = self.state.forks[handle]
            word = RESUME_WORDS.get(fork.status, "resume")
            hint = f"{word.capitalize()} {fork.name}, with a message or Enter alone"
            self.focus_prompt(Purpose("resume", handle, hint))

    def do_fork_new(self) -> None:
        """Begin a /fork command in the prompt."""
        self.focus_prompt()
        self.area.put(f"/fork {self.area.text}" if not self.area.text.startswith("/") else "/fork ")

    def do_owed_settle(self) -> None:
        """Settle the owed mark of the selected fork."""
        handle = self.fork
        if handle is None or not self.state.forks[handle].owed:
            self.say("nothing is owed here")
            return
        if shown_ask(self.state, handle) is not None:
            self.say("it waits for an answer: y or -", "warning")
            return
        self.submit(SettleFork(handle=handle, how="dismissed"))

    def do_mode_cycle(self) -> None:
        """The next approval mode; of the zoomed fork, else of the session."""
        handle = self.fork if self.view.zoomed else None
        now = self.state.session.mode
        if handle is not None:
            now = self.state.forks[handle].mode or now
        self.submit(SetMode(mode=MODES[(MODES.index(now) + 1) % len(MODES)], handle=handle))

    def do_undo(self) -> None:
        """Take back the last act; names it, and asks when files change."""
        entry = self._undoable()
        if entry is None:
            whose = f" of {self.state.forks[self.fork].name}" if self.fork else ""
            self.say(f"nothing{whose} can be undone")
            return
        intent = UndoLast(handle=self.fork)
        if entry.kind == "discard":
            self.submit(intent)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.submit(intent)

        self.deck_app.push_screen(undo_dialog(entry), answered)

    def _undoable(self) -> UndoEntry | None:
        handle = self.fork
        for entry in reversed(self.state.undo):
            if handle is None or entry.run == handle:
                return entry
        return None

    # --- results

    def _write_fork(self, what: str) -> ForkState | None:
        handle = self.fork
        if handle is None:
            self.say(f"select a write fork to {what}")
            return None
        fork = self.state.forks[handle]
        if not fork.write:
            self.say(f"{fork.name} is read-only: it changed nothing")
            return None
        return fork

    def do_fork_diff(self) -> None:
        """Show what the selected fork changed."""
        fork = self._write_fork("see its diff")
        if fork is not None:
            self.deck_app.push_screen(DiffScreen(self.deck, fork.handle))

    def do_fork_apply(self) -> None:
        """Open the diff with the apply sheet; nothing changes before Enter."""
        fork = self._write_fork("apply its work")
        if fork is not None:
            self.deck_app.push_screen(DiffScreen(self.deck, fork.handle))

    def do_fork_discard(self) -> None:
        """Mark the work as unwanted, after asking; its ref is kept."""
        fork = self._write_fork("discard its work")
        if fork is None:
            return
        if fork.work is None:
            self.say("nothing of it is saved yet" if not fork.settled else "it changed nothing")
            return
        self.deck_app.push_screen(
            discard_dialog(fork), lambda yes: self._discarded(yes, fork.handle)
        )

    def _discarded(self, yes: bool | None, handle: str) -> None:
        if yes:
            self.submit(DiscardWork(handle=handle))

    async def do_copy_report(self) -> None:
        """Copy the selection, else the report, else what the pane shows."""
        text = self.get_selected_text()
        handle = self.fork
        if not text and handle is not None:
            text = self.state.forks[handle].report
        pane = self.pane
        if not text and pane is not None:
            text = pane.visible_text()
        if text:
            await self.deck_app.copy_text(text)
        else:
            self.say("there is nothing to copy")

    async def do_copy_diff(self) -> None:
        """Copy the diff of the selected fork."""
        fork = self._write_fork("copy its diff")
        if fork is None:
            return
        try:
            diff = await self.deck.diff(fork.handle)
        except ForkDeckError as error:
            self.say(f"{error.what} {error.remedy}".strip(), "warning")
            return
        await self.deck_app.copy_text("\n".join(line.text for line in diff.lines) + "\n")

    # --- the parent

    async def do_interrupt(self) -> None:
        """The ladder: copy the selection, clear the prompt, interrupt the parent, quit dialog."""
        selected = self.area.selected_text or self.get_selected_text()
        if selected:
            await self.deck_app.copy_text(selected)
            self.clear_selection()
        elif self.in_prompt and self.area.text:
            self.area.clear_text()
        elif self.state.parent.turn.running and not self.replaying:
            self.submit(InterruptParent())
        else:
            self.deck_app.do_quit()


def undo_dialog(entry: UndoEntry) -> Confirm:
    """Return the question before an undo that changes files in the parent's tree."""
    lines = [entry.label, "Your tree goes back to what it was just before; nothing else moves.",
             f"Kept in {entry.ref}."]  # fmt: skip
    return Confirm("Undo this?", lines, yes="undo")


def discard_dialog(fork: ForkState) -> Confirm:
    """Return the question before a fork's work is discarded."""
    ref = fork.work.ref if fork.work else ""
    lines = [f"{fork.name}: {plural(len(fork.files), 'file')} changed.",
             f"The work stays in {ref}; u takes this back."]  # fmt: skip
    return Confirm("Discard this work?", lines, yes="discard", extra="D")
