"""The lock that says a process has a session open; the kernel frees it when the process dies.

Taken by the log's writer for as long as it lives, and by a repair while it works. A lock, not a
process id: ids are used again.
"""

from __future__ import annotations

import fcntl
import os

from forkdeck.errors import SessionBusy
from forkdeck.sessionlog.paths import SessionPaths


def take_lock(paths: SessionPaths) -> int:
    """Lock a session; closing the returned descriptor releases it.

    Raises:
        SessionBusy: Somebody holds it, in this process or another.
        OSError: The lock file cannot be made, or the file system knows no locks.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(paths.lock, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise SessionBusy(
            f"session {paths.session} is open in another process",
            "Close it there, or replay it: a replay only reads.",
        ) from None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
