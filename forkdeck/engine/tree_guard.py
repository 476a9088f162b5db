"""Whether the parent's tree moved while a write fork ran: HEAD, index and status, before and after.

`ForkRunner` begins and ends a watch per write fork. Under a sandbox the fork cannot have done it,
so a change is a note; without one it is an alarm that names the paths.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from forkdeck.errors import WorktreeError
from forkdeck.model.events import Event
from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.events.tool import ToolEnded
from forkdeck.model.events.turn import ShellRan
from forkdeck.model.events.work import WorkApplied, WorkUndone
from forkdeck.model.ids import PARENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from forkdeck.engine.parts import EngineParts
    from forkdeck.model.ports import TreeState

NAMED: Final = 8
_CHANGING: Final = ("work", "outside")


class TreeGuard:
    """Compares the parent's tree before and after forks.

    Args:
        parts: The deck's parts.
    """

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._before: dict[str, tuple[asyncio.Task[TreeState | None], int]] = {}
        self._look: asyncio.Task[TreeState | None] | None = None
        self._own_acts = 0
        self.stop: Callable[[], None] = parts.hub.listen(self._heard)

    def begin(self, handle: str) -> None:
        """Look at the tree, beside the fork's own start; forks that start at once share a look."""
        self._before[handle] = (self._looking(), self._own_acts)

    async def end(self, handle: str) -> None:
        """Look again and say what moved; nothing for a fork that was not begun."""
        begun = self._before.pop(handle, None)
        if begun is None:
            return
        task, acts = begun
        before = await asyncio.shield(task)
        if before is None:
            return
        after = await self._state()
        moved = before.moved(after) if after is not None else ()
        if moved:
            self._tell(handle, moved, own=self._own_acts != acts)

    def _tell(self, handle: str, moved: tuple[str, ...], *, own: bool) -> None:
        names = ", ".join(line.strip() for line in moved[:NAMED])
        more = f" and {len(moved) - NAMED} more" if len(moved) > NAMED else ""
        sandboxed = self._parts.enforcement.level == "sandboxed"
        if sandboxed and own:
            return  # the person or the parent did it, and saw it
        if sandboxed:
            kept = f"{handle} cannot have done it: it runs in a sandbox."
        elif own:
            kept = "You or the parent changed files meanwhile, so it may not have been the fork."
        else:
            kept = f"{handle} runs without a sandbox, so it may have done it."
        self._parts.hub.append(
            NoticeRaised(
                severity="info" if sandboxed else "error",
                what=f"The tree moved while {handle} ran: {names}{more}.",
                kept=kept,
                remedy="" if sandboxed else "Look at these paths before you go on.",
            )
        )

    def _looking(self) -> asyncio.Task[TreeState | None]:
        if self._look is None or self._look.done():
            self._look = asyncio.create_task(self._state(), name="parent's tree")
        return self._look

    async def _state(self) -> TreeState | None:
        worktrees = self._parts.worktrees
        if worktrees is None:
            return None
        try:
            return await worktrees.parent_state()
        except WorktreeError:
            return None  # what git cannot do here is told by what needs it

    def _heard(self, event: Event) -> None:
        own = isinstance(event, WorkApplied | WorkUndone | ShellRan)
        if isinstance(event, ToolEnded) and event.run == PARENT:
            own = event.view in _CHANGING
        self._own_acts += own
