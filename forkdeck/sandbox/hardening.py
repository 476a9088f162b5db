"""Keeps other processes of the same user from reading this one's memory and start environment.

Called once by the command line, after the credentials were taken out of the environment.
"""

from __future__ import annotations

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def forbid_inspection() -> bool:
    """Set ``PR_SET_DUMPABLE`` to 0 on Linux; return whether it took effect."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False
