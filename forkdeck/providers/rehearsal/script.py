"""The script player: which answer, which round, filled with what the tools really said.

Called by the server once per request; reads the scenario and the conversation, gives a reply.
Keeps nothing: which round it is follows from the history alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from forkdeck.model.raw import JsonDict
from forkdeck.providers.rehearsal import investigator, templating
from forkdeck.providers.rehearsal.conversation import (
    NOTIFICATION,
    Answered,
    Conversation,
    look,
    result_text,
)
from forkdeck.providers.rehearsal.reply import Call, Reply
from forkdeck.providers.rehearsal.scenario import Answer, Round, Scenario

_SPENT: Final = "That is all the script holds for this."


def reply_to(scenario: Scenario, body: JsonDict) -> tuple[Reply, Conversation]:
    """Return the answer to a request, and the conversation it belongs to."""
    talk = look(body, scenario.knows)
    if talk.prompt.startswith(NOTIFICATION) and talk.role == "parent":
        return investigator.reply_to(talk), talk
    for number, answer in enumerate(scenario.answers, 1):
        if _fits(answer, talk):
            return _play(answer, number, talk), talk
    if scenario.investigate:
        return investigator.reply_to(talk), talk
    return Reply(text="The script has no answer to this.", source="none"), talk


def _fits(answer: Answer, talk: Conversation) -> bool:
    return (
        answer.role in ("any", talk.role)
        and answer.turn in (None, talk.turn)
        and answer.depth in (None, talk.depth)
        and talk.tools.issuperset(answer.tools)
        and answer.match.search(talk.task) is not None
    )


def _play(answer: Answer, number: int, talk: Conversation) -> Reply:
    words = {
        "task": talk.task,
        "prompt": talk.prompt,
        "handle": talk.handle,
        "name": talk.name,
    }
    place, last = 0, ""
    for done in talk.rounds:
        current = _next(answer.rounds, place, words)
        if current is None:
            break
        place, last = current + 1, answer.rounds[current].text
        _remember(answer.rounds[current], done, words)
    current = _next(answer.rounds, place, words)
    name = answer.title or f"answer {number}"
    if current is None:
        # Asked once more, as for a report: a script can only say its last words again.
        return Reply(text=templating.fill(last, words) or _SPENT, source=f"{name}, spent")
    made = _filled(answer.rounds[current], words)
    return replace(made, source=f"{name}, round {current + 1}")


def _next(rounds: tuple[Round, ...], place: int, words: dict[str, str]) -> int | None:
    for index in range(place, len(rounds)):
        here = rounds[index]
        wanted = not here.when or templating.holds(here.when, words)
        if wanted and not (here.unless and templating.holds(here.unless, words)):
            return index
    return None


def _remember(played: Round, done: Answered, words: dict[str, str]) -> None:
    for call, result in zip(played.calls, done.results, strict=False):
        words[call.label] = result_text(result)


def _filled(current: Round, words: dict[str, str]) -> Reply:
    return Reply(
        text=templating.fill(current.text, words),
        thinking=templating.fill(current.thinking, words),
        calls=tuple(
            Call(call.tool, templating.fill_all(call.input, words), call.label)
            for call in current.calls
        ),
        ttft_ms=current.ttft_ms,
        rate=current.rate,
        call_rate=current.call_rate,
        stop_reason=current.stop_reason,
        fault=current.fault,
    )
