"""``forkdeck rehearsal``: the loopback model alone, for trying clients against it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import click

from forkdeck.cli.host import rehearsal_speed
from forkdeck.cli.signals import until_stopped
from forkdeck.errors import UsageError
from forkdeck.providers.rehearsal.scenario import find
from forkdeck.providers.rehearsal.server import RehearsalServer


def serve(flags: Mapping[str, Any]) -> int:
    """Serve until interrupted; the address and the token go to standard output.

    Raises:
        UsageError: The port is taken or out of range.
    """
    port = int(flags["port"])
    if not 0 <= port < 65_536:
        raise UsageError(f"--port {port} is out of range.", "Use 0 to 65535.")
    scenario = find(str(flags["scenario"]))
    return asyncio.run(_serve(RehearsalServer(scenario, port=port, speed=rehearsal_speed()), port))


async def _serve(server: RehearsalServer, port: int) -> int:
    try:
        await server.start()
    except OSError as error:
        raise UsageError(
            f"Port {port} cannot be used: {os.strerror(error.errno or 0)}.",
            "Give another with --port, or leave it out.",
        ) from error
    click.echo(f"export ANTHROPIC_BASE_URL={server.base_url}")
    click.echo(f"export ANTHROPIC_API_KEY={server.token}")
    click.echo("The model is scripted. Ctrl+C stops it.", err=True)
    try:
        await until_stopped()
    finally:
        await server.stop()
    return 0
