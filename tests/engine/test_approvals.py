"""Approvals: the mode table, rules, scopes, identical requests, nobody attached."""

from __future__ import annotations

from typing import Any

import pytest

from forkdeck.model.events.fork import ForkSlowed
from forkdeck.model.events.session import RuleGranted
from forkdeck.model.events.tool import ApprovalAnswered, ApprovalAsked, ToolStarted
from forkdeck.model.intents import AbortFork, AnswerRequest, IntentResult, SendPrompt, SetMode
from forkdeck.model.tooling import ToolResult
from forkdeck.store.selectors import badge
from tests.engine.conftest import MakeRig
from tests.engine.fakes import Asked, Reply
from tests.engine.rig import REPORT, Rig, join, parent_then

WORK = {"command": "make", "access": "work"}


def once(name: str, arguments: dict[str, Any]) -> Any:
    return lambda asked: Reply("", [(name, arguments)]) if asked.number == 1 else Reply("ok")


@pytest.mark.parametrize(
    ("mode", "name", "arguments", "expected"),
    [
        ("plan", "read", {"path": "a"}, "look"),
        ("plan", "bash", {"command": "ls"}, "look"),
        ("plan", "edit", {"path": "a"}, "no"),
        ("plan", "bash", WORK, "no"),
        ("plan", "bash", {"command": "x", "access": "outside"}, "no"),
        ("default", "read", {"path": "a"}, "look"),
        ("default", "bash", {"command": "ls"}, "look"),
        ("default", "edit", {"path": "a"}, "ask"),
        ("default", "write", {"path": "a"}, "ask"),
        ("default", "bash", WORK, "ask"),
        ("default", "bash", {"command": "x", "access": "outside"}, "ask"),
        ("accept-edits", "edit", {"path": "a"}, "work"),
        ("accept-edits", "bash", WORK, "ask"),
        ("accept-edits", "bash", {"command": "x", "access": "outside"}, "ask"),
        ("auto", "edit", {"path": "a"}, "work"),
        ("auto", "bash", {"command": "ls"}, "work"),
        ("auto", "bash", WORK, "work"),
        ("auto", "bash", {"command": "x", "access": "outside"}, "ask"),
    ],
)
async def test_the_mode_table(
    make_rig: MakeRig, mode: str, name: str, arguments: dict[str, Any], expected: str
) -> None:
    """Each cell of the table: the view it runs in, a question, or no."""
    rig = await make_rig(mode=mode, attached=False)
    rig.provider.script = once(name, arguments)
    await rig.say()
    asked = rig.sink.of(ApprovalAsked)
    ran = [access for _, _, access in rig.tool_log]
    if expected == "ask":
        assert len(asked) == 1
        assert ran == []
        assert "Nobody is attached" in rig.results()[0]["content"]
    elif expected == "no":
        assert not asked
        assert ran == []
        assert f"mode {mode}" in rig.results()[0]["content"]
    else:
        assert not asked
        assert ran == [expected]


async def test_auto_without_a_sandbox_asks_before_work(make_rig: MakeRig) -> None:
    """Auto is for sandboxed hosts only."""
    rig = await make_rig(mode="auto", level="tool-policy only", attached=False)
    rig.provider.script = once("bash", WORK)
    await rig.say()
    assert len(rig.sink.of(ApprovalAsked)) == 1


async def test_rules_deny_over_ask_over_allow(make_rig: MakeRig) -> None:
    """A deny names its rule; an ask rule asks even for what the mode gives."""
    rig = await make_rig(
        mode="auto",
        attached=False,
        rules=[("deny", "bash(git push)"), ("ask", "bash(git)"), ("allow", "bash(git status)")],
    )
    rig.provider.script = once("bash", {"command": "git push"})
    await rig.say()
    assert "deny bash(git push)" in rig.results()[0]["content"]
    assert not rig.sink.of(ApprovalAsked)
    rig.provider.script = lambda a: (
        Reply("", [("bash", {"command": "git status"})]) if a.number == 3 else Reply("ok")
    )
    await rig.say("again")
    assert rig.sink.of(ApprovalAsked)[0].rule == "rule ask bash(git)"


async def test_an_allow_rule_gives_work_but_never_outside(make_rig: MakeRig) -> None:
    """Omitted access is work when an allow rule matches; outside always asks."""
    rig = await make_rig(rules=[("allow", "bash(make)")], attached=False)
    calls = [("bash", {"command": "make"}), ("bash", {"command": "make", "access": "outside"})]
    rig.provider.script = lambda a: Reply("", calls) if a.number == 1 else Reply("ok")
    await rig.say()
    assert [access for _, _, access in rig.tool_log] == ["work"]
    assert len(rig.sink.of(ApprovalAsked)) == 1


