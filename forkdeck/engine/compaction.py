"""Compaction of the parent's conversation: a summary takes the place of its older messages.

The conversation asks for it (``/compact``, or near the context limit) between two steps. The model
writes the summary over the very prefix it has cached; then a new prefix begins: the summary, and
the newest messages without their thinking. The log keeps all of it, and forks keep their seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from forkdeck.engine.repair import interrupted_results
from forkdeck.engine.run import Warmth, text_block
from forkdeck.engine.user_slot import first_blocks
from forkdeck.errors import ContextTooLong, HistoryError
from forkdeck.model.events.session import NoticeRaised
from forkdeck.model.events.turn import HistoryCompacted
from forkdeck.model.ids import PARENT
from forkdeck.model.prefix import message_blocks
from forkdeck.model.raw import JsonDict, clean_text, from_raw, to_raw
from forkdeck.seeds.validity import tool_use_ids

if TYPE_CHECKING:
    from forkdeck.engine.durability import Durable
    from forkdeck.engine.heads import Heads
    from forkdeck.engine.limits import Purse
    from forkdeck.engine.parts import EngineParts
    from forkdeck.engine.run import Run
    from forkdeck.engine.step import Asker
    from forkdeck.model.state import HistoryEntry

NEAR: Final = 0.95
"""Share of the context window from which the person is told and a compaction is due."""

KEEP_SHARE: Final = 0.1
"""Share of the context window that the kept tail may fill."""

KEEP_TOKENS: Final = 20_000
"""The same when the window is not known, and at most."""

KEEP_PART: Final = 0.25
"""Part of the conversation that the kept tail may be, so that compacting it makes room."""

LARGEST_KEPT: Final = 0.5
"""Share of the context window that an unanswered prompt may fill and still be kept whole."""

SHORTEST: Final = 4
"""Messages below which there is nothing to compact."""

SUMMARY_TOKENS: Final = 8_000
FEWEST_MESSAGES: Final = 6
"""A conversation that has not grown by this many messages is not compacted again by itself."""

CHARS_PER_TOKEN: Final = 4
PROMPT_CHARS: Final = 600

ASK: Final = (
    "[compact] The conversation is about to be shortened. Write, as one message and without "
    "calling tools, the summary that will stand in place of everything above. Write it for "
    "yourself, so that you can go on without the rest: what the person wants and has decided, what "
    "was done and found, with paths and exact names, what failed, what is open, and what comes "
    "next. Claim nothing that is not above."
)
NOT_NEEDED: Final = "[compact] The summary is not needed any more. Go on with the conversation."
INTRODUCTION: Final = (
    "[compact] The conversation up to here was shortened. This is its summary; the messages that "
    "follow are kept as they were."
)
COLD: Final = "the conversation was compacted, so its prefix is new"


class Compactor:
    """Compacts the parent.

    Args:
        parts: The deck's parts.
        durable: The hub with joined syncs.
        asker: Asks for the summary.
        purse: Says what the summary may cost.
        heads: Records that a new prefix begins.
        run: The parent.
    """

    def __init__(
        self,
        parts: EngineParts,
        durable: Durable,
        asker: Asker,
        purse: Purse,
        heads: Heads,
        run: Run,
    ) -> None:
        self._parts = parts
        self._hub = parts.hub
        self._durable = durable
        self._asker = asker
        self._purse = purse
        self._heads = heads
        self._run = run
        self._length = 0

    @property
    def automatic(self) -> bool:
        """Whether the conversation is compacted by itself."""
        return self._parts.settings.session.compact == "auto"

    @property
    def near(self) -> bool:
        """Whether the context is nearly full."""
        return self._near(0)

    @property
    def filled(self) -> int:
        """Tokens of the next prompt: what was measured, and an estimate of what came since."""
        measured = self._hub.state.parent.context_tokens or 0
        if measured and self._run.warmth.tokens is None:
            return measured
        return max(measured, self._run.estimated_tokens())

    def due(self, coming: Sequence[JsonDict] = ()) -> bool:
        """Tell whether the conversation is compacted by itself before its next step.

        Args:
            coming: Blocks that the step will add, such as a waiting prompt with its files.
        """
        if not self.automatic or not self._near(estimated(coming)):
            return False
        grown = len(self._hub.state.parent.history) - self._length
        return grown >= FEWEST_MESSAGES and self._start() > 1

    @property
    def possible(self) -> bool:
        """Whether there is something to compact."""
        return len(self._hub.state.parent.history) >= SHORTEST and self._start() > 1

    def _near(self, coming_tokens: int) -> bool:
        limit = self._run.facts.context_tokens
        return limit is not None and self.filled + coming_tokens >= NEAR * limit

    async def compact(self, hint: str = "") -> None:
        """Ask for the summary and begin the new prefix with it.

        When the conversation does not fit any more, the summary is made of the person's own
        prompts instead, without a request.

        Raises:
            HistoryError: There is nothing to compact, or the model gave no summary; the
                conversation is as it was.
            ProviderError: The endpoint refused, or every attempt failed.
            LimitReached: The summary cannot be paid.
        """
        history = self._hub.state.parent.history.since(0)
        start = self._start()
        if not self.possible:
            raise HistoryError(
                "There is nothing to compact: the conversation is short.", "Go on as it is."
            )
        before = self._hub.state.parent.context_tokens
        instruction = f"{ASK}\nAbove all: {clean_text(hint).strip()}" if hint.strip() else ASK
        blocks = [*interrupted_results(self._run.messages), text_block(instruction)]
        self._run.take(self._run.user_message("notification", blocks), self._hub)
        try:
            summary = await self._summary()
        except ContextTooLong:
            summary = digest(history[:start])
        except BaseException:
            note = self._run.user_message("notification", [text_block(NOT_NEEDED)])
            self._run.take(note, self._hub)
            raise
        await self._begin(summary, start, len(history), before)

    async def _summary(self) -> str:
        run = self._run
        plan = await self._purse.plan(run)
        try:
            answer = await self._asker.ask(run, min(plan.max_tokens, SUMMARY_TOKENS))
        finally:
            self._purse.release(run.run)
        calls = tool_use_ids(answer.message)
        if answer.stop_reason == "refusal" or not answer.text.strip() or calls:
            if calls:
                results = interrupted_results(run.messages)
                run.take(run.user_message("tool_results", results), self._hub)
            raise HistoryError(
                "The model gave no summary, so nothing was compacted.", "Try /compact again."
            )
        return answer.text

    async def _begin(self, summary: str, start: int, end: int, before: int | None) -> None:
        """Replace the history; no step may come between the event and the run's messages."""
        run, hub = self._run, self._hub
        blocks = [
            *first_blocks(self._parts, self._parts.offered),
            text_block(f"{INTRODUCTION}\n\n{summary}"),
        ]
        hub.append(
            HistoryCompacted(
                run=run.run,
                message=to_raw({"role": "user", "content": blocks}),
                kept_from=start,
                kept_to=end,
                before_tokens=before,
                text=summary,
            )
        )
        history = hub.state.parent.history
        run.messages[:] = [from_raw(entry.message) for entry in history]
        run.record, run.previous_mark, run.previous_message_id = (), None, None
        run.recorded, run.flight, run.thinking_from = None, None, 0
        run.warmth = Warmth(cold=COLD)
        self._length = len(history)
        await self._heads.record(PARENT, run.head)
        hub.append(
            NoticeRaised(
                severity="info",
                what=f"The conversation was compacted: {start} messages became a summary.",
                kept="All of it stays in the session log. The next request is read in full: its "
                "cache starts anew. Forks that were started before keep theirs.",
            )
        )
        await self._durable.sync()

    def _start(self) -> int:
        """Return the first message that is kept; a prompt that has no answer yet is one of them.

        One that would fill half of the context by itself is not: it would not fit again.
        """
        history = self._hub.state.parent.history.since(0)
        start = cut_at(history, self._keep_chars())
        if not history or history[-1].kind != "prompt" or _answers_calls(history[-1]):
            return start
        limit, tokens = self._run.facts.context_tokens, _tokens(len(bytes(history[-1].message)))
        fits = limit is None or tokens <= limit * LARGEST_KEPT
        return min(start, len(history) - 1) if fits else start

    def _keep_chars(self) -> int:
        limit = self._run.facts.context_tokens
        tokens = KEEP_TOKENS if limit is None else min(KEEP_TOKENS, int(limit * KEEP_SHARE))
        whole = sum(len(bytes(entry.message)) for entry in self._hub.state.parent.history)
        return min(tokens * CHARS_PER_TOKEN, int(whole * KEEP_PART))


