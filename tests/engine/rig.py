"""A deck over fakes: one line to open it, helpers to wait and to look."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forkdeck.config.rules import Rule
from forkdeck.config.settings import ForkSettings, Settings
from forkdeck.engine.deck import LiveDeck
from forkdeck.engine.parts import EngineParts
from forkdeck.model.events.session import SessionOpened
from forkdeck.model.intents import Intent, IntentResult, SendPrompt
from forkdeck.model.ports import Enforcement
from forkdeck.model.prefix import first_difference, message_blocks, positions
from forkdeck.model.raw import JsonDict
from forkdeck.model.state import EMPTY, CacheFacts, DeckState, ForkState
from forkdeck.model.words import RuleKind
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.store.hub import Hub
from tests.engine.fakes import (
    SPECS,
    Asked,
    FakeGate,
    FakePrices,
    FakeSink,
    FakeWorkspace,
    FakeWorktrees,
    Net,
    Reply,
    ScriptedProvider,
    VirtualClock,
    fake_tools,
)

NO_PLAN = Settings(forks=ForkSettings(plan="never"))
"""Large launches start without a question."""


class Rig:
    """Everything a test needs of one deck."""

    def __init__(self, directory: Path, net: Net, **options: Any) -> None:
        self.directory = directory
        self.clock = VirtualClock()
        self.net = net
        self.provider = ScriptedProvider(
            self.clock, net, cache_fields=options.pop("cache_fields", True)
        )
        self.sink = FakeSink()
        made = options.pop("gate", None)
        self.gate: Any = FakeGate() if made is None else made(self.clock)
        self.tool_log: list[tuple[str, str, str]] = []
        self.tools = fake_tools(self.tool_log)
        self.worktrees: Any = options.pop("worktrees", FakeWorktrees())
        self.workspace = FakeWorkspace(options.pop("level", "sandboxed"))
        self.fork_spaces: dict[str, FakeWorkspace] = {}
        self.settings: Settings = options.pop("settings", NO_PLAN)
        self.rules = [Rule.parse(text, kind) for kind, text in options.pop("rules", ())]
        self.mode = options.pop("mode", "default")
        self.prices = options.pop("prices", FakePrices())
        self.options = options
        self.deck: LiveDeck = None  # type: ignore[assignment]
        self.hub: Hub = None  # type: ignore[assignment]

    async def open(self, state: DeckState = EMPTY, *, resume: bool = False) -> Rig:
        self.hub = Hub(sink=self.sink, clock=self.clock, state=state)
        parts = EngineParts(
            hub=self.hub,
            clock=self.clock,
            provider=self.provider,
            gate=self.gate,
            prices=self.prices,
            settings=self.settings,
            paths=SessionPaths(self.directory),
            tools=self.tools,
            specs=SPECS,
            parent_workspace=self.workspace,
            fork_workspace=lambda handle: self.fork_spaces.setdefault(
                handle, FakeWorkspace(self.workspace.level)
            ),
            enforcement=Enforcement(level=self.workspace.level),
            opened=SessionOpened(
                format_version=1,
                app_version="0",
                session="20261130-200000-abcdef",
                started_at="2026-11-30T20:00:00Z",
                cwd="/w",
                project="w",
                model="claude-opus-5-5",
                mode=self.mode,
                branch="main",
                budget_usd=self.options.pop("budget_usd", None),
            ),
            worktrees=self.worktrees,
            rules=self.rules,
            rng=random.Random(7),
            **self.options,
        )
        self.deck = await LiveDeck.open(parts, resume=resume)
        return self

    @property
    def state(self) -> DeckState:
        return self.hub.state

    def fork(self, handle: str) -> ForkState:
        return self.state.forks[handle]

    def cache(self, run: str) -> CacheFacts:
        """Return a run's cache verdict, which must be there."""
        found = self.state.runs[run].cache
        assert found is not None
        return found

    def rule(self, kind: RuleKind, text: str) -> None:
        """Add a rule to those of the settings."""
        self.rules.append(Rule.parse(text, kind))

    async def do(self, intent: Intent) -> IntentResult:
        return await self.deck.submit(intent)

    async def say(self, text: str = "go") -> None:
        result = await self.do(SendPrompt(text=text))
        assert result.ok, result.text
        await self.idle()

    async def idle(self) -> None:
        await asyncio.wait_for(self.deck.idle(), 20)

    async def until(self, condition: Callable[[], Any], what: str = "") -> None:
        """Look at every turn of the loop, then whenever it rests: nothing passes unseen."""
        for turn in range(4000):
            if condition():
                return
            if turn < 2000:
                await asyncio.sleep(0)
            elif turn % 2:
                await self.clock.jump()
            else:
                await self.clock.sleep(0)
        raise AssertionError(f"it never happened: {what or condition}")

    def bodies(self, run: str) -> list[JsonDict]:
        return self.net.by_run.get(run, [])

    def results(self, run: str = "p") -> list[JsonDict]:
        """Return the tool results of a run's last request."""
        return [
            block
            for message in self.bodies(run)[-1]["messages"]
            for block in message_blocks(message)
            if block["type"] == "tool_result"
        ]

    def sent_text(self, run: str = "p") -> str:
        """Return all user text of a run's last request."""
        return "\n".join(
            str(block.get("text", block.get("content", "")))
            for message in self.bodies(run)[-1]["messages"]
            if message["role"] == "user"
            for block in message_blocks(message)
        )

    def assert_shares(self, handle: str, parent: JsonDict) -> None:
        """A fork's first request must begin with all positions of this parent request."""
        found = positions(self.bodies(handle)[0])
        assert first_difference(positions(parent), found) is None

    async def close(self) -> None:
        await self.deck.close()


def tasks(*names: str, **more: Any) -> JsonDict:
    """Return the arguments of a fork_join call."""
    return {"tasks": [{"id": n, "task": f"Look at {n}."} for n in names], **more}


def join(*names: str, **more: Any) -> Reply:
    """Return an answer that calls fork_join."""
    return Reply("I fork.", [("fork_join", tasks(*names, **more))])


def parent_then(first: Reply, child: Callable[[Asked], Reply], last: str = "All done.") -> Any:
    """Script: the parent answers `first` once, then `last`; forks answer by `child`."""

    def script(asked: Asked) -> Reply:
        if asked.run != "p":
            return child(asked)
        return first if asked.number == 1 else Reply(last)

    return script


REPORT = "Scope: all of it. Result: found nothing wrong in the module, line by line."
