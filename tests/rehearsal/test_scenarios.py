"""The built-in scenarios against the real sample with the real tools; the sample's own tests."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forkdeck.config.rules import Rule, judge
from forkdeck.errors import ConfigError
from forkdeck.providers.rehearsal.scenario import builtin, builtin_names, find, load
from forkdeck.tools import registry
from forkdeck.tools.fork_calls import parse
from tests.rehearsal.agent import Agent, PlainWorkspace
from tests.rehearsal.helpers import SAMPLE, assistant, serving, text, user

DEMO = builtin("demo")


def unittest(root):
    return subprocess.run(
        [sys.executable, "-B", "-m", "unittest"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )


def run_git(root, *arguments):
    return subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=True
    ).stdout


def test_the_sample_has_exactly_one_failing_test(sample):
    ran = unittest(sample)
    assert ran.returncode == 1
    assert re.findall(r"^(?:FAIL|ERROR): (\w+)", ran.stderr, re.MULTILINE) == [
        "test_spare_cents_go_to_the_first_parts"
    ]
    assert "Ran 17 tests" in ran.stderr


def test_the_demo_s_edit_makes_the_sample_s_tests_pass(sample):
    edits = [
        call.input
        for answer in DEMO.answers
        for entry in answer.rounds
        for call in entry.calls
        if call.tool == "edit"
    ]
    assert len(edits) == 1
    path = sample / edits[0]["path"]
    before = path.read_text(encoding="utf-8")
    assert before.count(edits[0]["old"]) == 1
    path.write_text(before.replace(edits[0]["old"], edits[0]["new"]), encoding="utf-8")
    ran = unittest(sample)
    assert (ran.returncode, ran.stderr.strip().splitlines()[-1]) == (0, "OK")


def test_the_sample_needs_nothing_but_python():
    for path in SAMPLE.rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"(?:from|import) (\w+)", line):
                assert match[1] in {*sys.stdlib_module_names, "tally"}, path
    assert not (SAMPLE / "__init__.py").exists()


async def test_the_demo_is_real_from_end_to_end(sample):
    async with serving(DEMO) as (server, client):
        parent = Agent(client, PlainWorkspace(sample))
        said = await parent.run(text(f"cwd: {sample}"), text(DEMO.prompt))
        entries = server.journal.entries
    children = parent.children
    assert list(children) == ["confirm", "reach", "coverage", "fix"]
    for name, run in {"parent": parent, **children}.items():
        for tool, arguments, content, error in run.calls:
            assert not error, (name, tool, arguments, content)
    reports = parent.calls[-1][2]
    assert "(not found)" not in reports + said
    fixed = Path(children["fix"].workspace.root)
    assert unittest(fixed).returncode == 0
    assert unittest(sample).returncode == 1  # the parent's tree is untouched
    commit, _, subject = run_git(fixed, "log", "-1", "--format=%h %s").partition(" ")
    assert subject.startswith("Give every spare cent out")
    assert f"committed as {commit}" in reports
    assert f"committed it as `{commit}`" in said
    assert {name: run.waits for name, run in children.items() if run.waits} == {"reach": ["2"]}
    # What a person would check in the reports.
    assert "Ran 17 tests; FAILED (failures=1)" in reports
    assert "check: the lines are off by 0.01" in reports
    assert "tally/money.py:78" in reports
    assert "3 lines name split()" in reports
    assert "check: ok" in reports
    assert {entry.role for entry in entries} == {"parent", "fork"}
    assert {entry.handle for entry in entries} == {"", "f1", "f2", "f3", "f4"}


async def test_the_demo_s_forks_read_the_parent_s_prefix(sample):
    async with serving(DEMO) as (server, client):
        parent = Agent(client, PlainWorkspace(sample))
        await parent.run(text(DEMO.prompt))
        last = [entry for entry in server.journal.of("") if entry.status == 200][1]
        first = [server.journal.of(f"f{number}")[0] for number in range(1, 5)]
    total = sum(last.usage[key] for key in ("cache_read_input_tokens", "input_tokens"))
    total += last.usage["cache_creation_input_tokens"]
    reads = sum(len(content) for name, _, content, _ in parent.calls if name == "read")
    assert reads / 4 >= 5000
    assert total >= 5000
    for child in first:
        assert child.usage["cache_read_input_tokens"] == total
        assert child.shared_positions(last) == len(last.digests)


async def test_a_denied_commit_is_told_as_it_was(sample):
    async with serving(DEMO) as (_, client):
        parent = Agent(client, PlainWorkspace(sample))
        parent.deny = "git commit"
        said = await parent.run(text(DEMO.prompt))
    assert "no fix was committed" in said
    assert "It was not committed: Denied by the person." in parent.calls[-1][2]


async def test_a_resent_prompt_and_a_steer_do_not_derail_the_script(sample):
    async with serving(DEMO) as (server, client):
        parent = Agent(client, PlainWorkspace(sample))
        parent.messages.append(user(text(DEMO.prompt)))
        message = await parent.step()
        parent.messages.append(assistant(*[block.to_dict() for block in message.content]))
        calls = [block for block in message.content if block.type == "tool_use"]
        results = [await parent._answer(call, []) for call in calls]
        parent.messages.append(user(*results, text("be quick, please")))
        await parent.step()
        assert server.journal.entries[-1].source == "parent, round 2"


def test_the_demo_s_rules_cover_its_commands_and_nothing_else():
    rules = [Rule.parse(rule, "allow") for rule in DEMO.allow]
    rules += [Rule.parse(rule, "ask") for rule in DEMO.ask]
    asked = []
    for answer in DEMO.answers:
        for call in (call for entry in answer.rounds for call in entry.calls):
            assert registry.by_name(call.tool) or call.tool == "fork_join"
            if call.tool in ("bash", "edit"):
                kind = judge(rules, call.tool, call.input).kind
                assert kind in ("allow", "ask"), call
                asked += [call.input["command"]] if kind == "ask" else []
    assert len(asked) == 1
    assert DEMO.person[0].match.search(asked[0])
    for other in ("python3 -m http.server", "git push", "python3 -m unittest; rm -rf x"):
        assert judge(rules, "bash", {"command": other}).kind != "allow"


@pytest.mark.parametrize("name", ["bench", "demo", "supervise"])
def test_calls_are_such_as_the_tools_take(name):
    for answer in builtin(name).answers:
        for call in (call for entry in answer.rounds for call in entry.calls):
            if call.tool == "fork_join":
                assert len(parse("fork_join", call.input).tasks) in (4, 8)
                continue
            tool = registry.by_name(call.tool)
            assert tool is not None
            assert set(call.input) <= set(tool.spec.input_schema["properties"])
            assert set(tool.spec.input_schema["required"]) <= set(call.input)


async def test_the_demo_takes_about_twenty_seconds(sample):
    """The script's own time at speed 1, waits of the 429 and of the person included."""
    async with serving(DEMO) as (server, client):
        parent = Agent(client, PlainWorkspace(sample))
        await parent.run(text(DEMO.prompt))
        spans: dict[str, float] = {}
        for entry in server.journal.entries:
            if entry.status == 200:
                spans[entry.handle] = spans.get(entry.handle, 0) + _script_s(entry)
    slowest = max(span for handle, span in spans.items() if handle)
    whole = spans[""] + slowest + 2 + DEMO.person[0].after_ms / 1000
    assert 12 < whole < 24, spans


