"""The person's own directive template, or the project's, in place of the built-in one.

``templates/directive.md`` in the person's configuration directory, and ``.forkdeck/templates/
directive.md`` in a trusted project, which comes first. Read when a fork begins.
"""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING, Final

from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.raw import clean_text
from forkdeck.sandbox.files import in_thread

if TYPE_CHECKING:
    from forkdeck.engine.parts import EngineParts

LARGEST_BYTES: Final = 16 * 1024
PROJECT_FILE: Final = ".forkdeck/templates/directive.md"
USER_FILE: Final = "templates/directive.md"
FIELDS: Final = frozenset(
    ("kind", "handle", "name", "task", "limits", "policy", "notice", "report_style", "report_form")
)
"""What a template may name; ``task`` it must."""


class Templates:
    """Finds the template that holds.

    Args:
        parts: The deck's parts.
    """

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._told: set[str] = set()

    async def directive(self) -> str | None:
        """Return the template that holds, or None for the built-in one."""
        return await in_thread(self._find)

    def report(self) -> None:
        """Tell once about each template that cannot be used."""
        for what in sorted(self._told):
            known = {notice.what for notice in self._parts.hub.state.notices}
            if what not in known:
                self._parts.hub.append(
                    NoticeRaised(
                        severity="warning",
                        what=what,
                        kept="The next template, or the built-in one, is used.",
                        remedy=f"It needs $task and may name {_names(FIELDS)}.",
                    )
                )
        self._told.clear()

    def _find(self) -> str | None:
        parts = self._parts
        found: list[tuple[str, bytes | None]] = []
        if parts.project is not None and parts.trusted:
            found.append((PROJECT_FILE, parts.project.read(PROJECT_FILE, LARGEST_BYTES)))
        if parts.user_file is not None:
            found.append((USER_FILE, parts.user_file(USER_FILE, LARGEST_BYTES)))
        for name, data in found:
            if data is None:
                continue
            text = clean_text(data.decode("utf-8", "replace")).strip()
            wrong = fault(text)
            if not wrong:
                return text
            self._told.add(f"The template {name} is not used: {wrong}.")
        return None


def fault(text: str) -> str:
    """Return why a text cannot be a directive template, or nothing."""
    template = Template(text)
    if not template.is_valid():
        return "a $ in it begins no name; write $$ for the sign itself"
    names = set(template.get_identifiers())
    if "task" not in names:
        return "it does not name $task"
    unknown = names - FIELDS
    return f"it names {_names(unknown)}, which is nothing" if unknown else ""


def _names(names: frozenset[str] | set[str]) -> str:
    return ", ".join(f"${name}" for name in sorted(names))
