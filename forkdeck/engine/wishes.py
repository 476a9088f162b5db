"""What is asked for before it is admitted: a call of the model or the person's ``/fork``.

`tools.fork_calls` has checked the call's arguments; here they become one shape for the admission,
whoever asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forkdeck.errors import AdmissionRefused
from forkdeck.model.words import ForkTool
from forkdeck.tools.fork_calls import ForkCall, TaskSpec, parse

if TYPE_CHECKING:
    from forkdeck.config.settings import ForkSettings
    from forkdeck.engine.dispatch import Call
    from forkdeck.model.intents import StartFork


@dataclass(frozen=True, kw_only=True)
class Wish:
    """One batch that is asked for.

    Attributes:
        tool: Who asks.
        call: The API's tool_use id; None for the person's.
        tasks: What each fork should do.
        max_concurrency: How many run at once.
        background: Whether nobody waits.
        private: Whether the reports stay with the person.
        notes: What to tell the caller.
    """

    tool: ForkTool
    call: str | None
    tasks: tuple[TaskSpec, ...]
    max_concurrency: int
    background: bool
    private: bool = False
    notes: tuple[str, ...] = ()


def from_call(call: Call, settings: ForkSettings) -> Wish:
    """Return the wish of a model's call, with the settings' defaults filled in.

    Raises:
        AdmissionRefused: An argument is wrong; the message names the field.
    """
    parsed: ForkCall = parse(
        call.name,
        call.arguments,
        max_concurrency=settings.max_concurrency,
        background=settings.background,
    )
    return Wish(
        tool=parsed.tool,
        call=call.id,
        tasks=parsed.tasks,
        max_concurrency=parsed.max_concurrency,
        background=parsed.background,
        notes=parsed.notes,
    )


def from_person(intent: StartFork, settings: ForkSettings, seed: str) -> Wish:
    """Return the wish of the person's ``/fork``.

    Args:
        intent: What they asked for.
        settings: Defaults.
        seed: The seed mode when they named none.

    Raises:
        AdmissionRefused: The directive is blank or the count is out of range.
    """
    if not intent.task.strip():
        raise AdmissionRefused("/fork needs a directive.", "Write what the fork should do.")
    if not 1 <= intent.count <= settings.max_per_directory:
        raise AdmissionRefused(
            f"--n: {intent.count} is not between 1 and {settings.max_per_directory}."
        )
    spec = TaskSpec(id="", task=intent.task, write=intent.write, seed=intent.seed or seed)
    return Wish(
        tool="user",
        call=None,
        tasks=(spec,) * intent.count,
        max_concurrency=settings.max_per_directory,
        background=True,
        private=intent.private,
    )
