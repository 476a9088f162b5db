"""The cache claim on the wire: real client, real server with its own hashes, its prefix and
thinking checks in mode ``error``, and its journal."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from forkdeck.config.settings import ForkSettings, Settings
from forkdeck.engine.deck import LiveDeck
from forkdeck.engine.parts import EngineParts
from forkdeck.model.events.session import SessionOpened
from forkdeck.model.events.step import CacheJudged
from forkdeck.model.intents import AbortFork, Intent, ResumeFork, SendPrompt, StartFork
from forkdeck.model.ports import Enforcement
from forkdeck.model.prefix import first_difference, message_blocks, positions
from forkdeck.model.raw import JsonDict
from forkdeck.model.state import EMPTY
from forkdeck.providers.client import AnthropicProvider
from forkdeck.providers.clock import SystemClock
from forkdeck.providers.credentials import Credentials
from forkdeck.providers.gate import RateGate
from forkdeck.providers.prices import Prices
from forkdeck.providers.rehearsal.scenario import load
from forkdeck.providers.rehearsal.server import RehearsalServer
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.store.cache_view import cache_view
from forkdeck.store.hub import Hub
from forkdeck.store.reducer import fold
from tests.engine.fakes import SPECS, FakeSink, FakeWorkspace, FakeWorktrees, fake_tools

TASKS = ", ".join(f'{{id = "t{n}", task = "Look at part {n}."SEED}}' for n in range(8))
SCRIPT = """
name = "wire"
[pace]
ttft_ms = 40
rate = 4000
call_rate = 4000

[[answer]]
role = "parent"
match = "BIG"
[[answer.round]]
thinking = "I look first."
[[answer.round.call]]
tool = "read"
input = { path = "a.py" }
[[answer.round]]
text = "Seen."

[[answer]]
role = "parent"
match = "fan out before"
[[answer.round]]
thinking = "Eight parts."
text = "I fork."
[[answer.round.call]]
tool = "fork_join"
input = { tasks = [BEFORE], max_concurrency = 8 }
[[answer.round]]
text = "All reports read."

[[answer]]
role = "parent"
match = "fan out placeholder"
[[answer.round]]
thinking = "Eight parts again."
text = "I fork."
[[answer.round.call]]
tool = "fork_join"
input = { tasks = [HELD], max_concurrency = 8 }
[[answer.round]]
text = "All reports read."

[[answer]]
role = "parent"
[[answer.round]]
thinking = "Simple."
text = "Yes."

