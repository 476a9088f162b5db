"""A place to measure in: a sample project, a home and a state directory, all temporary."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

FORKDECK = str(Path(sys.executable).with_name("forkdeck"))
"""The installed command, as a person starts it."""

_IDENTITY = {
    "GIT_AUTHOR_NAME": "Bench",
    "GIT_AUTHOR_EMAIL": "bench@example.invalid",
    "GIT_COMMITTER_NAME": "Bench",
    "GIT_COMMITTER_EMAIL": "bench@example.invalid",
}


@dataclass(frozen=True)
class Place:
    """Directories that belong to one measurement."""

    base: Path

    @property
    def project(self) -> Path:
        """A git repository with the sample project."""
        return self.base / "tally"

    @property
    def state(self) -> Path:
        """ForkDeck's state directory."""
        return self.base / "state"

    def environment(self, endpoint: tuple[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a program, with an endpoint's address and token or none."""
        kept = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        kept |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "ESCDELAY": "25"}
        kept |= {"HOME": str(self.base / "home"), "FORKDECK_STATE_DIR": str(self.state)}
        kept |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        if endpoint is not None:
            kept |= {"ANTHROPIC_BASE_URL": endpoint[0], "ANTHROPIC_AUTH_TOKEN": endpoint[1]}
        return kept

    def configure(self, text: str) -> None:
        """Write the user's settings file."""
        folder = self.base / "home" / ".config" / "forkdeck"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(text, encoding="utf-8")


def git(cwd: Path, *arguments: str) -> str:
    """Run git with a fixed identity; returns what it printed."""
    done = subprocess.run(
        ["git", *arguments], cwd=cwd, env={**os.environ, **_IDENTITY},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


@contextmanager
def make_place() -> Generator[Place]:
    """Make a place, and remove it afterwards."""
    base = Path(tempfile.mkdtemp(prefix="forkdeck-bench-")).resolve()
    try:
        place = Place(base)
        (base / "home").mkdir()
        place.state.mkdir(mode=0o700)
        with as_file(files("forkdeck") / "sample") as sample:
            shutil.copytree(
                sample, place.project, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
            )
        git(place.project, "init", "-q", "-b", "main")
        git(place.project, "add", "-A")
        git(place.project, "commit", "-qm", "sample")
        yield place
    finally:
        shutil.rmtree(base, ignore_errors=True)


def run_timed(command: Sequence[str], place: Place) -> float:
    """Return the seconds a command takes from start to end."""
    import time

    started = time.perf_counter()
    subprocess.run(
        list(command), env=place.environment(), cwd=place.project,
        check=True, capture_output=True,
    )  # fmt: skip
    return time.perf_counter() - started
