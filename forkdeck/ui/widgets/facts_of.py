"""Facts made from a state: cache, limits, changes, spend, gate, overlap.

Pure functions for `Facts`. Nothing is shown that nobody told: an unknown figure is ``–``, and a
section without a single fact is left out.
"""

from __future__ import annotations

from decimal import Decimal

from msgspec.structs import replace

from forkdeck.model.state import DeckState, ForkState, RunState
from forkdeck.model.usage import Usage
from forkdeck.model.work import FileChange
from forkdeck.store import selectors
from forkdeck.store.cells import cut_path
from forkdeck.store.rows_live import delay_words
from forkdeck.store.rows_text import clean_line
from forkdeck.ui import formats
from forkdeck.ui.glyphs import badge
from forkdeck.ui.widgets.facts import Fact, Section
from forkdeck.ui.widgets.line_widget import Spans


def _figure(text: str, share: float | None = None) -> Spans:
    spans: Spans = [("text", text)]
    if share is not None:
        spans.append(("muted", f"{formats.percent(share):>7}"))
    return spans


def cache_facts(run: RunState) -> Section | None:
    """Return a run's cache section: verdict, what was read, written and fresh."""
    usage, cache = run.usage, run.cache
    prompt = usage.prompt_tokens
    if not prompt or usage.cache_read_input_tokens is None:
        return None
    share = usage.cache_share
    written = usage.cache_creation_input_tokens
    facts = [
        Fact(share=share),
        Fact("read", _figure(formats.tokens(usage.cache_read_input_tokens), share)),
        Fact("written", _figure(formats.tokens(written), (written or 0) / prompt)),
        Fact("fresh", _figure(formats.tokens(usage.input_tokens), usage.input_tokens / prompt)),
    ]
    right: Spans = []
    if cache is not None:
        miss = cache.verdict in ("MISS", "PARTIAL")
        right = [("warn-strong" if miss else "text", cache.verdict)]
        if cache.saved_usd is not None:
            facts.append(Fact("saved", _figure(formats.money(cache.saved_usd))))
        if cache.difference:
            facts.append(Fact(f"first difference: {clean_line(cache.difference)}", style="warn"))
    if run.head is not None:
        facts.append(Fact("head", [("muted", clean_line(run.head.sha256)[:8])]))
    facts.append(Fact("/cache", [("muted", "explains")], style="key", action="cache"))
    return Section("cache", tuple(facts), right)


def limit_facts(fork: ForkState, run: RunState, now_ms: int) -> Section | None:
    """Return a fork's limits and how near it is to each."""
    facts: list[Fact] = []
    if fork.max_turns:
        # The step that reports after the last turn is not one of them.
        used = min(run.counters.turns, fork.max_turns)
        text = f"{used} of {fork.max_turns}"
        facts.append(Fact("turns", _figure(text), used / fork.max_turns, limit=True))
    context = run.head.context_tokens if run.head else None
    if context and run.context_tokens is not None:
        text = f"{formats.tokens(run.context_tokens)} of {formats.window(context)}"
        facts.append(Fact("context", _figure(text), run.context_tokens / context, limit=True))
    if fork.budget_tokens:
        counted = usage_counted(run.usage)
        text = f"{formats.tokens(counted)} of {formats.window(fork.budget_tokens)}"
        facts.append(Fact("tokens", _figure(text), counted / fork.budget_tokens, limit=True))
    if fork.timeout_s and fork.started_at_ms is not None:
        age = (fork.ended_at_ms or now_ms) - fork.started_at_ms
        text = f"{formats.duration(age)} of {formats.duration(int(fork.timeout_s * 1000))}"
        facts.append(Fact("time", _figure(text), age / (fork.timeout_s * 1000), limit=True))
    if fork.budget_usd and run.cost.known:
        most = Decimal(fork.budget_usd)
        text = f"{formats.money(run.cost.usd)}{formats.of_budget('', most)[1]}"
        share = float(run.cost.usd / most) if most > 0 else 1.0
        facts.append(Fact("money", _figure(text), share, limit=True))
    return Section("limits", tuple(facts)) if facts else None


