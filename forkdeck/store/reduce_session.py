"""What the session's own events do to the state. Called by the reducer."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from forkdeck.model.events.session import (
    BudgetChanged,
    EnforcementProbed,
    HeadRecorded,
    ModeChanged,
    NoticeRaised,
    RuleGranted,
    SessionClosed,
    SessionFamily,
    SessionOpened,
    SessionRenamed,
    SessionResumed,
)
from forkdeck.model.ids import PARENT
from forkdeck.model.items import Item
from forkdeck.model.state import DeckState, HeadFacts, Notice, RunState, SessionFacts
from forkdeck.store.changes import money, run_of, with_fork, with_item, with_run

NOTICES_KEPT = 200
"""How many notices the state holds; the transcripts hold all of them."""


def reduce_session(state: DeckState, event: SessionFamily) -> DeckState:
    """Return the state after an event of the session."""
    match event:
        case SessionOpened():
            return _opened(state, event)
        case SessionResumed():
            text = f"session resumed {event.resumed_at}"
            item = Item(kind="notice", at_ms=event.at_ms, text=text)
            state = with_run(state, with_item(run_of(state, PARENT), item))
            return replace(state, session=replace(state.session, closed=False))
        case SessionClosed():
            return replace(state, session=replace(state.session, closed=True))
        case SessionRenamed():
            return replace(state, session=replace(state.session, title=event.title))
        case HeadRecorded():
            head = HeadFacts(
                sha256=event.sha256,
                model=event.model,
                effort=event.effort,
                thinking=event.thinking,
                context_tokens=event.context_tokens,
                head_tokens=event.head_tokens,
                thinking_from=max(event.thinking_from, 0),
                endpoint=event.endpoint,
                account=event.account,
            )
            if event.run == PARENT:
                state = replace(state, session=replace(state.session, model=event.model))
            return with_run(state, _with_head(run_of(state, event.run), head))
        case EnforcementProbed():
            session = replace(
                state.session,
                level=event.level,
                level_why=event.why,
                level_remedy=event.remedy,
            )
            return replace(state, session=session)
        case ModeChanged():
            if event.run == PARENT:
                return replace(state, session=replace(state.session, mode=event.mode))
            fork = state.forks.get(event.run)
            return state if fork is None else with_fork(state, replace(fork, mode=event.mode))
        case BudgetChanged():
            budget = money(event.budget_usd)
            session = replace(state.session, budget_usd=budget)
            return replace(state, session=session, near_limit="")
        case RuleGranted():
            return replace(state, rules=(*state.rules, event))
        case NoticeRaised():
            return _noticed(state, event)
        case _:
            assert_never(event)


def _with_head(run: RunState, head: HeadFacts) -> RunState:
    """Give a run its head; one that changes what is sent has no request to extend."""
    before = run.head
    if before is not None and (
        before.sha256 != head.sha256 or before.thinking_from != head.thinking_from
    ):
        run = replace(run, sent_positions=0, sent_sha256="")
    return replace(run, head=head)


def _opened(state: DeckState, event: SessionOpened) -> DeckState:
    session = SessionFacts(
        session=event.session,
        title=event.title or state.session.title,
        started_at=event.started_at,
        cwd=event.cwd,
        project=event.project,
        branch=event.branch,
        git_head=event.git_head,
        dirty_files=event.dirty_files,
        model=event.model,
        mode=event.mode,
        budget_usd=money(event.budget_usd),
        simulated=event.simulated,
        level=state.session.level,
        level_why=state.session.level_why,
        level_remedy=state.session.level_remedy,
        format_version=event.format_version,
    )
    return with_run(replace(state, session=session), run_of(state, PARENT))


def _noticed(state: DeckState, event: NoticeRaised) -> DeckState:
    notice = Notice(
        at_ms=event.at_ms,
        severity=event.severity,
        what=event.what,
        kept=event.kept,
        remedy=event.remedy,
    )
    item = Item(
        kind="notice",
        at_ms=event.at_ms,
        text=f"{event.what}\n{event.kept}" if event.kept else event.what,
        severity=event.severity,
        remedy=event.remedy,
    )
    state = with_run(state, with_item(run_of(state, event.run), item))
    return replace(state, notices=(*state.notices[-(NOTICES_KEPT - 1) :], notice))
