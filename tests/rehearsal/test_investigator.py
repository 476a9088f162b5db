"""What no scenario knows: searched honestly, reported with file and line, nothing made up."""

from __future__ import annotations

import re
import shutil
from importlib.resources import files
from pathlib import Path

import pytest

from forkdeck.model.state import ForkState
from forkdeck.providers.rehearsal.conversation import look
from forkdeck.providers.rehearsal.investigator import Hit, find_hits, keywords
from forkdeck.providers.rehearsal.scenario import load
from forkdeck.seeds.directive import directive_block
from forkdeck.seeds.policy_words import Gives
from tests.rehearsal.agent import Agent, PlainWorkspace
from tests.rehearsal.helpers import assistant, body, call, result, serving, text, tool, user

SAMPLE = Path(str(files("forkdeck"))) / "sample"
HEADINGS = ("Scope:", "Result:", "Key files:", "Files changed: none", "Issues:")


@pytest.fixture
def sample(tmp_path):
    root = tmp_path / "tally"
    shutil.copytree(SAMPLE, root)
    return root


def directive(task, handle="f1"):
    fork = ForkState(
        handle=handle,
        batch="b1",
        index=0,
        name="look",
        task=task,
        seed="before_call",
        from_run="p",
        depth=1,
        write=False,
        queued_at_ms=0,
        boundary=1,
    )
    return directive_block(fork, gives=Gives(("read", "grep")))


async def test_a_newcomer_s_own_fork_is_answered(sample):
    async with serving() as (server, client):
        fork = Agent(client, PlainWorkspace(sample))
        report = await fork.run(
            text("The March invoice is a cent off."),
            directive("Where is `parse_amount` used, and what does it raise?"),
        )
        assert server.journal.entries[0].handle == "f1"
    assert [name for name, *_ in fork.calls] == ["grep", "read", "read"]
    assert not any(error for *_, error in fork.calls)
    for heading in HEADINGS:
        assert f"\n{heading}" in f"\n{report}"
    places = re.findall(r"^- (\S+):(\d+) `(.*)`$", report, re.MULTILINE)
    assert places
    for path, line, words in places:
        said = (sample / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        assert said.strip().replace("`", "'") == words
    assert "tally/money.py" in {path for path, *_ in places}
    assert "scripted" in report


async def test_nothing_found_is_said(sample):
    async with serving() as (_, client):
        fork = Agent(client, PlainWorkspace(sample))
        report = await fork.run(text("Explain the quasar_hyperdrive."))
    assert [name for name, *_ in fork.calls] == ["grep", "ls"]
    assert "No line of the project matches" in report
    assert "Key files: none" in report


async def test_without_tools_it_makes_nothing_up():
    async with serving() as (_, client):
        message = await client.messages.create(**body(user(text("Explain parse_amount"))))
        empty = await client.messages.create(**body(user(text("what is this?"))))
    assert "make nothing up" in message.content[0].text
    assert "none to search for" in empty.content[0].text


async def test_a_notification_is_taken_note_of():
    async with serving() as (_, client):
        tools = [tool("grep")]
        message = await client.messages.create(
            **body(user(text("<task-notification>f1 done</task-notification>")), tools=tools)
        )
    assert message.stop_reason == "end_turn"


def test_keywords_prefer_names_and_leave_common_words_out():
    assert keywords("Find out where the parse_amount function raises an AmountError")[:2] == (
        "parse_amount",
        "AmountError",
    )
    assert keywords("Look at `tally/report.py` please")[0] == "tally/report.py"
    assert keywords("what is it about?") == ()
    assert len(keywords(" ".join(f"wordnumber{n}" for n in range(50)))) == 5


def test_hits_of_both_forms_are_read():
    flat = "a/b.py:12:    def x():\nno hits here\n[the first 2 hits]\nc.md:3: text: more"
    assert find_hits(flat) == [Hit("a/b.py", 12, "def x():"), Hit("c.md", 3, "text: more")]
    under = "a/b.py\n12:def x():\n14-  y\n\nc.md\n3:z"
    assert find_hits(under) == [
        Hit("a/b.py", 12, "def x():"),
        Hit("a/b.py", 14, "y"),
        Hit("c.md", 3, "z"),
    ]
    assert find_hits("") == find_hits("no hits") == []


# --- where a request stands ---------------------------------------------------------------------


def never(_):
    return False


def test_a_fork_is_known_by_its_directive_and_keeps_its_task():
    history = [user(text("env"), text("do it")), assistant(call("c")), user(result("c"))]
    history[-1]["content"].append(directive("Look at x.\n\nThen at y.", "f7"))
    talk = look(body(*history, tools=[tool("grep")]), never)
    assert (talk.role, talk.handle, talk.name, talk.depth) == ("fork", "f7", "look", 1)
    assert talk.task == "Look at x.\n\nThen at y."
    assert talk.rounds == ()
    more = [*history, assistant(text("a"), call("d")), user(result("d", "found"), text("hurry"))]
    later = look(body(*more), lambda words: words == "hurry")
    assert later.task == talk.task
    assert [done.results[0]["content"] for done in later.rounds] == ["found"]
    again = look(body(*more, assistant(text("done")), user(text("report, please"))), never)
    assert len(again.rounds) == 2


def test_a_run_without_a_seed_is_an_agent():
    assert look(body(user(directive("Look."))), never).role == "agent"
    assert look(body(user(text("hello"), directive("Look."))), never).role == "fork"


def test_people_may_paste_a_directive_s_words():
    quoted = "Why does it say: You are fork f1?"
    assert look(body(user(text(quoted))), never).role == "parent"


def test_prompts_are_counted_and_steers_are_not():
    history = [user(text("one")), assistant(text("a")), user(text("two")), assistant(call("c"))]
    history.append(user(result("c"), text("hurry")))
    talk = look(body(*history), never)
    assert (talk.prompt, talk.turn, len(talk.rounds)) == ("two", 2, 1)
    told = look(body(*history), lambda words: words == "hurry")
    assert (told.prompt, told.turn, len(told.rounds)) == ("hurry", 3, 0)


def test_a_prompt_after_an_interrupted_turn_is_a_new_one():
    history = [user(text("one")), assistant(call("c"))]
    stopped = [*history, user(result("c", "Interrupted by the person."), text("what now?"))]
    talk = look(body(*stopped), never)
    assert (talk.prompt, talk.rounds) == ("what now?", ())
    told = [*history, user(result("c", "interrupted"), text("<task-notification>"))]
    assert look(body(*told), never).prompt == "one"


async def test_a_spent_script_says_its_last_words_again():
    report = load('name="r"\n[[answer]]\n[[answer.round]]\ntext="Result: {{task}}"')
    async with serving(report) as (_, client):
        asked = [user(text("go"), directive("look")), assistant(text("see above"))]
        asked.append(user(text("[report] Write the whole report now.")))
        message = await client.messages.create(**body(*asked))
    assert message.content[0].text == "Result: look"


async def test_a_notification_never_starts_a_scripted_answer():
    script = load('name="r"\n[[answer]]\nmatch="cent"\n[[answer.round]]\ntext="again"')
    async with serving(script) as (_, client):
        told = body(user(text("<task-notification>\na cent off\n</task-notification>")))
        message = await client.messages.create(**told)
    assert message.content[0].text.startswith("A fork has reported")


def test_neighbouring_user_messages_count_as_one_turn():
    history = [user(text("one")), assistant(call("c")), user(result("c")), user(text("note"))]
    assert len(look(body(*history), never).rounds) == 1
