"""Finds and ends processes of a call by the marker in their environment, through ``/proc``.

Without a process namespace this is the only way to reach a daemon that left its group. Called by
`sandbox.process` after a kill and by the command line once at the start. Where there is no
``/proc`` (macOS) nothing is found, and the level's words say so.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from forkdeck.sandbox.environment import MARKER

_PROC = Path("/proc")
_PAUSE_S = 0.005


def marker(number: int) -> str:
    """Return the marker's value for the call `number` of this process."""
    return f"{os.getpid()}.{_start_time(os.getpid())}.{number}"


def survivors(value: str) -> list[int]:
    """Return the processes whose environment carries exactly this marker."""
    wanted = f"{MARKER}={value}".encode()
    return [pid for pid, mark in _marked() if mark == wanted]


def kill_survivors(value: str, patience_s: float = 1.0) -> int:
    """Kill until no process carries the marker; blocking. Returns how many are left."""
    until = time.monotonic() + patience_s
    while left := survivors(value):
        for pid in left:
            _kill(pid)
        if time.monotonic() > until:
            return len(left)
        time.sleep(_PAUSE_S)
    return 0


def kill_orphans() -> int:
    """Kill what calls of ForkDeck processes left behind that are dead now; blocking.

    Returns:
        How many processes were killed.
    """
    killed = 0
    for pid, mark in _marked():
        owner, _, rest = mark.decode("ascii", "replace").partition("=")[2].partition(".")
        started = rest.partition(".")[0]
        if owner.isdigit() and started != _start_time(int(owner)):
            killed += _kill(pid)
    return killed


def _marked() -> list[tuple[int, bytes]]:
    prefix = f"{MARKER}=".encode()
    found: list[tuple[int, bytes]] = []
    try:
        entries = list(os.scandir(_PROC))
    except OSError:
        return found
    for entry in entries:
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environ = Path(entry.path, "environ").read_bytes()
        except OSError:
            continue
        if prefix in environ:
            marks = [item for item in environ.split(b"\0") if item.startswith(prefix)]
            found.extend((int(entry.name), mark) for mark in marks[:1])
    return found


def _start_time(pid: int) -> str:
    """Return the kernel's start time of a process, which tells a reused pid apart."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    # The name in parentheses may hold anything; field 22 counts from behind it.
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True
