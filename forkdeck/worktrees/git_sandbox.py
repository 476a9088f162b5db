"""Runs work-tree git where nothing it executes can do harm: through the sandbox's runner.

`git add`, `status`, `read-tree -u` and `merge-tree` run filters, drivers and programs that a
repository (or a model run in it) configured. Here they see the tree, borrow the project's objects
read-only and write only into a scratch repository; there is no network. Where no sandbox works
the same scripts run on the host, for a trusted project only. Called by the other modules of this
package; results are files that the host reads with suspicion.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from forkdeck.errors import SandboxError, WorktreeError
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.view import Mount
from forkdeck.sandbox.views import Scratch, narrow_view
from forkdeck.worktrees.git import IDENTITY, SAFE_CONFIG, HostGit, config_environment
from forkdeck.worktrees.layout import Layout, Repo
from forkdeck.worktrees.removal import remove_directory
from forkdeck.worktrees.scratch import ScratchRepo, carried_settings, make_scratch

TIMEOUT_S: Final = 600.0
"""Longest time one script may take; a snapshot of 100,000 files takes seconds."""

NOT_TRUSTED: Final = (
    "No sandbox works on this host, and git runs programs that a project configures.",
    "Trust the project with /trust, or install bubblewrap.",
)


class GitSandbox:
    """Gives out scratch repositories and runs scripts against a tree.

    Args:
        runner: The sandbox.
        git: Safe host git, for reading settings.
        layout: Where scratch repositories stand.
        trusted: Whether the person trusts the project.
        hide: Returns what to hide from every script, looked at anew each time.
    """

    def __init__(
        self,
        *,
        runner: Runner,
        git: HostGit,
        layout: Layout,
        trusted: bool,
        hide: Callable[[], Sequence[Path]],
    ) -> None:
        self._runner = runner
        self._git = git
        self._layout = layout
        self._hide = hide
        self.trusted = trusted

    @property
    def enforced(self) -> bool:
        """Whether scripts run in a real sandbox."""
        return self._runner.enforcement.level == "sandboxed"

    @property
    def available(self) -> bool:
        """Whether work-tree git may run at all."""
        return self.enforced or self.trusted

    def require(self) -> None:
        """Refuse where work-tree git must not run.

        Raises:
            WorktreeError: No sandbox, and the project is not trusted.
        """
        if not self.available:
            raise WorktreeError(*NOT_TRUSTED)

    @asynccontextmanager
    async def scratch(
        self,
        repo: Repo,
        *,
        head: str | None = None,
        index: Path | None = None,
        objects: Sequence[Path] = (),
    ) -> AsyncGenerator[ScratchRepo, None]:
        """Make a scratch repository and remove it afterwards.

        Args:
            repo: Whose objects it borrows.
            head: Commit its ``HEAD`` stands at; None for a branch without commits.
            index: Index to start from, for its knowledge of unchanged files.
            objects: Further object directories to borrow from.

        Raises:
            WorktreeError: It cannot be made, or git must not run here.
        """
        self.require()
        settings = await carried_settings(self._git, repo)
        made = await self._git.thread(
            lambda: make_scratch(
                self._layout.scratch(repo),
                repo=repo,
                settings=settings,
                head=head or "ref: refs/heads/unborn",
                objects=(repo.common / "objects", *objects),
                index=index,
            )
        )
        try:
            yield made
        finally:
            await asyncio.shield(
                self._git.thread(lambda: remove_directory(self._layout, made.directory))
            )

    async def run(
        self,
        scratch: ScratchRepo,
        script: str,
        *,
        repo: Repo,
        tree: Path | None = None,
        values: Mapping[str, str] | None = None,
        read_only: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        mounts: Sequence[Mount] = (),
    ) -> None:
        """Run a bash script with git set up for the scratch repository.

        Args:
            scratch: Where it writes; ``$OUT`` in the script.
            script: The text; data comes in through `values`, never by insertion.
            repo: The project; its git directories are visible and read-only.
            tree: The working tree; read-only unless it is in `writable`.
            values: Further variables.
            read_only: Further directories it sees.
            writable: Directories it may change.
            mounts: Further mounts of the view.

        Raises:
            WorktreeError: It failed, or the sandbox did not start; the text holds git's words.
        """
        self.require()
        own = [] if tree is None or tree in writable else [tree]
        view = narrow_view(
            cwd=scratch.out,
            scratch=Scratch(scratch.directory / "tmp", scratch.directory / "share"),
            read_only=(*own, *read_only, *dict.fromkeys((repo.common, repo.git_dir))),
            writable=(*writable, scratch.directory),
            # Without mounts nothing is hidden, and the scratch stands below a hidden place.
            hide=self._hide() if self.enforced else (),
        ).adding(*mounts)
        variables = {
            **config_environment(
                [pair for pair in SAFE_CONFIG if pair[0] != "core.attributesFile"]
            ),
            **IDENTITY,
            "LC_ALL": "C",
            "GIT_DIR": str(scratch.git),
            "GIT_INDEX_FILE": str(scratch.index),
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "OUT": str(scratch.out),
            **({} if tree is None else {"GIT_WORK_TREE": str(tree)}),
            **(values or {}),
        }
        exports = "".join(f"export {key}={shlex.quote(text)}\n" for key, text in variables.items())
        command = ["bash", "--norc", "--noprofile", "-c", f"{exports}set -e -o pipefail\n{script}"]
        try:
            result = await self._runner.run(view, command, timeout_s=TIMEOUT_S)
        except SandboxError as error:
            raise WorktreeError(
                f"git's sandbox did not start: {error.what}", error.remedy
            ) from error
        if result.exit_code != 0:
            words = (result.tail or result.head).strip()[-800:]
            ended = "was stopped after ten minutes" if result.timed_out else "failed"
            raise WorktreeError(f"git {ended} in the working tree: {words or 'no message'}")
