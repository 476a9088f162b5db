"""The project's repository, as the worktree manager sees it; used by several commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from forkdeck.cli.host import Host
from forkdeck.cli.project import ProjectFacts
from forkdeck.model.ids import new_session_id
from forkdeck.model.ports import Enforcement
from forkdeck.sandbox import hidden
from forkdeck.sandbox.runner import Runner
from forkdeck.sessionlog.paths import SessionPaths, session_directory
from forkdeck.worktrees.manager import GitWorktrees


def hiding(host: Host, project: ProjectFacts) -> Callable[[], Sequence[Path]]:
    """Return what lists the places that no view may show, looked at anew each time."""
    own = [host.state, host.config]
    if host.credentials.config_dir is not None:
        own.append(host.credentials.config_dir)
    extra = project.loaded.settings.sandbox.hide

    def hide() -> Sequence[Path]:
        return hidden.candidates(Path.home(), own=own, extra=extra)

    return hide


def make_worktrees(
    host: Host,
    project: ProjectFacts,
    paths: SessionPaths,
    runner: Runner,
    *,
    trusted: bool | None = None,
) -> GitWorktrees:
    """Return the worktree manager of a session in a project."""
    return GitWorktrees(
        cwd=project.cwd,
        session=paths.session,
        paths=paths,
        runner=runner,
        clock=host.clock,
        trusted=project.trusted if trusted is None else trusted,
        state=host.state,
        hide=hiding(host, project),
        network=project.loaded.settings.sandbox.network,
    )


def visiting_worktrees(host: Host, project: ProjectFacts, enforcement: Enforcement) -> GitWorktrees:
    """Return a manager for a command that belongs to no session of its own."""
    session = new_session_id(host.clock.now())
    paths = SessionPaths(session_directory(host.state, project.root, session))
    runner = Runner(enforcement, scratch=host.state / "scratch" / session)
    return make_worktrees(host, project, paths, runner)
