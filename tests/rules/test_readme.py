"""The README says what is there: keys, commands, flags and pictures."""

from __future__ import annotations

import re
from pathlib import Path

import click

from forkdeck.cli.commands import forkdeck
from tests.readme import README, with_tables

TEXT = README.read_text(encoding="utf-8")


def test_generated_parts_are_up_to_date() -> None:
    assert with_tables(TEXT) == TEXT, "run `make readme`"


def test_every_command_and_flag_is_named() -> None:
    missing: list[str] = []
    for name, command in [("", forkdeck), *forkdeck.commands.items()]:
        if name and f"forkdeck {name}" not in TEXT:
            missing.append(name)
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                missing += [
                    f"{name} {flag}"
                    for flag in parameter.opts
                    if flag.startswith("--") and flag != "--version" and flag not in TEXT
                ]
    assert not missing


def test_pictures_exist() -> None:
    root = Path(README).parent
    pictures = re.findall(r"\]\((screenshots/[^)]+)\)", TEXT)
    assert pictures
    assert all((root / picture).is_file() for picture in pictures)
