"""The last door: what no command foresaw becomes a message and a saved account, not a traceback.

Called by the entry point only. The account goes to the user's own state directory.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

from forkdeck import __version__
from forkdeck.sessionlog.paths import state_root

DEBUG_VARIABLE = "FORKDECK_DEBUG"
"""Environment variable that shows the traceback as well."""


def describe(error: BaseException) -> list[str]:
    """Return what to tell the person, and save the traceback where they can find it."""
    name = type(error).__name__
    lines = [f"forkdeck: something inside failed: {name}: {error}"]
    if os.environ.get(DEBUG_VARIABLE):
        lines.append("".join(traceback.format_exception(error)).rstrip())
    saved = _save(error)
    told = f" What happened is in {saved}." if saved else f" {DEBUG_VARIABLE}=1 shows more."
    lines.append(f"This is a fault of ForkDeck; sessions stay saved.{told}")
    return lines


def refused(error: OSError) -> list[str]:
    """Return what to tell the person about something the system refused."""
    where = f" ({error.filename})" if error.filename else ""
    return [
        f"forkdeck: the system refused: {error.strerror or error}{where}.",
        "Look at its permissions and at the free space, then try again.",
    ]


def _save(error: BaseException) -> Path | None:
    path = state_root() / f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    text = f"forkdeck {__version__}, Python {sys.version.split()[0]}, {sys.platform}\n\n"
    text += "".join(traceback.format_exception(error))
    with suppress(OSError, UnicodeError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        return path
    return None
