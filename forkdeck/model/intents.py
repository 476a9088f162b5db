"""What a person asks a deck to do: imperatives, answered with an `IntentResult`."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from forkdeck.model.words import Answer, Mode


class _Intent(msgspec.Struct, frozen=True, kw_only=True, tag_field="intent"):
    pass


class SendPrompt(_Intent, frozen=True, kw_only=True):
    """Send a prompt to the parent; queued while its turn runs. The deck resolves ``@file``."""

    text: str


class WithdrawPrompt(_Intent, frozen=True, kw_only=True):
    """Take a queued prompt back."""

    prompt: str


class NoteTyping(_Intent, frozen=True, kw_only=True):
    """The prompt holds text now, or is empty again; an idle parent is not woken meanwhile."""

    typing: bool


class RunShell(_Intent, frozen=True, kw_only=True):
    """Run ``!command`` as typed, in the work view."""

    command: str


class InterruptParent(_Intent, frozen=True, kw_only=True):
    """End the parent's turn; waiting forks go on in the background."""


class ResendTurn(_Intent, frozen=True, kw_only=True):
    """Send the parent's failed turn again."""


class CompactParent(_Intent, frozen=True, kw_only=True):
    """Replace the parent's older messages by a summary that the model writes (``/compact``)."""

    hint: str = ""
    """What the summary should keep above all, in the person's words."""


class StartFork(_Intent, frozen=True, kw_only=True):
    """The person's ``/fork``; the task never enters the parent's conversation."""

    task: str
    write: bool = False
    count: int = 1
    seed: str | None = None
    private: bool = False


class AbortFork(_Intent, frozen=True, kw_only=True):
    """Stop one fork; its partial report and work are kept."""

    handle: str


class AbortAll(_Intent, frozen=True, kw_only=True):
    """Stop every fork that lives."""


class CancelTool(_Intent, frozen=True, kw_only=True):
    """Cancel only the current tool of a run; the run goes on."""

    run: str


class SteerFork(_Intent, frozen=True, kw_only=True):
    """Tell a running fork something; delivered at its next tool boundary."""

    handle: str
    text: str


class ResumeFork(_Intent, frozen=True, kw_only=True):
    """Go on with an unfinished fork (``INTR``, ``ABRT``, ``PART``, ``FAIL``), append-only."""

    handle: str
    text: str = ""


class AnswerRequest(_Intent, frozen=True, kw_only=True):
    """Answer one parked request; identical ones of other runs are answered with it."""

    request: str
    answer: Answer
    reason: str = ""
    edited: str | None = None
    """With ``once``, for a command: what to run instead; then only this request is answered."""


class SettleFork(_Intent, frozen=True, kw_only=True):
    """Close the owed mark of a fork."""

    handle: str
    how: Literal["read", "dismissed"] = "dismissed"


class SetMode(_Intent, frozen=True, kw_only=True):
    """Change the approval mode of the session, or of one fork."""

    mode: Mode
    handle: str | None = None


class SetModel(_Intent, frozen=True, kw_only=True):
    """Make a new request head with another model or effort; said on screen."""

    model: str
    effort: str | None = None


class SetBudget(_Intent, frozen=True, kw_only=True):
    """Set the session's budget in US dollars (decimal text); None: no limit."""

    budget_usd: str | None


class SetLimits(_Intent, frozen=True, kw_only=True):
    """Give a fork other limits: all four, None is no limit; money is decimal text."""

    handle: str
    max_turns: int | None = None
    timeout_s: float | None = None
    budget_usd: str | None = None
    budget_tokens: int | None = None


class ApplyWork(_Intent, frozen=True, kw_only=True):
    """Merge a fork's saved work into the parent's tree, 3-way."""

    handle: str
    method: Literal["patch", "cherry-pick"] = "patch"


class UndoLast(_Intent, frozen=True, kw_only=True):
    """Take back the last undoable act of the session, or the last of one fork."""

    handle: str | None = None


class DiscardWork(_Intent, frozen=True, kw_only=True):
    """Mark a fork's work as unwanted; its ref is kept."""

    handle: str


class RenameSession(_Intent, frozen=True, kw_only=True):
    """Give the session a title."""

    title: str


class TrustProject(_Intent, frozen=True, kw_only=True):
    """Trust the project's files as they are now (their hashes are stored)."""


Intent: TypeAlias = (
    SendPrompt
    | WithdrawPrompt
    | NoteTyping
    | RunShell
    | InterruptParent
    | ResendTurn
    | CompactParent
    | StartFork
    | AbortFork
    | AbortAll
    | CancelTool
    | SteerFork
    | ResumeFork
    | AnswerRequest
    | SettleFork
    | SetMode
    | SetModel
    | SetBudget
    | SetLimits
    | ApplyWork
    | UndoLast
    | DiscardWork
    | RenameSession
    | TrustProject
)
"""Everything a person can ask for."""


class IntentResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an intent: shown in the strip, never state."""

    ok: bool
    text: str = ""
    """What happened, or why not and what to do; empty when the screen shows it anyway."""
    handles: tuple[str, ...] = ()
