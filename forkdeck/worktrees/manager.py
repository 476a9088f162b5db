"""`GitWorktrees`: the worktrees of one session, the saved work, and the parent's tree.

Implements `forkdeck.model.ports.Worktrees` for the engine and serves ``forkdeck worktrees`` and
``forkdeck apply``. It joins the parts of this package and keeps no truth of its own: directories,
records and hidden refs say what is there, so a later process finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from forkdeck.errors import WorktreeError
from forkdeck.model.ids import handle_number
from forkdeck.model.ports import ChangeListener, Clock, Workspace
from forkdeck.model.work import AppliedWork, Lease, RepoFacts, SavedEntry, SavedWork, WorkDiff
from forkdeck.sandbox.runner import Runner
from forkdeck.sessionlog.paths import SessionPaths, state_root
from forkdeck.worktrees import sweep
from forkdeck.worktrees.apply import apply_work
from forkdeck.worktrees.burden import burden
from forkdeck.worktrees.cherry_pick import pick_work
from forkdeck.worktrees.create import Maker, make_worktree
from forkdeck.worktrees.diff import DIFF_BYTES, compare, work_diff
from forkdeck.worktrees.fork_workspace import make_workspace
from forkdeck.worktrees.git import HostGit
from forkdeck.worktrees.git_sandbox import GitSandbox
from forkdeck.worktrees.include import copy_included, included_paths
from forkdeck.worktrees.inspect import (
    Found,
    ParentState,
    look,
    parent_state,
    usable,
    with_count,
)
from forkdeck.worktrees.layout import (
    ForkPlace,
    ForkRecord,
    Layout,
    Repo,
    check_names,
    parent_ref,
    read_record,
    ref_name,
    write_record,
)
from forkdeck.worktrees.locks import RepoLock, SessionLocks
from forkdeck.worktrees.remove import remove_worktree
from forkdeck.worktrees.save import save_work
from forkdeck.worktrees.scripts import LIVE
from forkdeck.worktrees.snapshot import is_commit_id, keep_snapshot
from forkdeck.worktrees.undo import undo_change
from forkdeck.worktrees.watch import TreeWatcher


def _nothing() -> Sequence[Path]:
    return ()


class GitWorktrees:
    """Worktrees of one session in one project directory.

    Args:
        cwd: The parent's directory.
        session: The session's id.
        paths: The session's files; patches go beside its log.
        runner: The sandbox.
        clock: Time.
        trusted: Whether the person trusts the project.
        state: State directory; the person's by default.
        hide: Returns what no view may show.
        network: Whether forks' commands reach the network.

    Raises:
        WorktreeError: `session` is no session id.
    """

    def __init__(  # noqa: PLR0913 - the composition root names each part once
        self,
        *,
        cwd: Path,
        session: str,
        paths: SessionPaths,
        runner: Runner,
        clock: Clock,
        trusted: bool = False,
        state: Path | None = None,
        hide: Callable[[], Sequence[Path]] = _nothing,
        network: bool = False,
    ) -> None:
        check_names(session)
        self._cwd, self._session, self._paths = cwd, session, paths
        self._runner, self._clock = runner, clock
        self._hide, self._network = hide, network
        self._layout = Layout((state or state_root()).resolve())
        self._git = HostGit()
        self._sandbox = GitSandbox(
            runner=runner, git=self._git, layout=self._layout, trusted=trusted, hide=hide
        )
        self._locks = SessionLocks()
        self._watcher = TreeWatcher()
        self._makers: dict[str, Maker] = {}

    def trust(self) -> None:
        """The person trusts the project from now on."""
        self._sandbox.trusted = True

    @property
    def unwatched(self) -> dict[str, str]:
        """Handles whose tree is not watched in full, and why."""
        return self._watcher.unwatched

    async def inspect(self) -> RepoFacts:
        """Look at the project's directory; never runs repository code."""
        return await with_count(await self._look(), self._sandbox, self._git)

    async def parent_state(self) -> ParentState | None:
        """Return what a fork must not change: HEAD, index and status; None without git.

        Raises:
            WorktreeError: git failed, or must not run here.
        """
        found = await self._look()
        if found.repo is None:
            return None
        return await parent_state(found.repo, found.facts.head, self._sandbox, self._git)

    async def burden(self) -> str:
        """Return why a worktree here takes long or much room, or nothing."""
        repo = (await self._look()).repo
        if repo is None:
            return ""
        return await self._git.thread(lambda: burden(repo, self._layout.state))

    async def create(self, handle: str, *, dirty: bool = False) -> Lease:
        """Make a fork's worktree at the parent's HEAD, or at a snapshot of its tree.

        Raises:
            WorktreeError: It could not be made; nothing is left behind.
        """
        repo = usable(await self._look())
        place = self._layout.place(repo, self._session, handle)
        if not self._locks.hold(place.directory.parent):
            raise WorktreeError("Another process has this session's worktrees in use.")
        record = await make_worktree(self._maker(repo), repo, place, self._cwd, dirty=dirty)
        if self._sandbox.trusted:
            try:
                record = await self._share_ignored(repo, place, record)
            except WorktreeError:
                # Nobody has worked in it yet.
                await remove_worktree(self._maker(repo), place, record)
                raise
        self._watcher.add(handle, place.tree)
        return Lease(
            handle=handle,
            path=str(place.tree),
            inside=str(repo.top),
            base=record.base,
            base_ref=ref_name(self._session, handle, "base"),
            level=self._runner.enforcement.level,
            dirty=record.dirty,
            not_visible=record.not_visible,
        )

    async def reopen(self, handle: str) -> Lease:
        """Return the lease of a worktree that exists, for a fork that goes on.

        Raises:
            WorktreeError: There is none.
        """
        place, record = await self._known(handle)
        if not place.tree.is_dir():
            raise WorktreeError(f"The worktree of {handle} is gone: {place.tree}.")
        self._locks.hold(place.directory.parent)
        self._watcher.add(handle, place.tree)
        return Lease(
            handle=handle,
            path=str(place.tree),
            inside=record.top,
            base=record.base,
            base_ref=ref_name(self._session, handle, "base"),
            level=self._runner.enforcement.level,
            dirty=record.dirty,
            not_visible=record.not_visible,
        )

    def workspace(self, lease: Lease) -> Workspace:
        """Return the fork's view of its worktree.

        Raises:
            WorktreeError: The worktree's record is gone.
            SandboxError: Its private directories cannot be made.
        """
        check_names(self._session, lease.handle)
        place = ForkPlace(Path(lease.path).parent, self._session, lease.handle)
        record = read_record(place)
        if record is None or not self._layout.contains(place.directory):
            raise WorktreeError(f"The record of {lease.handle}'s worktree is gone.")
        return make_workspace(
            self._runner,
            place,
            record,
            spill=self._paths.spill,
            hide=self._hide,
            network=self._network,
        )

    async def save(self, handle: str) -> SavedWork | None:
        """Save all work of a fork to a ref and a patch; None when nothing changed.

        Raises:
            WorktreeError: It could not be saved; the directory stays.
        """
        place, record = await self._known(handle)
        patches = self._paths.result(handle).parent
        return await save_work(place, record, patches, sandbox=self._sandbox, git=self._git)

    async def remove(self, handle: str) -> None:
        """Remove a worktree whose work was saved.

        Raises:
            WorktreeError: It is not saved, or git refused; the directory stays.
        """
        place, record = await self._known(handle)
        await remove_worktree(self._maker(record.repo), place, record)
        self._watcher.drop(handle)
        name = f"{record.session}-{record.handle}"
        await self._git.thread(lambda: self._runner.discard_scratch(name))

    async def diff(self, base: str, commit: str) -> WorkDiff:
        """Return what changed from `base` to `commit`.

        Raises:
            WorktreeError: A commit is not in this repository, or git must not run here.
        """
        repo = usable(await self._look())
        for name in (base, commit):
            if not is_commit_id(name):
                raise WorktreeError(f"{name[:80]!r} is no commit id.")
        return await compare(repo, base, commit, self._sandbox, self._git)

    async def live_diff(self, handle: str) -> WorkDiff:
        """Return what a running fork has changed so far; `commit` is its base.

        Raises:
            WorktreeError: The tree cannot be read.
        """
        place, record = await self._known(handle)
        async with self._sandbox.scratch(
            record.repo,
            head=record.base,
            index=place.kept_index,
            objects=(place.git / "objects",),
        ) as scratch:
            values = {
                "BASE": record.base,
                "NESTED": "skip",
                "STRICT": "0",
                "DIFF_BYTES": str(DIFF_BYTES),
            }
            await self._sandbox.run(scratch, LIVE, repo=record.repo, tree=place.tree, values=values)
            return await self._git.thread(lambda: work_diff(record.base, record.base, scratch))

    async def apply(self, work: SavedWork, *, method: str = "patch") -> AppliedWork:
        """Merge saved work into the parent's tree, 3-way.

        Args:
            work: What to merge.
            method: ``patch`` writes files only; ``cherry-pick`` also commits on the branch.

        Raises:
            ApplyRefused: A conflict, or a file in the way; nothing was written.
            WorktreeError: Write forks do not work here, or git failed.
        """
        repo = usable(await self._look())
        async with self._maker(repo).lock.held():
            if method == "cherry-pick":
                return await pick_work(repo, work, sandbox=self._sandbox, git=self._git)
            return await apply_work(repo, work, sandbox=self._sandbox, git=self._git)

    async def undo(self, ref: str) -> AppliedWork:
        """Restore the parent's tree from an undo or snapshot ref.

        Raises:
            ApplyRefused: The tree moved since; nothing was written.
            WorktreeError: The ref is none of ForkDeck's, or git failed.
        """
        found = await self._look()
        repo = found.repo or usable(found)
        async with self._maker(repo).lock.held():
            return await undo_change(repo, ref, sandbox=self._sandbox, git=self._git)

    async def snapshot(self, turn: int) -> str | None:
        """Keep the parent's tree in a ref before a turn changes it; None without git.

        Raises:
            WorktreeError: It could not be kept.
        """
        found = await self._look()
        if found.repo is None or not self._sandbox.available:
            return None
        ref = parent_ref(self._session, turn)
        message = f"forkdeck: tree before turn {turn}"
        await keep_snapshot(found.repo, ref, message, sandbox=self._sandbox, git=self._git)
        return ref

    def watch(self, changed: ChangeListener) -> None:
        """Report changing files of every living worktree from now on, on the loop."""
        self._watcher.listen(changed)

    async def entries(self) -> Sequence[SavedEntry]:
        """Return every worktree and saved work of this repository.

        Raises:
            WorktreeError: The repository cannot be read.
        """
        repo = (await self._look()).repo
        return (
            [] if repo is None else await sweep.list_entries(self._maker(repo), repo, self._locks)
        )

    async def sweep(self) -> tuple[Sequence[SavedEntry], Sequence[str]]:
        """Save the work of worktrees whose process died; removes nothing.

        Returns:
            The orphans' rows, and a line for each that could not be saved.
        """
        repo = (await self._look()).repo
        if repo is None:
            return [], []
        return await sweep.save_orphans(self._maker(repo), repo, self._locks)

    async def clean(self) -> tuple[Sequence[str], Sequence[str]]:
        """Remove worktrees of dead processes whose work is saved.

        Returns:
            What was removed, and for each that stays why.
        """
        repo = (await self._look()).repo
        if repo is None:
            return [], []
        return await sweep.clean(self._maker(repo), repo, self._locks)

    async def saved(self, session: str, handle: str) -> SavedWork:
        """Return the newest saved work of any session, for ``forkdeck apply``.

        Raises:
            WorktreeError: There is none.
        """
        repo = usable(await self._look())
        return await sweep.newest_work(self._maker(repo), repo, session, handle)

    async def close(self) -> None:
        """Stop watching; saves and removes nothing."""
        await self._watcher.close()
        self._locks.close()
        self._git.close()

    async def _look(self) -> Found:
        return await look(self._cwd, self._git, self._sandbox)

    async def _known(self, handle: str) -> tuple[ForkPlace, ForkRecord]:
        repo = (await self._look()).repo
        if repo is None:
            raise WorktreeError("The project's repository is gone or cannot be read.")
        place = self._layout.place(repo, self._session, handle)
        record = await self._git.thread(lambda: read_record(place))
        if record is None:
            raise WorktreeError(f"f{handle_number(handle)} has no worktree in this session.")
        return place, record

    def _maker(self, repo: Repo) -> Maker:
        if repo.id not in self._makers:
            lock = RepoLock(self._layout.repo(repo) / "lock", self._clock)
            self._makers[repo.id] = Maker(self._git, self._sandbox, self._layout, lock, self._clock)
        return self._makers[repo.id]

    async def _share_ignored(self, repo: Repo, place: ForkPlace, record: ForkRecord) -> ForkRecord:
        paths = await included_paths(repo, record.base, self._sandbox, self._git)
        if not paths:
            return record
        if self._sandbox.enforced:
            record = msgspec.structs.replace(record, shared=tuple(paths))
        else:
            copied = await self._git.thread(lambda: copy_included(repo.top, place.tree, paths))
            record = msgspec.structs.replace(record, copied=tuple(copied))
        final = record
        await self._git.thread(lambda: write_record(place, final))
        return final
