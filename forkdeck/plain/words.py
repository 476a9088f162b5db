"""What each event means in words, for the line face. Pure."""

from __future__ import annotations

from collections import Counter

import msgspec

from forkdeck.model.events import Event
from forkdeck.model.events.fork import (
    BatchAdmitted,
    BatchConfirmed,
    BatchDetached,
    BatchEnded,
    ClaimsChecked,
    ForkDelayed,
    ForkEnded,
    ForkLimited,
    ForkQueued,
    ForkReopened,
    ForkSaving,
    ForkSlowed,
    ForkStarted,
    ForkSteered,
    ForkStopped,
    LimitNeared,
)
from forkdeck.model.events.session import (
    EnforcementProbed,
    ModeChanged,
    NoticeRaised,
    SessionClosed,
    SessionOpened,
    SessionResumed,
)
from forkdeck.model.events.step import (
    CacheJudged,
    MessageFinished,
    PaceChanged,
    RequestDelayed,
    StepCut,
)
from forkdeck.model.events.tool import ApprovalAnswered, ApprovalAsked, ToolEnded, ToolStarted
from forkdeck.model.events.turn import (
    HistoryCompacted,
    MessageAdded,
    PromptQueued,
    ShellRan,
    TurnEnded,
)
from forkdeck.model.events.work import (
    ApplyStopped,
    WorkApplied,
    WorkDiscarded,
    WorkSaved,
    WorktreeCreated,
    WorktreeKept,
    WorkUndone,
)
from forkdeck.model.ids import PARENT
from forkdeck.model.prefix import message_blocks
from forkdeck.model.raw import from_raw
from forkdeck.model.state import DeckState
from forkdeck.model.words import STATUS_OF
from forkdeck.store.changes import answer_items
from forkdeck.store.figures import instant, limit_words, plural
from forkdeck.store.flags import pace_change
from forkdeck.store.selectors import metrics
from forkdeck.store.text import one_line

_ARGUMENT = 160
_ECHO = 4_000
"""Characters of a prompt that are repeated to the person who wrote it."""


class Line(msgspec.Struct, frozen=True):
    """One line to write: a state word and its text; `block` keeps the text's own lines."""

    word: str
    text: str
    block: bool = False
    run: str = ""
    """The run it is about, when it is not the event's."""


def lines_of(event: Event, state: DeckState) -> list[Line]:
    """Return the lines an event is worth, none for most.

    Args:
        event: A stamped event.
        state: The state behind it.
    """
    for part in (_session, _turn, _step, _tool, _batch, _fork, _watched, _work):
        found = part(event, state)
        if found:
            return found
    return []


def _session(event: Event, state: DeckState) -> list[Line]:
    match event:
        case SessionOpened():
            where = f"{event.project} on {event.branch}" if event.branch else event.project
            lines = [Line("OPEN", f"session {event.session} · {where} · {event.model}")]
            if event.simulated:
                lines.append(Line("NOTE", event.simulated))
            return lines
        case SessionResumed():
            return [Line("OPEN", f"session resumed {instant(event.resumed_at)}")]
        case SessionClosed():
            return [Line("END", _closing(state))]
        case EnforcementProbed():
            reason = f": {event.why}" if event.why else ""
            return [Line("NOTE", f"enforcement {event.level}{reason}")]
        case ModeChanged():
            return [Line("NOTE", f"mode {event.mode}")]
        case NoticeRaised():
            word = "ERROR" if event.severity == "error" else "NOTE"
            parts = [part for part in (event.what, event.kept, event.remedy) if part]
            return [Line(word, "\n".join(parts), block=True)]
        case _:
            return []


def _closing(state: DeckState) -> str:
    # Who reads lines has read them: no report is NEW here.
    found = Counter(fork.status for fork in state.forks.values())
    words = ", ".join(f"{number} {word}" for word, number in found.items())
    return f"session closed{f' · forks: {words}' if words else ''}"


def _echo(prompt: str) -> str:
    if len(prompt) <= _ECHO:
        return prompt
    return f"{prompt[: _ECHO // 2]}\n… {len(prompt):,} characters in all"


