"""What the parent gets of its forks: result blocks, notifications, and the files on disk.

Called when a batch has settled, or when the parent's next user message takes what is due. Data
comes from the folded state of the forks; the whole report stands in ``report.md``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec.structs

from forkdeck.engine.graphemes import cut_after, cut_before
from forkdeck.engine.report_check import Found, value_in
from forkdeck.model.raw import JsonDict, to_raw
from forkdeck.model.state import ClaimFacts, DeckState, ForkState, RunState
from forkdeck.model.usage import Usage, usd_text

if TYPE_CHECKING:
    from forkdeck.config.settings import ForkSettings
    from forkdeck.sessionlog.paths import SessionPaths

CHARS_PER_TOKEN: Final = 4
TASK_CONTEXT_SHARE: Final = 0.05
BATCH_CONTEXT_SHARE: Final = 0.15
HEAD_SHARE: Final = 0.7
"""Of a cut report, the part that is its beginning."""

CLAIM_CHARS: Final = 200

_OWN_MARKUP = re.compile(r"<(?=\s*/?\s*(?:fork-report|task-notification)\b)", re.IGNORECASE)

WORDS: Final = {
    "done": "done",
    "partial": "partial",
    "failed": "failed",
    "aborted": "aborted",
    "interrupted": "interrupted",
    None: "running",
}


def shared_name(handle: str) -> str:
    """Return the name under which the parent sees a fork's whole report."""
    return f"{handle}-report.md"


def cut(text: str, limit: int, whole: str) -> str:
    """Return `text` in at most about `limit` characters: its head, a visible mark, its tail.

    Args:
        text: The text.
        limit: Characters that may stay.
        whole: Where the whole of it stands.
    """
    if len(text) <= limit:
        return text
    head = cut_before(text, round(limit * HEAD_SHARE))
    tail = cut_after(text, len(text) - (limit - head))
    dropped = tail - head
    mark = f"\n[… {dropped} characters cut here; the whole report stands in {whole} …]\n"
    return text[:head] + mark + text[tail:]


def escaped(text: str) -> str:
    """Return `text` with ForkDeck's own markup made harmless; all else stays as it is."""
    return _OWN_MARKUP.sub("&lt;", text)


def budgets(
    lengths: Sequence[int], settings: ForkSettings, context_tokens: int | None
) -> list[int]:
    """Share the batch's characters among its reports; short ones donate what they leave.

    Args:
        lengths: Characters of each report.
        settings: The caps per report and per batch.
        context_tokens: The parent's context window, when known: a report takes at most 5 % of
            it and a batch 15 %.
    """
    each, together = settings.report_chars, settings.batch_report_chars
    if context_tokens:
        each = min(each, int(context_tokens * CHARS_PER_TOKEN * TASK_CONTEXT_SHARE))
        together = min(together, int(context_tokens * CHARS_PER_TOKEN * BATCH_CONTEXT_SHARE))
    shares = [min(length, each) for length in lengths]
    open_ones = set(range(len(shares)))
    left = together
    while open_ones:
        fair = left // len(open_ones)
        small = {index for index in open_ones if shares[index] <= fair}
        if not small:
            for index in open_ones:
                shares[index] = fair
            break
        left -= sum(shares[index] for index in small)
        open_ones -= small
    return shares


def report_blocks(state: DeckState, handles: Sequence[str], settings: ForkSettings) -> list[str]:
    """Return one text per fork, in the order given."""
    forks = [state.forks[handle] for handle in handles]
    head = state.parent.head
    reports = [escaped(_passed_on(fork)) for fork in forks]
    shares = budgets(
        [len(report) for report in reports], settings, head.context_tokens if head else None
    )
    return [
        _block(state, fork, cut(report, share, f"/tmp/forkdeck/{shared_name(fork.handle)}"))
        for fork, report, share in zip(forks, reports, shares, strict=True)
    ]


def batch_result(
    state: DeckState, handles: Sequence[str], settings: ForkSettings, notes: Sequence[str] = ()
) -> tuple[str, bool]:
    """Return the text of a waiting call's result, and whether it is an error.

    It is an error only when no task completed.
    """
    forks = [state.forks[handle] for handle in handles]
    done = sum(fork.outcome == "done" for fork in forks)
    told = [f"{done} of {len(forks)} forks done.", *notes]
    text = "\n".join(told) + "\n\n" + "\n\n".join(report_blocks(state, handles, settings))
    return text, not any(fork.outcome in ("done", "partial") for fork in forks)


def notification(state: DeckState, handles: Sequence[str], settings: ForkSettings) -> str:
    """Return one notification for all that is due, in the order given."""
    blocks = report_blocks(state, handles, settings)
    return "<task-notification>\n" + "\n\n".join(blocks) + "\n</task-notification>"


def notification_line(state: DeckState, handles: Sequence[str]) -> str:
    """Return what the person sees of a notification."""
    names = ", ".join(f"{handle} {state.forks[handle].name}" for handle in handles)
    return f"reports of {names}"


def write_files(paths: SessionPaths, state: DeckState, handle: str) -> None:
    """Write ``report.md`` and ``result.json`` of a fork; blocking, called in a thread.

    Raises:
        OSError: The disk refused; the log still holds all of it.
    """
    fork = state.forks[handle]
    _replace(paths.report(handle), fork.report.encode("utf-8", "replace"))
    _replace(paths.result(handle), bytes(to_raw(result_facts(state, handle))) + b"\n")


