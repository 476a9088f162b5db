"""Bodies, marks and heads: what may move and what may not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forkdeck.errors import PrefixChanged, SeedRefused
from forkdeck.model.ports import ModelFacts
from forkdeck.model.prefix import fingerprint, positions
from forkdeck.model.raw import JsonDict
from forkdeck.model.state import ForkState
from forkdeck.model.tooling import ToolSpec
from forkdeck.seeds.directive import directive_block, shared_rules_block
from forkdeck.seeds.head import RequestHead, build_head
from forkdeck.seeds.policy_words import Gives, policy_words
from forkdeck.seeds.request import build_body, check_prefix, rolling_marks
from forkdeck.seeds.texts import text as package_text
from forkdeck.seeds.validity import check, merged

ALL = ("read", "bash", "edit", "write", "grep", "fork_join", "fork", "agent")
FORKING = frozenset(("fork_join", "fork", "agent"))
SPECS = [ToolSpec(name=n, description="d", input_schema={"type": "object"}) for n in ("b", "a")]


def head() -> RequestHead:
    return build_head("m", SPECS, ModelFacts(thinking={"type": "adaptive"}, effort="medium"))


def user(*words: str) -> JsonDict:
    return {"role": "user", "content": [{"type": "text", "text": word} for word in words]}


def marked(body: JsonDict) -> list[int]:
    flat = [block for message in body["messages"] for block in message["content"]]
    return [index for index, block in enumerate(flat) if "cache_control" in block]


def test_head_is_stored_and_read_back_byte_for_byte() -> None:
    made = head()
    again = RequestHead.from_text(made.text)
    assert again.text == made.text
    assert again.sha256 == made.sha256
    assert [tool["name"] for tool in made.parts()["tools"]] == ["b", "a"]
    assert "output_config" not in made.parts()
    assert build_head("m", SPECS, ModelFacts(effort="medium"), effort="high").effort == "high"


def test_system_prompt_is_short_and_holds_nothing_that_moves() -> None:
    """T31: no date, directory, branch or id; under 900 tokens at four characters each."""
    words = package_text("system")
    assert len(words) / 4 < 900
    assert "$" not in words


def test_marks_move_without_moving_the_prefix() -> None:
    """T35: marks are not part of a position, and there are at most four."""
    messages = [user("a", "b"), {"role": "assistant", "content": [{"type": "text", "text": "c"}]}]
    messages.append(user("d"))
    one = build_body(head(), messages, [3], 100)
    two = build_body(head(), messages, [0, 1, 3], 200)
    assert fingerprint(positions(one)) == fingerprint(positions(two))
    assert marked(one) == [3]
    assert marked(two) == [0, 1, 3]
    assert "cache_control" not in json.dumps(messages)
    assert one["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert list(one) == ["model", "max_tokens", "thinking", "tools", "system", "messages"]


def test_no_mark_on_thinking_or_empty_text() -> None:
    messages = [
        user("a"),
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "x"},
                {"type": "thinking", "thinking": "t", "signature": "s"},
            ],
        },
        user("b", ""),
    ]
    assert marked(build_body(head(), messages, [2, 4], 10)) == [1, 3]


def test_rolling_marks() -> None:
    assert rolling_marks((), None, 5) == (4,)
    assert rolling_marks((), 4, 7) == (4, 6)
    assert rolling_marks((10, 12), None, 14) == (10, 12, 13)
    assert rolling_marks((10, 12), 13, 20) == (12, 13, 19)
    assert rolling_marks((10,), 13, 20) == (10, 13, 19)
    assert rolling_marks((), None, 0) == ()


def test_neighbours_are_joined_without_moving_positions() -> None:
    apart = [user("a"), user("b")]
    joined = merged(apart)
    assert len(joined) == 1
    body = {"messages": apart}
    assert positions(body) == positions({"messages": joined})


def test_changed_prefix_names_the_block() -> None:
    parent = build_body(head(), [user("a", "b")], [], 10)
    child = build_body(head(), [user("a", "X", "c")], [], 10)
    with pytest.raises(PrefixChanged, match=r"messages\[0\] block 1"):
        check_prefix(positions(parent), positions(child), child, "f1")
    longer = build_body(head(), [user("a", "b", "c")], [], 10)
    check_prefix(positions(parent), positions(longer), longer, "f1")
    other = build_body(build_head("n", SPECS, ModelFacts()), [user("a", "b")], [], 10)
    with pytest.raises(PrefixChanged, match="model, thinking or effort"):
        check_prefix(positions(parent), positions(other), other, "f1")


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([], "empty"),
        ([{"role": "assistant", "content": "x"}], "begin and end"),
        ([user("a"), {"role": "assistant", "content": []}, user("b")], "is empty"),
        ([user("a"), user("b")], "same role"),
        (
            [
                user("a"),
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "x"}]},
                user("b"),
            ],
            "call t has no result",
        ),
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}],
            "a result has no call",
        ),
    ],
)
def test_faults_are_named(messages: list[JsonDict], fault: str) -> None:
    with pytest.raises(SeedRefused, match=fault):
        check(messages)


def fork_state(**more: Any) -> ForkState:
    values: dict[str, Any] = {
        "handle": "f1", "batch": "b1", "index": 0, "name": "n", "task": "t", "seed": "none",
        "from_run": "p", "depth": 1, "write": False, "queued_at_ms": 0,
    }  # fmt: skip
    return ForkState(**{**values, **more})


def test_directive_is_last_and_takes_any_task() -> None:
    """T25, T32: scope, policy and directory stand in the directive; `$` in a task is literal."""
    fork = fork_state(
        handle="f2",
        task="cost $HOME $task ${x}",
        seed="before_call",
        write=True,
        boundary=3,
        max_turns=9,
        budget_usd="0.50",
        budget_tokens=20_000,
    )
    words = directive_block(fork, gives=Gives(ALL), notice="cwd: /x")["text"]
    assert words.startswith("You are fork f2 ")
    assert "cost $HOME $task ${x}" in words
    assert "9 turns, $0.50, 20000 tokens" in words
    assert "cwd: /x" in words
    assert "f2" not in shared_rules_block()["text"]


def policy_of(
    *declared: str, barred: frozenset[str] = FORKING, write: bool = False, **more: Any
) -> str:
    return policy_words(fork_state(write=write, **more), Gives(declared, barred))


def test_the_policy_says_what_is_true_for_the_run() -> None:
    """FORKS: limits and tool policy in words; nothing is named that the run does not have."""
    assert policy_of(*ALL) == (
        "read-only. `bash` runs in the look view. You see `edit`, `write`, `fork_join`, `fork` and "
        "`agent`, but they are refused."
    )
    assert policy_of("read", "grep", "find", tools=("find", "grep", "read")) == "read-only."
    assert policy_of(tools=()) == (
        "read-only. You can call no tool: work from what you have been given."
    )
    assert policy_of(*ALL, barred=frozenset(), write=True) == (
        "read, and change files in your own copy of the repository. Nothing you do there touches "
        "the original files. Committing is welcome, not needed: all your work is saved."
    )
    assert policy_of("read", "edit", "grep", write=True, denied=("grep",)).endswith(
        "All your work is saved. You see `grep`, but it is refused."
    )
    assert policy_of("read", "grep", "bash", write=True, tools=("read",)) == (
        "read-only. You may call only `read`; other tools are refused."
    )


def test_the_policy_names_the_arguments_that_tools_take() -> None:
    """Patterns of a profile, those of tools it may not call left out."""
    rules = (
        "allow bash(git log)",
        "allow bash(git show)",
        "deny bash(git log --all)",
        "deny read(secrets/**)",
        "allow grep(src/**)",
    )
    assert policy_of(*ALL, tools=("read", "bash"), rules=rules) == (
        "read-only. `bash` runs in the look view. You may call only `read` and `bash`; other tools "
        "are refused. `read` refuses paths that match `secrets/**`. `bash` takes only commands "
        "that begin with `git log` or `git show`. `bash` refuses commands that begin with "
        "`git log --all`."
    )
