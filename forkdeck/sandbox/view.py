"""One value that says what a run sees: ordered mounts, used for bubblewrap and for file tools.

Owns `Mount` and `View`. `sandbox.views` builds them, `sandbox.bubblewrap` turns them into
arguments, and `View.locate` answers paths by walking them as the kernel would inside: every link
is followed in the inside world, never in the host's. Nothing here changes the file system.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from forkdeck.errors import PathRefused, ToolError

MountKind: TypeAlias = Literal["ro", "rw", "hidden", "tmp"]
"""Read-only, writable, an empty place over something secret, or the run's private scratch."""

_MAX_LINKS = 40
_MAX_CHARACTERS = 4096


class Mount(msgspec.Struct, frozen=True):
    """One thing of the host at one inside path.

    Args:
        inside: Absolute, normalised path in the view.
        host: Absolute path on the host, without links. For a hidden mount: None hides a
            directory, ``/dev/null`` hides a file.
        kind: What may be done there.
    """

    inside: str
    host: Path | None
    kind: MountKind


class Located(msgspec.Struct, frozen=True):
    """Where an inside path leads once every link was followed."""

    inside: str
    host: Path
    kind: MountKind
    exists: bool


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What a run sees. Later mounts win over earlier ones.

    Args:
        mounts: From the root mount on, in mount order.
        cwd: Inside directory where commands start.
        root: Inside path of the project.
        network: Whether commands reach the network.
        enforced: False for a command that the person let out of the sandbox.
        writable: Whether commands here are meant to change the project.
    """

    mounts: tuple[Mount, ...]
    cwd: str
    root: str
    network: bool = False
    enforced: bool = True
    writable: bool = False

    def mount_at(self, inside: str) -> Mount:
        """Return the mount that shows the (normalised, link-free) inside path."""
        for mount in reversed(self.mounts):
            if covers(mount.inside, inside):
                return mount
        message = f"No mount shows {inside}."
        raise PathRefused(message)

    def locate(self, path: str) -> Located:
        """Follow a path, relative to `cwd` when it is relative, as the kernel would inside.

        The last component need not exist.

        Raises:
            PathRefused: The path is hidden, malformed or a loop of links.
            ToolError: A component that must be a directory is none.
        """
        return _Walk(self).run(path)

    def resolve(self, path: str, write: bool = False) -> Path:
        """Return the host path of an inside path.

        Raises:
            PathRefused: As `locate`, or `write` where the view is read-only.
            ToolError: As `locate`.
        """
        found = self.locate(path)
        if write and found.kind == "ro":
            raise PathRefused(
                f"{found.inside} is read-only in this view.",
                "Write below the project root, in a view that allows it.",
            )
        return found.host

    def inside(self, host_path: Path) -> str | None:
        """Return the inside path that shows a (link-free) host path, or None."""
        text = str(host_path)
        for mount in reversed(self.mounts):
            if mount.host is None or mount.kind == "hidden" or not covers(str(mount.host), text):
                continue
            candidate = join(mount.inside, os.path.relpath(text, mount.host))
            if self.mount_at(candidate) is mount:
                return candidate
        return None

    def adding(self, *mounts: Mount) -> View:
        """Return the same view with further mounts on top."""
        return msgspec.structs.replace(self, mounts=(*self.mounts, *mounts))


def covers(directory: str, path: str) -> bool:
    """Tell whether `path` is `directory` or lies below it (both normalised)."""
    return directory in {path, "/"} or path.startswith(directory + "/")


def join(directory: str, relative: str) -> str:
    """Join two inside paths and normalise the result without following anything."""
    return os.path.normpath(os.path.join(directory, relative))  # noqa: PTH118 - inside, not host


class _Walk:
    """One walk from the root of a view; `..` and links mean what they mean to the kernel."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._links = 0
        self._at = "/"
        self._mode: int | None = stat.S_IFDIR
        self._todo: list[str] = []

    def run(self, path: str) -> Located:
        if not path:
            raise PathRefused("The path is empty.", "Give a file or directory.")
        if "\0" in path:
            raise PathRefused("The path contains a NUL character.")
        if len(path) > _MAX_CHARACTERS:
            raise PathRefused(f"The path is longer than {_MAX_CHARACTERS} characters.")
        text = path if path.startswith("/") else f"{self._view.cwd}/{path}"
        self._todo = text.split("/")[::-1]
        while self._todo:
            part = self._todo.pop()
            if not part and not self._todo:
                # A trailing slash asks for a directory.
                part = "."
            if part:
                self._step(part, path)
        mount = self._view.mount_at(self._at)
        return Located(self._at, self._host(mount, self._at), mount.kind, self._mode is not None)

    def _step(self, part: str, path: str) -> None:
        if self._mode is None:
            if part == ".":
                return
            if part == "..":
                raise ToolError(f"{path}: {self._at} does not exist.")
        elif not stat.S_ISDIR(self._mode):
            raise ToolError(f"{path}: {self._at} is not a directory.")
        if part == ".":
            return
        if part == "..":
            self._at = join(self._at, "..")
            return
        step = "/" + part if self._at == "/" else f"{self._at}/{part}"
        mount = self._view.mount_at(step)
        host = self._host(mount, step)
        try:
            mode = host.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            self._at, self._mode = step, None
            return
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror or 'cannot be read'}.") from error
        if stat.S_ISLNK(mode):
            self._follow(host, path)
            return
        self._at, self._mode = step, mode

    def _follow(self, link: Path, path: str) -> None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise PathRefused(f"{path}: too many links.")
        try:
            target = os.readlink(link)  # noqa: PTH115 - Path would drop a trailing slash
        except OSError as error:
            raise ToolError(f"{path}: it changed while it was looked at.") from error
        if target.startswith("/"):
            self._at, self._mode = "/", stat.S_IFDIR
        self._todo.extend(target.split("/")[::-1])

    @staticmethod
    def _host(mount: Mount, inside: str) -> Path:
        if mount.kind == "hidden" or mount.host is None:
            raise PathRefused(
                f"{inside} is hidden from every run.",
                "It can hold secrets or ForkDeck's own data; ask the person for what you need.",
            )
        relative = os.path.relpath(inside, mount.inside)
        return mount.host if relative == "." else mount.host / relative