def cut_at(history: Sequence[HistoryEntry], keep_chars: int) -> int:
    """Return the index of the first message that is kept whole behind a summary.

    At most `keep_chars` characters of the newest messages stay; a call is never parted from its
    result. The length of the history means that nothing is kept.
    """
    start, size = len(history), 0
    while start and size + len(bytes(history[start - 1].message)) <= keep_chars:
        start -= 1
        size += len(bytes(history[start].message))
    while start < len(history) and _answers_calls(history[start]):
        start += 1
    return start


def estimated(blocks: Sequence[JsonDict]) -> int:
    """Return the rough tokens of message blocks that were not sent yet."""
    return _tokens(sum(len(str(block)) for block in blocks))


def _tokens(characters: int) -> int:
    return characters // CHARS_PER_TOKEN


def digest(history: Sequence[HistoryEntry]) -> str:
    """Return a summary made without the model: what the person asked for, in order."""
    lines = [
        "The conversation did not fit the model's context any more, so this is no summary of its "
        "own: it lists what the person asked for. Look again at what you need."
    ]
    for entry in history:
        if entry.kind == "prompt":
            texts = [str(b["text"]) for b in message_blocks(from_raw(entry.message)) if "text" in b]
            lines.append(f"- {texts[-1][:PROMPT_CHARS] if texts else ''}")
    return "\n".join(lines)


def _answers_calls(entry: HistoryEntry) -> bool:
    return any(b.get("type") == "tool_result" for b in message_blocks(from_raw(entry.message)))
