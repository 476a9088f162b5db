"""Fork calls: what is taken, what is refused by name, and what the declarations cost."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forkdeck.errors import AdmissionRefused
from forkdeck.model.raw import JsonDict
from forkdeck.tools import fork_specs
from forkdeck.tools.fork_calls import ForkCall, parse
from forkdeck.tools.registry import BUILTIN, all_specs, by_name
from tests.soak import laws


def tasks(*items: JsonDict, **more: object) -> ForkCall:
    return parse("fork_join", {"tasks": list(items), **more})


def test_a_plain_batch_takes_the_settings() -> None:
    call = parse(
        "fork_join",
        {"tasks": [{"id": "a", "task": "look"}, {"id": "b.2", "task": "at"}]},
        max_concurrency=3,
        background=True,
    )
    assert [task.id for task in call.tasks] == ["a", "b.2"]
    assert (call.max_concurrency, call.background, call.notes) == (3, True, ())
    assert not call.tasks[0].write
    assert call.tasks[0].seed is None


def test_every_field_is_taken() -> None:
    call = tasks(
        {
            "id": "x", "task": " do\nit ", "write": True, "seed": "turns:3", "model": "m-1",
            "effort": "high", "max_turns": 5, "timeout_s": 1.5, "budget_usd": 0.1,
            "base": "dirty", "output_schema": {"type": "object"}, "profile": "p",
            "tools": ["read", "edit"],
        },
        maxConcurrency=8, background=True,
    )  # fmt: skip
    task = call.tasks[0]
    assert (task.task, task.write, task.seed, task.model) == (" do\nit ", True, "turns:3", "m-1")
    assert (task.effort, task.max_turns, task.timeout_s) == ("high", 5, 1.5)
    assert task.budget_usd == Decimal("0.1")
    assert (task.base, task.profile, task.tools) == ("dirty", "p", ("read", "edit"))
    assert (call.max_concurrency, call.background) == (8, True)


def test_write_of_the_task_wins_over_the_batch() -> None:
    call = tasks({"id": "a", "task": "x"}, {"id": "b", "task": "x", "write": False}, write=True)
    assert [task.write for task in call.tasks] == [True, False]


@pytest.mark.parametrize(
    ("task", "field"),
    [
        ({"task": "x"}, r"tasks\[0\]\.id"),
        ({"id": "", "task": "x"}, r"tasks\[0\]\.id"),
        ({"id": "a b", "task": "x"}, r"tasks\[0\]\.id"),
        ({"id": "a\n", "task": "x"}, r"tasks\[0\]\.id"),
        ({"id": "x" * 33, "task": "x"}, r"tasks\[0\]\.id"),
        ({"id": "🙂", "task": "x"}, r"tasks\[0\]\.id"),
        ({"id": 3, "task": "x"}, r"tasks\[0\]\.id"),
        ({"id": "a"}, r"tasks\[0\]\.task is missing"),
        ({"id": "a", "task": " \n"}, r"tasks\[0\]\.task must not be blank"),
        ({"id": "a", "task": 1}, r"tasks\[0\]\.task"),
        ({"id": "a", "task": "x", "write": "yes"}, r"tasks\[0\]\.write"),
        ({"id": "a", "task": "x", "seed": "turns:0"}, r"tasks\[0\]\.seed"),
        ({"id": "a", "task": "x", "seed": "all"}, r"tasks\[0\]\.seed"),
        ({"id": "a", "task": "x", "seed": "none\n"}, r"tasks\[0\]\.seed"),
        ({"id": "a", "task": "x", "effort": "huge"}, r"tasks\[0\]\.effort"),
        ({"id": "a", "task": "x", "max_turns": 0}, r"tasks\[0\]\.max_turns"),
        ({"id": "a", "task": "x", "max_turns": True}, r"tasks\[0\]\.max_turns"),
        ({"id": "a", "task": "x", "max_turns": 1.5}, r"tasks\[0\]\.max_turns"),
        ({"id": "a", "task": "x", "timeout_s": -1}, r"tasks\[0\]\.timeout_s"),
        ({"id": "a", "task": "x", "timeout_s": float("nan")}, r"tasks\[0\]\.timeout_s"),
        ({"id": "a", "task": "x", "budget_usd": 0}, r"tasks\[0\]\.budget_usd"),
        ({"id": "a", "task": "x", "base": "head"}, r"tasks\[0\]\.base contradicts write"),
        ({"id": "a", "task": "x", "output_schema": {"type": "array"}}, "output_schema"),
        ({"id": "a", "task": "x", "tools": ["rm"]}, "unknown tool 'rm'"),
        ({"id": "a", "task": "x", "tools": ["edit"]}, "contradicts write: false"),
        ({"id": "a", "task": "x", "tools": "read"}, "list of tool names"),
        ({"id": "a", "task": "x", "tools": {"only": []}}, r"tools\.only"),
        ({"id": "a", "task": "x", "colour": 1}, r"tasks\[0\]\.colour is not known"),
        ({"id": "a", "task": "x", "model": "a\nb"}, r"tasks\[0\]\.model"),
        ({"id": "a", "task": "x", "max_turns": 3, "maxTurns": 4}, "contradicts max_turns"),
        ("text", r"tasks\[0\] must be an object"),
        (None, r"tasks\[0\] must be an object"),
    ],
)
def test_wrong_tasks_are_refused_by_field(task: object, field: str) -> None:
    with pytest.raises(AdmissionRefused, match=field) as caught:
        parse("fork_join", {"tasks": [task]})
    assert "Nothing was started" not in caught.value.what, "the launch says it, for every refusal"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "tasks"),
        ({"tasks": []}, "tasks"),
        ({"tasks": "x"}, "tasks"),
        ({"tasks": [{"id": str(n), "task": "x"} for n in range(9)]}, "holds 9 tasks"),
        ({"tasks": [{"id": "a", "task": "x"}] * 2}, r"tasks\[1\]\.id 'a' is used twice"),
        ({"tasks": [{"id": "a", "task": "x"}], "max_concurrency": 9}, "max_concurrency"),
        ({"tasks": [{"id": "a", "task": "x"}], "max_concurrency": 0}, "max_concurrency"),
        (
            {"tasks": [{"id": "a", "task": "x"}], "max_concurrency": 2, "maxConcurrency": 3},
            "maxConcurrency contradicts max_concurrency",
        ),
        ({"tasks": [{"id": "a", "task": "x"}], "depth": 2}, "depth is not known"),
        ([], "the arguments must be an object"),
        (None, "the arguments must be an object"),
    ],
)
def test_wrong_batches_are_refused_by_field(arguments: object, field: str) -> None:
    with pytest.raises(AdmissionRefused, match=field):
        parse("fork_join", arguments)


def test_aliases_that_agree_are_one() -> None:
    call = tasks({"id": "a", "task": "x"}, max_concurrency=2, maxConcurrency=2)
    assert call.max_concurrency == 2


def test_ignored_arguments_become_one_note() -> None:
    call = tasks(
        {"id": "a", "task": "x", "inherit_context": True},
        {"id": "b", "task": "x", "inherit_context": False},
    )
    assert call.notes == ("inherit_context was ignored: forks always inherit by their seed",)


def test_tool_filters_become_an_allow_list() -> None:
    call = tasks({"id": "a", "task": "x", "tools": {"deny": ["bash"]}})
    assert call.tasks[0].tools == ("read", "grep", "find", "ls", "edit", "write")
    call = tasks({"id": "a", "task": "x", "tools": {"allow": ["read", "ls"], "deny": ["ls"]}})
    assert call.tasks[0].tools == ("read",)


@pytest.mark.parametrize(
    ("thinking", "effort", "off"),
    [("off", None, "off"), ("minimal", "low", None), ("xhigh", "xhigh", None), (None, None, None)],
)
def test_fork_maps_thinking(thinking: str | None, effort: str | None, off: str | None) -> None:
    call = parse("fork", {"task": "Find the slow tests", "thinking": thinking})
    task = call.tasks[0]
    assert (task.effort, task.thinking, task.id) == (effort, off, "find-the-slow-tests")
    assert (len(call.tasks), call.max_concurrency, call.background) == (1, 1, False)


def test_fork_refuses_contradictions() -> None:
    with pytest.raises(AdmissionRefused, match="thinking contradicts effort 'low'"):
        parse("fork", {"task": "x", "thinking": "high", "effort": "low"})
    with pytest.raises(AdmissionRefused, match="run_in_background contradicts background"):
        parse("fork", {"task": "x", "background": True, "run_in_background": False})
    with pytest.raises(AdmissionRefused, match="task is missing"):
        parse("fork", {})
    with pytest.raises(AdmissionRefused, match="tasks is not known"):
        parse("fork", {"task": "x", "tasks": []})


def test_agent_without_a_type_is_a_background_fork() -> None:
    base = {"prompt": "do", "description": "Check the docs"}
    for extra in ({}, {"subagent_type": ""}, {"subagent_type": "fork"}, {"subagentType": None}):
        call = parse("agent", {**base, **extra})
        task = call.tasks[0]
        assert (call.background, task.seed, task.agent_type) == (True, "placeholder", None)
        assert (task.id, task.task, task.write) == ("check-the-docs", "do", False)
    call = parse("agent", {**base, "run_in_background": False, "fork_turns": "2"})
    assert call.background is True
    assert call.tasks[0].seed == "turns:2"
    assert "run_in_background: false was ignored" in call.notes[0]


def test_agent_with_a_type_starts_fresh() -> None:
    call = parse(
        "agent",
        {
            "prompt": "do", "description": "d", "subagent_type": "reviewer",
            "isolation": "worktree", "run_in_background": False, "inherit_context": True,
        },
        background=True,
    )  # fmt: skip
    task = call.tasks[0]
    assert (task.agent_type, task.seed, task.write) == ("reviewer", "none", True)
    assert call.background is False
    assert len(call.notes) == 1


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        ({"subagent_type": "../x"}, "subagent_type"),
        ({"subagent_type": 3}, "subagent_type"),
        ({"isolation": "vm"}, "isolation"),
        ({"resume": "id"}, "resume is not supported"),
        ({"subagent_type": "a", "fork_turns": "2"}, "fork_turns contradicts"),
        ({"fork_turns": "x"}, "fork_turns"),
        ({"prompt": ""}, "prompt must not be blank"),
        ({"description": None}, "description is missing"),
        ({"unknown": 1}, "unknown is not known"),
    ],
)
def test_wrong_agents_are_refused_by_field(extra: JsonDict, field: str) -> None:
    with pytest.raises(AdmissionRefused, match=field):
        parse("agent", {"prompt": "do", "description": "d", **extra})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(["tasks", "id", "task", "write", "seed", "tools", "prompt", "x", "base"])


@laws(200)
@given(
    name=st.sampled_from(["fork_join", "fork", "agent"]),
    arguments=st.dictionaries(KEYS, JSON, max_size=4) | JSON,
)
def test_any_input_parses_or_is_refused(name: str, arguments: object) -> None:
    try:
        call = parse(name, arguments)
    except AdmissionRefused as error:
        refusal = error.what
    else:
        assert 1 <= len(call.tasks) <= 8
        return
    assert refusal.startswith(name)


def test_declarations_are_fixed_small_and_in_order() -> None:
    names = [spec.name for spec in all_specs()]
    assert names == [
        "read", "bash", "grep", "find", "ls", "edit", "write", "fork_join", "fork", "agent"
    ]  # fmt: skip
    forks = "".join(json.dumps(spec.declaration()) for spec in fork_specs.ALL)
    assert len(forks) / 4 <= 700
    assert len("".join(json.dumps(spec.declaration()) for spec in all_specs())) / 4 <= 2200
    assert all(
        spec.description and spec.description.isprintable() is not None for spec in all_specs()
    )
    assert [tool.effects for tool in BUILTIN] == [False, True, False, False, False, True, True]
    assert by_name("read") is BUILTIN[0]
    assert by_name("fork") is None


@pytest.mark.parametrize("tool", BUILTIN, ids=lambda tool: tool.spec.name)
@pytest.mark.parametrize("arguments", [{}, {"path": None}, {"path": 3, "command": [], "glob": {}}])
def test_describe_takes_any_input(tool: object, arguments: JsonDict) -> None:
    assert isinstance(tool.describe(arguments), str)  # pyright: ignore[reportAttributeAccessIssue]