def _turn(event: Event, state: DeckState) -> list[Line]:
    match event:
        case MessageAdded() if event.kind == "prompt":
            return [Line("YOU", _echo(event.text), block=True)]
        case MessageAdded() if event.delivers:
            return [Line("GOT", f"reports of {', '.join(event.delivers)}")]
        case PromptQueued():
            return [Line("YOU", f"queued: {one_line(event.text, _ARGUMENT)}")]
        case TurnEnded() if event.outcome != "completed":
            word = "ERROR" if event.outcome == "failed" else "END"
            text = f"turn {event.outcome}: {event.reason}\n{event.remedy}".rstrip("\n: ")
            return [Line(word, text, block=True)]
        case HistoryCompacted():
            return [Line("NOTE", f"{event.kept_from} messages became a summary")]
        case ShellRan():
            exited = "killed" if event.exit_code is None else f"exit {event.exit_code}"
            return [Line("SHELL", f"$ {event.command} ({exited})\n{event.output}", block=True)]
        case _:
            return []


def _step(event: Event, state: DeckState) -> list[Line]:
    match event:
        case MessageFinished():
            items = answer_items(event.message, event.at_ms)
            return [Line("SAYS", item.text, block=True) for item in items if item.kind == "text"]
        case PaceChanged() if state.pace is not None:
            return [Line("NOTE", pace_change(state.pace))]
        case RequestDelayed():
            seconds = f" {event.wait_ms / 1000:.1f} s" if event.wait_ms else ""
            return [Line("WAIT", f"{event.reason}{seconds} {event.message}".rstrip())]
        case StepCut() if event.reason == "refusal":
            return [Line("CUT", "the model refused to answer; it is not asked again")]
        case StepCut():
            what = "The step is sent again." if event.resent else "It is not sent again."
            return [Line("CUT", f"{event.reason.rstrip('.')}. {what}")]
        case CacheJudged() if event.first_step:
            return [Line("CACHE", _cache(event))]
        case _:
            return []


def _cache(event: CacheJudged) -> str:
    text = event.verdict
    read, expected = event.read_tokens, event.expected_tokens
    if read is not None and expected is not None:
        text += f" {min(read, expected)} of {expected} tokens read"
        if read > expected:
            # The launch's shared rules, which an earlier fork of it wrote.
            text += f" (and {read - expected} more behind them)"
    return f"{text} · {event.difference}" if event.difference else text


def _tool(event: Event, state: DeckState) -> list[Line]:
    match event:
        case ToolStarted():
            return [Line("RUN", f"{event.name} {one_line(event.argument, _ARGUMENT)}".rstrip())]
        case ToolEnded() if event.status == "ok":
            return [Line("OK", f"{event.name} {event.summary}".rstrip())]
        case ToolEnded():
            said = event.summary
            if said in ("", "refused", "denied"):
                # The deck shows the content below; here it is the only place for the reason.
                said = f"{said} {one_line(event.content, _ARGUMENT)}".strip()
            word = "DENY" if event.status == "denied" else "ERROR"
            status = "" if event.status == "denied" else f" {event.status}"
            return [Line(word, f"{event.name}{status} {said}".rstrip())]
        case ApprovalAsked():
            where = f" in {event.cwd}" if event.cwd else ""
            text = f"{event.tool} {event.argument}\n{event.rule}{where}"
            return [Line("ASK", text, block=True)]
        case ApprovalAnswered():
            answer = "denied" if event.answer == "deny" else f"allowed ({event.answer})"
            reason = f": {event.reason}" if event.reason else ""
            return [Line("ANSW", f"{answer} by {event.by}{reason}")]
        case _:
            return []


def _batch(event: Event, state: DeckState) -> list[Line]:
    match event:
        case BatchAdmitted():
            number = len(event.handles)
            handles = ", ".join(event.handles)
            return [Line("FORK", f"{plural(number, 'fork')} by {event.tool}: {handles}")]
        case LimitNeared():
            return [Line("NOTE", f"{round(event.share * 100)} % of {event.of} is used")]
        case ForkLimited():
            words = limit_words(
                event.max_turns, event.timeout_s, event.budget_usd, event.budget_tokens
            )
            return [Line("NOTE", f"limits by the person: {words}")]
        case BatchConfirmed():
            return [Line("NOTE", f"the plan of batch {event.batch} was confirmed")]
        case BatchEnded():
            return [Line("END", f"batch {event.batch} settled")]
        case BatchDetached():
            return [Line("NOTE", f"batch {event.batch} goes on in the background")]
        case ForkQueued():
            kind = " (write)" if event.write else ""
            return [Line("QUE", one_line(event.task, _ARGUMENT) + kind)]
        case _:
            return []


