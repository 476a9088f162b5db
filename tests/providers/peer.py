"""The second opinion: llmock in a process of its own, and the real engine pointed at it."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from forkdeck.config.settings import ForkSettings, Settings
from forkdeck.engine.deck import LiveDeck
from forkdeck.engine.parts import EngineParts
from forkdeck.model.events.session import SessionOpened
from forkdeck.model.intents import SendPrompt
from forkdeck.model.ports import Enforcement
from forkdeck.providers.client import AnthropicProvider
from forkdeck.providers.clock import SystemClock
from forkdeck.providers.credentials import Credentials
from forkdeck.providers.gate import RateGate
from forkdeck.sessionlog.paths import SessionPaths
from forkdeck.store.hub import Hub
from tests.engine.fakes import (
    SPECS,
    FakePrices,
    FakeSink,
    FakeWorkspace,
    fake_tools,
)

_SERVE = """
import sys
from llmock.simulation import MockResponseSettings
from llmock.testing import LLMockServer
with LLMockServer(responses=MockResponseSettings(tool_mode="off")) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


class _Growing(random.Random):
    """Jitter near its lower end: waits grow each time, which full jitter does on average only."""

    def uniform(self, a: float, b: float) -> float:
        return a + (b - a) * 0.2


class Peer:
    """A running llmock, driven over its own control address."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def _call(self, method: str, path: str, **more: Any) -> Any:
        async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
            answer = await client.request(method, f"{self.url}/_llmock/{path}", **more)
        answer.raise_for_status()
        return answer.json()

    async def queue(self, model: str, *behaviors: dict[str, Any]) -> None:
        """Queue faults for the requests of one model."""
        made = []
        for each in behaviors:
            match = {"model": model, **({"tools": True} if each["type"] == "tool_fault" else {})}
            made.append({**each, "match": match})
        await self._call("POST", "scenario", json={"behaviors": made})

    async def waiting(self) -> list[Any]:
        """Return the faults that no request has met yet."""
        return (await self._call("GET", "scenario"))["pending"]

    async def requests(self, model: str) -> list[dict[str, Any]]:
        """Return what was asked of one model, oldest first."""
        found = (await self._call("GET", "requests"))["requests"]
        return [each for each in found if each["model"] == model]

    async def verdict(self) -> dict[str, Any]:
        """Return what the peer thinks of its clients.

        When a whole stream with a broken event fits into the socket before the client closes it,
        the peer counts that attempt as a success and does not see that the request came again.
        Its own journal shows it, so that one finding is none.
        """
        found = await self._call("GET", "verdict")
        requests = (await self._call("GET", "requests"))["requests"]
        by_number = {each["seq"]: each for each in requests}

        def sent_again(finding: dict[str, Any]) -> bool:
            if finding["code"] != "malformed_chunk_ignored":
                return False
            broken = by_number[finding["requests"][-1]]
            return any(
                each["fingerprint"] == broken["fingerprint"]
                and each["started_at"] > broken["started_at"]
                and each["status"] == 200
                and each["fault"] is None
                for each in requests
            )

        left = [each for each in found["findings"] if not sent_again(each)]
        errors = [each for each in left if each["severity"] == "error"]
        return {"findings": left, "errors": errors}

    async def reset(self) -> None:
        """Forget requests and faults."""
        await self._call("POST", "reset")


@contextmanager
def serving() -> Generator[Peer]:
    """Run llmock until the block ends; it dies with this process as well."""
    kept = {name: text for name, text in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**kept, "LLMOCK_STREAM_CHUNK_DELAY_MS": "2"},
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), "llmock did not start"
        yield Peer(url)
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


class Session:
    """The real engine with real provider, gate and clock; tools and files are fakes."""

    def __init__(self, directory: Path, peer: Peer, model: str, read_timeout_s: float) -> None:
        self.clock = SystemClock()
        self.model = model
        self.sink = FakeSink()
        self.tool_log: list[tuple[str, str, str]] = []
        credentials = Credentials(
            {"ANTHROPIC_API_KEY": "sk-test", "ANTHROPIC_BASE_URL": f"{peer.url}/anthropic"}
        )
        self.provider = AnthropicProvider(credentials, read_timeout_s=read_timeout_s)
        self._paths = SessionPaths(directory)
        self.hub = Hub(sink=self.sink, clock=self.clock)
        self.deck: LiveDeck | None = None

    async def run(self, prompt: str) -> None:
        """Send a prompt and wait until nothing is left to do."""
        workspace = FakeWorkspace()
        self.deck = await LiveDeck.open(
            EngineParts(
                hub=self.hub,
                clock=self.clock,
                provider=self.provider,
                gate=RateGate(self.clock, rng=_Growing()),
                prices=FakePrices(),
                settings=Settings(model=self.model, forks=ForkSettings(plan="never")),
                paths=self._paths,
                tools=fake_tools(self.tool_log),
                specs=SPECS,
                parent_workspace=workspace,
                fork_workspace=lambda handle: FakeWorkspace(),
                enforcement=Enforcement(level=workspace.level),
                opened=SessionOpened(
                    format_version=1,
                    app_version="0",
                    session="20261130-200000-abcdef",
                    started_at="2026-11-30T20:00:00Z",
                    cwd="/w",
                    project="w",
                    model=self.model,
                ),
                rng=random.Random(7),
            )
        )
        assert (await self.deck.submit(SendPrompt(text=prompt))).ok
        await asyncio.wait_for(self.deck.idle(), 50)

    async def close(self) -> None:
        """End the session and its connections."""
        if self.deck is not None:
            await self.deck.close()
        await self.provider.close()

    @property
    def outcome(self) -> str | None:
        """How the parent's turn ended."""
        return self.hub.state.parent.turn.outcome

    def tools_run(self) -> Sequence[str]:
        """Return the names of the tools that ran, in order."""
        return [name for _, name, _ in self.tool_log]
