"""What is kept beside the conversation: the parent's tree, watched files, paused streams, files."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.events.step import TextStreamed
from forkdeck.model.events.work import WorktreeChanged
from forkdeck.model.intents import ResumeFork, RunShell, SendPrompt
from forkdeck.model.tooling import ToolResult
from forkdeck.sessionlog.catalogue import summarise
from tests.engine.conftest import MakeRig
from tests.engine.fakes import Asked, FakeTree, Reply
from tests.engine.rig import REPORT, Rig, join, parent_then


def moved(rig: Rig) -> list[Any]:
    return [e for e in rig.sink.of(NoticeRaised) if "The tree moved" in e.what]


async def test_a_tree_that_moved_is_a_note_under_the_sandbox(rig: Rig) -> None:
    """T85: named, and said that the fork cannot have done it."""
    rig.worktrees.trees = [FakeTree(" M old.py"), FakeTree(" M old.py", "?? new.py", "HEAD")]
    rig.provider.script = parent_then(join("a", write=True), lambda _: Reply(REPORT))
    await rig.say()
    note = moved(rig)[0]
    assert note.severity == "info"
    assert note.what == "The tree moved while f1 ran: ?? new.py, HEAD."
    assert "cannot have done it" in note.kept


async def test_without_a_sandbox_it_is_an_alarm(make_rig: MakeRig) -> None:
    """Below `sandboxed` the paths are named and the person is asked to look."""
    rig = await make_rig(level="tool-policy only")
    rig.worktrees.trees = [FakeTree(), FakeTree(*(f"?? {n}.py" for n in range(10)))]
    rig.provider.script = parent_then(join("a", write=True), lambda _: Reply(REPORT))
    await rig.say()
    alarm = moved(rig)[0]
    assert alarm.severity == "error"
    assert alarm.what.endswith(" and 2 more.")
    assert "may have done it" in alarm.kept


async def test_a_tree_that_stands_or_that_the_person_changed_is_no_note(rig: Rig) -> None:
    """Equal states, and the person's own command meanwhile."""
    hold = asyncio.Event()
    rig.worktrees.trees = [FakeTree("x"), FakeTree("x"), FakeTree("x"), FakeTree("y")]
    rig.provider.script = parent_then(join("a", write=True), lambda _: Reply(REPORT))
    await rig.say()
    rig.provider.requests.clear()
    rig.provider.script = parent_then(
        join("b", write=True, background=True), lambda _: Reply(REPORT, hold=hold)
    )
    await rig.do(SendPrompt(text="again"))
    await rig.until(lambda: rig.state.runs.get("f2") and rig.state.runs["f2"].stream)
    assert (await rig.do(RunShell(command="touch y"))).ok
    hold.set()
    await rig.idle()
    assert rig.worktrees.trees == []
    assert moved(rig) == []


async def test_a_tree_that_is_not_watched_is_listed_from_the_tool_calls(rig: Rig) -> None:
    """SAFETY "Watching": the flag says so."""
    rig.worktrees.unwatched["f1"] = "too many directories"

    def write(*_: Any) -> ToolResult:
        return ToolResult(content="ok", path="src/b.py")

    rig.tools["write"].behaviour = write

    def child(asked: Asked) -> Reply:
        if asked.number == 1:
            return Reply("", [("write", {"path": "src/b.py", "content": "x"})])
        return Reply(REPORT)

    rig.provider.script = parent_then(join("a", write=True), child)
    await rig.say()
    event = rig.sink.of(WorktreeChanged, "f1")[0]
    assert [change.path for change in event.files] == ["src/b.py"]
    assert event.watched is False
    assert rig.fork("f1").files_watched is False


