"""What `grep` and `find` share: running the search process and reading its answer."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from forkdeck.errors import PathRefused, ToolError
from forkdeck.model.ports import Workspace
from forkdeck.model.raw import JsonDict
from forkdeck.sandbox.environment import child_environment
from forkdeck.sandbox.files import in_thread
from forkdeck.sandbox.process import run_process

TIMEOUT_S = 30.0
"""Seconds until a search is given up."""

_START = "import sys; sys.path.insert(0, sys.argv[1]); import runpy; "
_BOOT = _START + "runpy.run_module('forkdeck.tools.search_child', run_name='__main__')"


_PACKAGE = Path(__file__).resolve().parents[2]


class Found(msgspec.Struct, frozen=True):
    """What a search found.

    Args:
        items: ``[path, line number, line]`` or ``[path]``; paths relative to where it began.
        more: Whether there was more than is returned.
    """

    items: tuple[Sequence[Any], ...]
    more: bool


async def search(workspace: Workspace, path: str, request: JsonDict, limit: int) -> Found:
    """Search below an inside path in a process of its own.

    Args:
        workspace: The run's workspace; every path found must pass it.
        path: Inside file or directory.
        request: ``mode`` and its options, as `tools.search_child` takes them.
        limit: How many items at most.

    Raises:
        ToolError: The path or the pattern is wrong, or it took too long.
    """
    host = await in_thread(existing, workspace, path)
    result = await run_process(
        [sys.executable, "-I", "-c", _BOOT, str(_PACKAGE)],
        cwd="/",
        env=child_environment(read_only=True),
        timeout_s=TIMEOUT_S,
        stdin=json.dumps({**request, "host": str(host), "limit": limit}).encode(),
    )
    if result.timed_out:
        raise ToolError(
            f"The search took more than {TIMEOUT_S:.0f} s.", "Narrow the path or the pattern."
        )
    if result.exit_code != 0:
        reason = result.head.strip().splitlines()
        raise ToolError(f"The search failed: {reason[-1] if reason else result.exit_code}.")
    lines = (result.head + result.tail).splitlines()
    items = [cast("list[Any]", json.loads(line)) for line in lines]
    more = ["more"] in items
    items = [item for item in items if item != ["more"]]
    allowed = await in_thread(_allowed, workspace, path, items)
    return Found(tuple(item for item in items if item[0] in allowed), more)


def existing(workspace: Workspace, path: str) -> Path:
    """Return the host path of something that exists; blocking.

    Raises:
        ToolError: It may not be seen, or does not exist.
    """
    host = workspace.resolve(path)
    if not os.path.lexists(host):
        raise ToolError(f"{path} does not exist.")
    return host


def _allowed(workspace: Workspace, path: str, items: Sequence[Sequence[Any]]) -> set[str]:
    """Return the names among `items` that the workspace shows."""
    shown: set[str] = set()
    for name in {str(item[0]) for item in items}:
        try:
            workspace.resolve(f"{path}/{name}" if name else path)
        except (PathRefused, ToolError):
            continue
        shown.add(name)
    return shown


def ripgrep() -> str | None:
    """Return the path of ``rg``, looked up in absolute entries of PATH only."""
    entries = [entry for entry in os.environ.get("PATH", "").split(":") if entry.startswith("/")]
    return shutil.which("rg", path=":".join(entries)) if entries else None


def joined(path: str, name: str) -> str:
    """Return a found name as the model can use it: below the path it asked for."""
    if not name:
        return path
    return name if path in {".", "./"} else f"{path.rstrip('/')}/{name}"
