"""Entry point of ``python -m forkdeck`` and of the ``forkdeck`` command."""

from __future__ import annotations

from forkdeck.cli import main

if __name__ == "__main__":
    main()
