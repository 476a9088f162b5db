"""What holds for every test: no key, no home, no colours, no clock of this machine."""

from __future__ import annotations

import asyncio
import os

import pytest

from forkdeck.sandbox.probe import probe

# Before Textual is imported: these change what is drawn.
for _name in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_DIM_FACTOR", "FORCE_COLOR"):
    os.environ.pop(_name, None)
os.environ["TEXTUAL_ANIMATIONS"] = "none"
for _name in [name for name in os.environ if name.startswith(("ANTHROPIC_", "FORKDECK_"))]:
    if _name != "FORKDECK_SOAK":
        os.environ.pop(_name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a sandbox, loudly, where none works."""
    marked = [item for item in items if item.get_closest_marker("needs_sandbox")]
    if marked and (found := asyncio.run(probe())).level != "sandboxed":
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"NO WORKING BUBBLEWRAP HERE: {found.why}"))


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an empty home, state and configuration of its own."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("FORKDECK_STATE_DIR", str(home / "state"))
    monkeypatch.setenv("FORKDECK_CONFIG_DIR", str(home / "config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
