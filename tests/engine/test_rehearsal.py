"""The whole engine over HTTP: real server, SDK, gate, prices, tools, sandbox and worktrees."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from forkdeck.config.rules import Rule
from forkdeck.config.settings import ForkSettings, Settings
from forkdeck.engine.deck import LiveDeck
from forkdeck.engine.parts import EngineParts
from forkdeck.model.events.session import SessionOpened
from forkdeck.model.events.step import RequestDelayed, RequestSent
from forkdeck.model.events.tool import ApprovalAnswered, ApprovalAsked
from forkdeck.model.intents import ApplyWork, SendPrompt, UndoLast
from forkdeck.model.prefix import first_difference, positions
from forkdeck.providers.client import AnthropicProvider
from forkdeck.providers.clock import SystemClock
from forkdeck.providers.credentials import Credentials
from forkdeck.providers.gate import RateGate
from forkdeck.providers.prices import Prices
from forkdeck.providers.rehearsal.scenario import Scenario, builtin
from forkdeck.providers.rehearsal.server import RehearsalServer
from forkdeck.sandbox.probe import probe
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.workspace import Project, parent_workspace, read_only_workspace
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.store.hub import Hub
from forkdeck.tools.registry import BUILTIN, all_specs
from forkdeck.worktrees.manager import GitWorktrees
from tests.engine.fakes import FakeSink

SESSION = "20261130-200000-abcdef"


def git(cwd: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


def unit_tests(cwd: Path) -> int:
    command = ["python3", "-m", "unittest"]
    return subprocess.run(command, cwd=cwd, check=False, capture_output=True).returncode


class ScenarioPerson:
    """Answers as the scenario says."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario

    async def answer(self, asked: ApprovalAsked) -> Any:
        for each in self.scenario.person:
            if each.match.search(asked.argument):
                return each.answer, ""
        return None


class Real:
    """A deck of real parts in a copy of the sample project."""

    def __init__(self, tmp_path: Path, scenario: Scenario, server: RehearsalServer) -> None:
        self.project = tmp_path / "sample"
        shutil.copytree(Path(str(files("forkdeck") / "sample")), self.project)
        git(self.project, "init", "-q", "-b", "main")
        git(self.project, "add", "-A")
        git(self.project, "commit", "-q", "-m", "The sample")
        self.scenario = scenario
        self.server = server
        self.sink = FakeSink()
        self.state_directory = tmp_path / "state"
        self.deck: LiveDeck = None  # type: ignore[assignment]

    async def open(self) -> Real:
        clock = SystemClock()
        enforcement = await probe()
        runner = Runner(enforcement, scratch=self.state_directory / "scratch")
        paths = SessionPaths(self.state_directory / "sessions" / "x" / SESSION)
        project = Project(root=self.project, cwd=self.project, spill_directory=paths.spill)
        paths.spill.mkdir(parents=True)
        credentials = Credentials.for_rehearsal(self.server.base_url, self.server.token)
        parent = parent_workspace(runner, project, run="p")
        self.hub = Hub(sink=self.sink, clock=clock)
        parts = EngineParts(
            hub=self.hub,
            clock=clock,
            provider=AnthropicProvider(credentials, simulated="scripted"),
            gate=RateGate(clock),
            prices=Prices({}),
            settings=Settings(forks=ForkSettings(plan="never")),
            paths=paths,
            tools={tool.spec.name: tool for tool in BUILTIN},
            specs=all_specs(),
            parent_workspace=parent,
            fork_workspace=lambda handle: read_only_workspace(runner, project, run=handle),
            enforcement=enforcement,
            opened=SessionOpened(
                format_version=1, app_version="0", session=SESSION, started_at="", project="x",
                cwd=str(self.project), model=self.scenario.model,
            ),
            worktrees=GitWorktrees(
                cwd=self.project, session=SESSION, paths=paths, runner=runner, clock=clock,
                trusted=True, state=self.state_directory,
            ),
            rules=[
                *(Rule.parse(text, "allow") for text in self.scenario.allow),
                *(Rule.parse(text, "ask") for text in self.scenario.ask),
            ],
            attached=False,
            person=ScenarioPerson(self.scenario),
            places=self.state_directory / "places",
            share=parent.share,
        )  # fmt: skip
        self.deck = await LiveDeck.open(parts)
        return self

    def assert_shared_prefixes(self) -> None:
        """The net, over what really arrived: own requests extend, forks begin as the parent."""
        by_handle: dict[str, list[Any]] = {}
        for entry in self.server.journal.entries:
            by_handle.setdefault(str(entry.handle or "p"), []).append(entry.body)
        parents = [positions(body) for body in by_handle.get("p", [])]
        assert len(by_handle) > 1
        for handle, bodies in by_handle.items():
            found = [positions(body) for body in bodies]
            for before, after in pairwise(found):
                assert first_difference(before, after) is None, handle
            if handle != "p":
                assert any(first_difference(each, found[0]) is None for each in parents), handle


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Real]:
    scenario = builtin("demo")
    server = RehearsalServer(scenario, speed=0)
    await server.start()
    real = await Real(tmp_path, scenario, server).open()
    yield real
    await real.deck.close()
    await server.stop()


