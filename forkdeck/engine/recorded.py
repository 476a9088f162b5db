"""Runs of an earlier process: their messages as they were sent, and what was last sent of them.

Used when a session is opened again and when a fork of an earlier process goes on. The next
request must extend the recorded one, position by position, or it is not sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forkdeck.engine.run import Warmth
from forkdeck.model.ids import PARENT
from forkdeck.model.thinking import has_thinking, sent_messages
from forkdeck.seeds.request import block_count

if TYPE_CHECKING:
    from forkdeck.engine.run import Run
    from forkdeck.model.ports import EndpointFacts
    from forkdeck.model.state import HeadFacts, RunState
    from forkdeck.seeds.head import RequestHead

COLD = "the session was opened again; how old the cached prefix is, is not known"
ELSEWHERE = "another {} has a cache of its own"


def take_recorded(run: Run, facts: RunState, endpoint: EndpointFacts) -> None:
    """Give `run` its recorded messages, and let it extend the request that was sent last.

    Thinking of another endpoint or account cannot be read by this one: it is left out whole.

    Args:
        run: The run, with its head.
        facts: The same run, folded from its log; empty for a new session.
        endpoint: The endpoint of this process.
    """
    head = facts.head
    run.thinking_from = head.thinking_from if head is not None else 0
    history = facts.history.since(0)
    run.messages[:] = sent_messages(history, run.thinking_from)
    run.shared_marks = _shared_tail(run, facts)
    if head is None or head.sha256 != run.head.sha256:
        return
    other = _elsewhere(head, endpoint)
    if other:
        if any(map(has_thinking, run.messages)):
            run.drop_thinking()
        run.warmth = Warmth(cold=ELSEWHERE.format(other))
        return
    run.previous_message_id = next((e.message_id for e in reversed(history) if e.message_id), None)
    if not facts.sent_positions:
        return
    run.recorded = (facts.sent_positions, facts.sent_sha256)
    mark = facts.sent_positions - head_positions(run.head) - 1
    run.previous_mark = mark if 0 <= mark < run.blocks else None
    run.warmth = Warmth(tokens=facts.prompt_tokens or None, cold=COLD)


def stands(head: HeadFacts | None, run: Run, endpoint: EndpointFacts) -> bool:
    """Tell whether the recorded head of a run still says what will be sent."""
    return (
        head is not None
        and head.sha256 == run.head.sha256
        and head.thinking_from == run.thinking_from
        and not _elsewhere(head, endpoint)
    )


def head_positions(head: RequestHead) -> int:
    """Return how many positions of a request belong to its head."""
    parts = head.parts()
    return 1 + len(parts["tools"]) + len(parts["system"])


def _elsewhere(head: HeadFacts, endpoint: EndpointFacts) -> str:
    """Return what is another one than recorded; nothing when that is not known."""
    if head.endpoint and head.endpoint != endpoint.base_url:
        return "endpoint"
    both = bool(head.account and endpoint.account)
    return "account" if both and head.account != endpoint.account else ""


def _shared_tail(run: Run, facts: RunState) -> tuple[int, ...]:
    """Return T: the block before the directive, which all children of the launch have."""
    if run.run == PARENT:
        return ()
    for index, entry in enumerate(facts.history):
        if entry.kind == "directive":
            tail = block_count(run.messages[: index + 1]) - 2
            return (tail,) if tail >= 0 else ()
    return ()
