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
    """Run the command line and exit; see ``forkdeck --help``."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["--version"], ["-V"]):
        # The shortest way: scripts ask this often.
        print(f"forkdeck {__version__}")
        return
    if sys.platform == "win32":
        print("ForkDeck runs on Linux and macOS. On Windows, use it inside WSL.", file=sys.stderr)
        sys.exit(2)
    from forkdeck.cli.commands import forkdeck  # noqa: PLC0415 - click loads only when needed

    forkdeck(words, prog_name="forkdeck")
