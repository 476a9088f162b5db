"""Settings from every place, in order, with the origin of each and what was not used.

Called by the command line when a session opens. Order: the user's file, a trusted project's,
environment, flags; the later wins. A project that is not trusted only narrows: its ``ask`` and
``deny`` rules, lower limits and the theme are taken, the rest is listed. The user's own limits and
``ask`` and ``deny`` rules hold over a trusted project's too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from forkdeck.config.keys import KEYS, Key
from forkdeck.config.project_files import project_root, read
from forkdeck.config.rules import Rule
from forkdeck.config.settings import DEFAULTS, Settings, value_of
from forkdeck.config.sources import (
    Source,
    from_bytes,
    from_environment,
    from_file,
    from_flags,
    process_environment,
    user_config_dir,
)
from forkdeck.config.trust import CONFIG_FILE, TrustStore
from forkdeck.errors import ConfigError
from forkdeck.model.words import RuleKind

NOT_TRUSTED = "not used: project not trusted"
NEVER_PROJECT = "not used: never taken from a project"
USER_FILE_ONLY = "not used: only the user's own file may set this"
HIGHER = "not used: higher than the user's own limit"

_KINDS: dict[str, RuleKind] = {
    "permissions.allow": "allow",
    "permissions.ask": "ask",
    "permissions.deny": "deny",
}


@dataclass(frozen=True)
class NotUsed:
    """Something that was set and has no effect.

    Attributes:
        key: The setting, a variable or a file.
        place: Where it stands.
        reason: Why it is not used, in words.
    """

    key: str
    place: str
    reason: str


@dataclass(frozen=True)
class LoadedSettings:
    """Settings with their story.

    Attributes:
        settings: What holds.
        origins: Where each key's value comes from; ``default`` for the rest.
        not_used: What was set and has no effect, to be shown.
        rules: The permission rules, parsed.
    """

    settings: Settings
    origins: Mapping[str, str]
    not_used: tuple[NotUsed, ...]
    rules: tuple[Rule, ...]


@dataclass
class _Draft:
    """What is known while the sources are read in order."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    origins: dict[str, str] = field(default_factory=dict[str, str])
    not_used: list[NotUsed] = field(default_factory=list[NotUsed])
    rules: dict[tuple[RuleKind, str], Rule] = field(
        default_factory=dict[tuple[RuleKind, str], Rule]
    )

    def set(self, key: Key, value: Any, place: str) -> None:
        if key.scope == "rules":
            self._add_rules(key.name, value, place)
            value = (*self.values.get(key.name, ()), *value)
            value = tuple(dict.fromkeys(value))
            if key.name in self.origins:
                place = f"{self.origins[key.name]} + {place}"
        self.values[key.name] = value
        self.origins[key.name] = place

    def skip(self, key: str, place: str, reason: str) -> None:
        self.not_used.append(NotUsed(key, place, reason))

    def _add_rules(self, name: str, texts: tuple[str, ...], place: str) -> None:
        for text in texts:
            try:
                rule = Rule.parse(text, _KINDS[name])
            except ConfigError as error:
                raise ConfigError(f"{name} in {place}: {error.what}", error.remedy) from None
            self.rules.setdefault((rule.kind, rule.text), rule)


def load_settings(
    cwd: Path,
    *,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
    trusted: bool = False,
) -> LoadedSettings:
    """Read the settings that hold in a directory.

    Args:
        cwd: A directory of the project.
        environ: The environment; None: this process's.
        flags: Settings given on the command line, by dotted key; None counts as not given.
        trusted: Whether the person trusts the project's files as they are now.

    Raises:
        ConfigError: A file, key or value is wrong; the message names all three and the way out.
    """
    environ = process_environment() if environ is None else environ
    draft = _Draft()
    user = from_file(user_config_dir(environ) / "config.toml") or Source("")
    for key in KEYS:
        if key.name in user.values:
            draft.set(key, user.values[key.name], user.name)
    _take_project(draft, project_root(cwd), user, trusted)
    for source in (from_environment(environ), from_flags(flags or {})):
        for variable, why in source.strange:
            draft.skip(variable, "environment", f"not used: {why}")
        for key in KEYS:
            if key.name not in source.values:
                continue
            if key.scope == "user file":
                draft.skip(key.name, source.place(key.name), USER_FILE_ONLY)
            else:
                draft.set(key, source.values[key.name], source.place(key.name))
    origins = {key.name: draft.origins.get(key.name, "default") for key in KEYS}
    rules = tuple(draft.rules.values())
    return LoadedSettings(_settings(draft.values), origins, tuple(draft.not_used), rules)


def _take_project(draft: _Draft, root: Path, user: Source, trusted: bool) -> None:
    data = read(root, CONFIG_FILE, 1_048_576)
    project = _project_source(data, root, draft, trusted)
    for key in KEYS:
        if key.name in project.values:
            _take_project_key(draft, key, project, user, trusted)
    if not trusted:
        # The state directory plays no part here: only the list of files is wanted.
        for file in TrustStore(root).files(root):
            if file.path != CONFIG_FILE:
                draft.skip(file.path, file.what, NOT_TRUSTED)


def _project_source(data: bytes | None, root: Path, draft: _Draft, trusted: bool) -> Source:
    """Read a project's settings file; a broken one of an untrusted project is only listed.

    Raises:
        ConfigError: The file of a trusted project is wrong.
    """
    name = str(root / CONFIG_FILE)
    if data is None:
        return Source(name)
    try:
        return from_bytes(data, name)
    except ConfigError as error:
        if trusted:
            raise
        draft.skip(CONFIG_FILE, name, f"not used: {error.what} {error.remedy}".rstrip())
        return Source(name)


def _take_project_key(
    draft: _Draft, key: Key, project: Source, user: Source, trusted: bool
) -> None:
    value = project.values[key.name]
    if key.scope in ("never project", "user file"):
        draft.skip(key.name, project.name, NEVER_PROJECT)
        return
    if key.scope == "limit":
        # An untrusted project is held below what holds anyway, a trusted one below the user's word.
        bound = user.values.get(key.name) if trusted else _now(draft, key)
        if bound is not None and value > bound:
            draft.skip(key.name, project.name, HIGHER if trusted else NOT_TRUSTED)
            return
    elif not trusted and not _narrows(key):
        draft.skip(key.name, project.name, NOT_TRUSTED)
        return
    try:
        draft.set(key, value, project.name)
    except ConfigError as error:
        if trusted:
            raise
        draft.skip(key.name, project.name, f"not used: {error.what}")


def _narrows(key: Key) -> bool:
    return key.scope == "look" or key.name in ("permissions.ask", "permissions.deny")


def _now(draft: _Draft, key: Key) -> Any:
    if key.name in draft.values:
        return draft.values[key.name]
    return value_of(DEFAULTS, key.name)


def _settings(values: Mapping[str, Any]) -> Settings:
    """Build the nested values; every one was checked by its key."""
    tree: dict[str, Any] = {}
    for name, value in values.items():
        section, dot, rest = name.partition(".")
        if dot:
            tree.setdefault(section, {})[rest] = value
        else:
            tree[section] = value
    return msgspec.convert(tree, Settings)