[[answer]]
role = "fork"
[[answer.round]]
thinking = "My part."
[[answer.round.call]]
tool = "read"
input = { path = "a.py" }
[[answer.round]]
text = "Scope: this part. Result: it holds, read line by line, nothing to change in it."
""".replace("BEFORE", TASKS.replace("SEED", "")).replace(
    "HELD", TASKS.replace("SEED", ', seed = "placeholder"').replace('id = "t', 'id = "h')
)


class Wire:
    """A deck on a rehearsal server."""

    def __init__(self, directory: Path, server: RehearsalServer) -> None:
        self.directory = directory
        self.server = server
        self.sink = FakeSink()
        self.worktrees = FakeWorktrees()
        self.log: list[tuple[str, str, str]] = []
        self.tools = fake_tools(self.log)
        self.deck: LiveDeck = None  # type: ignore[assignment]

    async def open(self, *, before: Wire | None = None) -> Wire:
        clock = SystemClock()
        credentials = Credentials.for_rehearsal(self.server.base_url, self.server.token)
        state = fold(before.sink.events) if before is not None else EMPTY
        hub = Hub(sink=self.sink, clock=clock, state=state)
        workspace = FakeWorkspace()
        parts = EngineParts(
            hub=hub,
            clock=clock,
            provider=AnthropicProvider(credentials, simulated="scripted"),
            gate=RateGate(clock, width=9),
            prices=Prices({}),
            settings=Settings(forks=ForkSettings(plan="never")),
            paths=SessionPaths(self.directory),
            tools=self.tools,
            specs=SPECS,
            parent_workspace=workspace,
            fork_workspace=lambda handle: FakeWorkspace(),
            enforcement=Enforcement(level="sandboxed"),
            opened=SessionOpened(
                format_version=1, app_version="0", session="20261130-200000-abcdef",
                started_at="2026-11-30T20:00:00Z", cwd="/w", project="w",
                model="claude-opus-5-5",
            ),
            worktrees=self.worktrees,
            rng=random.Random(7),
        )  # fmt: skip
        self.deck = await LiveDeck.open(parts, resume=before is not None)
        return self

    async def do(self, *intents: Intent) -> None:
        for intent in intents:
            result = await self.deck.submit(intent)
            assert result.ok, result.text
            await asyncio.wait_for(self.deck.idle(), 30)

    def of(self, handle: str) -> list[Any]:
        return [e for e in self.server.journal.entries if str(e.handle or "p") == handle]

    def read_share(self, entry: Any) -> float:
        usage = entry.usage
        read, wrote = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
        return read / (read + wrote + usage["input_tokens"])

    def check(self) -> None:
        """Nothing was refused, every run only appended, every fork began as its parent."""
        parents = [positions(e.body) for e in self.of("p")]
        handles = {str(e.handle or "p") for e in self.server.journal.entries}
        for entry in self.server.journal.entries:
            assert entry.status == 200, entry.error
            assert marks(entry.body) <= 4
        for handle in handles:
            found = [positions(e.body) for e in self.of(handle)]
            for one, two in pairwise(found):
                assert first_difference(one, two) is None, handle
            if handle != "p":
                assert any(first_difference(each, found[0]) is None for each in parents), handle


def marks(body: JsonDict) -> int:
    blocks = [*body["tools"], *body["system"]]
    blocks += [block for message in body["messages"] for block in message_blocks(message)]
    return sum("cache_control" in block for block in blocks)


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncIterator[Wire]:
    server = RehearsalServer(load(SCRIPT), prefix_check="error")
    await server.start()
    made = await Wire(tmp_path / "one", server).open()
    yield made
    await made.deck.close()
    await server.stop()


BIG = "BIG " + "facts about the code base that everyone needs to know " * 900


async def test_eight_children_of_a_warm_parent_read_its_prefix(wire: Wire) -> None:
    """T30, T31, T33, T35, T38: byte-identical inheritance, at least 95 % read, by all eight."""
    await wire.do(SendPrompt(text=BIG), SendPrompt(text="fan out before"))
    wire.check()
    source = wire.of("p")[2]
    for number in range(1, 9):
        first, second = wire.of(f"f{number}")
        assert first.body["tools"] == source.body["tools"]
        assert first.body["system"] == source.body["system"]
        assert wire.read_share(first) >= 0.95
        assert wire.read_share(second) >= 0.95
        assert marks(first.body) == 4
        shared = source.usage["cache_read_input_tokens"]
        shared += source.usage["cache_creation_input_tokens"] + source.usage["input_tokens"]
        assert first.usage["cache_read_input_tokens"] >= 0.98 * shared
        cache = wire.deck.state.runs[f"f{number}"].cache
        assert cache is not None
        assert cache.verdict == "HIT"
    view = cache_view(wire.deck.state)
    assert view.told
    assert view.saved_usd is not None
    assert view.saved_usd > 0
    assert [row.verdict for row in view.rows][1:] == ["HIT"] * 8
    assert {row.head for row in view.rows} == {view.rows[0].head}


async def test_placeholder_children_write_the_shared_tail_once(wire: Wire) -> None:
    """T2, T38: the leader writes the tail, seven read it: the rest is their own directive."""
    await wire.do(SendPrompt(text=BIG), SendPrompt(text="fan out placeholder"))
    wire.check()
    firsts = [wire.of(f"f{number}")[0] for number in range(1, 9)]
    written = sorted(e.usage["cache_creation_input_tokens"] for e in firsts)
    assert written[-1] > written[-2]
    assert written[-2] - written[0] <= 20
    read = sorted(e.usage["cache_read_input_tokens"] for e in firsts)
    assert read[0] < read[1] == read[-1]
    assert all(wire.read_share(entry) >= 0.95 for entry in firsts)


async def test_nothing_is_lost_by_what_a_person_does(wire: Wire, tmp_path: Path) -> None:
    """T30, T32, T40: write forks, steering, going on, abort, and a later process: always read."""
    await wire.do(SendPrompt(text=BIG), StartFork(task="look", write=True), StartFork(task="and"))
    await wire.do(ResumeFork(handle="f1", text="go deeper"), ResumeFork(handle="f2"))
    await wire.do(SendPrompt(text="and now?"))
    result = await wire.deck.submit(StartFork(task="will be stopped"))
    assert result.ok
    await wire.deck.submit(AbortFork(handle="f3"))
    await asyncio.wait_for(wire.deck.idle(), 30)
    await wire.deck.close()
    heads = tmp_path / "two" / "heads"
    heads.mkdir(parents=True)
    for path in (wire.directory / "heads").iterdir():
        (heads / path.name).write_text(path.read_text())
    later = await Wire(tmp_path / "two", wire.server).open(before=wire)
    await later.do(ResumeFork(handle="f2", text="once more"), SendPrompt(text="still there?"))
    later.check()
    for entry in later.server.journal.entries[2:]:
        assert later.read_share(entry) >= 0.95, (entry.handle, entry.usage)
    assert later.deck.state.runs["f2"].cache is not None
    verdicts = {e.verdict for e in later.sink.of(CacheJudged)}
    assert verdicts == {"HIT"}
    await later.deck.close()


async def test_every_seed_is_taken_by_the_endpoint(wire: Wire) -> None:
    """T1, T12, T13: all seeds of a history with thinking and calls pass its checks."""
    await wire.do(SendPrompt(text=BIG), SendPrompt(text="and?"))
    for seed in ("before_call", "placeholder", "completed_turns", "turns:1", "turns:9", "none"):
        await wire.do(StartFork(task="look", seed=seed))
    statuses = [(e.handle, e.status, e.error) for e in wire.server.journal.entries]
    assert {status for _, status, _ in statuses} == {200}, statuses
    verdicts = {
        fork.seed: cache.verdict
        for fork in wire.deck.state.forks.values()
        if (cache := wire.deck.state.runs[fork.handle].cache) is not None
    }
    assert verdicts == {
        "before_call": "HIT", "placeholder": "HIT", "completed_turns": "HIT", "turns:1": "COLD",
        "turns:9": "COLD", "none": "COLD",
    }  # fmt: skip
    told = wire.deck.state.runs["f4"].cache
    assert told is not None
    assert "messages[0] block 0 differs" in told.difference