def _fork(event: Event, state: DeckState) -> list[Line]:
    match event:
        case ForkStarted():
            inherited = f"{plural(event.inherited_messages, 'message')} inherited"
            return [Line("START", inherited if event.inherited_messages else "nothing inherited")]
        case ForkDelayed():
            return [Line("WAIT", event.reason)]
        case ForkSteered():
            how = "delivered" if event.delivered else "queued"
            return [Line("STEER", f"{how}: {one_line(event.text, _ARGUMENT)}")]
        case ForkStopped():
            return [Line("STOP", f"by {event.by} {event.reason}".rstrip())]
        case ForkSaving():
            return [Line("SAVE", "saving its work")]
        case ForkEnded():
            return _ended(event, state)
        case ForkReopened():
            return [Line("START", f"again: {event.reason}")]
        case _:
            return []


def _watched(event: Event, state: DeckState) -> list[Line]:
    """What is noticed of a fork without its doing."""
    match event:
        case ForkSlowed():
            since = max(event.at_ms - event.since_ms, 0) / 1000
            return [Line("SLOW", f"{event.what} · {since:.0f} s by the {event.clock} clock")]
        case ClaimsChecked():
            counted = f"{event.verified} of {event.checked} claims confirmed"
            return [Line("CHECK", "\n".join((counted, *event.unverified)), block=True)]
        case _:
            return []


def _ended(event: ForkEnded, state: DeckState) -> list[Line]:
    word = STATUS_OF[event.outcome]
    figures = metrics(state, event.run, event.at_ms)
    age = "" if figures.age_ms is None else f" · {figures.age_ms / 1000:.1f} s"
    cost = f"${figures.cost.usd:.2f}" if figures.cost_known else "–"
    reason = event.reason or event.outcome
    tools = f"{figures.tools} tool{'s' if figures.tools != 1 else ''}"
    lines = [Line(word, f"{reason}{age} · {tools} · {cost}")]
    if event.report and not _said(event, state):
        lines.append(Line("SAYS", event.report, block=True))
    if event.remedy:
        lines.append(Line("NOTE", event.remedy, block=True))
    return lines


def _said(event: ForkEnded, state: DeckState) -> bool:
    """Whether the report is the fork's last message, which was written when it was finished."""
    run = state.runs.get(event.run)
    last = run.history[-1] if run is not None and run.history else None
    if last is None or last.role != "assistant":
        return False
    blocks = message_blocks(from_raw(last.message))
    text = "\n\n".join(str(block["text"]) for block in blocks if block.get("type") == "text")
    return event.report.strip() in text


def _work(event: Event, state: DeckState) -> list[Line]:
    match event:
        case WorktreeCreated():
            return [Line("TREE", f"{event.inside} at {event.base[:10]} ({event.level})")]
        case WorktreeKept():
            return [Line("ERROR", f"{event.path} is kept: {event.why}")]
        case WorkSaved():
            number = len(event.files)
            return [Line("SAVED", f"{number} file{'s' if number != 1 else ''} in {event.ref}")]
        case WorkApplied():
            paths = ", ".join(change.path for change in event.files[:8])
            number = len(event.files)
            counted = f"{number} file{'s' if number != 1 else ''}"
            return [Line("APPLY", f"{counted}: {paths}".rstrip(": "))]
        case WorkUndone():
            return [Line("UNDO", f"{event.what} taken back", run=event.run or PARENT)]
        case WorkDiscarded():
            return [Line("NOTE", f"work discarded; it is kept in {event.ref}")]
        case ApplyStopped():
            parts = [event.what, *event.conflicts[:20], event.remedy]
            return [Line("ERROR", "\n".join(part for part in parts if part), block=True)]
        case _:
            return []
