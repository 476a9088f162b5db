"""Decks over fakes, closed after each test, under the net that watches every request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.fakes import Net
from tests.engine.rig import Rig

MakeRig = Callable[..., Awaitable[Rig]]


@pytest.fixture
async def make_rig(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[MakeRig]:
    exempt = request.node.get_closest_marker("moves_cache_prefix") is not None
    made: list[Rig] = []

    async def make(**options: Any) -> Rig:
        directory = tmp_path / f"session-{len(made)}"
        rig = Rig(directory, Net(exempt), **options)
        made.append(rig)
        return await rig.open()

    yield make
    for rig in made:
        await rig.close()
        assert rig.provider.open == 0, "a stream was left open"
        assert not rig.gate.inside, "a place at the gate was left taken"
        assert rig.net.faults == []


@pytest.fixture
async def rig(make_rig: MakeRig) -> Rig:
    return await make_rig()
