"""What is known of a project before a session opens: root, trust, settings, instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forkdeck.cli.host import Host
from forkdeck.config.instructions import Instruction, project_instructions
from forkdeck.config.loading import LoadedSettings, load_settings
from forkdeck.config.project_files import project_root
from forkdeck.config.rules import Rule
from forkdeck.config.trust import TrustStore


@dataclass(frozen=True)
class ProjectFacts:
    """A project as one session sees it."""

    cwd: Path
    root: Path
    trusted: bool
    changed_files: tuple[str, ...]
    """Files that differ from what was trusted; trust is suspended until `/trust`."""
    loaded: LoadedSettings
    instructions: tuple[Instruction, ...]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The permission rules of every source that may give them."""
        return self.loaded.rules


def look_at_project(
    host: Host,
    cwd: Path,
    flags: Mapping[str, object] | None = None,
    *,
    trust_once: bool = False,
    more_rules: Sequence[Rule] = (),
) -> ProjectFacts:
    """Read what a session in `cwd` goes by.

    Args:
        host: This process.
        cwd: The directory to work in, resolved.
        flags: Settings given on the command line, by dotted key.
        trust_once: Use the project's own files although they are not trusted.
        more_rules: Rules from ``--allow``.

    Raises:
        ConfigError: A settings file, key or value is wrong.
    """
    root = project_root(cwd)
    store = TrustStore(host.state)
    state = store.state(root)
    trusted = trust_once or state == "trusted"
    loaded = load_settings(cwd, flags=flags or {}, trusted=trusted)
    if more_rules:
        loaded = LoadedSettings(
            loaded.settings, loaded.origins, loaded.not_used, (*loaded.rules, *more_rules)
        )
    return ProjectFacts(
        cwd=cwd,
        root=root,
        trusted=trusted,
        changed_files=store.changed(root) if state == "changed" else (),
        loaded=loaded,
        instructions=project_instructions(root),
    )
