"""The scenario to supervise: its words against real tools, and its states in the real engine."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from pathlib import Path
from typing import Any

import anthropic
import pytest

from forkdeck.config.rules import Rule, judge
from forkdeck.model.intents import SendPrompt
from forkdeck.providers.rehearsal.scenario import builtin, load
from forkdeck.providers.rehearsal.server import RehearsalServer
from forkdeck.store.selectors import badge
from tests.engine import test_rehearsal as engine
from tests.rehearsal.agent import Agent, PlainWorkspace
from tests.rehearsal.helpers import serving, text

FOLDER = files("forkdeck.providers.rehearsal") / "scenarios"
NAMES = (
    "api-audit", "credit-notes", "reader-errors", "docs-sweep", "perf-bench", "type-check",
    "flaky-hunt", "history",
)  # fmt: skip


class Forgiving(Agent):
    """An agent whose fork may fail."""

    async def step(self) -> Any:
        try:
            return await super().step()
        except anthropic.BadRequestError as refused:
            block = type("Text", (), {"type": "text", "text": f"failed: {refused.message}"})
            block.to_dict = lambda: text("failed")  # type: ignore[attr-defined]
            return type("Answer", (), {"content": [block], "usage": None})


async def test_every_report_comes_from_what_the_tools_said(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.rehearsal.agent.Agent", Forgiving)
    # Fifty runs with pauses are there to take long; one says the same.
    script = (FOLDER / "supervise.toml").read_text(encoding="utf-8")
    assert script.count("-r 50") == script.count("time.sleep(2)") == 1
    scenario = load(script.replace("-r 50", "-r 1").replace("time.sleep(2)", "time.sleep(0)"))
    async with serving(scenario) as (server, client):
        parent = Forgiving(client, PlainWorkspace(sample))
        said = await asyncio.wait_for(parent.run(text(scenario.prompt)), 40)
    assert "All eight are back." in said
    assert tuple(parent.children) == NAMES
    for name, child in parent.children.items():
        if name == "type-check":
            continue
        last = child.messages[-1]["content"][-1]["text"]
        assert last.startswith("Scope: "), name
        assert "(not found)" not in last, last
    assert parent.children["perf-bench"].waits == ["110"]
    refused = [entry for entry in server.journal.entries if entry.status == 400]
    assert [entry.error for entry in refused] == ["Output blocked by content filtering policy"]
    # Only the runs of the tests fail, and they fail because the sample has its known fault.
    failed = {
        (name, call[1].get("command"))
        for name, child in parent.children.items()
        for call in child.calls
        if call[3]
    }
    assert failed <= {
        ("flaky-hunt", "python3 -m unittest"),
        ("credit-notes", "python3 -m unittest"),
        ("docs-sweep", "python3 -m tally --check examples/april.txt"),
    }
    written = parent.children["credit-notes"].calls
    tests = next(said for _, given, said, _ in written if given.get("command", "").endswith("t"))
    assert "Ran 18 tests" in tests
    assert "failures=1" in tests
    assert "1 file changed" in written[-1][2]


def test_rules_cover_what_is_written_and_ask_once() -> None:
    scenario = builtin("supervise")
    rules = [Rule.parse(rule, "allow") for rule in scenario.allow]
    rules += [Rule.parse(rule, "ask") for rule in scenario.ask]
    kinds: list[str | None] = []
    for answer in scenario.answers:
        for call in (call for entry in answer.rounds for call in entry.calls):
            if call.tool in ("bash", "edit"):
                kinds.append(judge(rules, call.tool, call.input).kind)
    assert set(kinds) == {"allow", "ask"}
    assert kinds.count("ask") == 1


class Nobody:
    """A person who never answers."""

    def __init__(self, _scenario: Any) -> None:
        self.asked = asyncio.Event()

    async def answer(self, _asked: Any) -> Any:
        self.asked.set()
        await asyncio.Event().wait()


@pytest.mark.needs_sandbox
async def test_all_states_stand_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment that pictures are made of; a fast model, everything else real."""
    monkeypatch.setattr(engine, "ScenarioPerson", Nobody)
    scenario = builtin("supervise")
    server = RehearsalServer(scenario, speed=4)
    await server.start()
    real = await engine.Real(tmp_path, scenario, server).open()
    wanted = {
        "api-audit": {"RUN"},
        "credit-notes": {"ASK"},
        "reader-errors": {"NEW"},
        "docs-sweep": {"RUN"},
        "perf-bench": {"WAIT"},
        "type-check": {"FAIL"},
        "flaky-hunt": {"RUN", "SLOW"},
        "history": {"PART"},
    }

    def shown() -> dict[str, str]:
        state = real.deck.state
        return {fork.name: badge(state, handle) for handle, fork in state.forks.items()}

    changed = asyncio.Event()
    real.deck.subscribe(lambda urgent: changed.set())
    try:
        assert (await real.deck.submit(SendPrompt(text=scenario.prompt))).ok
        async with asyncio.timeout(40):
            while not all(shown().get(name) in badges for name, badges in wanted.items()):
                changed.clear()
                await changed.wait()
    except TimeoutError:
        pytest.fail(f"it never came to this: {shown()}")
    finally:
        await real.deck.close()
        await server.stop()
