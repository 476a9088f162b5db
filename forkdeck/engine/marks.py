"""The 80 % mark of every limit: told once to the person, and to each fork that it concerns."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from forkdeck.model.events.fork import LimitNeared
from forkdeck.model.ids import PARENT

if TYPE_CHECKING:
    from forkdeck.engine.limits import Purse
    from forkdeck.engine.run import Run
    from forkdeck.engine.scopes import Scope
    from forkdeck.store.hub import Hub

MARK = Decimal("0.8")
"""Share of a limit at which the run and the person are told."""

SOFT_MARK = "[limit] More than 80 % of {what} is used. Come to your report."


class Marks:
    """Tells that limits are near.

    Args:
        hub: Takes the events.
        purse: Knows what is used.
    """

    def __init__(self, hub: Hub, purse: Purse) -> None:
        self._hub = hub
        self._purse = purse
        self._told: set[tuple[str, str]] = set()

    def note(self, run: Run, *, beginning: int = 0, last: str = "") -> None:
        """Tell of each limit of `run` of which 80 % is used now.

        The event comes once for a fork, a batch or the session; a fork hears of all three, at its
        next tool boundary.

        Args:
            run: The run.
            beginning: Steps that are about to begin.
            last: A limit that stops it here, told whatever its share: what a report needs is kept
                back, so a small budget never comes to 80 %.
        """
        for scope in self._purse.scopes(run):
            for limit, words, share in scope.shares(beginning):
                if (share < MARK and limit != last) or words in run.neared:
                    continue
                run.neared.add(words)
                if not run.is_parent and not last:
                    run.notes.append(SOFT_MARK.format(what=words))
                self._tell(run, scope, limit, words, share)

    def _tell(self, run: Run, scope: Scope, limit: str, words: str, share: Decimal) -> None:
        """Append the event, unless another run of the batch or the session has told it."""
        if scope.kind != "run":
            known = (run.batch or "" if scope.kind == "batch" else scope.kind, words)
            if known in self._told:
                return
            self._told.add(known)
        self._hub.append(
            LimitNeared(
                run=PARENT if scope.kind == "session" else run.run,
                limit=limit,
                of=words,
                share=min(1.0, float(share)),
            )
        )
