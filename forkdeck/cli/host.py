"""What is true of this process: credentials, state directory, clock, terminal.

Made once by the command that runs. Credentials are taken out of the environment here, before
anything could start a child.
"""

from __future__ import annotations

import locale
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from forkdeck.config.sources import user_config_dir
from forkdeck.errors import UsageError
from forkdeck.model.ports import Clock
from forkdeck.providers.clock import SystemClock
from forkdeck.providers.credentials import Credentials
from forkdeck.sandbox.hardening import forbid_inspection
from forkdeck.sessionlog.paths import state_root

SPEED_VARIABLE = "FORKDECK_REHEARSAL_SPEED"
"""Environment variable that scales the scripted model's pace; for tests, not in any help."""


@dataclass(frozen=True)
class Host:
    """Where and as whom this process works."""

    credentials: Credentials
    state: Path
    config: Path
    clock: Clock = field(default_factory=SystemClock)


def take_host() -> Host:
    """Take the credentials out of the environment and harden this process."""
    credentials = Credentials.take(os.environ)
    forbid_inspection()
    return Host(credentials, state_root(), user_config_dir(os.environ))


def working_directory(chosen: str | None) -> Path:
    """Return the directory to work in, resolved.

    Raises:
        UsageError: It does not exist, is no directory, or cannot be entered.
    """
    try:
        directory = Path(chosen).expanduser() if chosen else Path.cwd()
        resolved = directory.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise UsageError(
            f"The directory {chosen or '.'} cannot be found.", "Give an existing one with --cwd."
        ) from error
    if not resolved.is_dir():
        raise UsageError(f"{resolved} is not a directory.", "Give a directory with --cwd.")
    if not os.access(resolved, os.R_OK | os.X_OK):
        raise UsageError(f"{resolved} may not be read.", "Change its permissions, or give another.")
    return resolved


def is_terminal() -> bool:
    """Tell whether a person sits at a terminal: input, output and errors all lead there."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)


def speaks_utf8() -> bool:
    """Tell whether the locale's encoding is UTF-8."""
    return locale.getpreferredencoding(False).lower().replace("-", "") == "utf8"


def rehearsal_speed() -> float:
    """Return how many times faster than written the scripted model answers; 1 when unset.

    Raises:
        UsageError: The variable holds no positive number.
    """
    text = os.environ.get(SPEED_VARIABLE, "1")
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < 1_000_000:
        raise UsageError(
            f"{SPEED_VARIABLE}={text} is no pace.", "Use a number above 0, such as 10."
        )
    return speed
