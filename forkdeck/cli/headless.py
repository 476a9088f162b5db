"""``forkdeck run``: one job without a terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import click

from forkdeck.cli.compose import LiveRequest, open_live
from forkdeck.cli.faces import json_lines, progress_lines, writer
from forkdeck.cli.host import Host, take_host, working_directory
from forkdeck.cli.project import ProjectFacts, look_at_project
from forkdeck.cli.signals import Stopped, run_until_stopped
from forkdeck.cli.totals import apply_hints, exit_code, final_answer
from forkdeck.config.rules import Rule
from forkdeck.errors import UsageError
from forkdeck.model.intents import SendPrompt
from forkdeck.store.text import plain_text

_MOST_PROMPT_BYTES = 4_000_000


def run_prompt(flags: Mapping[str, Any]) -> int:
    """Send one prompt and wait until everything it started has ended.

    Raises:
        UsageError: The prompt is empty, or there are no credentials.
    """
    prompt = _prompt(str(flags["prompt"]))
    host = take_host()
    if not host.credentials.found:
        raise UsageError("There are no credentials.", host.credentials.looked_for)
    project = look_at_project(
        host,
        working_directory(flags["cwd"]),
        {
            "model": flags["model"],
            "mode": flags["mode"],
            "session.budget_usd": flags["budget_usd"],
        },
        trust_once=bool(flags["trust_project"]),
        more_rules=[Rule.parse(text, "allow") for text in flags["allow"]],
    )
    try:
        return asyncio.run(
            run_until_stopped(_run(host, project, prompt, as_json=bool(flags["as_json"])))
        )
    except Stopped as stopped:
        click.echo("forkdeck: interrupted; what was done so far is saved.", err=True)
        return 130 if stopped.code == 130 else stopped.code


def _prompt(given: str) -> str:
    text = given
    if given == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("There is nothing on stdin.", "Pipe the prompt in, or write it out.")
        data = sys.stdin.buffer.read(_MOST_PROMPT_BYTES + 1)
        if len(data) > _MOST_PROMPT_BYTES:
            raise UsageError("The prompt is longer than 4 MB.", "Put it in a file and name it.")
        text = data.decode("utf-8", "replace")
    if not text.strip():
        raise UsageError("The prompt is empty.", 'Say what to do: forkdeck run "…".')
    return text


async def _run(host: Host, project: ProjectFacts, prompt: str, *, as_json: bool) -> int:
    listener = json_lines() if as_json else progress_lines(sys.stderr)
    request = LiveRequest(
        project=project, credentials=host.credentials, attached=False, listeners=(listener,)
    )
    deck = await open_live(host, request)
    try:
        sent = await deck.submit(SendPrompt(text=prompt))
        if not sent.ok:
            click.echo(f"forkdeck: {sent.text}", err=True)
            return 1
        await deck.idle()
    finally:
        await deck.close()
    state = deck.state
    if not as_json:
        answer = final_answer(state)
        if answer:
            writer(sys.stdout)(plain_text(answer) + "\n")
    for hint in apply_hints(state):
        click.echo(f"work saved; apply it with: {hint}", err=True)
    return exit_code(state)
