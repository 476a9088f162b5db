"""A write fork's world: its worktree at the parent's own path.

In the sandbox that is literally so. Without one only the file tools can map paths: commands start
in the worktree, and a path into the worktree means the same file as the parent's path. Made by
`forkdeck.worktrees.manager`, used by the tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from forkdeck.model.words import Access
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.view import View
from forkdeck.sandbox.views import ForkPlaces, fork_view
from forkdeck.sandbox.workspace import RunWorkspace
from forkdeck.worktrees.layout import ForkPlace, ForkRecord


def make_workspace(
    runner: Runner,
    place: ForkPlace,
    record: ForkRecord,
    *,
    spill: Path,
    hide: Callable[[], Sequence[Path]],
    network: bool,
) -> RunWorkspace:
    """Return the fork's workspace.

    Raises:
        SandboxError: Its private directories cannot be made.
    """
    scratch = runner.scratch(f"{record.session}-{record.handle}")
    places = ForkPlaces(
        tree=place.tree,
        git_dir=place.git,
        pointer=place.pointer,
        objects=record.repo.common / "objects",
        objects_inside=str(place.objects),
        includes=tuple((name, Path(record.top) / name) for name in record.shared),
    )

    def view_for(access: Access) -> View:
        view = fork_view(
            root=Path(record.top),
            cwd=Path(record.inside_cwd),
            scratch=scratch,
            places=places,
            hide=hide(),
            network=network,
            outside=access == "outside",
        )
        return _read_only(view) if access == "look" else view

    kind = RunWorkspace if runner.sandboxed else MappedWorkspace
    made = kind(runner, view_for, spill_directory=spill, reads="fork", writes="fork")
    if isinstance(made, MappedWorkspace):
        made.tree = str(place.tree)
    return made


def _read_only(view: View) -> View:
    mounts = tuple(
        msgspec.structs.replace(mount, kind="ro") if mount.kind == "rw" else mount
        for mount in view.mounts
    )
    return msgspec.structs.replace(view, mounts=mounts, writable=False)


class MappedWorkspace(RunWorkspace):
    """A fork's workspace where nothing is mounted: paths into the tree mean the parent's path."""

    tree: str = ""

    def resolve(self, path: str, *, write: bool = False) -> Path:
        """Return the host path, as `RunWorkspace.resolve`."""
        return super().resolve(self._mapped(path), write=write)

    async def read_bytes(self, path: str, limit: int) -> bytes:
        """Read a file, as `RunWorkspace.read_bytes`."""
        return await super().read_bytes(self._mapped(path), limit)

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file, as `RunWorkspace.write_bytes`."""
        await super().write_bytes(self._mapped(path), data)

    def _mapped(self, path: str) -> str:
        if path == self.tree or path.startswith(f"{self.tree}/"):
            return self.root + path[len(self.tree) :]
        return path
