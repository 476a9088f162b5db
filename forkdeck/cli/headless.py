"""``forkdeck run``: one job without a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Mapping
from typing import Any

import click

from forkdeck.cli.compose import LiveRequest, check_budget, open_live
from forkdeck.cli.faces import Writer, json_lines, progress_lines
from forkdeck.cli.host import Host, take_host, working_directory
from forkdeck.cli.project import ProjectFacts, look_at_project
from forkdeck.cli.signals import Stopped, run_until_stopped
from forkdeck.cli.totals import apply_hints, exit_code, final_answer
from forkdeck.config.rules import Rule
from forkdeck.config.trust import CONFIG_FILE
from forkdeck.engine.deck import LiveDeck
from forkdeck.errors import UsageError
from forkdeck.model.events import Event
from forkdeck.model.events.tool import ApprovalAnswered
from forkdeck.model.intents import SendPrompt
from forkdeck.model.state import DeckState
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
        what, _, remedy = host.credentials.looked_for.partition("\n")
        raise UsageError(what, remedy)
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
    for each in project.loaded.not_used:
        if each.key == CONFIG_FILE:
            click.echo(f"forkdeck: the project's settings are {each.reason}", err=True)
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
        try:
            data = sys.stdin.buffer.read(_MOST_PROMPT_BYTES + 1)
        except OSError as error:
            raise UsageError(
                f"The prompt cannot be read from stdin: {error.strerror or error}.",
                "Pipe a file or text in.",
            ) from error
        if len(data) > _MOST_PROMPT_BYTES:
            raise UsageError("The prompt is longer than 4 MB.", "Put it in a file and name it.")
        text = data.decode("utf-8", "replace")
    if not text.strip():
        raise UsageError("The prompt is empty.", 'Say what to do: forkdeck run "…".')
    return text


async def _run(host: Host, project: ProjectFacts, prompt: str, *, as_json: bool) -> int:
    unread = asyncio.Event()
    listener = json_lines(unread.set) if as_json else progress_lines(sys.stderr)
    refused: list[str] = []

    def note_denial(event: Event, state: DeckState) -> None:
        # A call that failed in the look view, and may not run again as work, ends as failed: only
        # the answer says that it was denied.
        del state
        if isinstance(event, ApprovalAnswered) and event.answer == "deny":
            refused.append(event.request)

    request = LiveRequest(
        project=project,
        credentials=host.credentials,
        attached=False,
        listeners=(listener, note_denial),
    )
    check_budget(host, request)
    deck = await open_live(host, request)
    try:
        sent = await deck.submit(SendPrompt(text=prompt))
        if not sent.ok:
            click.echo(f"forkdeck: {sent.text}", err=True)
            return 1
        await _idle_or_unread(deck, unread)
    finally:
        await deck.close()
    state = deck.state
    written = _write_answer(state) if not as_json else not unread.is_set()
    for hint in apply_hints(state):
        click.echo(f"work saved; apply it with: {hint}", err=True)
    if not written:
        session = state.session.session
        click.echo(
            "forkdeck: standard output takes no more (closed or full); the session is saved.\n"
            f"forkdeck replay --plain {session} prints it.",
            err=True,
        )
        return 1
    return exit_code(state) or (3 if refused else 0)


async def _idle_or_unread(deck: LiveDeck, unread: asyncio.Event) -> None:
    """Wait for the end of the work, or for the end of the reader: nobody wants the rest then."""
    idle = asyncio.create_task(deck.idle())
    gone = asyncio.create_task(unread.wait())
    try:
        await asyncio.wait((idle, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        idle.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await idle


def _write_answer(state: DeckState) -> bool:
    answer = final_answer(state)
    write = Writer(sys.stdout)
    if answer:
        write(plain_text(answer) + "\n")
    return not answer or not write.trouble