async def test_streams_pause_while_too_much_is_unsaved(rig: Rig) -> None:
    """SAFETY "Durability": they drain, then wait, and go on when the log can be written."""
    rig.provider.script = lambda _: Reply("word " * 200)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.parent.stream)
    rig.sink.full = True
    for _ in range(30):
        await asyncio.sleep(0)
    seen = len(rig.sink.of(TextStreamed))
    assert 0 < seen < 25
    for _ in range(30):
        await asyncio.sleep(0.001)
    assert len(rig.sink.of(TextStreamed)) == seen
    rig.sink.full = False
    await rig.idle()
    assert rig.state.parent.turn.outcome == "completed"
    assert len(rig.sink.of(TextStreamed)) == 25


async def test_closing_leaves_a_summary(rig: Rig) -> None:
    """The session list is fast: it does not fold this log again."""
    rig.provider.script = lambda _: Reply("ok")
    (rig.directory / "events.jsonl").write_text("")
    await rig.say("A title")
    await rig.close()
    assert (rig.directory / "summary.json").exists()
    assert summarise(rig.deck._parts.paths, rig.state).title == "A title"


async def test_a_fork_that_is_over_leaves_no_private_directory(make_rig: MakeRig) -> None:
    """And a resumed one gets a view of its own again."""
    gone: list[str] = []
    rig = await make_rig(discard=gone.append)
    rig.provider.script = parent_then(join("a"), lambda _: Reply(REPORT, stop="refusal"))
    await rig.say()
    assert gone == ["f1"]
    before = rig.fork_spaces.pop("f1")
    rig.provider.script = lambda _: Reply(REPORT)
    assert (await rig.do(ResumeFork(handle="f1"))).ok
    await rig.idle()
    assert rig.fork("f1").outcome == "done"
    assert rig.fork_spaces["f1"] is not before
    assert gone == ["f1", "f1"]


async def test_the_report_is_shown_to_the_parent_under_its_name(make_rig: MakeRig) -> None:
    """FORKS: cut reports name the file, and the parent's view has it."""
    shared: dict[str, Any] = {}

    def share(name: str, path: Any) -> str:
        shared[name] = path.read_text()
        return name

    rig = await make_rig(share=share)
    long = "Result: " + "very " * 5_000 + "long."
    rig.provider.script = parent_then(join("a"), lambda _: Reply(long))
    await rig.say()
    assert shared == {"f1-report.md": long}
    text = rig.results()[0]["content"]
    assert "the whole report stands in /tmp/forkdeck/f1-report.md" in text
    assert len(text) < 17_000


@pytest.mark.parametrize("outcome", ["done", "partial", "failed", "aborted"])
async def test_every_outcome_leaves_its_facts(rig: Rig, outcome: str) -> None:
    """T55, T56: counts, tokens, cost and text of each way to end."""
    import json

    from forkdeck.model.intents import AbortFork

    hold = asyncio.Event()
    last = {
        "done": Reply(REPORT),
        "partial": Reply("cut off", stop="max_tokens"),
        "failed": Reply("no", stop="refusal"),
        "aborted": Reply("half a thought", hold=hold),
    }[outcome]

    def child(asked: Asked) -> Reply:
        return Reply("I look.", [("read", {"path": "a.py"})]) if asked.number == 1 else last

    rig.provider.script = parent_then(join("a"), child)
    await rig.do(SendPrompt(text="go"))
    if outcome == "aborted":
        await rig.until(lambda: "f1" in rig.state.runs and len(rig.bodies("f1")) == 2)
        await rig.until(lambda: rig.state.runs["f1"].stream)
        await rig.do(AbortFork(handle="f1"))
    await rig.idle()
    facts = json.loads((rig.directory / "forks" / "f1" / "result.json").read_text())
    assert facts["outcome"] == outcome
    assert (facts["turns"], facts["tool_calls"]) == (2, 1)
    assert float(facts["cost_usd"]) > 0
    assert facts["usage"]["output_tokens"] >= 21
    assert facts["report"]
    assert facts["queued_ms"] is not None
    assert facts["run_ms"] is not None
    assert f'status="{outcome}"' in rig.results()[0]["content"]
