"""``forkdeck sessions`` and ``forkdeck config``: tables on standard output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from forkdeck.cli.host import take_host, working_directory
from forkdeck.cli.project import look_at_project
from forkdeck.config.listing import rows
from forkdeck.errors import SessionError
from forkdeck.model.ports import SessionSummary
from forkdeck.sessionlog.catalogue import list_sessions
from forkdeck.store.text import one_line


def list_saved_sessions(flags: Mapping[str, Any]) -> int:
    """Print saved sessions, newest first, as a table or as JSON lines.

    Raises:
        SessionError: The state directory is none.
    """
    host = take_host()
    if host.state.exists() and not host.state.is_dir():
        raise SessionError(
            f"{host.state} is not a directory, so no session can be saved there.",
            "Move that file away, or set FORKDECK_STATE_DIR.",
        )
    found = list_sessions(host.state, int(flags["limit"]))
    if flags["as_json"]:
        for each in found:
            click.echo(msgspec.json.encode(each).decode())
        return 0
    if not found:
        click.echo(f"No saved sessions in {host.state}. `forkdeck` starts one.")
        return 0
    table = [("session", "date", "project", "forks", "cost", "prompt")]
    table += [_session_row(each) for each in found]
    print_table(table)
    click.echo("\nforkdeck replay ID plays one; forkdeck --resume ID goes on with it.")
    return 0


def _session_row(each: SessionSummary) -> tuple[str, ...]:
    cost = "–" if each.cost_usd is None else f"${float(each.cost_usd):.2f}"
    return (
        each.session,
        each.started_at[:16].replace("T", " "),
        one_line(each.project, 20),
        str(each.forks),
        cost + (" simulated" if each.simulated else ""),
        one_line(each.title, 48),
    )


def show_config(flags: Mapping[str, Any]) -> int:
    """Print every setting with its value and origin, then what is not used and why."""
    host = take_host()
    project = look_at_project(host, working_directory(flags["cwd"]))
    table = [("setting", "value", "from")]
    table += [(row.key, row.value, row.origin) for row in rows(project.loaded)]
    print_table(table)
    for each in project.loaded.not_used:
        click.echo(f"{one_line(each.key, 40)}  {each.reason}  ({one_line(each.place, 80)})")
    click.echo(f"\nthemes        {', '.join(theme_names())}")
    click.echo(f"your file     {host.config / 'config.toml'}")
    click.echo(f"project file  {project.root / '.forkdeck' / 'config.toml'}")
    trust = "trusted" if project.trusted else "not trusted; /trust in the deck shows its files"
    click.echo(f"project       {trust}")
    return 0


def theme_names() -> list[str]:
    """Return the names of the themes that can be chosen, the person's own among them."""
    from forkdeck.ui.theme import load_themes  # noqa: PLC0415 - loads Textual

    themes, _ = load_themes()
    return [theme.name for theme in themes]


def print_table(table: Sequence[Sequence[str]]) -> None:
    """Print rows with aligned columns; the first is the head, the last column is not padded."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        cells = [text.ljust(width) for text, width in zip(row[:-1], widths, strict=False)]
        click.echo("  ".join([*cells, row[-1]]).rstrip())
