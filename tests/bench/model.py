"""The rehearsal model in a process of its own, so that its work is nobody else's."""

from __future__ import annotations

import json
import select
import subprocess
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from tests.bench.place import FORKDECK, Place

JournalEntry = dict[str, Any]
"""An entry of the journal as JSON; times are milliseconds of the machine's monotonic clock."""


class Model:
    """A running rehearsal model.

    Args:
        base_url: Its address.
        token: Its token.
    """

    def __init__(self, base_url: str, token: str) -> None:
        self.base_url = base_url
        self.token = token

    @property
    def endpoint(self) -> tuple[str, str]:
        """Address and token, for `Place.environment`."""
        return self.base_url, self.token

    def journal(self) -> list[JournalEntry]:
        """Return every request so far, oldest first."""
        request = urllib.request.Request(
            f"{self.base_url}/__forkdeck/journal",
            headers={"Authorization": f"Bearer {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return cast("list[JournalEntry]", json.load(answer)["requests"])

    def until(self, what: str, count: int, timeout_s: float = 30) -> list[JournalEntry]:
        """Wait until `count` entries of forks hold a field; returns those.

        Raises:
            TimeoutError: They did not in time.
        """
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            found = [entry for entry in self.journal() if entry["role"] == "fork" and entry[what]]
            if len(found) >= count:
                return found
            time.sleep(0.05)
        raise TimeoutError(f"not {count} requests of forks with {what}")


@contextmanager
def run_model(place: Place, scenario: str) -> Generator[Model]:
    """Start the model with a scenario's text, and stop it afterwards."""
    script = place.base / "scenario.toml"
    script.write_text(scenario, encoding="utf-8")
    process = subprocess.Popen(
        [FORKDECK, "rehearsal", "--scenario", str(script)],
        env={**place.environment(), "PYTHONUNBUFFERED": "1"}, cwd=place.project,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        ready, _, _ = select.select([process.stdout], [], [], 20)
        if not ready:
            process.kill()
        words = [process.stdout.readline().strip().partition("=")[2] for _ in range(2)]
        if not all(words):
            raise RuntimeError(f"the model did not start: {process.stderr.read()}")
        yield Model(words[0], words[1])
    finally:
        process.terminate()
        process.communicate(timeout=10)
