"""Notices when the terminal goes away, and ends the process even if drawing is stuck by then.

SIGHUP alone is not enough: it may never come (a multiplexer that is killed), and a write to a
dead terminal ends the drawing thread, behind which the event loop can stand still for good.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

PATIENCE_S = 10.0
"""How long an orderly end may take once the terminal is gone."""

CODE = 129
"""Exit code of a process whose terminal hung up (128 + SIGHUP)."""


def watch_terminal(gone: Callable[[], object], descriptor: int = 0) -> None:
    """Call `gone` (in a thread) when the terminal hangs up; end the process if that does not.

    Output is led to the null device at once, so that nothing blocks on the dead terminal.
    """
    threading.Thread(target=_wait, args=(gone, descriptor), name="hangup", daemon=True).start()


def _wait(gone: Callable[[], object], descriptor: int) -> None:
    poll = select.poll()
    # No events asked for: it wakes for a hang-up or an error only, and costs nothing.
    poll.register(descriptor, 0)
    while not any(flags & (select.POLLHUP | select.POLLERR) for _, flags in poll.poll()):
        pass
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    gone()
    threading.Event().wait(PATIENCE_S)
    os._exit(CODE)