@pytest.mark.needs_sandbox
async def test_the_demo_runs_and_its_fix_is_applied_and_undone(demo: Real) -> None:
    """Four forks, one question, one 429; the write fork's work goes in and out exactly."""
    before = git(demo.project, "status", "--porcelain")
    assert (await demo.deck.submit(SendPrompt(text=demo.scenario.prompt))).ok
    await asyncio.wait_for(demo.deck.idle(), 50)
    state = demo.deck.state
    outcomes = {fork.name: (fork.outcome, fork.reason) for fork in state.forks.values()}
    assert {name: outcome for name, (outcome, _) in outcomes.items()} == {
        "confirm": "done", "reach": "done", "coverage": "done", "fix": "done",
    }, outcomes  # fmt: skip
    demo.assert_shared_prefixes()
    for handle in state.forks:
        cache = state.runs[handle].cache
        assert cache is not None
        assert cache.verdict == "HIT", handle
        assert state.runs[handle].counters.tool_errors <= 1
    assert len(demo.sink.of(RequestDelayed)) >= 1
    assert [e.by for e in demo.sink.of(ApprovalAnswered)] == ["scripted person"]
    assert state.parent.turn.outcome == "completed"
    assert "The cause is clear" in state.parent.transcript[-1].text
    assert git(demo.project, "status", "--porcelain") == before
    fix = next(f for f in state.forks.values() if f.name == "fix")
    assert fix.work is not None
    original = (demo.project / "tally/money.py").read_bytes()
    applied = await demo.deck.submit(ApplyWork(handle=fix.handle))
    assert applied.ok, applied.text
    assert (demo.project / "tally/money.py").read_bytes() != original
    assert unit_tests(demo.project) == 0
    assert (await demo.deck.submit(UndoLast())).ok
    assert (demo.project / "tally/money.py").read_bytes() == original
    assert state.session.level is not None


@pytest.mark.needs_sandbox
async def test_call_to_first_child_requests(demo: Real) -> None:
    """Measured generously here: within a second on a shared machine; the bench is exact."""
    await demo.deck.submit(SendPrompt(text=demo.scenario.prompt))
    await asyncio.wait_for(demo.deck.idle(), 50)
    admitted = next(e for e in demo.sink.events if type(e).__name__ == "BatchAdmitted").at_ms
    first = {e.run: e.at_ms - admitted for e in reversed(demo.sink.of(RequestSent)) if e.run != "p"}
    looking = [ms for run, ms in first.items() if not demo.deck.state.forks[run].write]
    assert max(looking) - min(looking) < 1_000