async def test_a_read_only_fork_sees_edit_but_may_not_call_it(rig: Rig) -> None:
    """T30: same tools declared, an error that names the rule, nothing changed."""

    def child(asked: Asked) -> Reply:
        calls = [("edit", {"path": "a.py"}), ("bash", WORK), ("bash", {"command": "ls"})]
        return Reply("", calls) if asked.number == 1 else Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    assert rig.bodies("f1")[0]["tools"] == rig.bodies("p")[0]["tools"]
    results = rig.results("f1")
    assert "read-only forks" in results[0]["content"]
    assert "look view only" in results[1]["content"]
    assert [r.get("is_error") for r in results] == [True, True, None]
    assert [(name, access) for _, name, access in rig.tool_log] == [("bash", "look")]
    assert rig.state.runs["f1"].counters.denials == 2


async def test_a_write_fork_needs_no_question_in_its_own_view(rig: Rig) -> None:
    """Its work is saved and nothing outside its tree can change."""

    def child(asked: Asked) -> Reply:
        calls = [("edit", {"path": "a.py"}), ("bash", {"command": "make"})]
        return Reply("", calls) if asked.number == 1 else Reply(REPORT)

    rig.provider.script = parent_then(join("a", write=True), child)
    await rig.say()
    assert [access for _, _, access in rig.tool_log] == ["fork", "fork"]
    assert not rig.sink.of(ApprovalAsked)


async def test_yes_runs_the_call_and_no_carries_its_reason(rig: Rig) -> None:
    """A parked request is an event; the answer decides."""
    rig.provider.script = once("bash", WORK)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.asks)
    ask = rig.state.asks[0].event
    assert (ask.tool, ask.grant, ask.cwd) == ("bash", "bash(make)", "/w")
    assert (await rig.do(AnswerRequest(request=ask.request, answer="once"))).ok
    await rig.idle()
    assert rig.tool_log[0][2] == "work"
    assert not (await rig.do(AnswerRequest(request=ask.request, answer="once"))).ok
    rig.provider.script = lambda a: Reply("", [("bash", WORK)]) if a.number == 3 else Reply("ok")
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.asks)
    request = rig.state.asks[0].event.request
    await rig.do(AnswerRequest(request=request, answer="deny", reason="not now"))
    await rig.idle()
    assert rig.results()[-1]["content"] == "Refused by the person: not now."


async def test_an_edited_command_runs_instead_and_the_model_is_told(rig: Rig) -> None:
    """Only what a deny rule forbids is refused; the log and the result say what ran."""
    rig.rule("deny", "bash(rm)")
    rig.provider.script = once("bash", WORK)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.asks)
    request = rig.state.asks[0].event.request

    async def edit(command: str) -> IntentResult:
        return await rig.do(AnswerRequest(request=request, answer="once", edited=command))

    refused = await edit("rm -rf build")
    assert not refused.ok
    assert "deny bash(rm)" in refused.text
    assert not (await edit("  ")).ok
    assert [ask.event.request for ask in rig.state.asks] == [request]
    assert (await edit("make -n")).ok
    await rig.idle()
    answered = rig.sink.of(ApprovalAnswered)[-1]
    assert (answered.answer, answered.by, answered.edited) == ("once", "person", "make -n")
    assert rig.sink.of(ToolStarted)[-1].argument == "make -n work"
    content = rig.results()[-1]["content"]
    assert content.startswith("[The person edited the command; this ran instead: make -n]")


async def test_an_unchanged_edit_is_a_plain_yes(rig: Rig) -> None:
    """Nothing is said about an edit that changed nothing."""
    rig.provider.script = once("bash", WORK)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: rig.state.asks)
    ask = rig.state.asks[0].event
    edited = AnswerRequest(request=ask.request, answer="once", edited="make")
    assert (await rig.do(edited)).ok
    await rig.idle()
    assert rig.sink.of(ApprovalAnswered)[-1].edited is None
    assert "edited" not in rig.results()[-1]["content"]


@pytest.mark.parametrize(("answer", "asks"), [("once", 3), ("fork", 2), ("session", 1)])
async def test_scopes(rig: Rig, answer: Any, asks: int) -> None:
    """Once is once; this run only this run; session is for all, forks included."""

    def child(asked: Asked) -> Reply:
        return (
            Reply("", [("bash", {"command": "git commit"})]) if asked.number == 1 else Reply(REPORT)
        )

    rig.rule("ask", "bash(git commit)")
    calls = [("bash", {"command": "git commit", "access": "work"})]

    def script(asked: Asked) -> Reply:
        if asked.run != "p":
            return child(asked)
        if asked.number <= 2:
            return Reply("", calls)
        return join("a", write=True) if asked.number == 3 else Reply("ok")

    rig.provider.script = script
    await rig.do(SendPrompt(text="go"))
    count = 0
    while rig.deck._conversation.busy:
        await rig.until(lambda: rig.state.asks or not rig.deck._conversation.busy)
        if rig.state.asks:
            count += 1
            request = rig.state.asks[0].event.request
            await rig.do(AnswerRequest(request=request, answer=answer))
    assert count == asks
    assert len(rig.sink.of(RuleGranted)) == (0 if answer == "once" else len({*range(asks)}))