def claim_facts(fork: ForkState) -> Section | None:
    """Return how many claims of a fork's report hold, and those that do not."""
    claims = fork.claims
    if claims is None or not fork.settled or not claims.checked:
        return None
    facts = [Fact(clean_line(text), style="warn") for text in claims.unverified]
    right: Spans = [("text", f"{claims.verified} of {claims.checked}"), ("muted", " confirmed")]
    return Section("claims", tuple(facts), right)


def usage_counted(usage: Usage) -> int:
    """Return the tokens a budget counts: fresh input, output and cache writes."""
    written = usage.cache_creation_input_tokens or 0
    return usage.input_tokens + usage.output_tokens + written


def told_files(fork: ForkState, run: RunState | None) -> tuple[FileChange, ...]:
    """Return a fork's changed files; lines nobody counted yet are taken from its tool calls."""
    if run is None or all(file.added is not None for file in fork.files):
        return fork.files
    lines: dict[str, tuple[int, int]] = {}
    for item in run.transcript:
        tool = item.tool
        if tool is None or tool.path is None or tool.added is None or tool.status != "ok":
            continue
        added, removed = lines.get(tool.path, (0, 0))
        lines[tool.path] = (added + tool.added, removed + (tool.removed or 0))
    return tuple(
        replace(file, added=lines[file.path][0], removed=lines[file.path][1])
        if file.added is None and file.path in lines
        else file
        for file in fork.files
    )


def change_facts(state: DeckState, fork: ForkState, width: int) -> Section | None:
    """Return the files a fork changed, and which of them others change too."""
    if not fork.files:
        return None
    files = told_files(fork, state.runs.get(fork.handle))
    added = [file.added for file in files]
    removed = [file.removed for file in files]
    right: Spans = []
    if None not in added and None not in removed:
        right = _lines(sum(a or 0 for a in added), sum(r or 0 for r in removed))
    facts = [
        Fact(
            cut_path(clean_line(file.path), max(10, width - 16)),
            _lines(file.added, file.removed),
            style="text",
        )
        for file in files[:8]
    ]
    if len(files) > 8:
        facts.append(Fact(f"{len(files) - 8} more"))
    facts += [Fact(f"also {names}: {path}", style="warn") for path, names in _overlaps(state, fork)]
    return Section("changes", tuple(facts), right)


def _lines(added: int | None, removed: int | None) -> Spans:
    if added is None and removed is None:
        return [("muted", formats.UNKNOWN)]
    spans: Spans = [("good", f"+{added or 0}")]
    return [*spans, ("bad", f" −{removed}")] if removed else spans


def _overlaps(state: DeckState, fork: ForkState) -> list[tuple[str, str]]:
    mine = {file.path for file in fork.files}
    found: dict[str, list[str]] = {}
    for other in state.forks.values():
        if other.handle != fork.handle:
            for file in other.files:
                if file.path in mine:
                    found.setdefault(clean_line(file.path), []).append(other.handle[1:])
    return [(path, ", ".join(names)) for path, names in found.items()]


def overlap_facts(state: DeckState) -> Section | None:
    """Return the files that more than one fork changes."""
    owners: dict[str, list[str]] = {}
    for fork in state.forks.values():
        if fork.work is not None and (fork.work.discarded or fork.work.applied_ref):
            continue
        for file in fork.files:
            owners.setdefault(file.path, []).append(fork.handle[1:])
    shared = {path: names for path, names in owners.items() if len(names) > 1}
    if not shared:
        return None
    facts = [
        Fact(clean_line(path), [("muted", "forks "), ("text", ", ".join(names))], style="text")
        for path, names in sorted(shared.items())[:6]
    ]
    return Section("overlap", tuple(facts), [("muted", formats.plural(len(shared), "file"))])


def spend_facts(state: DeckState) -> Section | None:
    """Return what was spent, against the budget where there is one."""
    total = selectors.total_cost(state)
    if not total.known or total.usd <= 0:
        return None
    budget = state.session.budget_usd
    spent, rest = formats.of_budget(formats.money(total.usd), budget)
    facts: list[Fact] = []
    if budget is not None and budget > 0:
        facts.append(Fact(share=float(total.usd / budget), limit=True))
    facts.append(Fact("parent", _figure(formats.cost(state.parent.cost))))
    forks = [run.cost for name, run in state.runs.items() if name in state.forks]
    if any(cost.usd > 0 for cost in forks):
        spent_by_forks = sum((cost.usd for cost in forks), Decimal(0))
        facts.append(Fact("forks", _figure(formats.money(spent_by_forks))))
    saved = selectors.saved_usd(state)
    if saved is not None:
        facts.append(Fact("saved by sharing one prefix", _figure(formats.money(saved))))
    return Section("spend", tuple(facts), [("strong", spent), ("muted", rest)])


