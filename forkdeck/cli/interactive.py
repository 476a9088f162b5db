"""``forkdeck``, ``forkdeck replay`` and the demo at a terminal: composes the user interface."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from forkdeck.cli.factory import log_notes
from forkdeck.cli.hangup import watch_terminal
from forkdeck.cli.host import Host, is_terminal, take_host, working_directory
from forkdeck.cli.project import look_at_project
from forkdeck.errors import SessionError, UsageError
from forkdeck.sessionlog.catalogue import find_session, list_sessions
from forkdeck.sessionlog.reader import read_log
from forkdeck.store.reducer import reduce

_NO_TERMINAL = (
    "ForkDeck's deck needs a terminal for input, output and errors.",
    'Without one, use: forkdeck run "PROMPT", forkdeck demo, or forkdeck replay --plain ID.',
)


def open_deck(flags: Mapping[str, Any]) -> int:
    """Open the start screen, or go on with a session.

    Raises:
        UsageError: There is no terminal.
        SessionError: The session to go on with does not exist.
    """
    if not is_terminal():
        raise UsageError(*_NO_TERMINAL)
    host = take_host()
    cwd = working_directory(flags["cwd"])
    kind, target = "start", ""
    if flags["resume"]:
        kind, target = "resume", find_session(host.state, flags["resume"]).session
    elif flags["last"]:
        kind, target = "resume", _last_session(host, cwd)
    settings = {"model": flags["model"], "mode": flags["mode"]}
    return _run(host, cwd, settings, flags, kind, target)


def open_demo(flags: Mapping[str, Any]) -> int:
    """Play the demo in the deck."""
    return _run(take_host(), Path.cwd(), {}, flags, "demo", "")


def open_replay(flags: Mapping[str, Any]) -> int:
    """Replay a session in the deck, or print it as lines.

    Raises:
        UsageError: There is no terminal, or no target to print.
        SessionError: There is no such session.
    """
    host = take_host()
    target = flags["target"]
    if flags["plain"]:
        if not target:
            raise UsageError("Which session?", "Give its id; `forkdeck sessions` lists them.")
        return _print_replay(host, target)
    if not is_terminal():
        raise UsageError(*_NO_TERMINAL)
    if not target:
        return _run(host, Path.cwd(), {}, flags, "sessions", "")
    find_session(host.state, target)
    return _run(host, Path.cwd(), {}, flags, "replay", str(target))


def _print_replay(host: Host, target: str) -> int:
    from forkdeck.cli.faces import progress_lines  # noqa: PLC0415 - the deck never needs it
    from forkdeck.model.state import EMPTY  # noqa: PLC0415 - only this face folds by itself

    log = read_log(find_session(host.state, target).events)
    listener = progress_lines(sys.stdout)
    state = EMPTY
    for event in log.events:
        state = reduce(state, event)
        listener(event, state)
    for note in log_notes(log):
        click.echo(f"note: {note}", err=True)
    return 0


def _last_session(host: Host, cwd: Path) -> str:
    for each in list_sessions(host.state, 1_000):
        if each.cwd == str(cwd) and not each.simulated:
            return each.session
    raise SessionError(
        f"There is no saved session in {cwd}.", "`forkdeck sessions` lists those elsewhere."
    )


def _run(
    host: Host,
    cwd: Path,
    settings: Mapping[str, object],
    flags: Mapping[str, Any],
    kind: Any,
    target: str,
) -> int:
    ui = look_at_project(host, cwd, settings).loaded.settings.ui
    # Twice Textual's usual rate: keys are seen sooner, and ForkDeck joins its own updates.
    os.environ.setdefault("TEXTUAL_FPS", "120")
    from forkdeck.cli.factory import Factory  # noqa: PLC0415 - after the line above
    from forkdeck.ui.app import ForkDeckApp  # noqa: PLC0415 - loads Textual
    from forkdeck.ui.start_request import StartRequest  # noqa: PLC0415
    from forkdeck.ui.theme import DEFAULT_THEME  # noqa: PLC0415

    factory = Factory(host, cwd, settings)
    app = ForkDeckApp(
        factory,
        clock=host.clock,
        start=StartRequest(kind=kind, target=target),
        theme_name=flags["theme"] or ui.theme or DEFAULT_THEME,
        ascii_only=True if flags["ascii"] or ui.ascii else None,
        reduced_motion=ui.reduced_motion,
        cost_footer=ui.cost_footer,
        state_dir=host.state,
        warm=factory.warm_up,
    )
    return asyncio.run(_until_left(app, factory.close))


async def _until_left(app: Any, close: Callable[[], Any]) -> int:
    """Run the app; SIGTERM, SIGHUP and SIGINT leave it in good order."""
    loop = asyncio.get_running_loop()
    leaving: set[asyncio.Task[None]] = set()

    def leave(number: int) -> None:
        if not leaving:
            leaving.add(loop.create_task(app.leave(128 + number)))

    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, leave, number)

    def gone() -> None:
        loop.call_soon_threadsafe(leave, signal.SIGHUP)

    watch_terminal(gone)
    try:
        await app.run_async()
        await asyncio.gather(*leaving)
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
        await app.close_deck()
        await close()
    return int(app.return_code or 0)
