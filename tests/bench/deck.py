"""A handle on the deck of `driver`: starts it, gives commands, reads answers."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from tests.bench.model import Model
from tests.bench.place import Place

_ROOT = Path(__file__).parents[2]


class Deck:
    """A live deck in a process of its own.

    Args:
        process: The driver, with pipes.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Process id of the deck."""
        return self._process.pid

    def ask(self, command: dict[str, Any], timeout_s: float = 60) -> dict[str, Any]:
        """Give a command and return its answer.

        Raises:
            RuntimeError: The deck broke, or did not answer in time.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self.answer(timeout_s)

    def tell(self, command: dict[str, Any]) -> None:
        """Give a command whose answer nobody waits for."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def answer(self, timeout_s: float = 60) -> dict[str, Any]:
        """Return the next answer; see `ask`."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        ready, _, _ = select.select([self._process.stdout], [], [], timeout_s)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self._process.kill()
            raise RuntimeError(f"the deck gave no answer: {self._process.stderr.read()[-1500:]}")
        return cast("dict[str, Any]", json.loads(line))

    def prompt(self, text: str) -> dict[str, Any]:
        """Send a prompt, wait until the deck is idle; returns what became of it.

        Raises:
            RuntimeError: The turn did not complete.
        """
        done = self.ask({"prompt": text})
        if done["outcome"] != "completed":
            raise RuntimeError(f"the turn ended as {done['outcome']}: {done['reason']}")
        return done


@contextmanager
def open_deck(place: Place, model: Model, allowed: Sequence[str]) -> Generator[Deck]:
    """Open a deck with rules, and close it afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.driver", str(place.base), *model.endpoint, *allowed],
        env={**place.environment(), "PYTHONPATH": str(_ROOT)}, cwd=_ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deck = Deck(process)
    try:
        deck.answer()
        yield deck
    finally:
        if process.poll() is None:
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
        else:
            process.communicate()
