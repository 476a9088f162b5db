"""A project's own files: too large, too many, and never trusted by accident."""

from __future__ import annotations

import time
from pathlib import Path

from forkdeck.config.project_files import TOO_LARGE
from forkdeck.config.trust import TrustStore
from forkdeck.engine import approvals
from forkdeck.tools.registry import BUILTIN


def test_a_file_of_a_terabyte_is_listed_and_never_read(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / ".forkdeck/agents").mkdir(parents=True)
    for name in (".forkdeck/agents/huge.md", ".worktreeinclude"):
        with (root / name).open("wb") as file:
            file.truncate(1 << 40)
    store = TrustStore(tmp_path / "state")
    began = time.monotonic()
    found = {file.path: file for file in store.grant(root)}
    assert time.monotonic() - began < 1
    assert found[".worktreeinclude"].sha256 == TOO_LARGE
    # Its bytes were never seen, so a yes to the project is no yes to them.
    assert store.read(root, ".forkdeck/agents/huge.md", 1 << 16) is None


def test_a_request_shows_what_would_be_written() -> None:
    """A path alone would let a model have anything written into it."""
    tools = {tool.spec.name: tool for tool in BUILTIN}
    shown = approvals.whole_argument(
        tools["write"], {"path": "a.py", "content": "import os\nbad()\n"}
    )
    assert shown == "a.py\n+ import os\n+ bad()"
    shown = approvals.whole_argument(
        tools["edit"], {"path": "a.py", "old": "x", "new": "y", "replace_all": True}
    )
    assert shown == "a.py\neverywhere in the file:\n- x\n+ y"
    assert approvals.whole_argument(tools["bash"], {"command": "ls", "content": "z"}) == "ls"