def deck_cache_facts(state: DeckState) -> Section | None:
    """Return the deck's cache section: the sums, the verdicts, and each miss by name."""
    usage = selectors.total_usage(state)
    prompt = usage.prompt_tokens
    if not prompt or usage.cache_read_input_tokens is None:
        return None
    parts = (
        ("read", usage.cache_read_input_tokens),
        ("written", usage.cache_creation_input_tokens or 0),
        ("fresh", usage.input_tokens),
    )
    facts = [
        Fact(name, _figure(f"{formats.tokens(count):>7}", count / prompt), count / prompt)
        for name, count in parts
    ]
    verdicts = [
        (handle, state.runs[handle].cache)
        for handle in state.forks
        if handle in state.runs and state.runs[handle].cache is not None
    ]
    hits = sum(cache is not None and cache.verdict == "HIT" for _, cache in verdicts)
    misses = [(h, c) for h, c in verdicts if c is not None and c.verdict == "MISS"]
    for handle, cache in misses[:3]:
        why = clean_line(cache.difference) or "the endpoint gave no reason"
        name = clean_line(state.forks[handle].name)
        facts.append(Fact(f"{handle[1:]} {name} missed: {why}", style="warn"))
    right: Spans = [("muted", f"{hits} hit")] if verdicts else []
    if misses:
        right += [("warn", f"   {len(misses)} miss")]
    return Section("cache", tuple(facts), right)


def gate_facts(state: DeckState, now_ms: int) -> Section | None:
    """Return who waits at the gate, and until when."""
    waits = [
        (name, run.delay)
        for name, run in state.runs.items()
        if run.delay is not None and (name not in state.forks or not state.forks[name].settled)
    ]
    if not waits:
        return None
    facts: list[Fact] = []
    for name, delay in waits[:4]:
        fork = state.forks.get(name)
        who = f"{name[1:]:>2}  {clean_line(fork.name)}" if fork else "parent"
        facts.append(Fact(f"{who}   {delay_words(delay, now_ms)}"))
    return Section("rate gate", tuple(facts), [("text", str(len(waits))), ("muted", " wait")])


def fork_list(state: DeckState, *, ascii_only: bool = False) -> Section:
    """Return every fork in a line: number, badge, name and cost."""
    facts: list[Fact] = []
    for handle, fork in state.forks.items():
        found = badge(selectors.badge(state, handle), ascii_only=ascii_only)
        style = "ask" if found.style == "chip-ask" else found.style
        cost = selectors.metrics(state, handle, 0)
        lead: Spans = [
            ("muted", f"{handle[1:]:<3}"),
            (style, f"{found.glyph} {found.word:<5}"),
            ("text", "  "),
        ]
        figure = _figure(formats.cost(cost.cost, known=cost.cost_known))
        facts.append(Fact(clean_line(fork.name), figure, style="text", handle=handle, lead=lead))
    return Section("forks", tuple(facts))


def fork_sections(
    state: DeckState, handle: str, now_ms: int, width: int, *, ascii_only: bool = False
) -> list[Section]:
    """Return the zoom's side column for one fork."""
    fork, run = state.forks.get(handle), state.runs.get(handle)
    if fork is None or run is None:
        return []
    found = [
        cache_facts(run),
        limit_facts(fork, run, now_ms),
        claim_facts(fork),
        change_facts(state, fork, width),
    ]
    sections = [section for section in found if section is not None]
    return [*sections, fork_list(state, ascii_only=ascii_only)]


def deck_sections(state: DeckState, now_ms: int) -> list[Section]:
    """Return the list column's facts for the whole deck."""
    found = (
        overlap_facts(state),
        deck_cache_facts(state),
        spend_facts(state),
        gate_facts(state, now_ms),
    )
    return [section for section in found if section is not None]
