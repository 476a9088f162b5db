"""Supervision of forks: the queue, places, aborts, and the end of every batch.

`Launches` hands over what was admitted, the deck what the person wants stopped or resumed. Each
fork lives in a task of its own; one that fails never touches a sibling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from forkdeck.engine.plans import Fork
from forkdeck.model.events.fork import BatchEnded, ForkDelayed, ForkEnded, ForkStopped

if TYPE_CHECKING:
    from forkdeck.engine.fork_run import ForkRunner
    from forkdeck.engine.limits import Purse
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.places import Places
    from forkdeck.engine.reaping import Reaper

_LOOK_AGAIN_S = 0.5


class Supervisor:
    """Owns every fork.

    Args:
        parts: The deck's parts.
        places: Concurrency places of the working directory.
        runner: Runs one fork from its place to its end.
        purse: Is told when a fork is over.
        reaper: Closes what dead processes left in the places.
    """

    def __init__(
        self,
        parts: EngineParts,
        *,
        places: Places,
        runner: ForkRunner,
        purse: Purse,
        reaper: Reaper,
    ) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._places = places
        self._runner = runner
        self._purse = purse
        self._reaper = reaper
        self._queue: list[Fork] = []
        self._planned: dict[str, Fork] = {}
        self._running: dict[str, Fork] = {}
        self._batch_done: dict[str, asyncio.Event] = {}
        self._poll: asyncio.Task[None] | None = None
        self._closing = False
        self.forks: dict[str, Fork] = {}
        self.settled: Callable[[], None] = lambda: None
        self.left_out: Callable[[], None] = lambda: None
        """Called after a fork was taken out of a plan that waits for an answer."""

    @property
    def busy(self) -> bool:
        """Whether a fork lives."""
        return bool(self._queue or self._running or self._planned)

    def done(self, batch: str) -> asyncio.Event:
        """Return what is set when every fork of a batch is over."""
        return self._batch_done.setdefault(batch, asyncio.Event())

    # --- what comes in --------------------------------------------------------------------

    def enqueue(self, forks: Sequence[Fork]) -> None:
        """Queue admitted forks and start those that have a place."""
        for fork in forks:
            self.forks[fork.handle] = fork
            self._queue.append(fork)
        self.pump()

    def plan_ahead(self, fork: Fork) -> None:
        """Keep a fork whose launch waits for the person's yes."""
        self.forks[fork.handle] = self._planned[fork.handle] = fork

    def unplan(self, handles: Sequence[str]) -> None:
        """Let planned forks go, to be queued."""
        for handle in handles:
            self._planned.pop(handle, None)

    def drop(self, handles: Sequence[str], reason: str) -> None:
        """End planned forks that may not start."""
        for handle in handles:
            fork = self._planned.pop(handle, None)
            if fork is not None:
                self._never_started(fork, reason)

    def resume(self, fork: Fork) -> None:
        """Queue a settled fork again; it goes on in its own conversation."""
        if self._closing:
            return
        fork.done.clear()
        fork.stopped, fork.expired, fork.group = "", "", None
        self.enqueue([fork])

    def relimit(self, handle: str) -> None:
        """Let a running fork have its limits as the state has them now."""
        fork = self.forks.get(handle)
        if fork is not None:
            self._runner.relimit(fork)
            self._purse.look_again()

    # --- aborts ---------------------------------------------------------------------------

    def abort(self, handle: str, reason: str = "", by: str = "person") -> bool:
        """Stop one fork; false when it is over or already being stopped."""
        fork = self.forks.get(handle)
        state = self._hub.state.forks.get(handle)
        if fork is None or state is None or state.settled or fork.stopped:
            return False
        if state.status == "SAVE":
            return False
        fork.stopped = reason or by
        self._hub.append(ForkStopped(run=handle, by=by, reason=reason))
        if self._planned.pop(handle, None) is not None:
            self._never_started(fork, reason or "taken out of the plan")
            self.left_out()
        elif fork in self._queue:
            self._queue.remove(fork)
            self._never_started(fork, reason or "stopped while queued")
        elif fork.work is not None:
            if fork.run is not None:
                fork.run.halted = True
            fork.work.cancel()
        return True

    def abort_all(self, reason: str = "", by: str = "person") -> tuple[str, ...]:
        """Stop every fork that lives; returns those that were stopped now."""
        return tuple(handle for handle in list(self.forks) if self.abort(handle, reason, by))

    async def close(self) -> None:
        """Stop and save every fork and wait for it."""
        self._closing = True
        self.abort_all("the session was closed", by="close")
        tasks = [fork.task for fork in self.forks.values() if fork.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._poll is not None:
            self._poll.cancel()
            await asyncio.gather(self._poll, return_exceptions=True)
        await self._reaper.close()

    # --- the queue ------------------------------------------------------------------------

    def pump(self) -> None:
        """Start queued forks, first in first out, as far as there are places."""
        for fork in list(self._queue):
            mine = sum(each.batch == fork.batch for each in self._running.values())
            if mine >= fork.max_concurrency:
                continue
            if fork.depth <= 1:
                fork.place = self._places.take(fork.handle)
                self._reaper.look(self._places.take_dead())
                if fork.place is None:
                    self._tell_elsewhere()
                    self._look_again()
                    return
            self._queue.remove(fork)
            self._running[fork.handle] = fork
            fork.task = asyncio.create_task(self._run(fork), name=f"fork {fork.handle}")

    def _tell_elsewhere(self) -> None:
        """Say of the queued forks how many places other processes hold, whenever that changes."""
        elsewhere = self._places.elsewhere
        for fork in self._queue:
            run = self._hub.state.runs.get(fork.handle)
            known = run.delay.elsewhere if run is not None and run.delay is not None else 0
            if fork.depth <= 1 and fork.resume is None and known != elsewhere:
                self._hub.append(
                    ForkDelayed(
                        run=fork.handle,
                        reason="place",
                        elsewhere=elsewhere,
                        places=self._places.count,
                    )
                )

    def _look_again(self) -> None:
        """Try again soon when other processes hold the places."""
        if self._places.full or (self._poll is not None and not self._poll.done()):
            return

        async def poll() -> None:
            await self._parts.clock.sleep(_LOOK_AGAIN_S)
            self._poll = None
            self.pump()

        self._poll = asyncio.create_task(poll(), name="places")

    async def _run(self, fork: Fork) -> None:
        try:
            await self._runner.run(fork)
        finally:
            self._running.pop(fork.handle, None)
            if fork.place is not None:
                self._places.give(fork.place)
                fork.place = None
            self._finished(fork)
            self.pump()

    def _never_started(self, fork: Fork, reason: str) -> None:
        """End a fork that had no place yet: no request, no worktree."""
        self._hub.append(ForkEnded(run=fork.handle, outcome="aborted", reason=reason))
        self._finished(fork)

    def _finished(self, fork: Fork) -> None:
        self._purse.settled(fork.handle)
        if fork.group is not None:
            fork.group.left(fork.handle)
        fork.resume = None
        fork.done.set()
        batch = self._hub.state.batches.get(fork.batch)
        if batch is not None and not batch.ended:
            forks = (self._hub.state.forks[handle] for handle in batch.handles)
            if all(each.settled for each in forks):
                self._hub.append(BatchEnded(run=batch.run, batch=batch.batch))
                self.done(batch.batch).set()
        self.settled()