def result_facts(state: DeckState, handle: str) -> JsonDict:
    """Return everything a fork leaves, whatever its outcome, as JSON.

    ``value`` is there only when its report had to be, and is, a JSON value.
    """
    fork = state.forks[handle]
    run = state.runs.get(handle) or RunState(run=handle)
    cache = run.cache
    value = _value(fork)
    return {
        "handle": handle,
        "id": fork.task_id or fork.name,
        "name": fork.name,
        "task": fork.task,
        "outcome": fork.outcome,
        "reason": fork.reason,
        "remedy": fork.remedy,
        "degraded": fork.degraded,
        "seed": fork.seed,
        "depth": fork.depth,
        "turns": run.counters.turns,
        "tool_calls": run.counters.tool_calls,
        "tool_errors": run.counters.tool_errors,
        "denials": run.counters.denials,
        "usage": _tokens(run.usage),
        "cost_usd": usd_text(run.cost.usd) if run.cost.known else None,
        "cache": cache.verdict if cache else None,
        "saved_usd": usd_text(cache.saved_usd) if cache and cache.saved_usd is not None else None,
        # Of a resumed fork the state keeps when it went on, not when it first began.
        "queued_ms": None if fork.ran_ms else _span(fork.queued_at_ms, fork.started_at_ms),
        "run_ms": _span(fork.started_at_ms, fork.ended_at_ms, fork.ran_ms),
        "files": [change.path for change in fork.files],
        "ref": fork.work.ref if fork.work else None,
        "base": fork.work.base if fork.work else None,
        "commit": fork.work.commit if fork.work else None,
        "commits": fork.work.commits if fork.work else None,
        "patch": fork.work.patch if fork.work else None,
        "worktree_kept": fork.worktree.kept_why if fork.worktree else "",
        "claims": _claims(fork.claims),
        "report": fork.report,
        **({"value": value.value} if value is not None else {}),
    }


def _value(fork: ForkState) -> Found | None:
    """Return the JSON value that a fork was asked for and gave; it was checked when it ended."""
    return value_in(fork.report) if fork.output_schema and fork.outcome == "done" else None


def _passed_on(fork: ForkState) -> str:
    value = _value(fork)
    return value.text if value is not None else fork.report.strip()


def _tokens(usage: Usage) -> JsonDict:
    """Return every kind of token: null for what was not told, also when nothing was at all."""
    if usage == Usage():
        return dict.fromkeys(Usage.__struct_fields__)
    return msgspec.structs.asdict(usage)


def _block(state: DeckState, fork: ForkState, report: str) -> str:
    run = state.runs.get(fork.handle) or RunState(run=fork.handle)
    batch = state.batches.get(fork.batch)
    counters = run.counters
    own = fork.task_id or fork.name
    who = f'<fork-report id="{own}" fork="{fork.handle}" status="{WORDS[fork.outcome]}"'
    if fork.outcome != "done":
        who += f' reason="{_attribute(fork.reason)}"'
    who += f' turns="{counters.turns}" tool_calls="{counters.tool_calls}"'
    who += f' cost_usd="{usd_text(run.cost.usd)}">' if run.cost.known else ">"
    lines = [who]
    if batch is not None and batch.tool == "user":
        lines.append(f"fork {fork.handle} (started by the user):")
    if fork.claims is not None:
        lines.append(_claims_line(fork.claims))
    if fork.degraded:
        lines.append("(It gave no proper report; this is the longest text it wrote.)")
    if fork.outcome != "done" and report:
        lines.append("(Unfinished. What it had written:)")
    lines.append(report or "(It left no report.)")
    if fork.work is not None:
        # A fork names its files itself, and a name can be written like our markup.
        files = escaped(", ".join(change.path for change in fork.files[:20])) or "see the diff"
        lines.append(
            f"(Its work is saved as {fork.work.ref}; the person can apply it. Files: {files})"
        )
    if fork.worktree is not None and fork.worktree.kept_why:
        lines.append(
            f"(Its work could not be saved and stays in its worktree: "
            f"{escaped(fork.worktree.kept_why)})"
        )
    return "\n".join([*lines, "</fork-report>"])


def _claims_line(claims: ClaimFacts) -> str:
    """Say what of the report was compared with what the fork did."""
    line = f"({claims.verified} of {claims.checked} claims of this report checked out"
    if not claims.unverified:
        return f"{line}.)"
    named = "; ".join(" ".join(each.split())[:CLAIM_CHARS] for each in claims.unverified)
    return f"{line}. Not verified: {escaped(named)}.)"


def _claims(claims: ClaimFacts | None) -> JsonDict | None:
    if claims is None:
        return None
    return {
        "checked": claims.checked,
        "verified": claims.verified,
        "unverified": list(claims.unverified),
    }


def _attribute(text: str) -> str:
    return escaped(" ".join(text.split())[:200]).replace('"', "'")


def _span(start: int | None, end: int | None, before: int = 0) -> int | None:
    return None if start is None or end is None else before + end - start


def _replace(path: Path, data: bytes) -> None:
    # One by one: parents made on the way would be readable by others.
    for directory in (path.parent.parent, path.parent):
        directory.mkdir(mode=0o700, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    beside.replace(path)
