"""Finds out what this host enforces, by running the real argument list once.

Called by the command line at the start of a session and by ``forkdeck doctor``. A program on PATH
proves nothing: only a command that ran inside, could not write outside and could write its own
``/tmp`` does.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from forkdeck.errors import SandboxError
from forkdeck.model.ports import Enforcement
from forkdeck.sandbox import bubblewrap
from forkdeck.sandbox.files import in_thread
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.views import look_view

_TIMEOUT_S = 10.0
_SCRIPT = "echo x 2>/dev/null >/etc/forkdeck-probe && exit 9; echo x >/tmp/probe && cat /tmp/probe"

_INSTALL = (
    "Install bubblewrap (apt install bubblewrap, dnf install bubblewrap, or the extra "
    "forkdeck[sandbox])."
)
_UNGUARDED = "bash is not restricted by the operating system here."
_UNKNOWN = "Run forkdeck doctor after changing the host; until then allow bash per session."
_WAITS_S = (0.1, 0.4)


class _Cause(msgspec.Struct, frozen=True):
    """A host's way of saying no: part of its words, what it means, what to do."""

    words: tuple[str, ...]
    why: str
    remedy: str


_CAUSES = (
    _Cause(
        ("setting up uid map: Permission denied",),
        "AppArmor forbids unprivileged user namespaces on this host.",
        "Install an AppArmor profile for bwrap that allows userns (Ubuntu: the package "
        "apparmor-profiles has bwrap-userns-restrict), or set the sysctl "
        "kernel.apparmor_restrict_unprivileged_userns to 0.",
    ),
    _Cause(
        ("nesting depth or /proc/sys/user/max_", "ENOSPC"),
        "User namespaces are switched off or used up on this host.",
        "Raise the sysctl user.max_user_namespaces (and kernel.unprivileged_userns_clone where "
        "it exists).",
    ),
    _Cause(
        (
            "No permissions to create a new namespace",
            "No permissions to creating new namespace",
            "Failed to make / slave",
            "Creating new namespace failed: Operation not permitted",
        ),
        "This container or kernel does not allow new namespaces.",
        "The container is the boundary here: give it only what the model may touch, or start it "
        "with a seccomp profile that allows user namespaces.",
    ),
    _Cause(
        ("loopback: Failed",),
        "This host does not allow a private network namespace.",
        "Run outside this container, or allow network namespaces in it.",
    ),
    _Cause(
        ("Can't mount proc",),
        "This host does not allow a fresh /proc.",
        "Start the container with an unmasked /proc.",
    ),
)


async def probe(programs: Sequence[str] | None = None) -> Enforcement:
    """Try every bubblewrap program found and return what works.

    Args:
        programs: Programs to try instead of those found on PATH and in the optional extra.
    """
    if not sys.platform.startswith("linux"):
        return Enforcement(
            level="tool-policy only",
            why=f"No sandbox is supported on this system. {_UNGUARDED}",
            remedy="Work in a container or a virtual machine, or allow bash per session.",
        )
    found = bubblewrap.programs() if programs is None else list(programs)
    failure = Enforcement(
        level="tool-policy only",
        why=f"bubblewrap was not found. {_UNGUARDED}",
        remedy=_INSTALL,
    )
    for position, program in enumerate(found):
        for private_proc in (True, False):
            result = await _settled(program, private_proc)
            if result.level == "sandboxed":
                return result
            if position == 0 and private_proc:
                failure = result
            if "/proc" not in result.why:
                break
    return failure


async def _settled(program: str, private_proc: bool) -> Enforcement:
    """Try a program again when it failed for no known cause: a busy host passes."""
    result = await _attempt(program, private_proc)
    for wait_s in _WAITS_S:
        if result.level == "sandboxed" or result.remedy != _UNKNOWN:
            break
        await asyncio.sleep(wait_s)
        result = await _attempt(program, private_proc)
    return result


async def _attempt(program: str, private_proc: bool) -> Enforcement:
    candidate = Enforcement(level="sandboxed", program=program, private_proc=private_proc)
    place = await in_thread(tempfile.TemporaryDirectory, prefix="forkdeck-probe-")
    try:
        runner = Runner(candidate, scratch=Path(place.name))
        view = look_view(root=Path("/"), cwd=Path("/"), scratch=runner.scratch("probe"))
        result = await runner.run(view, ["/bin/sh", "-c", _SCRIPT], timeout_s=_TIMEOUT_S)
    except SandboxError as error:
        return _explain(program, error.what)
    finally:
        await in_thread(place.cleanup)
    if result.exit_code == 0 and result.head == "x\n":
        if private_proc:
            return candidate
        note = "weak: no private /proc, the host's processes are visible"
        return msgspec.structs.replace(candidate, notes=(note,))
    return _explain(program, f"a test command gave exit {result.exit_code}: {result.head[:200]}")


def _explain(program: str, words: str) -> Enforcement:
    for cause in _CAUSES:
        if any(part in words for part in cause.words):
            return Enforcement(
                level="tool-policy only",
                why=f"{cause.why} {_UNGUARDED}",
                remedy=cause.remedy,
                notes=(words,),
            )
    return Enforcement(
        level="tool-policy only",
        why=f"{program} does not work here: {words} {_UNGUARDED}",
        remedy=_UNKNOWN,
        notes=(words,),
    )
