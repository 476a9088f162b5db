"""An independent server breaks every answer once, and then judges the client.

llmock (a test extra) was written by others, knows nothing of this project, and sees every attempt
with its timing. All sessions run side by side, because the waits are real.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.providers.peer import Peer, Session, serving

MISSING = importlib.util.find_spec("llmock") is None
pytestmark = pytest.mark.skipif(
    MISSING,
    reason="LLMOCK IS NOT INSTALLED: the independent check of the client does not run;"
    " install the dev extra (make test does)",
)


def fault(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "stream_fault", "kind": kind, "after_chunks": 3, **more}


def fail(status: int, **more: Any) -> dict[str, Any]:
    return {"type": "fail", "status": status, **more}


READ = {"name": "read", "arguments": {"path": "a.py"}}
FORKS = {"name": "fork_join", "arguments": {"tasks": [{"id": "a", "task": "Look at a."}]}}
SHORT = {"type": "reply", "text": "All is well here.", "times": None}
"""A short answer: the peer writes a broken one to its end, and only then counts a retry as one."""
SILENT_S = 1.5


@dataclass(frozen=True)
class Case:
    """Faults in order, and what must come of them.

    Attributes:
        faults: What the peer does.
        attempts: Requests it must have seen.
        outcome: How the turn ends.
        tools: Tools that ran.
        read_timeout_s: Longest silence of the endpoint.
    """

    faults: tuple[dict[str, Any], ...]
    attempts: int = 2
    outcome: str = "completed"
    tools: tuple[str, ...] = ()
    read_timeout_s: float = 30.0


def reply(*calls: dict[str, Any], times: int = 1) -> dict[str, Any]:
    return {"type": "reply", "tool_calls": list(calls), "times": times}


CASES = {
    "nothing": Case((), attempts=1),
    "429-told": Case((fail(429, retry_after=0.4, times=3),), attempts=4),
    "429-told-late": Case((fail(429, retry_after=1.7),)),
    "429-untold": Case((fail(429, times=2),), attempts=3),
    "529": Case((fail(529, times=2),), attempts=3),
    "500": Case((fail(500),)),
    "503": Case((fail(503, retry_after=0.5),)),
    "disconnect": Case((fault("disconnect"),)),
    "disconnect-late": Case((fault("disconnect", after_chunks=7),)),
    "disconnect-first": Case((fault("disconnect", after_chunks=0),)),
    "truncate": Case((fault("truncate"),)),
    "truncate-first": Case((fault("truncate", after_chunks=0),)),
    "malformed": Case((fault("malformed"),)),
    "stall": Case((fault("stall", stall_seconds=20),), read_timeout_s=SILENT_S),
    "slow-first-token": Case(({"type": "slow_first_token", "seconds": 0.8},), attempts=1),
    "delay": Case(({"type": "delay", "seconds": 0.8},), attempts=1),
    "tool": Case((reply(READ, READ),), tools=("read", "read")),
    "tool-cut": Case(
        (reply(READ, times=2), fault("disconnect", after_chunks=4)), attempts=3, tools=("read",)
    ),
    "tool-half": Case(
        (reply(READ, times=2), fault("truncate", after_chunks=4)), attempts=3, tools=("read",)
    ),
    "tool-malformed": Case(({"type": "tool_fault", "kind": "malformed_arguments"},)),
    "tool-unknown": Case(({"type": "tool_fault", "kind": "unknown_tool"},)),
    "fork": Case((reply(FORKS),), attempts=3),
    "400": Case((fail(400),), attempts=1, outcome="failed"),
    "401": Case((fail(401),), attempts=1, outcome="failed"),
    "404": Case((fail(404),), attempts=1, outcome="failed"),
    "too-long": Case(
        (fail(400, message="prompt is too long: 9 tokens > 8 maximum"),),
        attempts=1,
        outcome="failed",
    ),
}


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with serving() as running:
        yield running


async def play(directory: Path, peer: Peer, name: str, case: Case) -> Session:
    model = f"claude-{name}"
    await peer.queue(model, *case.faults, *([] if "tool" in name else [SHORT]))
    session = Session(directory / name, peer, model, case.read_timeout_s)
    try:
        await session.run(f"This is the case {name}.")
    finally:
        await session.close()
    return session


async def play_all(directory: Path, peer: Peer, cases: dict[str, Case]) -> dict[str, Any]:
    """Run cases side by side, check what came of each, and return the peer's verdict."""
    await peer.reset()
    played = await asyncio.gather(*(play(directory, peer, *case) for case in cases.items()))
    wrong: list[str] = []
    for (name, case), session in zip(cases.items(), played, strict=True):
        asked = await peer.requests(f"claude-{name}")
        found = (len(asked), session.outcome, tuple(session.tools_run()))
        if found != (case.attempts, case.outcome, case.tools):
            wrong.append(f"{name}: {found}, wanted {case}")
        if case.outcome == "completed" and not session.hub.state.parent.transcript[-1].text:
            wrong.append(f"{name}: no text")
    assert not wrong, "\n".join(wrong)
    left = [each for each in await peer.waiting() if each["type"] != "reply"]
    assert left == [], "a fault was never met"
    return await peer.verdict()


async def test_every_fault_is_survived_and_nothing_is_held_against_the_client(
    peer: Peer, tmp_path: Path
) -> None:
    verdict = await play_all(tmp_path, peer, CASES)
    assert not verdict["findings"], verdict["findings"]


async def test_a_stream_that_breaks_again_is_sent_again(peer: Peer, tmp_path: Path) -> None:
    cases = {
        f"{kind}-twice": Case((fault(kind, times=2),), attempts=3)
        for kind in ("truncate", "disconnect", "malformed")
    }
    verdict = await play_all(tmp_path, peer, cases)
    assert not verdict["errors"], verdict["errors"]


async def test_the_peer_would_have_noticed(peer: Peer) -> None:
    """A careless client gets the very findings that the other test must not get."""
    import anthropic

    await peer.reset()
    client = anthropic.AsyncAnthropic(
        api_key="sk-test", base_url=f"{peer.url}/anthropic", max_retries=0, timeout=10
    )

    async def ask(model: str, *behaviors: dict[str, Any]) -> None:
        await peer.queue(model, *behaviors)
        for _ in range(2 if model == "early" else 1):
            try:
                async with client.messages.stream(
                    model=model, max_tokens=9, messages=[{"role": "user", "content": model}]
                ) as stream:
                    await stream.get_final_message()
            except anthropic.APIStatusError:
                continue

    await ask("trusting", fault("truncate"))
    await ask("early", fail(429, retry_after=5))
    await ask("timid", fail(529))
    await client.close()
    codes = {finding["code"] for finding in (await peer.verdict())["findings"]}
    assert codes == {"truncated_stream_accepted", "retry_after_ignored", "gave_up"}
