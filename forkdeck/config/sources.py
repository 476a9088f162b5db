"""Where settings come from: TOML files, environment variables and flags, read into flat keys.

Used by `loading`. A source is a name for the listing and a flat mapping from dotted key to a
checked value; every problem is a `ConfigError` that names the place, the key and the way out.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from forkdeck.config.keys import BY_NAME, SECTIONS, Key
from forkdeck.errors import ConfigError

PREFIX = "FORKDECK_"
_OWN_VARIABLES = frozenset(
    ("FORKDECK_CONFIG_DIR", "FORKDECK_STATE_DIR", "FORKDECK_REHEARSAL_SPEED", "FORKDECK_DEBUG")
)
_LONGEST_FILE = 1_048_576


@dataclass(frozen=True)
class Source:
    """Settings from one place.

    Attributes:
        name: The place, as shown; a file's path or words.
        values: Checked values by dotted key.
        places: The exact place of a key, when it differs from `name` (a variable, a flag).
        strange: Variables that look like settings and are none: (name, why).
    """

    name: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    strange: tuple[tuple[str, str], ...] = ()

    def place(self, key: str) -> str:
        """Return where `key` was set."""
        return self.places.get(key, self.name)


def user_config_dir(environ: Mapping[str, str]) -> Path:
    """Return the directory of the user's settings and themes."""
    given = environ.get("FORKDECK_CONFIG_DIR")
    if given:
        return Path(given).expanduser()
    import platformdirs  # noqa: PLC0415 - only needed when nothing was given

    return Path(platformdirs.user_config_dir("forkdeck"))


def from_file(path: Path) -> Source | None:
    """Read a settings file of the user; None when there is none.

    Raises:
        ConfigError: It cannot be read, is no TOML, or holds a wrong key or value.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(_LONGEST_FILE + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}.", "Mend its permissions, or move it away."
        ) from error
    return from_bytes(data, str(path))


def from_bytes(data: bytes, name: str) -> Source:
    """Read the text of a settings file; `name` is its place in messages.

    Raises:
        ConfigError: It is no TOML, or holds a wrong key or value.
    """
    if len(data) > _LONGEST_FILE:
        raise ConfigError(f"{name} is larger than 1 MiB.", "A settings file is short; mend it.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"{name} is not UTF-8 (line {line}).", "Save the file as UTF-8."
        ) from error
    try:
        loaded = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        last = f"at line {len(text.splitlines())}, the end of the file"
        why = str(error).replace("at end of document", last)
        raise ConfigError(
            f"{name} is not TOML: {why}.", "Mend that line, or move the file away."
        ) from error
    values: dict[str, Any] = {}
    for key, value in _flat(loaded, name):
        values[key.name] = checked(key, value, name)
    return Source(name, values)


def from_environment(environ: Mapping[str, str]) -> Source:
    """Read the ``FORKDECK_…`` variables; empty ones count as unset.

    Raises:
        ConfigError: One names a section but no key of it, or holds a wrong value.
    """
    names = {PREFIX + key.replace(".", "__").upper(): key for key in BY_NAME}
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    strange: list[tuple[str, str]] = []
    for variable in sorted(environ):
        text = environ[variable]
        if not variable.startswith(PREFIX) or variable in _OWN_VARIABLES or not text.strip():
            continue
        name = names.get(variable)
        if name is None:
            near = difflib.get_close_matches(variable, names, 1)
            hint = f"the nearest setting is {near[0]}" if near else "there is no such setting"
            if "__" in variable:
                raise ConfigError(f"{variable} is no setting; {hint}.", "Unset or rename it.")
            strange.append((variable, hint))
            continue
        key = BY_NAME[name]
        values[name] = checked(key, from_text(key, text), variable)
        places[name] = f"environment {variable}"
    return Source("environment", values, places, tuple(strange))


def from_flags(flags: Mapping[str, object]) -> Source:
    """Check settings given on the command line; None counts as not given.

    Args:
        flags: Values by dotted key; texts are read as in the environment.

    Raises:
        ConfigError: A key or value is wrong.
    """
    values: dict[str, Any] = {}
    for name, given in flags.items():
        if given is None:
            continue
        key = BY_NAME.get(name)
        if key is None:
            raise _unknown(name, "a flag", BY_NAME)
        value: Any = from_text(key, given) if isinstance(given, str) else given
        if isinstance(value, tuple):
            value = list(cast("tuple[Any, ...]", value))
        # The last part of a key is its flag's name: ``session.budget_usd`` is ``--budget-usd``.
        flag = "--" + name.rpartition(".")[2].replace("_", "-")
        values[name] = checked(key, value, flag)
    return Source("flag", values)


def from_text(key: Key, text: str) -> Any:
    """Return the TOML value that a variable or flag means for `key`."""
    text = text.strip()
    if key.kind == "text":
        return text
    if key.kind == "list" and not text.startswith("["):
        return [item.strip() for item in text.split(",") if item.strip()]
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError, KeyError):
        return text


def checked(key: Key, value: Any, place: str) -> Any:
    """Return a setting's value, checked.

    Raises:
        ConfigError: It is wrong; the message names key, value, allowed values and place.
    """
    try:
        return key.read(value)
    except ValueError as error:
        # Headers and addresses may hold a secret, so a wrong one is not shown.
        secret = key.name in ("endpoint.headers", "endpoint.base_url")
        shown = "" if secret else f" = {_shown(value)}"
        raise ConfigError(
            f"{key.name}{shown} in {place} is not allowed.", f"It must be {error}."
        ) from None


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, bool) else str(value).lower()
    return text if len(text) <= 80 else text[:79] + "…"


def _flat(loaded: Mapping[str, Any], name: str) -> Iterable[tuple[Key, Any]]:
    for first, value in loaded.items():
        if first in BY_NAME:
            yield BY_NAME[first], value
            continue
        if first not in SECTIONS:
            raise _unknown(first, name, [*BY_NAME, *SECTIONS])
        if not isinstance(value, dict):
            raise ConfigError(
                f"{first} in {name} must be a table.", f"Write [{first}] on a line of its own."
            )
        for second, inner in cast("dict[str, Any]", value).items():
            key = BY_NAME.get(f"{first}.{second}")
            if key is None:
                raise _unknown(f"{first}.{second}", name, BY_NAME)
            yield key, inner


def _unknown(key: str, place: str, known: Iterable[str]) -> ConfigError:
    near = difflib.get_close_matches(key, list(known), 1, cutoff=0.5)
    remedy = f'Did you mean "{near[0]}"?' if near else "Remove it."
    shown = key if key.isprintable() else ascii(key)
    return ConfigError(f'"{shown}" in {place} is no setting.', remedy)


def process_environment() -> Mapping[str, str]:
    """Return the environment of this process."""
    return os.environ
