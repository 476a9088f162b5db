"""What the events of a step do: one request and its streamed answer. Called by the reducer.

The answer grows as chunks in the run's `stream`; the finished message replaces them with its
own items, whose text wins. Money and tokens are summed as they are reported.
"""

from __future__ import annotations

from decimal import Decimal
from typing import assert_never

from msgspec.structs import replace

from forkdeck.model.events.step import (
    CacheJudged,
    CallStreamed,
    MessageFinished,
    PaceChanged,
    RequestDelayed,
    RequestSent,
    StepCut,
    StepFamily,
    StepStarted,
    StreamOpened,
    TextStreamed,
    ThinkingStreamed,
    UsageReported,
)
from forkdeck.model.ids import PARENT
from forkdeck.model.items import Chunk
from forkdeck.model.state import CacheFacts, DeckState, Delay, HistoryEntry, Pace, RunState
from forkdeck.model.usage import Cost
from forkdeck.store.changes import (
    answer_items,
    cut_item,
    no_chunks,
    run_of,
    sane_usd,
    with_item,
    with_run,
    with_status,
)


def reduce_step(state: DeckState, event: StepFamily) -> DeckState:
    """Return the state after an event of a step."""
    run = run_of(state, event.run)
    match event:
        case TextStreamed():
            return _streamed(state, run, Chunk("text", event.index, event.text))
        case ThinkingStreamed():
            return _streamed(state, run, Chunk("thinking", event.index, event.text))
        case CallStreamed():
            return _streamed(state, run, Chunk("call", event.index, event.text, event.name))
        case StepStarted():
            counters = replace(run.counters, turns=run.counters.turns + 1)
            return with_run(state, replace(run, counters=counters, cut_attempts=0))
        case RequestSent():
            if run.stream:
                run = with_item(run, cut_item(run, event.at_ms, "cut"))
            run = replace(
                run,
                requested=True,
                delay=None,
                stream=no_chunks(),
                sent_positions=event.positions,
                sent_sha256=event.prefix_sha256,
            )
            return with_status(with_run(state, run), event.run, "RUN")
        case RequestDelayed():
            delay = Delay(
                reason=event.reason,
                until_ms=event.at_ms + event.wait_ms,
                attempt=event.attempt,
                attempts=event.attempts,
                message=event.message,
            )
            state = with_run(state, replace(run, delay=delay, requested=False))
            return with_status(state, event.run, "WAIT")
        case PaceChanged():
            # Climbing back tells no reason: what halved it still holds.
            before = "" if state.pace is None else state.pace.reason
            pace = Pace(event.width, event.most, event.reason or before)
            return replace(state, pace=pace)
        case StreamOpened():
            run = replace(run, requested=False, delay=None)
            return with_status(with_run(state, run), event.run, "RUN")
        case MessageFinished():
            entry = HistoryEntry(
                role="assistant",
                kind="answer",
                message=event.message,
                stop_reason=event.stop_reason,
                message_id=event.message_id,
                turn=run.turn.turn,
            )
            run = replace(
                with_item(run, *answer_items(event.message, event.at_ms)),
                history=run.history.appended(entry),
                stream=no_chunks(),
                requested=False,
                delay=None,
                cut_attempts=0,
            )
            return with_run(state, run)
        case StepCut():
            what = "resent" if event.resent else "not resent"
            run = with_item(run, cut_item(run, event.at_ms, f"{event.reason} · {what}"))
            run = replace(
                run, stream=no_chunks(), requested=False, delay=None, cut_attempts=event.attempt
            )
            return with_run(state, run)
        case UsageReported():
            run = replace(
                run,
                usage=run.usage + event.usage,
                cost=run.cost + Cost.of(sane_usd(event.cost_usd)),
                context_tokens=event.usage.prompt_tokens + event.usage.output_tokens,
                prompt_tokens=event.usage.prompt_tokens,
            )
            return with_run(state, run)
        case CacheJudged():
            return with_run(state, replace(run, cache=_judged(run, event)))
        case _:
            assert_never(event)


def _streamed(state: DeckState, run: RunState, chunk: Chunk) -> DeckState:
    if run.requested or run.delay is not None:
        run = replace(run, stream=run.stream.appended(chunk), requested=False, delay=None)
    else:
        run = replace(run, stream=run.stream.appended(chunk))
    return with_run(state, run)


def _judged(run: RunState, event: CacheJudged) -> CacheFacts:
    """Keep a fork's first verdict and the parent's last one; savings add up."""
    before = run.cache
    saved = _plus(None if before is None else before.saved_usd, sane_usd(event.saved_usd))
    if before is not None and run.run != PARENT and not event.first_step:
        return replace(before, saved_usd=saved)
    return CacheFacts(
        verdict=event.verdict,
        read_tokens=event.read_tokens,
        expected_tokens=event.expected_tokens,
        saved_usd=saved,
        difference=event.difference,
        written_tokens=event.written_tokens,
        fresh_tokens=event.fresh_tokens,
    )


def _plus(left: Decimal | None, right: Decimal | None) -> Decimal | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right
