"""Permission rules: what allow takes, what it never takes, what deny and ask catch."""

from __future__ import annotations

import time

import pytest

from forkdeck.config.command import parse
from forkdeck.config.rules import TOOLS, Rule, grant_text, judge
from forkdeck.errors import ConfigError
from tests.config.commands import ALLOWED, DENIED, NEVER_ALLOWED


def rules(*, allow=(), ask=(), deny=()):
    return [
        *(Rule.parse(text, "allow") for text in allow),
        *(Rule.parse(text, "ask") for text in ask),
        *(Rule.parse(text, "deny") for text in deny),
    ]


ALLOW = rules(
    allow=[
        "bash(pytest -q)",
        "bash(ls)",
        "bash(git status)",
        "bash(git log)",
        "bash(echo)",
        "bash(grep)",
        "bash(cd src)",
        "bash(python -m pytest)",
        "bash(python)",
        "bash(find)",
        "bash(sort)",
        "bash(bash)",
        "bash(env)",
        "bash(eval)",
        "bash(sudo)",
        "bash(xargs)",
        "bash(perl)",
        "bash(node)",
        "bash('my tool' run)",
    ]
)


@pytest.mark.parametrize("command", ALLOWED)
def test_allowed(command):
    assert judge(ALLOW, "bash", {"command": command}).kind == "allow"


@pytest.mark.parametrize("command", NEVER_ALLOWED)
def test_never_allowed(command):
    assert judge(ALLOW, "bash", {"command": command}).kind is None


@pytest.mark.parametrize("command", [c for c in NEVER_ALLOWED if parse(c).barred])
def test_a_rule_for_the_whole_tool_takes_no_barred_command_either(command):
    assert judge(rules(allow=["bash"]), "bash", {"command": command}).kind is None


@pytest.mark.parametrize("command", DENIED)
def test_denied(command):
    mine = rules(allow=["bash", "bash(rm)", "bash(git push)"], deny=["bash(rm)", "bash(git push)"])
    assert judge(mine, "bash", {"command": command}).kind == "deny"


@pytest.mark.parametrize("command", ["rmdir x", "ls rm", "git pull", "git log push", "farm x"])
def test_not_denied(command):
    mine = rules(deny=["bash(rm)", "bash(git push)"])
    assert judge(mine, "bash", {"command": command}).kind is None


def test_deny_over_ask_over_allow_in_any_order():
    texts = [Rule.parse("bash(ls)", "allow"), Rule.parse("bash(ls)", "ask")]
    assert judge(texts, "bash", {"command": "ls"}).kind == "ask"
    texts.append(Rule.parse("bash(ls -la)", "deny"))
    for order in (texts, texts[::-1]):
        assert judge(order, "bash", {"command": "ls -la"}).kind == "deny"
        assert judge(order, "bash", {"command": "ls"}).kind == "ask"


def test_the_rule_that_decided_is_named():
    assert (
        judge(ALLOW, "bash", {"command": "ls && pytest -q"}).rule_text
        == "bash(ls) + bash(pytest -q)"
    )
    assert (
        judge(rules(deny=["bash( rm  -rf )"]), "bash", {"command": "rm -rf x"}).rule_text
        == "bash(rm  -rf)"
    )


@pytest.mark.parametrize("arguments", [{}, {"command": 3}, {"command": None}, {"command": ["ls"]}])
def test_wrong_input_is_never_allowed(arguments):
    assert judge(rules(allow=["bash"]), "bash", arguments).kind is None
    assert judge(rules(allow=["bash"], deny=["bash"]), "bash", arguments).kind == "deny"


@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("edit(src/**)", "src/a.py", True),
        ("edit(src/**)", "./src/deep/a.py", True),
        ("edit(src/**)", "/proj/src/a.py", True),
        ("edit(src/**)", "src/../secret", False),
        ("edit(src/**)", "../proj/src/a.py", True),
        ("edit(src/**)", "../other/src/a.py", False),
        ("edit(src/**)", "/etc/src/a.py", False),
        ("edit(src/**)", "other/src/a.py", False),
        ("edit(*.md)", "docs/a.md", True),
        ("edit(*.md)", "a.mdx", False),
        ("edit(/a.md)", "docs/a.md", False),
        ("edit", "/anywhere", True),
        ("edit(src/**)", "", False),
        ("edit(src/**)", "src/\0a", False),
    ],
)
def test_paths(rule, path, matches):
    found = judge(rules(allow=[rule]), "edit", {"path": path}, root="/proj")
    assert (found.kind == "allow") is matches


