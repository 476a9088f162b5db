from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from forkdeck.model.ports import Enforcement
from forkdeck.model.raw import JsonDict
from forkdeck.model.tooling import ReadMarks, ToolContext, ToolResult
from forkdeck.model.words import Access
from forkdeck.sandbox.probe import probe
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.workspace import Project, parent_workspace
from forkdeck.tools.registry import by_name


@pytest.fixture(scope="session")
def found() -> Enforcement:
    return asyncio.run(probe())


class Bench:
    """A project with the parent's workspace, to call tools in."""

    def __init__(self, base: Path, enforcement: Enforcement) -> None:
        self.root = base / "project"
        self.spill = base / "spill"
        self.root.mkdir()
        self.spill.mkdir()
        self.runner = Runner(enforcement, scratch=base / "scratch")
        project = Project(root=self.root, cwd=self.root, spill_directory=self.spill)
        self.workspace = parent_workspace(self.runner, project, run="p", unguarded=lambda: False)
        self.marks = ReadMarks()
        self.seen: list[tuple[str, int]] = []
        self._number = 0

    async def call(self, name: str, arguments: JsonDict, access: Access = "look") -> ToolResult:
        tool = by_name(name)
        assert tool is not None
        self._number += 1
        context = ToolContext(
            workspace=self.workspace,
            marks=self.marks,
            access=access,
            progress=lambda tail, size: self.seen.append((tail, size)),
            spill_name=f"call-{self._number}.txt",
        )
        return await tool.run(arguments, context)


@pytest.fixture
def make(tmp_path: Path, found: Enforcement) -> Callable[[bool], Bench]:
    def build(sandboxed: bool) -> Bench:
        if sandboxed and found.level != "sandboxed":
            pytest.skip(f"NO WORKING BUBBLEWRAP HERE: {found.why}")
        level = found if sandboxed else Enforcement(level="tool-policy only")
        return Bench(tmp_path, level)

    return build


@pytest.fixture(params=[True, False], ids=["sandboxed", "bare"])
def bench(request: pytest.FixtureRequest, make: Callable[[bool], Bench]) -> Bench:
    return make(request.param)


@pytest.fixture
def boxed(make: Callable[[bool], Bench]) -> Bench:
    return make(True)
