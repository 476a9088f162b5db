"""The real app in a terminal, brought to where forks run."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tests.bench.model import Model
from tests.bench.place import FORKDECK, Place
from tests.bench.scripts import SLEEP
from tests.bench.terminal import Terminal


@contextmanager
def open_app(place: Place, model: Model, prompt: str) -> Generator[Terminal]:
    """Start ``forkdeck``, type a prompt on the start screen and send it."""
    place.configure(f'[permissions]\nallow = ["bash({SLEEP})"]\n[forks]\nplan = "never"\n')
    terminal = Terminal([FORKDECK], place.environment(model.endpoint), cwd=place.project)
    try:
        terminal.until_bytes(rb"recent")
        terminal.drain(1.0)
        terminal.send(prompt)
        terminal.drain(0.2)
        terminal.send("\r")
        yield terminal
    finally:
        terminal.close()
