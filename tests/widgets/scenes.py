"""Deck states for drawing tests, folded from hand-made events."""

from __future__ import annotations

from decimal import Decimal

from forkdeck.model.events import Event
from forkdeck.model.events.fork import (
    BatchAdmitted,
    ClaimsChecked,
    ForkDelayed,
    ForkEnded,
    ForkQueued,
    ForkSlowed,
    ForkStarted,
    ForkSteered,
    LimitNeared,
)
from forkdeck.model.events.session import HeadRecorded, SessionOpened
from forkdeck.model.events.step import (
    CacheJudged,
    MessageFinished,
    RequestSent,
    StreamOpened,
    TextStreamed,
    UsageReported,
)
from forkdeck.model.events.tool import ApprovalAsked, ToolEnded, ToolStarted
from forkdeck.model.events.turn import MessageAdded, TurnStarted
from forkdeck.model.events.work import WorkSaved, WorktreeChanged, WorktreeCreated
from forkdeck.model.ids import PARENT
from forkdeck.model.launching import ForkPrice, LaunchPlan, PlannedFork
from forkdeck.model.raw import to_raw
from forkdeck.model.state import EMPTY, DeckState
from forkdeck.model.usage import Usage
from forkdeck.model.work import FileChange
from forkdeck.store.reducer import fold

NAMES = (
    "api-audit", "impl-step3", "data-layer", "docs-sweep", "perf-bench", "type-fix", "flaky-hunt",
    "lint-pass", "sec-audit", "race-hunt", "dep-audit", "cfg-scan", "env-scan", "log-scan",
    "cli-scan", "tui-scan", "net-scan", "fs-scan", "mig-check", "sql-audit", "cache-probe",
    "perf-probe", "fmt-pass", "spelling", "links", "licences", "i18n", "a11y", "bench", "auth-scan",
)  # fmt: skip
REPORT = (
    "Scope: retry behaviour of the data layer\n"
    "Result: three call sites share one helper; pool.py:77 can retry a write that already "
    "committed\n"
    "Key files: pool.py, session.py, engine.py\n"
    "Files changed: none\nIssues: 1 risk, 0 questions"
)
PATCH = (
    "--- a/src/io/retry.py\n+++ b/src/io/retry.py\n@@ -18,4 +18,4 @@ class Retry\n"
    "     def call(self, fn):\n-        for n in range(8):\n-            time.sleep(2 ** n)\n"
    "+        for wait in delays(self.policy, self.rng):\n"
    "+            self.clock.sleep(self.retry_after or wait)\n"
    "     raise RetriesExhausted(self.policy)\n"
)


