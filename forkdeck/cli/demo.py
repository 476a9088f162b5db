"""``forkdeck demo``: the main job offline, in the deck or as plain lines."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from forkdeck.cli.demo_place import DemoPlace
from forkdeck.cli.faces import progress_lines
from forkdeck.cli.host import is_terminal, take_host
from forkdeck.cli.signals import Stopped, run_until_stopped
from forkdeck.cli.totals import total_lines
from forkdeck.engine.deck import LiveDeck
from forkdeck.model.intents import ApplyWork, SendPrompt


def show_demo(flags: Mapping[str, Any]) -> int:
    """Play the demo in the deck at a terminal, else as lines."""
    if is_terminal() and not flags["plain"]:
        from forkdeck.cli.interactive import open_demo  # noqa: PLC0415 - loads Textual

        return open_demo(flags)
    try:
        return asyncio.run(run_until_stopped(_play()))
    except Stopped as stopped:
        return stopped.code


async def _play() -> int:
    place = await DemoPlace.make(take_host())
    click.echo(f"ForkDeck demo: {place.scenario.title}")
    click.echo("The model is scripted; tools, git and the sandbox are real.\n")
    try:
        deck = await place.open(attached=False, listeners=(progress_lines(sys.stdout),))
        try:
            good = await _work(deck, place)
        finally:
            await deck.close()
        click.echo("")
        for line in total_lines(deck.state):
            click.echo(line)
        return 0 if good else 1
    finally:
        await place.close()


async def _work(deck: LiveDeck, place: DemoPlace) -> bool:
    """Run the job, apply the write fork's work, run the sample's tests."""
    for prompt in place.prompts:
        await deck.submit(SendPrompt(text=prompt))
        await deck.idle()
    good = all(fork.status == "DONE" for fork in deck.state.forks.values())
    for fork in list(deck.state.forks.values()):
        if fork.work is None:
            continue
        result = await deck.submit(ApplyWork(handle=fork.handle))
        click.echo(f"\napply {fork.handle}: {result.text}")
        good = good and result.ok
    passed, words = await asyncio.to_thread(_tests_pass, place.project)
    click.echo(f"the sample's tests: {words}")
    return good and passed


def _tests_pass(project: Path) -> tuple[bool, str]:
    done = subprocess.run(
        [sys.executable, "-m", "unittest", "-q"],
        cwd=project, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    last = (done.stderr.strip().splitlines() or ["no output"])[-1]
    return done.returncode == 0, last
