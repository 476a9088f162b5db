"""Compaction of the parent: a new prefix, the old log, and forks of before and after."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from forkdeck.config.settings import ForkSettings, SessionSettings, Settings
from forkdeck.engine.compaction import cut_at, digest
from forkdeck.errors import ContextTooLong, ServerFault
from forkdeck.model.events.session import HeadRecorded, NoticeRaised
from forkdeck.model.events.turn import HistoryCompacted
from forkdeck.model.intents import CompactParent, InterruptParent, ResendTurn, SendPrompt, StartFork
from forkdeck.model.prefix import first_difference, message_blocks, positions
from forkdeck.model.raw import to_raw
from forkdeck.model.state import HistoryEntry
from forkdeck.model.tooling import ToolResult
from forkdeck.store.reducer import fold
from tests.engine.conftest import MakeRig
from tests.engine.fakes import Asked, FakePrices, Net, Reply
from tests.engine.rig import REPORT, Rig

READ = ("read", {"path": "a.py"})
SUMMARY = "The person wants a.py read; it was read and is fine."
pytestmark = pytest.mark.moves_cache_prefix(reason="a compaction begins a new prefix")


def with_compact(how: Any) -> Settings:
    return Settings(forks=ForkSettings(plan="never"), session=SessionSettings(compact=how))


def script(asked: Asked) -> Reply:
    """A talkative model that thinks, and writes a summary when it is asked for one."""
    if asked.run != "p":
        return Reply(REPORT)
    if "[compact] The conversation is about" in asked.text:
        return Reply(SUMMARY)
    if asked.results:
        return Reply("I read it. " + "x" * 400, thinking="hm")
    return Reply("Let me look. " + "y" * 400, [READ], thinking="hm")


async def talked(make_rig: MakeRig, **options: Any) -> Rig:
    rig = await make_rig(prices=FakePrices(context=40_000), **options)
    rig.provider.script = script
    for prompt in ("one", "two", "three"):
        await rig.say(prompt + " z" * 900)
    return rig


async def test_compact_replaces_old_messages_by_a_summary(make_rig: MakeRig) -> None:
    """Asked over the same prefix (a cache hit); then summary, kept tail, no older thinking."""
    rig = await talked(make_rig)
    before = rig.bodies("p")[-1]
    history = list(rig.state.parent.history)
    assert (await rig.do(CompactParent(hint="mind the paths"))).ok
    await rig.idle()
    asking = rig.bodies("p")[-1]
    assert first_difference(positions(before), positions(asking)) is None
    assert "Above all: mind the paths" in str(asking["messages"][-1])
    assert rig.cache("p").verdict == "HIT"
    event = rig.sink.of(HistoryCompacted)[0]
    assert event.text == SUMMARY
    assert event.kept_to == len(history)
    now = list(rig.state.parent.history)
    assert now[0].kind == "summary"
    assert len(now) == 1 + event.kept_to - event.kept_from < len(history)
    assert rig.state.parent.turn.outcome == "completed"
    assert rig.sink.of(HeadRecorded, "p")[-1].seq > event.seq
    await rig.say("four")
    body = rig.bodies("p")[-2]
    text = str(body["messages"])
    assert SUMMARY in text
    assert "one z" not in text
    assert text.count("<environment>") == 1
    assert "[compact] The conversation is about" not in text
    kept = [b for m in body["messages"] for b in message_blocks(m)]
    assert not any(b["type"] == "thinking" for b in kept)
    assert rig.bodies("p")[0]["tools"] == body["tools"]
    items = [item.kind for item in rig.state.parent.transcript]
    at = items.index("boundary")
    assert items[at + 1] == "thinking"
    assert rig.state.parent.transcript[at + 1].text == SUMMARY
    assert fold(rig.sink.events) == rig.state


async def test_a_compacted_session_goes_on_after_a_restart(
    make_rig: MakeRig, tmp_path: Any
) -> None:
    """The folded history is what is sent; the next request extends nothing that is gone."""
    rig = await talked(make_rig)
    await rig.do(CompactParent())
    await rig.idle()
    await rig.say("four")
    last = rig.bodies("p")[-1]
    state = fold(rig.sink.events)
    again = Rig(rig.directory, Net(), prices=FakePrices(context=40_000))
    again.provider.script = script
    await again.open(state, resume=True)
    await again.say("five")
    assert first_difference(positions(last), positions(again.bodies("p")[0])) is None
    await again.close()


async def test_forks_before_and_after_stay_valid(make_rig: MakeRig) -> None:
    """T9, T10: a queued fork keeps its frozen seed; a later one begins with the summary."""
    settings = Settings(forks=ForkSettings(plan="never", max_per_directory=1))
    rig = await talked(make_rig, settings=settings)
    hold = asyncio.Event()

    def slow_child(asked: Asked) -> Reply:
        return Reply(REPORT, hold=hold) if asked.run == "f1" else script(asked)

    rig.provider.script = slow_child
    parent = rig.bodies("p")[-1]
    await rig.do(StartFork(task="first"))
    await rig.do(StartFork(task="second"))
    await rig.until(lambda: rig.state.runs.get("f1") and rig.state.runs["f1"].stream)
    assert rig.fork("f2").status == "QUE"
    await rig.do(CompactParent())
    await rig.until(lambda: rig.sink.of(HistoryCompacted))
    hold.set()
    await rig.idle()
    for handle in ("f1", "f2"):
        found = positions(rig.bodies(handle)[0])
        assert first_difference(positions(parent), found) is None, handle
        assert rig.fork(handle).outcome == "done"
    assert rig.state.runs["f2"].history[0].message == rig.state.runs["f1"].history[0].message
    await rig.say("four")
    await rig.do(StartFork(task="third"))
    await rig.do(StartFork(task="fourth", seed="turns:9"))
    await rig.idle()
    assert SUMMARY in str(rig.bodies("f3")[0]["messages"])
    assert "one z" not in str(rig.bodies("f3")[0]["messages"])
    assert SUMMARY not in str(rig.bodies("f4")[0]["messages"])
    assert "four" in str(rig.bodies("f4")[0]["messages"])
    assert fold(rig.sink.events) == rig.state


def growing(asked: Asked) -> Reply:
    """A model whose context fills from step to step."""
    if "[compact] The conversation is about" in asked.text:
        return Reply(SUMMARY)
    if len(asked.body["messages"]) < 13 and SUMMARY not in str(asked.body["messages"]):
        return Reply("step " + "y" * 3_000, [("read", {"path": f"{asked.number}"})])
    return Reply("done")


@pytest.mark.parametrize("how", ["auto", "ask", "never"])
async def test_near_the_limit(make_rig: MakeRig, how: str) -> None:
    """95 %: the banner first; `auto` compacts between two steps, the others only tell."""
    measured = await make_rig(prices=FakePrices(context=None))
    measured.provider.script = growing
    await measured.say("go")
    full = measured.state.parent.context_tokens
    assert full is not None
    rig = await make_rig(settings=with_compact(how), prices=FakePrices(context=round(full * 0.9)))
    rig.provider.script = growing
    await rig.say("go")
    banners = [e for e in rig.sink.of(NoticeRaised) if "% of the model's context" in e.what]
    compacted = rig.sink.of(HistoryCompacted)
    assert rig.state.parent.turn.outcome == "completed"
    assert banners
    if how == "auto":
        assert len(compacted) == 1
        assert banners[0].seq < compacted[0].seq
        assert "compacted before the next step" in banners[0].kept
        assert rig.state.parent.turn.turn == 1, "in the middle of a turn"
    else:
        assert compacted == []
        assert "/compact" in banners[0].remedy
        assert len(banners) == 1


async def test_what_cannot_be_compacted_says_so(rig: Rig) -> None:
    """Nothing yet, too short, or a turn that runs."""
    assert "no conversation" in (await rig.do(CompactParent())).text
    hold = asyncio.Event()
    rig.provider.script = lambda _: Reply("ok", hold=hold)
    await rig.do(SendPrompt(text="one"))
    assert "after it" in (await rig.do(CompactParent())).text
    hold.set()
    await rig.idle()
    await rig.do(CompactParent())
    await rig.idle()
    assert rig.state.parent.turn.outcome == "failed"
    assert "nothing to compact" in rig.state.parent.turn.reason
    rig.provider.script = lambda _: Reply("fine")
    await rig.say("two")
    assert rig.state.parent.turn.outcome == "completed"


@pytest.mark.parametrize("fault", ["error", "refusal", "calls", "interrupt"])
async def test_a_compaction_that_fails_changes_nothing(make_rig: MakeRig, fault: str) -> None:
    """The conversation goes on append-only; r compacts again."""
    rig = await talked(make_rig)
    hold = asyncio.Event()
    replies = {
        "error": Reply(error=ServerFault("500")),
        "refusal": Reply("no", stop="refusal"),
        "calls": Reply("hm", [READ]),
        "interrupt": Reply(SUMMARY, hold=hold),
    }
    rig.provider.script = lambda _: replies[fault]
    length = len(rig.state.parent.history)
    await rig.do(CompactParent())
    if fault == "interrupt":
        await rig.until(lambda: rig.state.parent.stream)
        await rig.do(InterruptParent())
    await rig.idle()
    assert rig.sink.of(HistoryCompacted) == []
    assert len(rig.state.parent.history) > length
    assert rig.state.parent.turn.outcome == ("interrupted" if fault == "interrupt" else "failed")
    rig.provider.script = script
    if fault == "error":
        assert (await rig.do(ResendTurn())).ok
        await rig.idle()
        assert len(rig.sink.of(HistoryCompacted)) == 1
    await rig.say("four")
    assert rig.state.parent.turn.outcome == "completed"


async def test_a_conversation_that_does_not_fit_is_compacted_without_the_model(
    make_rig: MakeRig,
) -> None:
    """The context error names /compact, /compact works although no request fits, then r does."""
    rig = await talked(make_rig, settings=with_compact("ask"))
    rig.provider.script = lambda _: Reply(error=ContextTooLong("too long"))
    await rig.say("four")
    assert rig.state.parent.turn.outcome == "failed"
    assert "/compact" in rig.state.parent.turn.remedy
    await rig.do(CompactParent())
    await rig.idle()
    event = rig.sink.of(HistoryCompacted)[0]
    assert "no summary of its own" in event.text
    assert "- one z" in event.text
    rig.provider.script = script
    assert rig.state.parent.turn.outcome == "completed"
    assert rig.state.parent.turn.resendable
    assert (await rig.do(ResendTurn())).ok
    await rig.idle()
    assert rig.bodies("p")[-2]["messages"][-1]["content"][-1]["text"] == "four"
    assert rig.state.parent.turn.outcome == "completed"
    assert not rig.state.parent.turn.resendable
    assert not (await rig.do(ResendTurn())).ok
    await rig.do(CompactParent())
    await rig.idle()
    assert not rig.state.parent.turn.resendable, "nothing had failed before it"


async def test_a_refused_context_is_answered_by_one_compaction(make_rig: MakeRig) -> None:
    """Auto: the step is sent again behind the summary, with the prompt; a second time it fails."""
    rig = await talked(make_rig, settings=with_compact("auto"))
    full = [True]

    def too_long(asked: Asked) -> Reply:
        fits = "no summary of its own" in str(asked.body["messages"]) and not full[0]
        return script(asked) if fits else Reply(error=ContextTooLong("too long"))

    rig.provider.script = too_long
    await rig.say("four")
    assert len(rig.sink.of(HistoryCompacted)) == 1
    assert rig.state.parent.turn.outcome == "failed"
    assert "/compact" not in rig.state.parent.turn.remedy
    rig = await talked(make_rig, settings=with_compact("auto"))
    full[0], rig.provider.script = False, too_long
    await rig.say("four")
    assert len(rig.sink.of(HistoryCompacted)) == 1
    assert rig.state.parent.turn.outcome == "completed"
    assert rig.bodies("p")[-2]["messages"][-1]["content"][-1]["text"] == "four"


@pytest.mark.parametrize("how", ["auto", "ask"])
async def test_a_prompt_that_would_not_fit_is_seen_beforehand(make_rig: MakeRig, how: str) -> None:
    """A waiting prompt counts too: it is what fills the context, not what was measured."""
    measured = await talked(make_rig)
    used = measured.state.parent.context_tokens
    assert used is not None
    context = FakePrices(context=used + 6_000)
    rig = await make_rig(settings=with_compact(how), prices=context)
    rig.provider.script = script
    for prompt in ("one", "two", "three"):
        await rig.say(prompt + " z" * 900)
    assert rig.sink.of(HistoryCompacted) == []
    await rig.say("four " + "wide " * 8_000)
    assert len(rig.sink.of(HistoryCompacted)) == (how == "auto")
    asked = [each["messages"][-1] for each in rig.bodies("p")]
    assert any("wide wide" in str(message) for message in asked)


async def test_a_first_prompt_that_does_not_fit_names_no_compaction(rig: Rig) -> None:
    """There is nothing to compact yet, so the remedy is not /compact."""
    rig.provider.script = lambda _: Reply(error=ContextTooLong("too long"))
    await rig.say("one")
    assert rig.state.parent.turn.outcome == "failed"
    assert "/compact" not in rig.state.parent.turn.remedy
    assert "/clear" in rig.state.parent.turn.remedy


async def test_a_fork_whose_seed_cannot_fit_is_refused(make_rig: MakeRig) -> None:
    """The reason and the way out come before the launch; a small seed of it still starts."""
    rig = await make_rig(settings=with_compact("never"), prices=FakePrices(context=9_000))
    rig.provider.script = script
    await rig.say("one " + "z" * 60_000)
    refused = await rig.do(StartFork(task="look"))
    assert not refused.ok
    assert "does not fit the model's context of 9,000" in refused.text
    assert "none" in refused.text
    assert "/compact" in refused.text
    assert rig.state.forks == {}
    assert (await rig.do(StartFork(task="look", seed="none"))).ok
    await rig.idle()


async def test_the_setting_of_the_seed_holds_for_fork(make_rig: MakeRig) -> None:
    """Idle it is the setting; --seed wins; with calls open only before_call gives way."""
    for setting, idle, open_call in (
        ("before_call", "before_call", "placeholder"),
        ("turns:1", "turns:1", "turns:1"),
        ("completed_turns", "completed_turns", "completed_turns"),
        ("none", "none", "none"),
    ):
        rig = await make_rig(settings=Settings(forks=ForkSettings(plan="never", seed=setting)))
        rig.provider.script = script
        await rig.say("one")
        await rig.do(StartFork(task="look"))
        await rig.do(StartFork(task="look", seed="none"))
        assert [rig.fork(each).seed for each in ("f1", "f2")] == [idle, "none"]
        await rig.idle()
        hold = asyncio.Event()

        async def wait(_: Any, context: Any, hold: asyncio.Event = hold) -> ToolResult:
            await hold.wait()
            return ToolResult(content="ok", view=context.access)

        rig.tools["read"].behaviour = wait
        await rig.do(SendPrompt(text="two"))
        await rig.until(lambda rig=rig: rig.state.parent.tools)
        await rig.do(StartFork(task="look"))
        assert rig.fork("f3").seed == open_call
        hold.set()
        await rig.idle()
        assert rig.fork("f3").outcome == "done"


def entry(role: Any, *blocks: Any, kind: Any = "prompt") -> HistoryEntry:
    message = to_raw({"role": role, "content": list(blocks)})
    return HistoryEntry(role=role, kind=kind, message=message)


def test_a_call_is_never_parted_from_its_result() -> None:
    """The cut moves forward to a message that can stand behind a summary."""
    text = {"type": "text", "text": "x" * 100}
    call = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "y"}
    history = [
        entry("user", text), entry("assistant", text, call), entry("user", result),
        entry("assistant", text),
    ]  # fmt: skip
    sizes = [len(bytes(each.message)) for each in history]
    assert cut_at(history, sizes[3] + sizes[2]) == 3
    assert cut_at(history, sum(sizes[1:])) == 1
    assert cut_at(history, 10) == 4
    assert cut_at([], 10) == 0
    assert "x" * 100 in digest(history)
