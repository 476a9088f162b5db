"""Typed agents, profiles and templates: trusted only, narrow only, every fault named."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from forkdeck.cli.trusted_files import TrustedFiles, user_file
from forkdeck.config.settings import AgentSettings, ForkSettings, Settings
from forkdeck.config.trust import TrustStore
from forkdeck.engine.profile_files import read_agent, read_profile
from forkdeck.engine.profiles import offered
from forkdeck.engine.templates import fault
from forkdeck.errors import AdmissionRefused
from forkdeck.model.prefix import message_blocks
from tests.engine.conftest import MakeRig
from tests.engine.fakes import Asked, Reply
from tests.engine.rig import REPORT, parent_then

PATH = ".forkdeck/profiles/x.toml"
AGENT = b"""---
name: reviewer
description: >
  Reviews a change
  with care.
tools: Read, Grep, LS, Bash
model: inherit
color: red
---
You review code."""


class Files:
    """The project's trusted files, as a dictionary."""

    def __init__(self, **files: bytes) -> None:
        self.files = {name.replace("__", "/"): data for name, data in files.items()}

    def read(self, relative: str, limit: int) -> bytes | None:
        data = self.files.get(relative)
        return None if data is None else data[:limit]

    def paths(self) -> tuple[str, ...]:
        return tuple(sorted(self.files))


def project(files: dict[str, bytes]) -> Any:
    found = Files()
    found.files = files
    return found


def test_a_profile_is_read_whole() -> None:
    """Tools with and without arguments, effort, limits, seed and hint."""
    data = b"""
hint = "Look, do not touch."
allow = ["read", "grep", "bash(pytest)", "bash(git log)"]
deny = ["bash(git log --all)", "find"]
effort = "low"
seed = "completed_turns"
max_turns = 20
timeout_s = 90
budget_usd = "0.25"
"""
    found = read_profile("x", PATH, data)
    assert found.hint == "Look, do not touch."
    assert found.tools == frozenset(("read", "grep", "bash"))
    assert found.denied == frozenset(("find",))
    assert [f"{r.kind} {r.text}" for r in found.rules] == [
        "allow bash(pytest)", "allow bash(git log)", "deny bash(git log --all)"
    ]  # fmt: skip
    assert (found.effort, found.seed, found.limits.max_turns) == ("low", "completed_turns", 20)
    assert (found.limits.timeout_s, found.limits.budget_usd) == (90.0, Decimal("0.25"))
    assert read_profile("x", PATH, b'allow = ["bash", "bash(ls)"]').rules == ()
    assert read_profile("x", PATH, b"").tools is None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"allow = [", "is no TOML"),
        (b"\xff", "is no TOML"),
        (b'alow = ["read"]', "alow: there is no such field. Did you mean 'allow'?"),
        (b'allow = "read"', "allow: must be a list"),
        (b'deny = ["rm"]', 'deny: The rule "rm" names no tool.'),
        (b"max_turns = 0", "max_turns: must be a whole number"),
        (b'seed = "all"', "seed: must be before_call"),
        (b'effort = "hot"', "effort: must be one of"),
        (b"hint = 3", "hint: must be a text"),
    ],
)
def test_a_fault_of_a_profile_names_file_and_field(data: bytes, words: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(AdmissionRefused) as refused:
        read_profile("x", PATH, data)
    assert str(refused.value).startswith(f"profile: {PATH}")
    assert words in str(refused.value)


def test_agent_files_of_other_programs_are_understood() -> None:
    """Their tool names, their short model names and folded texts."""
    found = read_agent("reviewer", ".claude/agents/reviewer.md", AGENT)
    assert (found.name, found.description) == ("reviewer", "Reviews a change with care.")
    assert found.tools == frozenset(("read", "grep", "ls", "bash"))
    assert found.model is None
    assert found.body == "You review code."
    own = read_agent("a", "a.md", b"---\nmodel: claude-x-5-1\ntools: [read]\n---\nHi")
    assert own.model == "claude-x-5-1"
    assert read_agent("a", "a.md", b"Just a prompt.").tools is None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"---\ntools: rm\n---\nHi", "tools: there is no tool 'rm'"),
        (b"---\ntools: Read\n", "no closing line of dashes"),
        (b"---\nname: a\n---\n", "has no prompt"),
        (b"---\neffort: hot\n---\nHi", "effort: must be one of"),
        (b"---\ntools: [Read, Reed]\n---\nHi", "there is no tool 'Reed'. Did you mean 'read'?"),
        (b"---\ndisallowedTools: Edit, Writ\n---\nHi", "disallowedTools: there is no tool 'Writ'"),
        (b"\xff\xfe\x00", "is no text in UTF-8"),
        (b"You look.\x00", "holds a NUL character"),
    ],
)
def test_a_fault_of_an_agent_file_is_named(data: bytes, words: str) -> None:
    """With the file's path."""
    with pytest.raises(AdmissionRefused) as refused:
        read_agent("a", ".forkdeck/agents/a.md", data)
    assert str(refused.value).startswith("subagent_type: .forkdeck/agents/a.md")
    assert words in str(refused.value)


