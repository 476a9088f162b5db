"""Fork profiles and typed agents of a project, by name, and only when the project is trusted.

Profiles are ``.forkdeck/profiles/NAME.toml``; agents ``.forkdeck/agents/NAME.md``, then
``.claude/agents/NAME.md``. The supervisor loads what a launch names before it is planned, the
admission reads it. Bytes come from the trust store, so that what is used is what was trusted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from forkdeck.engine.profile_files import Profile, parse_header, read_agent, read_profile
from forkdeck.errors import AdmissionRefused, ToolError
from forkdeck.sandbox.files import in_thread

if TYPE_CHECKING:
    from forkdeck.engine.parts import EngineParts, ProjectFiles

LARGEST_BYTES: Final = 64 * 1024
PROFILES: Final = (".forkdeck/profiles",)
AGENTS: Final = (".forkdeck/agents", ".claude/agents")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")

MOST_OFFERED: Final = 20
LONGEST_DESCRIPTION: Final = 160


def offered(project: ProjectFiles) -> tuple[str, ...]:
    """Return the lines that tell a model which agents and profiles it can name; blocking.

    A file with a fault is left out: the fault is named when the file is used.
    """
    lines: list[str] = []
    for what, folders, suffix, reader in (
        ("agents (subagent_type)", AGENTS, ".md", read_agent),
        ("fork profiles (profile)", PROFILES, ".toml", read_profile),
    ):
        found: dict[str, str] = {}
        for path in paths_in(project, folders, suffix):
            name = path.rpartition("/")[2].removesuffix(suffix)
            data = project.read(path, LARGEST_BYTES + 1) or b""
            if len(data) > LARGEST_BYTES:
                continue
            try:
                profile = reader(name, path, data)
            except AdmissionRefused:
                continue
            if _NAME.match(profile.name):
                words = " ".join(profile.description.split())[:LONGEST_DESCRIPTION]
                found.setdefault(profile.name, f"{profile.name}: {words}" if words else name)
        if found:
            lines.append(f"{what}: {'; '.join(list(found.values())[:MOST_OFFERED])}")
    return tuple(lines)


def paths_in(project: ProjectFiles, folders: tuple[str, ...], suffix: str) -> list[str]:
    """Return the project's files of a kind, folder by folder."""
    return [
        path
        for folder in folders
        for path in project.paths()
        if path.startswith(f"{folder}/") and path.endswith(suffix)
    ]


class Profiles:
    """Profiles and agents by name; `load` reads what calls name, before they are admitted.

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
            path, data = await self._find("profile", profile, PROFILES, ".toml")
            self._profiles[profile] = read_profile(profile, path, data)
        if agent:
            path, data = await self._find("subagent_type", agent, AGENTS, ".md")
            self._agents[agent] = read_agent(agent, path, data)

    def profile(self, name: str | None) -> Profile | None:
        """Return a loaded profile."""
        return self._profiles[name] if name else None

    def agent(self, name: str | None) -> Profile | None:
        """Return a loaded agent file."""
        return self._agents[name] if name else None

    async def _find(
        self, field: str, name: str, folders: tuple[str, ...], suffix: str
    ) -> tuple[str, bytes]:
        if not _NAME.match(name):
            raise AdmissionRefused(f"{field}: {name[:64]!r} is no name of a file.")
        if not self._parts.trusted:
            raise AdmissionRefused(
                f"{field}: {name} is not used, because the project is not trusted.",
                "The person can trust it with /trust.",
            )
        for folder in folders:
            path = f"{folder}/{name}{suffix}"
            data = await self._read(field, path)
            if data is not None:
                return path, data
        found = await self._by_header(field, name, folders, suffix)
        if found is not None:
            return found
        where = " or ".join(f"{folder}/{name}{suffix}" for folder in folders)
        known = ", ".join(self._names(folders, suffix)[:20])
        raise AdmissionRefused(
            f"{field}: there is no {where} that is trusted.",
            f"Known: {known}." if known else "Leave it out: the project has none.",
        )

    async def _by_header(
        self, field: str, name: str, folders: tuple[str, ...], suffix: str
    ) -> tuple[str, bytes] | None:
        """Find an agent whose header, not its file, has this name."""
        if suffix != ".md":
            return None
        for path in self._paths(folders, suffix):
            data = await self._read(field, path)
            head = (data or b"").decode("utf-8", "replace").removeprefix("\ufeff")
            if data and head.startswith("---"):
                header = parse_header(head[3:].partition("\n---")[0])
                if header.get("name") == [name]:
                    return path, data
        return None

    async def _read(self, field: str, path: str) -> bytes | None:
        """Return a trusted file's bytes, or None when there is no such file."""
        project = self._parts.project
        if project is not None:
            data = await in_thread(project.read, path, LARGEST_BYTES + 1)
        else:
            workspace = self._parts.parent_workspace
            try:
                data = await workspace.read_bytes(f"{workspace.root}/{path}", LARGEST_BYTES)
            except ToolError:
                return None
        if data is not None and len(data) > LARGEST_BYTES:
            raise AdmissionRefused(f"{field}: {path} is larger than 64 KiB.")
        return data

    def _paths(self, folders: tuple[str, ...], suffix: str) -> list[str]:
        project = self._parts.project
        return [] if project is None else paths_in(project, folders, suffix)

    def _names(self, folders: tuple[str, ...], suffix: str) -> list[str]:
        paths = self._paths(folders, suffix)
        return list(dict.fromkeys(path.rpartition("/")[2].removesuffix(suffix) for path in paths))