async def test_identical_requests_of_siblings_are_answered_together(rig: Rig) -> None:
    """One card, one key."""
    rig.rule("ask", "bash(git commit)")

    def child(asked: Asked) -> Reply:
        command = "git commit" if asked.run != "f3" else "git commit -a"
        return Reply("", [("bash", {"command": command})]) if asked.number == 1 else Reply(REPORT)

    rig.provider.script = parent_then(join("a", "b", "c", write=True), child)
    await rig.do(SendPrompt(text="go"))
    await rig.until(lambda: len(rig.state.asks) == 3)
    assert [f.status for f in rig.state.forks.values()] == ["ASK"] * 3
    assert not rig.gate.inside
    await rig.do(AnswerRequest(request=rig.state.asks[0].event.request, answer="once"))
    assert [ask.run for ask in rig.state.asks] == ["f3"]
    await rig.do(AbortFork(handle="f3"))
    await rig.idle()
    assert rig.sink.of(ApprovalAnswered, "f3")[0].by == "abort"
    assert rig.fork("f3").outcome == "aborted"


async def test_a_scripted_person_answers_and_says_so(make_rig: MakeRig) -> None:
    """The demo without a terminal: the line says who answered."""

    class Scripted:
        async def answer(self, asked: ApprovalAsked) -> Any:
            return ("once", "") if asked.tool == "bash" else None

    rig = await make_rig(attached=False, person=Scripted())
    calls = [("bash", WORK), ("edit", {"path": "a.py"})]
    rig.provider.script = lambda a: Reply("", calls) if a.number == 1 else Reply("ok")
    await rig.say()
    assert [e.by for e in rig.sink.of(ApprovalAnswered)] == ["scripted person", "nobody"]
    assert [r.get("is_error") for r in rig.results()] == [None, True]


async def test_a_look_command_that_hits_a_read_only_disk_is_offered_as_work(rig: Rig) -> None:
    """Yes runs it again from the start; no returns what look gave."""

    def behave(arguments: Any, context: Any) -> ToolResult:
        if context.access == "look":
            return ToolResult(content="EROFS", status="error", wants_work=True, view="look")
        return ToolResult(content="built", view="work")

    rig.tools["bash"].behaviour = behave
    answers: list[tuple[Any, str]] = [("once", "built"), ("deny", "EROFS")]
    for answer, content in answers:
        number = len(rig.bodies("p")) + 1
        rig.provider.script = lambda a, n=number: (
            Reply("", [("bash", {"command": "make"})]) if a.number == n else Reply("ok")
        )
        await rig.do(SendPrompt(text="go"))
        await rig.until(lambda: rig.state.asks)
        await rig.do(AnswerRequest(request=rig.state.asks[0].event.request, answer=answer))
        await rig.idle()
        assert rig.results()[-1]["content"] == content


async def test_the_same_refused_call_again_and_again_is_shown_as_slow(rig: Rig) -> None:
    """T78: shown as SLOW(repeats) with its count, and not stopped, as the design rules."""
    seen: list[str] = []

    def child(asked: Asked) -> Reply:
        seen.append(badge(rig.state, "f1"))
        return Reply("try", [("edit", {"path": "a.py"})]) if asked.number < 5 else Reply(REPORT)

    rig.provider.script = parent_then(join("a"), child)
    await rig.say()
    assert rig.fork("f1").outcome == "done"
    assert seen == ["RUN", "RUN", "RUN", "SLOW", "SLOW"]
    slow = rig.sink.of(ForkSlowed, "f1")
    assert [each.clock for each in slow] == ["repeats", "repeats"]
    assert slow[0].what == "edit a.py called 3 times"
    assert rig.state.runs["f1"].counters.denials == 4
    assert rig.fork("f1").slow is None


async def test_a_mode_for_one_fork_holds_for_it_alone(rig: Rig) -> None:
    """Per session, or per fork."""
    rig.provider.script = parent_then(join("a"), lambda _: Reply(REPORT))
    await rig.say()
    assert (await rig.do(SetMode(mode="plan", handle="f1"))).ok
    assert rig.state.session.mode == "default"
    assert rig.fork("f1").mode == "plan"
    assert not (await rig.do(SetMode(mode="plan", handle="f9"))).ok


async def test_plan_mode_starts_no_write_fork(make_rig: MakeRig) -> None:
    """Nothing that writes starts in plan mode; read-only forks do."""
    rig = await make_rig(mode="plan")
    calls = [*join("a", write=True).calls, *join("b").calls]
    rig.provider.script = parent_then(Reply("", calls), lambda _: Reply(REPORT))
    await rig.say()
    assert "mode is plan" in rig.results()[0]["content"]
    assert rig.fork("f1").name == "b"
    assert rig.worktrees.log == []