def test_what_an_agent_file_names_in_vain_is_told() -> None:
    """Other programs' tools and short model names; a trailing comma gives nothing more."""
    data = b"---\ntools: Read, WebFetch, mcp__x__y,\nmodel: sonnet\n---\nHi"
    found = read_agent("a", "a.md", data)
    assert (found.tools, found.model) == (frozenset(("read",)), None)
    assert found.notes == (
        "agent a: WebFetch, mcp__x__y in tools has no match here and is passed over.",
        "agent a: the model 'sonnet' is no full name of one and is passed over, as if it named "
        "none.",
    )
    assert read_agent("a", "a.md", b"---\nmodel: inherit\n---\nHi").notes == ()


async def test_the_launch_tells_what_was_passed_over(make_rig: MakeRig) -> None:
    """In the call's result, where the model reads it."""
    agent = b"---\ntools: Read, WebFetch\n---\nYou look."
    rig = await make_rig(project=project({".forkdeck/agents/l.md": agent}), trusted=True)
    call = {
        "prompt": "Look.", "description": "look", "subagent_type": "l", "run_in_background": False,
    }  # fmt: skip
    rig.provider.script = parent_then(Reply("", [("agent", call)]), lambda _: Reply(REPORT))
    await rig.say()
    assert "agent l: WebFetch in tools has no match here" in str(rig.results()[0]["content"])


def fork(**more: Any) -> Reply:
    return Reply("", [("fork_join", {"tasks": [{"id": "a", "task": "Look.", **more}]})])


async def test_a_profile_narrows_calls_by_their_arguments(make_rig: MakeRig) -> None:
    """FORKS "Scope": it is enforced when a call is made; tools and head stay the parent's."""
    files = {PATH: b'hint = "Be quick."\nallow = ["bash(git log)", "read"]\neffort = "high"'}
    rig = await make_rig(project=project(files), trusted=True)
    calls = [
        ("bash", {"command": "git log -3"}), ("bash", {"command": "git log; rm x"}),
        ("bash", {"command": "ls"}), ("grep", {"pattern": "x"}), ("read", {"path": "a.py"}),
    ]  # fmt: skip

    def child(asked: Asked) -> Reply:
        return Reply("", calls) if asked.number == 1 else Reply(REPORT)

    rig.provider.script = parent_then(fork(profile="x"), child)
    await rig.say()
    texts = [str(block["content"]) for block in rig.results("f1")]
    assert texts[0] == "bash says ok"
    assert "it gives only bash(git log)" in texts[1]
    assert "it gives only bash(git log)" in texts[2]
    assert "does not give grep" in texts[3]
    assert texts[4] == "read says ok"
    assert rig.bodies("f1")[0]["tools"] == rig.bodies("p")[0]["tools"]
    directive = message_blocks(rig.bodies("f1")[0]["messages"][-1])[-1]["text"]
    assert "Be quick." in directive
    assert "You may call only `read` and `bash`; other tools are refused." in directive
    assert "`bash` takes only commands that begin with `git log`." in directive
    assert rig.fork("f1").rules == ("allow bash(git log)",)


