"""A live deck without a screen, driven by lines of JSON: the other half of `deck`.

Runs in a process of its own, so that neither the model's work nor the measuring is counted.
Every line on standard input is one command; every answer is one line on standard output.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

from forkdeck.cli.compose import LiveRequest, open_live
from forkdeck.cli.host import Host
from forkdeck.cli.project import look_at_project
from forkdeck.config.rules import Rule
from forkdeck.engine.deck import LiveDeck
from forkdeck.model.intents import SendPrompt, StartFork
from forkdeck.providers.credentials import Credentials
from forkdeck.store.selectors import living
from tests.bench.processes import rss_mb


async def serve(place: Path, url: str, token: str, allowed: list[str]) -> None:
    """Open the deck and do what the lines say until they end."""
    host = Host(
        Credentials.for_rehearsal(url, token), state=place / "state", config=place / "config"
    )
    project = look_at_project(
        host, place / "tally", {}, trust_once=True,
        more_rules=[Rule.parse(text, "allow") for text in allowed],
    )  # fmt: skip
    deck = await open_live(
        host,
        LiveRequest(
            project=project, credentials=host.credentials, attached=False, simulated="bench"
        ),
    )
    try:
        _say({"ready": True})
        while line := await asyncio.to_thread(sys.stdin.readline):
            _say(await _do(deck, json.loads(line)))
    finally:
        await deck.close()


async def _do(deck: LiveDeck, command: dict[str, Any]) -> dict[str, Any]:
    if "prompt" in command:
        await deck.submit(SendPrompt(text=command["prompt"]))
        await deck.idle()
        forks = deck.state.forks.values()
        return {
            "outcome": deck.state.parent.turn.outcome,
            "reason": deck.state.parent.turn.reason,
            "forks": [fork.status for fork in forks],
            "verdicts": [run.cache.verdict if run.cache else "" for run in map(_run(deck), forks)],
        }
    if "fork" in command:
        done = await deck.submit(StartFork(task=command["fork"]))
        return {"ok": done.ok, "text": done.text, "living": len(living(deck.state))}
    gc.collect()
    return {"rss_mb": rss_mb(os.getpid()), "living": len(living(deck.state))}


def _run(deck: LiveDeck) -> Any:
    return lambda fork: deck.state.runs[fork.handle]  # type: ignore[no-any-return] # read only


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]))
