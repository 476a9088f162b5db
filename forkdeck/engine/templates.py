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
        self._told: dict[str, str] = {}

    async def directive(self) -> str | None:
        """Return the template that holds, or None for the built-in one."""
        return await in_thread(self._find)

    def report(self) -> None:
        """Tell once about each template that cannot be used."""
        for what, remedy in sorted(self._told.items()):
            known = {notice.what for notice in self._parts.hub.state.notices}
            if what not in known:
                self._parts.hub.append(
                    NoticeRaised(
                        severity="warning",
                        what=what,
                        kept="The next template, or the built-in one, is used.",
                        remedy=remedy,
                    )
                )
        self._told.clear()

    def _find(self) -> str | None:
        parts = self._parts
        found: list[tuple[str, bytes | None]] = []
        most = LARGEST_BYTES + 1
        if parts.project is not None and parts.trusted:
            found.append((PROJECT_FILE, parts.project.read(PROJECT_FILE, most)))
        if parts.user_file is not None:
            found.append((USER_FILE, parts.user_file(USER_FILE, most)))
        for name, data in found:
            if data is None:
                continue
            wrong, remedy = _unreadable(data)
            if not wrong:
                text = clean_text(data.decode("utf-8")).removeprefix("\ufeff").strip()
                wrong = fault(text)
                remedy = f"It needs $task and may name {_names(FIELDS)}."
                if not wrong:
                    return text
            self._told[f"The template {name} is not used: {wrong}."] = remedy
        return None


def _unreadable(data: bytes) -> tuple[str, str]:
    """Return why a file's bytes cannot be a template, and what to do; two empty texts if not."""
    if len(data) > LARGEST_BYTES:
        return "it is larger than 16 KiB", "Make it shorter: every fork is sent the whole of it."
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "it is no text in UTF-8", "Save it as UTF-8."
    if "\0" in text:
        return "it holds a NUL character", "Save it as plain text."
    return "", ""


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