def test_paths_start_at_the_working_directory():
    mine = rules(allow=["edit(src/**)"])
    assert judge(mine, "edit", {"path": "a"}, root="/p", cwd="/p/src").kind == "allow"
    assert judge(mine, "edit", {"path": "src/a"}, root="/p", cwd="/p/lib").kind is None


def test_deny_reaches_outside_the_root_and_allow_does_not():
    mine = rules(allow=["read(**)"], deny=["read(etc/shadow)", "read(.env)"])
    assert judge(mine, "read", {"path": "/etc/shadow"}, root="/p").kind == "deny"
    assert judge(mine, "read", {"path": "/etc/hosts"}, root="/p").kind is None
    assert judge(mine, "read", {"path": "deep/.env"}, root="/p").kind == "deny"
    assert judge(mine, "read", {"path": "deep/env"}, root="/p").kind == "allow"


def test_searches_without_a_path_are_of_the_working_directory():
    assert judge(rules(allow=["grep(src)"]), "grep", {}, root="/p", cwd="/p/src").kind == "allow"


def test_rules_of_other_tools_do_not_count():
    assert judge(rules(allow=["edit"], deny=["write"]), "read", {"path": "a"}).kind is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(",
        "bsh(ls)",
        "bash(",
        "bash()",
        "bash(ls",
        "bash( )",
        "bash('x)",
        "Bash(ls)",
        "fork(x)",
        "bash(ls) rm",
        "bash(a\nb)",
        "edit()",
        "read(!)",
        "read(!x)",
        "edit(#x)",
        "nonsense",
    ],
)
def test_texts_that_are_no_rules(text):
    with pytest.raises(ConfigError) as caught:
        Rule.parse(text, "allow")
    assert "bash(pytest -q)" in caught.value.remedy


def test_a_near_tool_is_suggested():
    with pytest.raises(ConfigError, match='Did you mean "bash"'):
        Rule.parse("bsh(ls)", "deny")


@pytest.mark.parametrize("command", [c for c in ALLOWED if len(parse(c).simple) == 1])
def test_what_is_granted_matches_again_and_nothing_shorter(command):
    text = grant_text("bash", {"command": command})
    assert text is not None
    granted = [Rule.parse(text, "allow")]
    assert judge(granted, "bash", {"command": command}).kind == "allow"
    assert judge(granted, "bash", {"command": "true"}).kind is None
    words = parse(command).simple[0]
    assert granted[0].words == words


@pytest.mark.parametrize("command", NEVER_ALLOWED)
def test_what_could_never_match_is_not_granted(command):
    text = grant_text("bash", {"command": command})
    if text is not None:
        assert not parse(command).barred
        assert judge([Rule.parse(text, "allow")], "bash", {"command": command}).kind == "allow"


@pytest.mark.parametrize("path", ["a.py", "src/a b.py", "we[i]rd*?.py", "!x", "#x", "ünï", "b\\s"])
def test_a_granted_path_is_that_path_alone(path):
    text = grant_text("edit", {"path": path}, root="/p")
    assert text is not None
    granted = [Rule.parse(text, "allow")]
    assert judge(granted, "edit", {"path": path}, root="/p").kind == "allow"
    for other in ("other", "deep/" + path, path + "x", "weXrd1.py"):
        assert judge(granted, "edit", {"path": other}, root="/p").kind is None


def test_what_is_not_granted():
    assert grant_text("edit", {"path": "../x"}, root="/p") is None
    assert grant_text("edit", {}, root="/p") is None
    assert grant_text("bash", {"command": "ls; git status"}) is None
    assert grant_text("unknown", {}) is None
    assert grant_text("fork_join", {}) == "fork_join"


def test_every_tool_can_have_a_bare_rule():
    for tool in TOOLS:
        assert judge([Rule.parse(tool, "deny")], tool, {}).kind == "deny"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 30000,
        "'" * 29999,
        "a " * 15000,
        "$(" * 15000,
        "eval '" * 5000,
        "a;" * 16000,
        "sudo 'a b' " * 2000,
        "\\" * 30000,
        "x" * 5000000,
    ],
)
def test_hostile_lengths_are_quick(text):
    begun = time.process_time()
    judge(rules(allow=["bash"], deny=["bash(rm)"]), "bash", {"command": text})
    assert time.process_time() - begun < 2
