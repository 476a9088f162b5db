"""``forkdeck apply`` and ``forkdeck worktrees``: saved work without a deck."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import click

from forkdeck.cli.host import Host, take_host, working_directory
from forkdeck.cli.listing import print_table
from forkdeck.cli.project import ProjectFacts, look_at_project
from forkdeck.cli.repository import visiting_worktrees
from forkdeck.errors import ApplyRefused, UsageError
from forkdeck.model.ids import is_handle, is_session_id
from forkdeck.model.work import SavedEntry
from forkdeck.sandbox.probe import probe
from forkdeck.sessionlog.catalogue import find_session
from forkdeck.store.text import one_line


def apply_saved(flags: Mapping[str, Any]) -> int:
    """Merge a fork's saved work into the tree; a conflict changes nothing and is exit code 1.

    Raises:
        UsageError: The name is not SESSION/FORK.
    """
    session, _, handle = str(flags["work"]).partition("/")
    if not is_handle(handle):
        raise UsageError(
            f"{flags['work']!r} names no fork's work.",
            "Write SESSION/FORK; `forkdeck worktrees` lists what there is.",
        )
    host = take_host()
    if not is_session_id(session):
        session = find_session(host.state, session).session
    project = look_at_project(host, working_directory(flags["cwd"]))
    return asyncio.run(_apply(host, project, session, handle, str(flags["method"])))


async def _apply(host: Host, project: ProjectFacts, session: str, handle: str, method: str) -> int:
    manager = visiting_worktrees(host, project, await probe())
    try:
        applied = await manager.apply(await manager.saved(session, handle), method=method)
    except ApplyRefused as refused:
        click.echo(f"forkdeck: {refused.what}", err=True)
        for path in refused.conflicts:
            click.echo(f"  {one_line(path, 200)}", err=True)
        if refused.remedy:
            click.echo(refused.remedy, err=True)
        return 1
    finally:
        await manager.close()
    for change in applied.files:
        click.echo(f"{change.kind:<9} {one_line(change.path, 200)}  {change.warning}".rstrip())
    count = "1 file" if len(applied.files) == 1 else f"{len(applied.files)} files"
    click.echo(f"Applied {count}. The tree before: {applied.undo_ref}")
    return 0


def list_worktrees(flags: Mapping[str, Any]) -> int:
    """Print worktrees and saved work; with ``--clean`` remove what is saved."""
    host = take_host()
    project = look_at_project(host, working_directory(flags["cwd"]))
    return asyncio.run(_worktrees(host, project, clean=bool(flags["clean"])))


async def _worktrees(host: Host, project: ProjectFacts, *, clean: bool) -> int:
    manager = visiting_worktrees(host, project, await probe())
    try:
        if clean:
            removed, kept = await manager.clean()
            for text in removed:
                click.echo(f"removed  {one_line(text, 200)}")
            for text in kept:
                click.echo(f"kept     {one_line(text, 300)}", err=True)
            click.echo(f"{len(removed)} removed, {len(kept)} kept.")
            return 0
        entries = await manager.entries()
        repo = await manager.inspect()
    finally:
        await manager.close()
    if not entries:
        if repo.kind in ("none", "no git"):
            click.echo(f"Nothing to list. {repo.reason}")
        else:
            click.echo("No worktrees and no saved work in this repository.")
        return 0
    table = [("work", "state", "files", "size", "age", "path or ref")]
    table += [_row(entry) for entry in entries]
    print_table(told_columns(table))
    return 0


def told_columns(table: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Leave out the columns of which nothing is known in any row, as files and size of refs."""
    head, *rows = table
    kept = [at for at in range(len(head)) if any(row[at] != "–" for row in rows)]
    return [tuple(row[at] for at in kept) for row in table]


def _row(entry: SavedEntry) -> tuple[str, ...]:
    dirty = {True: "unsaved", False: "all saved", None: "–"}[entry.dirty]
    size = "–" if entry.size_bytes is None else f"{entry.size_bytes / 1e6:.1f} MB"
    age = "–" if entry.age_s is None else _age(entry.age_s)
    return (
        f"{entry.session}/{entry.handle}",
        entry.verdict or ("in use" if entry.live else "–"),
        dirty,
        size,
        age,
        one_line(entry.path or entry.ref or "–", 200),
    )


def _age(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return "now"
