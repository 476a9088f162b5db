"""Going on with a saved session: what a dead process left open is closed, saved and repaired."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from forkdeck.engine.repair import interrupted_results
from forkdeck.engine.work import saved_event
from forkdeck.errors import ForkDeckError
from forkdeck.model.events.session import NoticeRaised, SessionResumed
from forkdeck.model.events.tool import ApprovalAnswered
from forkdeck.model.events.work import WorktreeKept
from forkdeck.model.state import ForkState
from forkdeck.sessionlog.interrupted import closing_events

if TYPE_CHECKING:
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.run import Run


async def reopen(parts: EngineParts, run: Run) -> None:
    """Append what makes a reopened session whole.

    Open requests are answered, living forks end interrupted, the parent's open calls get a
    result, and the work in worktrees that still stand is saved. Nothing is started: undelivered
    reports wait for the next user message.

    Args:
        parts: The deck's parts; their hub holds the folded state.
        run: The parent, made from its history.
    """
    hub = parts.hub
    hub.append(SessionResumed(resumed_at=parts.clock.now().astimezone(UTC).isoformat()))
    for ask in hub.state.asks:
        hub.append(
            ApprovalAnswered(
                run=ask.run,
                request=ask.event.request,
                answer="deny",
                reason="the session ended",
                by="abort",
            )
        )
    for event in closing_events(hub.state):
        hub.append(event)
    results = interrupted_results(run.messages)
    if results:
        run.take(run.user_message("tool_results", results), hub)
    for prompt in hub.state.prompts:
        text = f"A queued prompt was not sent: {prompt.text[:200]}"
        hub.append(NoticeRaised(severity="info", what=text, kept="It is still queued."))
    for fork in list(hub.state.forks.values()):
        if fork.worktree is not None and fork.worktree.exists:
            await _save(parts, fork)
    await hub.sync()


async def _save(parts: EngineParts, fork: ForkState) -> None:
    """Save what an interrupted write fork had changed; its worktree stays for a resume."""
    worktrees = parts.worktrees
    path = fork.worktree.path if fork.worktree is not None else ""
    if worktrees is None:
        return
    try:
        saved = await worktrees.save(fork.handle)
    except ForkDeckError as error:
        parts.hub.append(WorktreeKept(run=fork.handle, path=path, why=error.what))
        return
    if saved is not None and (fork.work is None or fork.work.commit != saved.commit):
        parts.hub.append(saved_event(fork.handle, saved))
