"""The engine's decks for the traps; see `tests.engine.conftest`."""

from __future__ import annotations

from tests.engine.conftest import make_rig, rig

__all__ = ["make_rig", "rig"]
