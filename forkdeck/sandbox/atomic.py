"""Atomic replacement of a file: inside the sandbox by a small script, outside it directly.

Called by `sandbox.workspace` with a path that was already resolved; `mode` is that of the file
that is replaced, or None for a new one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from forkdeck.errors import PathRefused, ToolError
from forkdeck.sandbox.files import open_directory

TIMEOUT_S = 60.0
"""Seconds after which a write inside the sandbox is given up."""

# $1 directory, $2 name, $3 mode or empty. The file appears whole or not at all.
_SCRIPT = """
set -e
mkdir -p -- "$1"
cd -- "$1"
part=".forkdeck-$$.part"
trap 'rm -f -- "$part"' EXIT
rm -f -- "$part"
cat >"$part"
[ -z "$3" ] || chmod -- "$3" "$part"
mv -f -T -- "$part" "$2"
"""


def is_part(name: str) -> bool:
    """Tell whether `name` is a file that is being written, before it takes its place."""
    return name.startswith(".forkdeck-") and name.endswith(".part")


def command(inside: str, mode: int | None) -> list[str]:
    """Return the argument list that writes its input to an inside path."""
    directory, name = os.path.split(inside)
    text = "" if mode is None else f"{mode:o}"
    return ["/bin/sh", "-c", _SCRIPT, "write", directory or "/", f"./{name}", text]


def replace(host: Path, data: bytes, mode: int | None) -> None:
    """Write `data` to a host path without following links; blocking.

    Raises:
        PathRefused: A link stands in the way.
        ToolError: It cannot be written.
    """
    _make_directories(host.parent)
    directory = open_directory(host.parent)
    part = f".forkdeck-{secrets.token_hex(6)}.part"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(part, flags, 0o666, dir_fd=directory)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
            os.replace(part, host.name, src_dir_fd=directory, dst_dir_fd=directory)
        finally:
            # Gone already when the replacement took place.
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=directory)
    except OSError as error:
        raise ToolError(f"{host.name} could not be written: {error.strerror}.") from error
    finally:
        os.close(directory)


def _make_directories(path: Path) -> None:
    """Make missing directories; each existing part must be a real directory."""
    missing: list[str] = []
    at = path
    while not os.path.lexists(at):
        missing.append(at.name)
        at = at.parent
    if not missing:
        return
    fd = open_directory(at)
    try:
        for name in reversed(missing):
            os.mkdir(name, 0o777, dir_fd=fd)
            deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            os.close(fd)
            fd = deeper
    except OSError as error:
        raise PathRefused(f"{path} could not be made: {error.strerror}.") from error
    finally:
        os.close(fd)
