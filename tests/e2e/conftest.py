from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli import conftest as command_line
from tests.e2e.terminal import Terminal
from tests.program import FORKDECK, Program, repository

Open = Callable[..., Terminal]

model = command_line.model
"""The scripted model of the command line's tests, as a process of its own."""


@pytest.fixture
def place(tmp_path: Path) -> Program:
    """A small repository and an empty home, without credentials."""
    made = Program(tmp_path)
    repository(made.project)
    return made


@pytest.fixture
def live(place: Program, model: dict[str, str]) -> Program:
    """The same, pointed at the scripted model."""
    place.more |= model
    return place


@pytest.fixture
def open_terminal(place: Program) -> Iterator[Open]:
    """Open ``forkdeck`` in a terminal; what is still open at the end is killed."""
    with ExitStack() as stack:

        def open_one(
            *words: str, size: tuple[int, int] = (120, 40), env: dict[str, str] | None = None
        ) -> Terminal:
            full = {**place.environment, **(env or {})}
            argv = [*FORKDECK, *words]
            return stack.enter_context(Terminal(argv, size=size, env=full, cwd=place.project))

        yield open_one
