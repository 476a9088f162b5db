"""Fork profiles and agent files of a project: who a fork should be, and what it may do.

Files are ``.forkdeck/profiles/NAME.md``, ``.forkdeck/agents/NAME.md`` and
``.claude/agents/NAME.md``: a short header between ``---`` lines and a text. They are read
through the parent's view when a call names one, and only in a trusted project.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forkdeck.config.rules import TOOLS
from forkdeck.errors import AdmissionRefused, ToolError

if TYPE_CHECKING:
    from forkdeck.engine.parts import EngineParts

LARGEST_BYTES = 64 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")
_FOREIGN = {"LS": "ls", "Glob": "find", "MultiEdit": "edit"}
"""Tool names of other programs' agent files that differ by more than case."""


@dataclass(frozen=True)
class Profile:
    """What a profile or an agent file says.

    Attributes:
        name: Its name.
        hint: Words for the directive.
        body: The system prompt of a typed agent.
        tools: Tools it gives; None: all.
        denied: Tools it takes away.
        model: Another model.
        effort: Another effort.
    """

    name: str
    hint: str = ""
    body: str = ""
    tools: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()
    model: str | None = None
    effort: str | None = None


class Profiles:
    """Profiles by name; `load` reads what calls name, before they are admitted.

    Args:
        parts: The deck's parts.
    """

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._profiles: dict[str, Profile] = {}
        self._agents: dict[str, Profile] = {}

    async def load(self, profile: str | None, agent: str | None) -> None:
        """Read the named files.

        Raises:
            AdmissionRefused: There is no such file, it is not trusted, or it says nonsense.
        """
        if profile:
            self._profiles[profile] = await self._read("profile", profile, (".forkdeck/profiles",))
        if agent:
            folders = (".forkdeck/agents", ".claude/agents")
            self._agents[agent] = await self._read("subagent_type", agent, folders)

    def profile(self, name: str | None) -> Profile | None:
        """Return a loaded profile."""
        return self._profiles[name] if name else None

    def agent(self, name: str | None) -> Profile | None:
        """Return a loaded agent file."""
        return self._agents[name] if name else None

    async def _read(self, field: str, name: str, folders: tuple[str, ...]) -> Profile:
        if not _NAME.match(name):
            raise AdmissionRefused(f"{field}: {name[:64]!r} is no name of a file.")
        if not self._parts.trusted:
            raise AdmissionRefused(
                f"{field}: {name} is not used, because the project is not trusted.",
                "The person can trust it with /trust.",
            )
        for folder in folders:
            path = f"{self._parts.parent_workspace.root}/{folder}/{name}.md"
            try:
                data = await self._parts.parent_workspace.read_bytes(path, LARGEST_BYTES)
            except ToolError:
                continue
            if len(data) > LARGEST_BYTES:
                raise AdmissionRefused(f"{field}: {folder}/{name}.md is larger than 64 KiB.")
            return parse_profile(name, data.decode("utf-8", "replace"), field)
        where = " or ".join(f"{folder}/{name}.md" for folder in folders)
        raise AdmissionRefused(f"{field}: there is no {where}.", "Leave it out, or name another.")


def parse_profile(name: str, text: str, field: str) -> Profile:
    """Read a profile's header and text.

    Raises:
        AdmissionRefused: The header is no header, or names a tool that is none.
    """
    header: dict[str, list[str]] = {}
    body = text.removeprefix("\ufeff").strip()
    if body.startswith("---"):
        head, closed, body = body[3:].partition("\n---")
        if not closed:
            raise AdmissionRefused(f"{field}: the header of {name} has no closing line of dashes.")
        header = _header(head)
    values = {key: value[0] for key, value in header.items() if value}
    return Profile(
        name=name,
        hint=values.get("hint", values.get("promptHint", body.strip())),
        body=body.strip(),
        tools=_tools(header.get("tools"), name, field),
        denied=_tools(header.get("denied", header.get("disallowedTools")), name, field)
        or frozenset(),
        model=_model(values.get("model")),
        effort=values.get("effort"),
    )


def _header(text: str) -> dict[str, list[str]]:
    """Read ``key: value``, ``key: [a, b]`` and lists of ``- item`` lines; no more of YAML."""
    found: dict[str, list[str]] = {}
    key = ""
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("- ") and key:
            found[key].append(_plain(stripped[2:]))
        elif ":" in stripped and not stripped.startswith("#") and not line[:1].isspace():
            key, _, value = stripped.partition(":")
            key, value = key.strip(), value.strip()
            listed = value.startswith("[") and value.endswith("]")
            parts = value[1:-1].split(",") if listed else [value]
            found[key] = [_plain(part) for part in parts if _plain(part)]
    return found


def _plain(text: str) -> str:
    return text.strip().strip("\"'")


def _tools(names: list[str] | None, name: str, field: str) -> frozenset[str] | None:
    if names is None:
        return None
    found: set[str] = set()
    for each in (part.strip() for entry in names for part in entry.split(",")):
        if not each or each == "*":
            return None
        tool = _FOREIGN.get(each, each.lower())
        if tool in TOOLS:
            found.add(tool)
        elif each == tool:
            raise AdmissionRefused(f"{field}: {name} names a tool {each!r} that does not exist.")
    return frozenset(found)


def _model(name: str | None) -> str | None:
    return name if name and name not in ("inherit", "default") and "-" in name else None
