"""Ctrl+C, SIGTERM and SIGHUP, turned into an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(Exception):
    """The process was asked to end; `code` is the exit code that says so."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


async def until_stopped() -> None:
    """Return when the process is asked to end."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    try:
        await stopped.wait()
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


async def run_until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Run `work`; on a signal cancel it, wait for its clean-up, and raise `Stopped`.

    A second signal does not cut the clean-up short: what runs is being stopped already.

    Raises:
        Stopped: The process was asked to end.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    seen: list[int] = []

    def stop(number: int) -> None:
        if not seen:
            seen.append(number)
            task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            return await task
        if not seen:
            raise asyncio.CancelledError
        raise Stopped(seen[0])
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