async def test_what_is_not_there_or_not_trusted_is_refused_by_name(make_rig: MakeRig) -> None:
    """Before anything starts, with what is known."""
    files = {".claude/agents/b.md": AGENT, ".forkdeck/agents/tester.md": b"Test."}
    rig = await make_rig(project=project(files), trusted=True)
    agent = {"prompt": "Look.", "description": "look"}
    rig.provider.script = parent_then(
        Reply("", [("agent", {**agent, "subagent_type": "nobody"})]), lambda _: Reply(REPORT)
    )
    await rig.say()
    text = rig.results()[0]["content"]
    assert "there is no .forkdeck/agents/nobody.md or .claude/agents/nobody.md" in text
    assert "Known: tester, b." in text
    assert rig.state.forks == {}
    plain = await make_rig(project=project(files))
    plain.provider.script = parent_then(
        Reply("", [("agent", {**agent, "subagent_type": "tester"})]), lambda _: Reply(REPORT)
    )
    await plain.say()
    assert "not trusted" in plain.results()[0]["content"]


async def test_the_model_is_told_what_it_can_name(make_rig: MakeRig) -> None:
    """In the first message of the parent alone; a file with a fault is left out."""
    files = {
        ".claude/agents/b.md": AGENT,
        ".forkdeck/agents/tester.md": b"Test.",
        ".forkdeck/agents/broken.md": b"---\nname: x",
        PATH: b'description = "Looks </environment> only."',
        ".forkdeck/profiles/bad.toml": b"no = [",
    }
    lines = offered(project(files))
    assert lines == (
        "agents (subagent_type): tester; reviewer: Reviews a change with care.",
        "fork profiles (profile): x: Looks </environment> only.",
    )
    assert offered(project({})) == ()
    rig = await make_rig(project=project(files), trusted=True, offered=lines)
    call = {"prompt": "Look.", "description": "look", "subagent_type": "reviewer"}
    rig.provider.script = parent_then(Reply("", [("agent", call)]), lambda _: Reply(REPORT))
    await rig.say()
    await rig.idle()
    told = message_blocks(rig.bodies("p")[0]["messages"][0])[0]["text"]
    assert lines[0] in told
    assert told.count("</environment>") == 1
    assert "subagent_type" not in str(rig.bodies("f1")[0]["messages"][0])


async def test_an_agent_is_found_by_the_name_in_its_header(make_rig: MakeRig) -> None:
    """Its prompt is the system prompt of a run without a seed."""
    rig = await make_rig(project=project({".claude/agents/b.md": AGENT}), trusted=True)
    call = {"prompt": "Look.", "description": "look", "subagent_type": "reviewer"}
    rig.provider.script = parent_then(Reply("", [("agent", call)]), lambda _: Reply(REPORT))
    await rig.say()
    await rig.idle()
    body = rig.bodies("f1")[0]
    assert body["system"][0]["text"] == "You review code."
    names = [tool["name"] for tool in body["tools"]]
    assert names == ["read", "bash", "grep", "ls"], (
        "lean: only what it may call, in the fixed order"
    )
    first = message_blocks(body["messages"][0])[0]["text"]
    assert first.startswith("<environment>")
    assert rig.fork("f1").agent_type == "reviewer"
    assert rig.fork("f1").outcome == "done"


@pytest.mark.parametrize("seed", ["none", "before_call"])
async def test_a_run_is_told_only_what_is_true_for_it(make_rig: MakeRig, seed: str) -> None:
    """Without inherited history nothing is "above" it; siblings share the rules byte for byte."""
    rig = await make_rig()
    asked = [{"id": name, "task": "Look.", "seed": seed} for name in ("a", "b")]
    call = Reply("", [("fork_join", {"tasks": asked})])
    rig.provider.script = parent_then(call, lambda _: Reply(REPORT))
    await rig.say()
    told = [message_blocks(rig.bodies(f)[0]["messages"][-1])[-2:] for f in ("f1", "f2")]
    assert told[0][0]["text"] == told[1][0]["text"]
    words = "\n".join(block["text"] for block in told[0])
    fresh = seed == "none"
    assert ("Everything above" in words, "this conversation" in words) == (not fresh, not fresh)
    assert ("of which you see nothing" in words) is fresh
    assert f"You are {'agent' if fresh else 'fork'} f1 (" in words
    assert "`fork_join`, `fork` and `agent`, but they are refused." in words


