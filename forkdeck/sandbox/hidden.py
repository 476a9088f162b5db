"""What no run may see: places of secrets, ForkDeck's own data, and sockets.

`candidates` is the list; `mounts` turns it into hidden mounts for what exists now. Both are asked
anew before every command, since a secret can appear while a session runs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from forkdeck.sandbox.view import Mount, View, covers

_IN_HOME = (
    ".ssh", ".aws", ".gnupg", ".config/gh", ".config/anthropic", ".config/git/credentials",
    ".netrc", ".git-credentials", ".npmrc", ".pypirc", ".docker", ".kube",
)  # fmt: skip

# Other tools' credentials, and what only root may read: a session of root reads as root.
_MORE_IN_HOME = (
    ".azure", ".config/gcloud", ".cargo/credentials", ".cargo/credentials.toml", ".terraform.d",
    ".password-store", ".local/share/keyrings", ".claude/.credentials.json", ".codex/auth.json",
)  # fmt: skip
_ON_HOST = ("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/ssl/private")

_SOCKET_VARIABLES = ("SSH_AUTH_SOCK", "DOCKER_HOST", "GPG_AGENT_INFO", "WAYLAND_DISPLAY")


def candidates(
    home: Path,
    *,
    own: Iterable[Path] = (),
    extra: Iterable[str] = (),
) -> tuple[Path, ...]:
    """Return every place to hide, present or not.

    Args:
        home: The person's home directory.
        own: ForkDeck's state and config directories, the SDK's configuration directory.
        extra: Further paths from the person's settings; ``~`` is expanded.
    """
    paths = [home / name for name in (*_IN_HOME, *_MORE_IN_HOME)]
    paths.extend(Path(name) for name in _ON_HOST)
    paths.extend(own)
    paths.extend(home / text[2:] if text.startswith("~/") else Path(text) for text in extra if text)
    return tuple(dict.fromkeys(path for path in paths if path.is_absolute()))


def mounts(paths: Sequence[Path]) -> list[Mount]:
    """Return hidden mounts for those of `paths` that exist; links are hidden at their target."""
    found: dict[str, Mount] = {}
    for path in paths:
        try:
            real = path.resolve(strict=True)
            is_directory = real.is_dir()
        except (OSError, RuntimeError):
            continue
        if str(real) == "/":
            continue
        host = None if is_directory else Path("/dev/null")
        found[str(real)] = Mount(str(real), host, "hidden")
    return list(found.values())


def socket_mounts(view: View, environ: Mapping[str, str] | None = None) -> list[Mount]:
    """Return hidden mounts for every socket that the view would show.

    A read-only mount does not stop a connection, so sockets are covered one by one. They are
    listed by the kernel (``/proc/net/unix``) and by the usual variables.
    """
    variables = os.environ if environ is None else environ
    paths = _kernel_sockets()
    for name in _SOCKET_VARIABLES:
        value = variables.get(name, "").removeprefix("unix://").split(":")[0]
        if value.startswith("/"):
            paths.add(value)
    found: dict[str, Mount] = {}
    for text in sorted(paths):
        try:
            real = Path(text).resolve(strict=True)
            if not stat.S_ISSOCK(real.lstat().st_mode):
                continue
        except (OSError, RuntimeError, ValueError):
            continue
        inside = view.inside(real)
        if inside is not None and not covers("/dev", inside) and not covers("/proc", inside):
            found[inside] = Mount(inside, Path("/dev/null"), "hidden")
    return list(found.values())


def _kernel_sockets() -> set[str]:
    try:
        with Path("/proc/net/unix").open(encoding="utf-8", errors="surrogateescape") as table:
            lines = table.read().splitlines()[1:]
    except OSError:
        return set()
    names = (line.split(" ", 7)[-1].strip() for line in lines if "/" in line)
    return {name for name in names if name.startswith("/")}
