"""Traps of going on in a later process: the same bytes, no thinking a model cannot read, limits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from forkdeck.model.events.step import RequestSent
from forkdeck.model.intents import AbortFork, ResumeFork, SendPrompt, SetModel, StartFork
from forkdeck.model.ports import EndpointFacts
from forkdeck.model.prefix import first_difference, message_blocks, positions
from forkdeck.model.raw import JsonDict, to_raw
from forkdeck.model.shared_list import SharedList
from forkdeck.model.state import DeckState
from forkdeck.store.reducer import fold
from tests.engine.fakes import Asked, Net, Reply
from tests.engine.rig import REPORT, Rig, join, parent_then

READ = ("read", {"path": "a.py"})


async def again(old: Rig, tmp_path: Path, state: DeckState | None = None, **options: Any) -> Rig:
    """Close a deck and open its session in a new one."""
    if old.deck._closed is None:
        await old.close()
    heads = tmp_path / "again" / "heads"
    heads.mkdir(parents=True)
    for path in (old.directory / "heads").iterdir():
        (heads / path.name).write_text(path.read_text())
    new = Rig(tmp_path / "again", Net(), **options)
    new.clock.ms = old.clock.ms
    return await new.open(state or fold(old.sink.events), resume=True)


def extends(before: JsonDict, after: JsonDict) -> bool:
    return first_difference(positions(before), positions(after)) is None


def marked(body: JsonDict) -> list[int]:
    blocks = [b for m in body["messages"] for b in message_blocks(m)]
    return [i for i, block in enumerate(blocks) if "cache_control" in block]


async def test_a_resumed_parent_extends_its_last_request(rig: Rig, tmp_path: Path) -> None:
    """T40, T34: the first request of the new process begins with the last of the old one."""
    rig.provider.script = lambda asked: Reply("I see.", thinking="hm")
    await rig.say("one")
    await rig.say("two")
    new = await again(rig, tmp_path)
    new.provider.cached = rig.provider.cached
    new.provider.script = lambda asked: Reply("And on.")
    await new.say("three")
    assert extends(rig.bodies("p")[-1], new.bodies("p")[0])
    end = sum(len(message_blocks(m)) for m in rig.bodies("p")[-1]["messages"]) - 1
    assert end in marked(new.bodies("p")[0])
    assert new.cache("p").verdict == "HIT"
    await new.close()
    assert new.net.faults == []


async def test_thinking_of_an_old_model_stays_out_after_a_restart(
    make_rig: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """T13: what `/model` left out is not sent by a later process, nor by forks before or after."""
    request.node.add_marker(pytest.mark.moves_cache_prefix(reason="a new model"))
    rig = await make_rig()
    rig.net.exempt = True
    rig.provider.script = lambda asked: Reply(f"answer {asked.number}", thinking="old thoughts")
    await rig.say("one")
    await rig.do(SetModel(model="claude-sonnet-5-5"))
    rig.provider.script = lambda asked: Reply(
        REPORT if asked.run != "p" else "answer", thinking="new thoughts"
    )
    await rig.say("two")
    await rig.do(StartFork(task="look"))
    await rig.idle()
    last = rig.bodies("p")[-1]
    assert rig.state.parent.head is not None
    assert rig.state.parent.head.thinking_from == 2
    assert "old thoughts" not in str(rig.bodies("f1")[0])
    assert extends(last, rig.bodies("f1")[0])
    new = await again(rig, tmp_path)
    new.provider.script = lambda asked: Reply(REPORT)
    await new.say("three")
    body = new.bodies("p")[0]
    assert extends(last, body)
    assert "old thoughts" not in str(body)
    assert "new thoughts" in str(body)
    await new.do(ResumeFork(handle="f1"))
    await new.idle()
    assert extends(rig.bodies("f1")[-1], new.bodies("f1")[0])
    await new.close()
    assert new.net.faults == []


@pytest.mark.parametrize(
    ("other", "word"),
    [
        (EndpointFacts(base_url="http://127.0.0.1:9", name="other", account="aaaa"), "endpoint"),
        (EndpointFacts(base_url="http://127.0.0.1", name="scripted", account="bbbb"), "account"),
        (EndpointFacts(base_url="http://127.0.0.1", name="scripted"), ""),
    ],
)
async def test_another_endpoint_gets_no_thinking(
    rig: Rig, tmp_path: Path, other: EndpointFacts, word: str
) -> None:
    """T13: thinking is bound to where it was made; elsewhere it is left out whole, and noted."""
    rig.provider.script = lambda asked: Reply("I see.", thinking="bound")
    await rig.say("one")
    await rig.close()
    heads = tmp_path / "else" / "heads"
    heads.mkdir(parents=True)
    for path in (rig.directory / "heads").iterdir():
        (heads / path.name).write_text(path.read_text())
    new = Rig(tmp_path / "else", Net())
    new.provider.endpoint = other
    await new.open(fold(rig.sink.events), resume=True)
    await new.say("two")
    assert ("'thinking'" in str(new.bodies("p")[0]["messages"])) == (not word)
    assert "I see." in str(new.bodies("p")[0]["messages"])
    assert new.state.parent.head is not None
    assert new.state.parent.head.thinking_from == (2 if word else 0)
    if word:
        assert new.cache("p").verdict == "COLD"
        assert f"another {word} has a cache of its own" in new.cache("p").difference
        assert new.state.parent.head.endpoint == other.base_url
        assert new.state.parent.head.account == other.account
    await new.close()


async def test_a_changed_log_is_noticed_before_it_is_sent(rig: Rig, tmp_path: Path) -> None:
    """T16, T40: one byte less in the recorded history, and the request does not leave."""
    rig.provider.script = lambda asked: Reply("ok")
    await rig.say("one")
    await rig.say("two")
    await rig.close()
    state = fold(rig.sink.events)
    entries = state.parent.history.since(0)
    message = {"role": "user", "content": [{"type": "text", "text": "forged"}]}
    entries[0] = replace(entries[0], message=to_raw(message))
    forged = replace(state.parent, history=SharedList(entries))
    state = replace(state, runs={**state.runs, "p": forged})
    new = await again(rig, tmp_path, state)
    new.provider.script = lambda asked: Reply("ok")
    refused = await new.do(StartFork(task="look"))
    assert not refused.ok
    assert "before the session was opened again" in refused.text
    await new.do(SendPrompt(text="three"))
    await new.idle()
    assert new.bodies("p") == []
    assert new.state.parent.turn.outcome == "failed"
    assert "before the session was opened again" in new.state.parent.turn.reason
    await new.close()


async def test_an_aborted_fork_goes_on_in_a_later_process(rig: Rig, tmp_path: Path) -> None:
    """T40, T24: abort, quit, resume: append-only, same depth, same tools, T and R marked."""

    def child(asked: Asked) -> Reply:
        return Reply("looking", [READ]) if asked.number == 1 else Reply("half", cut=False)

    task = {"id": "a", "task": "Look.", "tools": ["read"]}
    rig.provider.script = parent_then(
        Reply("", [("fork_join", {"tasks": [task], "background": True})]), child
    )
    rig.tools["read"].behaviour = _hang
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.runs.get("f1") and rig.state.runs["f1"].tools)
    await rig.do(AbortFork(handle="f1"))
    await rig.until(lambda: rig.fork("f1").settled)
    assert rig.fork("f1").tools == ("read",)
    before = rig.bodies("f1")[-1]
    new = await again(rig, tmp_path)
    new.provider.cached = rig.provider.cached
    new.provider.script = lambda asked: (
        Reply("I grep.", [("grep", {"pattern": "x"})]) if asked.number == 1 else Reply(REPORT)
    )
    await new.do(ResumeFork(handle="f1"))
    await new.idle()
    assert extends(before, new.bodies("f1")[0])
    assert new.fork("f1").depth == 1
    assert new.fork("f1").outcome == "done"
    assert "does not give grep" in str(new.results("f1"))
    assert len(marked(new.bodies("f1")[0])) == 3
    await new.close()
    assert new.net.faults == []


async def _hang(*_: object) -> Any:
    await asyncio.Event().wait()


async def test_the_recorded_fingerprint_is_of_what_was_sent(rig: Rig) -> None:
    """Every request is logged with the positions it had; the state keeps the last one."""
    rig.provider.script = parent_then(join("a"), lambda _: Reply(REPORT))
    await rig.say("go")
    for run in ("p", "f1"):
        sent = rig.sink.of(RequestSent, run)[-1]
        assert sent.positions == len(positions(rig.bodies(run)[-1]))
        assert rig.state.runs[run].sent_sha256 == sent.prefix_sha256
