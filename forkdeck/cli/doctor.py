"""``forkdeck doctor``: every check as a row, with its remedy below."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import click

from forkdeck import __version__
from forkdeck.cli.health import checks
from forkdeck.cli.host import take_host, working_directory


def show_health(flags: Mapping[str, Any]) -> int:
    """Print the checks; the exit code is 1 when one is not good."""
    host = take_host()
    rows, _ = asyncio.run(checks(host, working_directory(flags["cwd"])))
    click.echo(f"forkdeck {__version__}\n")
    for row in rows:
        first, *more = row.text.splitlines() or [""]
        click.echo(f"{'ok ' if row.good else 'no '} {row.name:<8} {first.strip()}")
        more += [] if row.good else row.remedy.splitlines()
        for line in more:
            click.echo(f"             {line.strip()}")
    return 0 if all(row.good for row in rows) else 1
