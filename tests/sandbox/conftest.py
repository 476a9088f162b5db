from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from forkdeck.model.ports import Enforcement
from forkdeck.sandbox.probe import probe
from forkdeck.sandbox.runner import Runner
from tests.sandbox.lab import Lab


@pytest.fixture(scope="session")
def enforcement() -> Enforcement:
    return asyncio.run(probe())


@pytest.fixture
def lab() -> Iterator[Lab]:
    # Not below /tmp: the private /tmp of a view would hide the victim anyway.
    places = (os.environ.get("LAB_PLACE", ""), "/var/lib", str(Path(__file__).parent))
    place = next(place for place in places if place and os.access(place, os.W_OK))
    base = Path(tempfile.mkdtemp(prefix="forkdeck-lab-", dir=place))
    try:
        yield Lab(base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def runner(enforcement: Enforcement, lab: Lab) -> Runner:
    return Runner(enforcement, scratch=lab.state / "scratch")


@pytest.fixture
def bare(lab: Lab) -> Runner:
    """A runner on a host without a sandbox."""
    return Runner(Enforcement(level="tool-policy only"), scratch=lab.state / "scratch")
