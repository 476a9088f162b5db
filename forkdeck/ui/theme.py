"""Themes: where they are found, what they must say, and how they become Textual's.

Reads ``*.toml`` files from the installed package, else from the source tree, and from the
person's own folder, which wins. A file that cannot be used is left out and named in one
sentence; the app always has a theme.
"""

from __future__ import annotations

import asyncio
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, cast

from textual.theme import Theme

from forkdeck.config.sources import user_config_dir

DEFAULT_THEME: Final = "forkdeck-dark"

_DARK: Final = {
    "background": "#121417", "surface": "#191b1f", "panel": "#22252a", "selected": "#2e333b",
    "foreground": "#d8dce4", "text-muted": "#98a2b0", "rule": "#414852", "primary": "#84b6f4",
    "secondary": "#b9a7f0", "warning": "#eab54d", "error": "#f28b82", "success": "#84cf9b",
    "ask": "#eab54d", "ask-text": "#121417", "chip-text": "#121417", "warning-tint": "#2b2619",
    "error-tint": "#2e1d20", "success-tint": "#17281f", "diff-add-word": "#23482f",
    "diff-del-word": "#562a2c", "syntax-string": "#d3b98c", "plot-ghost": "#343a44",
}  # fmt: skip

KEYS: Final = tuple(_DARK)
"""Every colour a theme file gives, all of them required."""

_FIELDS: Final = (
    "primary", "secondary", "warning", "error", "success", "foreground", "background", "surface",
    "panel",
)  # fmt: skip
_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}\Z")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}\Z")
_LARGEST: Final = 64 * 1024


def variable_defaults() -> dict[str, str]:
    """Return a value for every variable that is not a field of Textual's theme.

    For ``App.get_theme_variable_defaults``: without it a stock theme would stop the app.
    """
    return {key: value for key, value in _DARK.items() if key not in _FIELDS}


def default_theme() -> Theme:
    """Return the theme that needs no file."""
    return _theme(DEFAULT_THEME, _DARK, dark=True)


def _theme(name: str, colours: Mapping[str, str], *, dark: bool) -> Theme:
    variables = {key: value for key, value in colours.items() if key not in _FIELDS}
    # Textual's own widgets (the prompt's text area) take these from the same palette.
    variables |= {
        "block-cursor-background": colours["primary"],
        "block-cursor-foreground": colours["chip-text"],
        "input-selection-background": colours["selected"],
        "screen-selection-background": colours["selected"],
        "screen-selection-foreground": colours["foreground"],
        "scrollbar": colours["rule"],
        "scrollbar-background": colours["surface"],
    }
    return Theme(
        name=name,
        dark=dark,
        primary=colours["primary"],
        secondary=colours["secondary"],
        accent=colours["primary"],
        warning=colours["warning"],
        error=colours["error"],
        success=colours["success"],
        foreground=colours["foreground"],
        background=colours["background"],
        surface=colours["surface"],
        panel=colours["panel"],
        text_alpha=1.0,
        variables=variables,
    )


class ThemeFault(ValueError):
    """A theme file that cannot be used; the text says why, without its path."""


def read_theme(path: Path) -> Theme:
    """Return the theme of one file.

    Raises:
        ThemeFault: It cannot be read, or a name or colour is missing or malformed.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise ThemeFault("it is larger than 64 kB")
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ThemeFault(f"it cannot be read ({type(error).__name__})") from error
    except tomllib.TOMLDecodeError as error:
        raise ThemeFault(f"it is not TOML: {error}") from error
    name, dark, table = data.get("name"), data.get("dark"), data.get("colours")
    if not isinstance(name, str) or not _NAME.match(name):
        raise ThemeFault("name must be lower case letters, digits and dashes")
    if not isinstance(dark, bool):
        raise ThemeFault("dark must be true or false")
    if not isinstance(table, dict):
        raise ThemeFault("the table [colours] is missing")
    colours: dict[str, str] = {}
    for key in KEYS:
        value = cast("dict[str, object]", table).get(key)
        if not isinstance(value, str) or not _COLOUR.match(value):
            raise ThemeFault(f'{key} must be a colour such as "#84b6f4"')
        colours[key] = value
    return _theme(name, colours, dark=dark)


def shipped_folder() -> Path | None:
    """Return the folder of the shipped themes: in the package, else beside the sources."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "themes", package.parent / "themes"):
        if folder.is_dir():
            return folder
    return None


def user_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the person's own themes, beside their configuration."""
    return user_config_dir(os.environ if environ is None else environ) / "themes"


def load_themes(folders: Iterable[Path] | None = None) -> tuple[list[Theme], list[str]]:
    """Return all themes, the default first, and a sentence for each file that was left out.

    Args:
        folders: Where to look, later ones winning; None: the shipped and the person's own.
    """
    if folders is None:
        shipped = shipped_folder()
        folders = [user_folder()] if shipped is None else [shipped, user_folder()]
    themes: dict[str, Theme] = {DEFAULT_THEME: default_theme()}
    faults: list[str] = []
    for folder in folders:
        try:
            paths = sorted(folder.glob("*.toml"))
        except OSError:
            continue
        for path in paths:
            try:
                theme = read_theme(path)
            except ThemeFault as fault:
                faults.append(f"The theme file {path.name} is not used: {fault}.")
            else:
                themes[theme.name] = theme
    return list(themes.values()), faults


async def watch_themes(folder: Path, changed: Callable[[], None], stop: asyncio.Event) -> None:
    """Call `changed` whenever a theme file in `folder` changes, until `stop` is set.

    Returns at once when the folder does not exist.
    """
    if not await asyncio.to_thread(folder.is_dir):
        return
    # Loaded only once themes are watched; the type of its stop event mixes two event loops.
    from watchfiles import (  # noqa: PLC0415 - see above
        awatch,  # pyright: ignore[reportUnknownVariableType] - see above
    )

    async for changes in awatch(folder, stop_event=stop, recursive=False):
        if any(name.endswith(".toml") for _, name in changes):
            changed()
