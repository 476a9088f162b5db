"""The executor for file work and race-free opening of host files.

Everything in the sandbox and the tools that touches files off the loop goes through `in_thread`.
`open_regular` walks the directories one by one without following links, so a path that was
checked cannot be swapped before it is opened.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from forkdeck.errors import PathRefused, ToolError

P = ParamSpec("P")
T = TypeVar("T")

_WORKERS = 8
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WORKERS, thread_name_prefix="files")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking file work off the loop and return its result."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_executor(), partial(function, *args, **kwargs))


def open_directory(host: Path, *, as_seen: bool = False) -> int:
    """Open a host directory without following any link; the caller closes the descriptor.

    Args:
        host: Absolute, link-free path.
        as_seen: Refuse what a process without root's privileges could not enter; the sandbox
            drops them, and file tools must not see more than commands do.

    Raises:
        PathRefused: A component is a link or may not be entered.
        ToolError: It does not exist or is no directory.
    """
    fd = os.open("/", _DIRECTORY)
    try:
        for part in host.parts[1:]:
            deeper = os.open(part, _DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = deeper
            if as_seen and not _allowed(os.fstat(fd), 1):
                raise PathRefused(f"{host}: permission denied.")
    except OSError as error:
        os.close(fd)
        raise _refused(host, error) from error
    except PathRefused:
        os.close(fd)
        raise
    return fd


def open_regular(host: Path, *, as_seen: bool = False) -> int:
    """Open a regular host file for reading without following any link.

    Raises:
        PathRefused: A component is a link, or the file is special or not readable.
        ToolError: It does not exist.
    """
    directory = open_directory(host.parent, as_seen=as_seen)
    try:
        # O_NONBLOCK: opening a FIFO must not wait for its writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(host.name or ".", flags, dir_fd=directory)
    except OSError as error:
        raise _refused(host, error) from error
    finally:
        os.close(directory)
    facts = os.fstat(fd)
    if stat.S_ISDIR(facts.st_mode):
        os.close(fd)
        raise ToolError(f"{host.name or host} is a directory.", "Use ls to see what is in it.")
    if not stat.S_ISREG(facts.st_mode):
        os.close(fd)
        raise PathRefused(f"{host.name} is no regular file ({_kind(facts.st_mode)}).")
    if as_seen and not _allowed(facts, 4):
        os.close(fd)
        raise PathRefused(f"{host.name}: permission denied.")
    return fd


def read_limited(host: Path, limit: int, *, as_seen: bool = False) -> bytes:
    """Return at most `limit` + 1 bytes of a regular file.

    Raises:
        PathRefused: As `open_regular`.
        ToolError: As `open_regular`, or it cannot be read.
    """
    fd = open_regular(host, as_seen=as_seen)
    try:
        with os.fdopen(fd, "rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        raise _refused(host, error) from error


def _allowed(facts: os.stat_result, bit: int) -> bool:
    """Tell what the mode bits allow this user, without root's power to ignore them."""
    mode = facts.st_mode
    if facts.st_uid == os.geteuid():
        return bool(mode & (bit << 6))
    if facts.st_gid == os.getegid():
        return bool(mode & (bit << 3))
    return bool(mode & bit)


def _refused(host: Path, error: OSError) -> ToolError:
    name = host.name or str(host)
    if isinstance(error, FileNotFoundError):
        return ToolError(f"{name} does not exist.")
    if error.errno == 40:  # ELOOP: a link stands where none was a moment ago
        return PathRefused(f"{name}: a link stands in the way.")
    if isinstance(error, NotADirectoryError):
        return ToolError(f"{name}: a part of its path is no directory.")
    return PathRefused(f"{name}: {error.strerror or 'cannot be opened'}.")


def _kind(mode: int) -> str:
    for check, word in (
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if check(mode):
            return word
    return "special"
