"""The command line: composes everything else and is the only place that joins it.

Data comes from flags, the environment and the settings; it goes to the user interface, to the
engine, or to standard output. Each command's module is imported when it is called, so that
``forkdeck --help`` loads none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from forkdeck import __version__


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; see ``forkdeck --help``.

    The exit code says how it went: 0 good, 1 failed, 2 usage or settings, 130 interrupted. No
    error ends in a traceback.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words)
        if sys.stdout is not None:
            # Here a full or closed stream can still be told; at Python's own exit it cannot.
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        code = _broken_pipe()
    except OSError as error:
        code = _tell(error)
    except Exception as error:  # noqa: BLE001 - the last door: a person sees words, no traceback
        code = _tell(error)
    sys.exit(code)


def _run(words: list[str]) -> int:
    if words in (["--version"], ["-V"]):
        # The shortest way: scripts ask this often.
        print(f"forkdeck {__version__}")
        return 0
    if sys.platform == "win32":
        print("ForkDeck runs on Linux and macOS. On Windows, use it inside WSL.", file=sys.stderr)
        return 2
    from forkdeck.cli.commands import forkdeck  # noqa: PLC0415 - click loads only when needed

    try:
        forkdeck(words, prog_name="forkdeck")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    return 0


def _broken_pipe() -> int:
    """Whoever read the output has left: nothing can be said, and Python must not try again."""
    from forkdeck.cli.faces import silence  # noqa: PLC0415 - only when a stream broke

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            silence(stream)
    return 1


def _tell(error: Exception) -> int:
    from forkdeck.cli.crash import describe, refused  # noqa: PLC0415 - only when something failed
    from forkdeck.cli.faces import Writer, silence  # noqa: PLC0415

    lines = refused(error) if isinstance(error, OSError) else describe(error)
    Writer(sys.stderr)("\n".join(lines) + "\n")
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:
            silence(sys.stdout)
    return 1
