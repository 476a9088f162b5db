"""The clock of a running conversation: the mark at 80 %, then its earliest time limit.

A fork has up to three, its own, its batch's and the session's; the parent has the session's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forkdeck.engine.limits import Purse
    from forkdeck.engine.marks import Marks
    from forkdeck.engine.run import Run
    from forkdeck.model.ports import Clock

LONGEST_GRACE_S = 60.0
"""How long a step that runs at the time limit may still take, at most."""

GRACE_SHARE = 0.25

_TICK_MS = 1


class TimeWatch:
    """Ends what runs when its time is over.

    Args:
        clock: All time.
        purse: Knows the limits.
        marks: Tells that one is near.
    """

    def __init__(self, clock: Clock, purse: Purse, marks: Marks) -> None:
        self._clock = clock
        self._purse = purse
        self._marks = marks

    async def until_over(self, run: Run) -> str:
        """Mark at 80 %, end the current tools at the limit, and return when the grace is over.

        Returns:
            The name of the limit; empty at once when there is none.
        """
        while True:
            times = self._purse.times(run)
            if not times:
                return ""
            first = min(times, key=lambda each: each.left_ms)
            self._marks.note(run)
            if first.left_ms <= 0:
                break
            waits = [each.left_ms for each in times]
            waits += [each.mark_ms for each in times if each.mark_ms > 0]
            await self._clock.sleep(max(_TICK_MS, min(waits)) / 1000)
        run.stop = first.limit
        run.cancel_calls(f"the {first.whose} time limit is reached")
        self._purse.look_again()
        await self._clock.sleep(min(LONGEST_GRACE_S, first.timeout_s * GRACE_SHARE))
        return first.limit