def _script_s(entry):
    return 0.35 + entry.usage["output_tokens"] / 80


async def test_the_bench_has_four_requests_a_fork_and_a_parent_of_two_turns(sample):
    bench = builtin("bench")
    async with serving(bench) as (server, client):
        parent = Agent(client, PlainWorkspace(sample))
        said = [await parent.run(text(prompt)) for prompt in bench.prompts]
        entries = server.journal.entries
    assert said[-1] == "All eight are back."
    assert list(parent.children) == [f"b{number}" for number in range(1, 9)]
    for number in range(1, 9):
        mine = [entry for entry in entries if entry.handle == f"f{number}"]
        assert len(mine) == 4
        assert 45 <= mine[-1].usage["output_tokens"] <= 55
    for child in parent.children.values():
        assert [name for name, *_ in child.calls] == ["bash", "read", "bash"]
    before = [e for e in entries if e.role == "parent"][:7]
    assert len(before[-1].body["messages"]) == 13


def test_builtin_names():
    assert builtin_names() == ("bench", "demo", "investigator", "supervise")
    assert builtin("investigator").answers == ()
    with pytest.raises(ConfigError, match="magic"):
        builtin("magic")


WRONG = {
    "no toml": "name = \n",
    "unknown field": "nam = 'x'\n",
    "unknown role": "[[answer]]\nrole = 'boss'\n[[answer.round]]\n",
    "no rounds": "[[answer]]\nmatch = 'x'\n",
    "bad pattern": "[[answer]]\nmatch = '('\n[[answer.round]]\n",
    "bad template": "[[answer]]\n[[answer.round]]\ntext = '{{a ~ (}}'\n",
    "bad condition": "[[answer]]\n[[answer.round]]\nwhen = 'always'\n",
    "bad fault": "[[answer]]\n[[answer.round]]\nfault = 'magic'\n",
    "fault without a number": "[[fault]]\nkind = 'reset'\n",
    "negative rate": "[pace]\nrate = -1\n",
    "rate in words": "[pace]\nrate = 'fast'\n",
    "call without a tool": "[[answer]]\n[[answer.round]]\n[[answer.round.call]]\ninput = {}\n",
    "answer is a table": "[answer]\nmatch = 'x'\n",
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_scenarios_are_named(name):
    with pytest.raises(ConfigError):
        load(WRONG[name])


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("promt = 'x'\n", "unknown field 'promt'. Did you mean 'prompt", "answer, fault, investig"),
        ("[pace]\nrates = 1\n", "unknown field 'rates'. Did you mean 'rate'?", "call_rate, rate,"),
        (
            "[[answer]]\n[[answer.round]]\nfualt = 'reset'\n",
            "answer 1 round 1: unknown field 'fualt'. Did you mean 'fault'?",
            "Known: call, call_rate, fault, rate, stop_reason, text, thinking, ttft_ms, unless,",
        ),
        (
            "[[fault]]\nrequest = 1\nkind = 'rest'\n",
            "unknown fault 'rest'. Did you mean 'reset'?",
            "Known: rate_limited, ",
        ),
        (
            "[[fault]]\nrequest = 1\nkind = 'reset'\nafer = 2\n",
            "unknown fault field 'afer'. Did you mean 'after'?",
            "Known: after, kind, ",
        ),
    ],
)
def test_an_unknown_name_tells_the_nearest_and_all(text, what, remedy):
    with pytest.raises(ConfigError) as wrong:
        load(text)
    assert what in wrong.value.what
    assert remedy in wrong.value.remedy


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nowhere") as wrong:
        load(tmp_path / "nowhere.toml")
    assert "built-in one: bench, demo, investigator, supervise." in wrong.value.remedy


def test_a_scenario_is_found_by_its_built_in_name_or_as_a_file(tmp_path):
    assert find("demo") == builtin("demo")
    (tmp_path / "own.toml").write_text("name = 'own'\n")
    assert find(str(tmp_path / "own.toml")).name == "own"
    with pytest.raises(ConfigError, match="magic cannot be read"):
        find("magic")
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError):
        load(str(tmp_path / "a.toml"))


def test_loading_the_scenarios_is_quick():
    began = time.perf_counter()
    builtin("demo")
    assert time.perf_counter() - began < 1