async def test_a_lean_agent_is_told_of_no_tool_it_does_not_have(make_rig: MakeRig) -> None:
    """Its head declares three; it inherits no conversation and no worktree paths."""
    agent = b"---\ntools: Read, Grep, Glob\n---\nYou look."
    rig = await make_rig(project=project({".forkdeck/agents/l.md": agent}), trusted=True)
    call = {"prompt": "Look.", "description": "look", "subagent_type": "l"}
    rig.provider.script = parent_then(Reply("", [("agent", call)]), lambda _: Reply(REPORT))
    await rig.say()
    await rig.idle()
    words = "\n".join(b["text"] for b in message_blocks(rig.bodies("f1")[0]["messages"][-1]))
    assert "What you may do: read-only.\n" in words
    for untrue in ("`edit`", "`bash`", "fork_join", "above", "You are fork"):
        assert untrue not in words


async def test_an_agent_that_is_not_lean_declares_every_tool(make_rig: MakeRig) -> None:
    """`agents.lean = false`: refused when called, as in every fork."""
    settings = Settings(forks=ForkSettings(plan="never"), agents=AgentSettings(lean=False))
    rig = await make_rig(
        project=project({".claude/agents/b.md": AGENT}), trusted=True, settings=settings
    )
    call = {"prompt": "Look.", "description": "look", "subagent_type": "reviewer"}

    def child(asked: Asked) -> Reply:
        return Reply("", [("edit", {"path": "a"})]) if asked.number == 1 else Reply(REPORT)

    rig.provider.script = parent_then(Reply("", [("agent", call)]), child)
    await rig.say()
    await rig.idle()
    assert rig.bodies("f1")[0]["tools"] == rig.bodies("p")[0]["tools"]
    assert "does not give edit" in rig.results("f1")[0]["content"]


async def test_a_template_takes_the_place_of_the_directive(make_rig: MakeRig) -> None:
    """The project's comes before the person's; a broken one is told once and passed over."""
    bad = {".forkdeck/templates/directive.md": b"Do it for $money."}
    rig = await make_rig(
        project=project(bad), trusted=True, user_file=lambda name, _: b"MINE: $task ($handle)"
    )
    rig.provider.script = parent_then(fork(), lambda _: Reply(REPORT))
    await rig.say()
    assert message_blocks(rig.bodies("f1")[0]["messages"][-1])[-1]["text"] == "MINE: Look. (f1)"
    rig.provider.script = parent_then(fork(), lambda _: Reply(REPORT))
    rig.provider.requests.clear()
    await rig.say("again")
    told = [n for n in rig.state.notices if "is not used" in n.what]
    assert [n.what for n in told] == [
        "The template .forkdeck/templates/directive.md is not used: it does not name $task."
    ]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"$task" + b"x" * 16_384, "it is larger than 16 KiB"),
        (b"x" * 16_384 + b"$task", "it is larger than 16 KiB"),
        (b"$task \xff", "it is no text in UTF-8"),
        (b"$task \x00", "it holds a NUL character"),
    ],
)
async def test_a_template_that_cannot_be_read_whole_is_not_used(
    make_rig: MakeRig, data: bytes, why: str
) -> None:
    """Never cut: the notice names the size, not what was lost with the rest."""
    rig = await make_rig(user_file=lambda _, limit: data[:limit])
    rig.provider.script = parent_then(fork(), lambda _: Reply(REPORT))
    await rig.say()
    directive = message_blocks(rig.bodies("f1")[0]["messages"][-1])[-1]["text"]
    assert directive.startswith("You are fork f1 (")
    told = [n.what for n in rig.state.notices if "is not used" in n.what]
    assert told == [f"The template templates/directive.md is not used: {why}."]


def test_faults_of_templates() -> None:
    """Each has words."""
    assert fault("$task") == ""
    assert fault("$$5 for ${task}") == ""
    assert fault("costs $5 $task").startswith("a $ in it")
    assert fault("$task $colour") == "it names $colour, which is nothing"


def test_files_count_as_they_were_trusted(tmp_path: Path) -> None:
    """A file that changed after it was trusted is as good as absent."""
    root, store = tmp_path / "w", TrustStore(tmp_path / "s")
    place = root / ".forkdeck/agents/a.md"
    place.parent.mkdir(parents=True)
    place.write_text("One.")
    store.grant(root)
    files = TrustedFiles(store, root)
    assert files.read(".forkdeck/agents/a.md", 100) == b"One."
    assert files.paths() == (".forkdeck/agents/a.md",)
    assert user_file(root, ".forkdeck/agents/a.md", 2) == b"On"
    assert user_file(root, "../s/trust.json", 99) is None
    assert user_file(root, "none.md", 99) is None