class Script:
    """Collects stamped events; the clock is moved by hand."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.at_ms = 0

    def add(self, event: Event, after_ms: int = 10) -> Script:
        import msgspec

        self.at_ms += after_ms
        stamped = msgspec.structs.replace(event, seq=len(self.events) + 1, at_ms=self.at_ms)
        self.events.append(stamped)
        return self

    def state(self) -> DeckState:
        return fold(self.events, EMPTY)

    def opened(self) -> Script:
        self.add(
            SessionOpened(
                format_version=1, app_version="0.1.0", session="20261130-202200-1f3a9c",
                started_at="2026-11-30T20:22:00Z", cwd="/home/me/sample", project="auth-rework",
                model="claude", branch="main", git_head="4f2c9a1b22", dirty_files=3,
                budget_usd="5.00", title="auth-rework",
            )
        )  # fmt: skip
        return self.add(HeadRecorded(sha256="9c1e4a7bffff", model="claude", context_tokens=200_000))

    def said(self, text: str, run: str = PARENT) -> Script:
        message = to_raw({"role": "user", "content": [{"type": "text", "text": text}]})
        if run == PARENT:
            self.add(TurnStarted(turn=1, run=run))
        kind = "prompt" if run == PARENT else "directive"
        return self.add(MessageAdded(kind=kind, message=message, text=text, run=run))

    def answered(self, text: str, run: str = PARENT, *, calls: int = 0, index: int = 0) -> Script:
        self.add(RequestSent(run=run, attempt=1, prefix_sha256="a", positions=3))
        self.add(StreamOpened(run=run, message_id=f"m{index}", ttft_ms=300))
        blocks: list[dict[str, object]] = [{"type": "text", "text": text}]
        used: list[dict[str, object]] = [
            {"type": "tool_use", "id": f"t{len(self.events)}-{n}", "name": "read", "input": {}}
            for n in range(calls)
        ]
        blocks += used
        message = to_raw({"role": "assistant", "content": blocks})
        stop = "tool_use" if calls else "end_turn"
        return self.add(MessageFinished(run=run, message=message, stop_reason=stop))

    def used(
        self, run: str, read: int, written: int, fresh: int, usd: str, verdict: str = "HIT"
    ) -> Script:
        usage = Usage(
            input_tokens=fresh, output_tokens=900, cache_read_input_tokens=read,
            cache_creation_input_tokens=written,
        )  # fmt: skip
        self.add(
            UsageReported(
                run=run, usage=usage, model="claude", cost_usd=Decimal(usd), price_source="test"
            )
        )
        if run != PARENT:
            self.add(
                CacheJudged(
                    run=run, verdict=verdict, read_tokens=read, expected_tokens=41_200,  # type: ignore[arg-type]
                    first_step=True, saved_usd=Decimal("0.36"),
                    difference="system block 2" if verdict == "MISS" else "",
                )
            )  # fmt: skip
        return self

    def tool(self, run: str, name: str, argument: str, summary: str = "", **more: object) -> Script:
        call = f"c{len(self.events)}"
        self.add(ToolStarted(run=run, call=call, name=name, input=to_raw({}), argument=argument))
        content = str(more.pop("content", ""))
        status = str(more.pop("status", "ok"))
        return self.add(
            ToolEnded(
                run=run, call=call, name=name, status=status, content=content,  # type: ignore[arg-type]
                summary=summary, duration_ms=4000, **more,  # type: ignore[arg-type]
            )
        )  # fmt: skip

    def running(self, run: str, name: str, argument: str) -> Script:
        call = f"c{len(self.events)}"
        return self.add(
            ToolStarted(run=run, call=call, name=name, input=to_raw({}), argument=argument)
        )

    def batch(self, count: int, *, places: int = 4, writers: tuple[int, ...] = (2,)) -> Script:
        handles = tuple(f"f{n}" for n in range(1, count + 1))
        self.add(
            BatchAdmitted(
                batch="b1", tool="fork_join", call="x", handles=handles, max_concurrency=places,
                prefix_tokens=41_200, estimate_usd=("0.11", "0.24"), base_commit="4f2c9a1b22",
            )
        )  # fmt: skip
        for n, handle in enumerate(handles):
            self.add(
                ForkQueued(
                    run=handle, batch="b1", index=n, name=NAMES[n % len(NAMES)], task="find it",
                    seed="before_call", from_run=PARENT, depth=1, write=n + 1 in writers,
                    max_turns=40, timeout_s=900, budget_usd="0.40",
                )
            )  # fmt: skip
        return self

    def started(self, *handles: str) -> Script:
        for handle in handles:
            self.add(
                ForkStarted(
                    run=handle, from_run=PARENT, inherited_messages=38, boundary=60,
                    inherited_tokens=41_200,
                )
            )  # fmt: skip
            self.said("Make src/io/retry.py the one helper for every retry.", handle)
        return self

    def asks(self, run: str, command: str = "pytest -q tests/io") -> Script:
        call = f"c{len(self.events)}"
        self.add(ToolStarted(run=run, call=call, name="bash", input=to_raw({}), argument=command))
        return self.add(
            ApprovalAsked(
                run=run, request=f"r{len(self.events)}", call=call, tool="bash", argument=command,
                cwd="fd/impl-step3", rule="none allows bash(pytest *)", grant="bash(pytest -q)",
                note="worktree, network off",
            )
        )  # fmt: skip

    def parent_talk(self) -> Script:
        self.said("Find every place we retry and make it uniform.")
        self.answered(
            "One fork per layer to read, one write fork for step 3. They share our 41.2k-token "
            "prefix.",
            calls=1,
        )
        return self.used(PARENT, 39_000, 1_800, 400, "0.05")


def empty() -> Script:
    """A parent that has answered once, and no fork."""
    script = Script().opened().said("Where do we retry, and how?")
    script.answered(
        "In four layers, each in its own way. I can read them one after the other, or send a "
        "fork to each."
    )
    script.used(PARENT, 11_000, 1_200, 400, "0.04")
    return script.tool(PARENT, "grep", '"retry" src/', "12 hits in 7 files")


def deck(count: int = 3) -> Script:
    """A deck of `count` forks in many states: 2 asks, 3 is new, 6 failed, 8 is queued."""
    script = Script().opened().parent_talk()
    script.batch(count)
    begun = [f"f{n}" for n in range(1, count + 1) if n != 8 and n < 23]
    script.started(*begun)
    script.at_ms += 90_000
    if "f1" in begun:
        _audit(script)
    if "f2" in begun:
        _write_fork(script)
    if "f3" in begun:
        script.tool("f3", "read", "pool.py", "88 lines")
        script.used("f3", 40_000, 1_900, 300, "0.09")
        script.add(ForkEnded(run="f3", outcome="done", reason="end_turn", report=REPORT))
    _others(script, begun)
    script.answered(
        "Forks are running. Meanwhile I write down the retry policy they will be measured "
        "against:\n\n1. at most five tries\n2. `Retry-After` **always** wins\n\n"
        "```python\ndef delays(p: Policy) -> Iterator[float]:\n    yield 0.5  # first\n```",
        calls=1,
    )
    return script.tool(PARENT, "write", "docs/retry-policy.md", added=64)


def _audit(script: Script) -> None:
    script.tool("f1", "read", "src/http/retry.py", "120 lines")
    script.tool(
        "f1", "grep", '"retry" in src/', "12 hits",
        content="src/http/client.py:88: backoff(2**n)\n"
        "src/queue/worker.py:41: backoff(min(2**n, 5))",
    )  # fmt: skip
    script.answered(
        "The backoff in client.py ignores Retry-After; the queue worker keeps its own copy with "
        "a different cap.",
        "f1",
        calls=1,
    )
    script.used("f1", 40_000, 1_900, 300, "0.06")
    script.running("f1", "read", "src/queue/worker.py")


def _write_fork(script: Script) -> None:
    script.add(
        WorktreeCreated(
            run="f2", path="/s/forks/f2", inside="/home/me/sample", base="4f2c9a1b22",
            level="sandboxed",
        )
    )  # fmt: skip
    script.tool("f2", "edit", "src/io/retry.py", added=41, removed=6, patch=PATCH)
    script.tool("f2", "edit", "tests/io/test_retry.py", added=43, removed=6, patch=PATCH)
    files = (
        FileChange(path="src/io/retry.py", added=41, removed=6),
        FileChange(path="tests/io/test_retry.py", added=43, removed=6),
    )
    script.add(WorktreeChanged(run="f2", files=files))
    script.used("f2", 40_000, 1_900, 300, "0.04")
    script.asks("f2")


def _others(script: Script, begun: list[str]) -> None:
    for handle in begun[3:]:
        script.tool(handle, "read", "docs/guide/http.md", "201 lines")
        if handle == "f5":
            script.add(ForkDelayed(run=handle, reason="429", wait_ms=18_000))
        elif handle in ("f6", "f19"):
            script.used(handle, 0, 41_000, 300, "0.06", "MISS")
            script.add(
                ForkEnded(
                    run=handle, outcome="failed", reason="server overloaded, 3 tries over 0:38",
                    remedy="a retry reads the prefix from cache",
                )
            )  # fmt: skip
        elif handle == "f7":
            script.used(handle, 40_000, 1_000, 300, "0.21")
            script.add(
                WorkSaved(
                    run=handle, ref="refs/forkdeck/7", commit="aa", base="4f",
                    files=(FileChange(path="a.py"),),
                )
            )  # fmt: skip
            script.add(
                ForkEnded(
                    run=handle, outcome="partial", reason="money, $0.21 of 0.20",
                    report="cause found, fix not written", remedy="raise it and go on",
                )
            )  # fmt: skip
        elif int(handle[1:]) > 11 and int(handle[1:]) < 19:
            script.used(handle, 40_000, 1_000, 300, "0.05")
            script.add(ForkEnded(run=handle, outcome="done", reason="end_turn", report=REPORT))
        else:
            script.used(handle, 40_000, 1_000, 300, "0.03")
            script.add(RequestSent(run=handle, attempt=1, prefix_sha256="a", positions=3))
            script.add(StreamOpened(run=handle, message_id="m", ttft_ms=200))
            script.add(TextStreamed(run=handle, index=0, text="Three pages promise eight tries; "))
            script.add(TextStreamed(run=handle, index=0, text="the policy says five. I chan"))


TASKS = (
    "List every retry site with evidence.",
    "One helper in src/io/retry.py, with tests.\nKeep the public signature.",
    "Retry behaviour of pool and session.",
    "Correct every page that promises eight tries.",
)


def launch_plan(*, priced: bool = True) -> LaunchPlan:
    """The plan of four forks; the second one writes."""
    return LaunchPlan(
        forks=tuple(
            PlannedFork(handle=f"f{n}", name=NAMES[n - 1], task=TASKS[n - 1], write=n == 2)
            for n in range(1, 5)
        ),
        prefix_tokens=41_200, warm=False, cold_why="its last use is more than five minutes ago",
        low_usd="0.23" if priced else None, likely_usd="0.31" if priced else None,
        high_usd="0.53" if priced else None, base_commit="4f2c9a1b22", dirty_files=2,
        isolation=("read-only", "worktree"), seeds=("before_call",), max_concurrency=4,
        limits=("each fork 40 turns, 900 s", "the session $5.00"),
    )  # fmt: skip


def priced_plan() -> LaunchPlan:
    """The plan of four forks with a price each; the first one writes the prefix for all."""
    import msgspec

    plan = launch_plan()
    price = ForkPrice(low_usd="0.05", likely_usd="0.07", high_usd="0.12")
    lead = ForkPrice(low_usd="0.08", likely_usd="0.10", high_usd="0.17")
    forks = tuple(
        msgspec.structs.replace(fork, price=price, lead_price=lead, prefix="a before_call",
                                warm=False, cold_why=plan.cold_why)
        for fork in plan.forks
    )  # fmt: skip
    return msgspec.structs.replace(plan, forks=forks, above_usd="0.25")


def planned(
    *, tool: str = "fork_join", priced: bool = True, plan: LaunchPlan | None = None
) -> Script:
    """A launch of four forks that waits for a yes."""
    script = Script().opened().parent_talk()
    plan = plan or launch_plan(priced=priced)
    handles = tuple(fork.handle for fork in plan.forks)
    script.add(
        BatchAdmitted(
            batch="b1", tool=tool, call="x", handles=handles, max_concurrency=4,  # type: ignore[arg-type]
            prefix_tokens=41_200, plan=plan, planned=True, base_commit="4f2c9a1b22",
        )
    )  # fmt: skip
    for index, fork in enumerate(plan.forks):
        script.add(
            ForkQueued(
                run=fork.handle, batch="b1", index=index, name=fork.name, task=fork.task,
                seed="before_call", from_run=PARENT, depth=1, write=fork.write, planned=True,
            )
        )  # fmt: skip
    return script.add(
        ApprovalAsked(
            run=PARENT, request="plan1", call="x", tool=tool, argument="4 forks\nand more",
            cwd="/home/me/sample", rule="such a launch usually costs $0.31", plan=plan,
        )
    )  # fmt: skip


def troubled() -> Script:
    """Four forks: 1 repeats a call, 2 is near a limit and steered, 3 has a doubtful report."""
    script = Script().opened().parent_talk().batch(4).started("f1", "f2", "f3", "f4")
    script.at_ms += 90_000
    for handle in ("f1", "f2"):
        script.add(RequestSent(run=handle, attempt=1, prefix_sha256="a", positions=60))
        script.answered("I look at it.", handle, calls=1)
    for _ in range(3):
        script.tool("f1", "bash", "pytest -k net", "1 failed", status="error", content="1 failed")
    script.used("f1", 40_000, 1_900, 300, "0.06")
    since = script.at_ms
    script.at_ms += 70_000
    script.running("f1", "bash", "pytest -k net")
    script.add(
        ForkSlowed(
            run="f1", clock="repeats", since_ms=since, what="bash pytest -k net called 4 times"
        )
    )
    files = (FileChange(path="src/io/retry.py"), FileChange(path="notes.md"))
    script.tool("f2", "edit", "src/io/retry.py", path="src/io/retry.py", added=30, removed=4)
    script.tool("f2", "edit", "src/io/retry.py", path="src/io/retry.py", added=11, removed=2)
    script.add(WorktreeChanged(run="f2", files=files))
    script.used("f2", 40_000, 1_900, 300, "0.33")
    script.add(LimitNeared(run="f2", limit="budget", of="$0.40", share=0.83))
    script.add(ForkSteered(run="f2", text="Leave notes.md alone."))
    script.running("f2", "bash", "pytest -q tests/io")
    script.used("f3", 40_000, 1_900, 300, "0.09")
    script.add(
        ClaimsChecked(
            run="f3", checked=3, verified=1,
            unverified=(
                "names src/http/pool.py, which does not exist",
                "says `pytest -q` passed, but it ended with exit 1",
            ),
        )
    )  # fmt: skip
    script.add(ForkEnded(run="f3", outcome="done", reason="end_turn", report=REPORT))
    script.used("f4", 0, 41_000, 300, "0.06", "MISS")
    script.add(
        CacheJudged(
            run="f4", verdict="MISS", read_tokens=0, expected_tokens=41_200, first_step=True,
            written_tokens=41_000, fresh_tokens=300, difference='system block 2: "effort: high"',
        )
    )  # fmt: skip
    script.add(ClaimsChecked(run="f4", checked=3, verified=3))
    return script.add(ForkEnded(run="f4", outcome="done", reason="end_turn", report=REPORT))
