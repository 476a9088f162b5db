"""A pilot that waits for the loop to have nothing to do, not for the machine to be idle.

Textual's own wait sleeps 20 ms and more twice for every key and looks at the process's CPU time,
which makes tests slow and, on a busy machine, slower still.
"""

from __future__ import annotations

import asyncio

import pytest

_ROUNDS = 400
_QUIET = 3


async def loop_is_idle(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Return once nothing is ready to run, twice with a breath for threads in between."""
    del min_sleep, max_sleep
    loop = asyncio.get_running_loop()
    for _ in range(2):
        quiet = 0
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
            quiet = 0 if getattr(loop, "_ready", ()) else quiet + 1
            if quiet >= _QUIET:
                break
        await asyncio.sleep(0.0005)


@pytest.fixture(autouse=True)
def quick_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pilots wait that way; for the tests of screens and widgets."""
    monkeypatch.setattr("textual.pilot.wait_for_idle", loop_is_idle)
    monkeypatch.setattr("textual.app.wait_for_idle", loop_is_idle)
