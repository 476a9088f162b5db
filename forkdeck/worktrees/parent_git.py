"""What the start screen and the session's first line say about the project's git.

Called by the command line before there is a session; everything else goes through
`forkdeck.worktrees.manager`. The branch comes from safe host git, the count of uncommitted files
from the git sandbox, or it is None where that must not run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from forkdeck.errors import WorktreeError
from forkdeck.model.work import RepoFacts
from forkdeck.sandbox.runner import Runner
from forkdeck.sessionlog.paths import state_root
from forkdeck.worktrees.git import HostGit
from forkdeck.worktrees.git_sandbox import GitSandbox
from forkdeck.worktrees.inspect import Found, count_dirty, look
from forkdeck.worktrees.layout import Layout


async def parent_facts(
    cwd: Path,
    runner: Runner,
    *,
    trusted: bool = False,
    state: Path | None = None,
    hide: Callable[[], Sequence[Path]] = tuple,
) -> RepoFacts:
    """Return what is known of a directory's repository; unknown things are None.

    Args:
        cwd: The directory.
        runner: The sandbox.
        trusted: Whether the person trusts the project.
        state: State directory; the person's by default.
        hide: Returns what no view may show.

    Raises:
        WorktreeError: git was found and does not start.
    """
    git = HostGit()
    try:
        layout = Layout((state or state_root()).absolute())
        sandbox = GitSandbox(runner=runner, git=git, layout=layout, trusted=trusted, hide=hide)
        return await with_count(await look(cwd, git, sandbox), sandbox, git)
    finally:
        git.close()


async def with_count(found: Found, sandbox: GitSandbox, git: HostGit) -> RepoFacts:
    """Return the facts with the number of uncommitted files, where it can be counted."""
    if found.repo is None or not sandbox.available:
        return found.facts
    try:
        dirty = await count_dirty(found.repo, found.facts.head, sandbox, git)
    except WorktreeError:
        # The count is a courtesy; what is broken is told by what needs it.
        return found.facts
    return msgspec.structs.replace(found.facts, dirty_files=dirty)
