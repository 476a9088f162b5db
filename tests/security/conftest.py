from __future__ import annotations

import asyncio

import pytest

from forkdeck.sandbox.probe import probe


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("needs_sandbox")]
    if marked and (found := asyncio.run(probe())).level != "sandboxed":
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"NO WORKING BUBBLEWRAP HERE: {found.why}"))
