"""The seams: what each side may expect of the other, and nothing more.

`Deck` and `DeckFactory` are what the user interface talks to; live and replay implement them.
The others are what the engine talks to. Fakes of these live in the tests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import msgspec

from forkdeck.errors import ProviderError
from forkdeck.model.events import Event
from forkdeck.model.intents import Intent, IntentResult
from forkdeck.model.raw import JsonDict
from forkdeck.model.state import DeckState, HistoryEntry
from forkdeck.model.stream import ModelRequest, StreamPart
from forkdeck.model.tooling import ProcessResult, ToolContext, ToolResult, ToolSpec
from forkdeck.model.usage import Usage
from forkdeck.model.words import Access, Level
from forkdeck.model.work import AppliedWork, Lease, RepoFacts, SavedEntry, SavedWork, WorkDiff


class Clock(Protocol):
    """Time, injected; tests use a manual one."""

    def monotonic_ms(self) -> int:
        """Return milliseconds of a clock that never goes back."""
        ...

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellation passes through."""
        ...


class LogSink(Protocol):
    """Where the hub hands every event, first of all."""

    @property
    def trouble(self) -> str | None:
        """Why lines are unsaved at the moment, or None. Nothing new may start meanwhile."""
        ...

    def put(self, event: Event) -> None:
        """Take an event in order; never blocks, never loses it."""
        ...

    async def sync(self) -> None:
        """Return when everything put so far is on the disk (or the trouble is known)."""
        ...

    async def close(self) -> None:
        """Write what is left, sync, release the lock."""
        ...


# --- the deck -------------------------------------------------------------------------------


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What this deck can do; the user interface greys out the rest."""

    live: bool = True
    """Prompts, forks, answers, aborts are possible."""
    worktrees: bool = True
    recorded: bool = False
    """A replay: live intents answer "recorded"."""


class PlaybackFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Transport state of a replay; not deck state, never logged."""

    playing: bool
    speed: float
    position_ms: int
    duration_ms: int
    event: int
    events: int
    skip_idle: bool = True


class Transport(Protocol):
    """The transport keys of a replay."""

    @property
    def facts(self) -> PlaybackFacts:
        """Where the replay is."""
        ...

    def play(self) -> None:
        """Go on from here; at the end, start again from the beginning."""
        ...

    def pause(self) -> None:
        """Stop here."""
        ...

    def step(self, events: int) -> None:
        """Go `events` forward (or back when negative) and pause."""
        ...

    def seek_ms(self, position_ms: int) -> None:
        """Go to a time; clamped to the recording."""
        ...

    def seek_next(self, what: Literal["owed", "error", "fork", "turn"], back: bool = False) -> bool:
        """Go to the next such event; False when there is none."""
        ...

    def set_speed(self, speed: float) -> None:
        """Set the speed, 0.25 to 32."""
        ...

    def set_skip_idle(self, on: bool) -> None:
        """Cut gaps of more than 2 s to 0.5 s, or play them in full."""
        ...


class Deck(Protocol):
    """A running session, live or replayed: state out, intents in."""

    @property
    def state(self) -> DeckState:
        """The state now."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this deck can do."""
        ...

    @property
    def transport(self) -> Transport | None:
        """The replay's transport; None on a live deck."""
        ...

    def now_ms(self) -> int:
        """The session's clock, for ages and waits; a replay's position."""
        ...

    def subscribe(self, wake: Callable[[bool], None]) -> Callable[[], None]:
        """Call `wake(urgent)` on the loop after every change; returns how to stop that.

        `urgent` is true for lifecycle changes, which are drawn at once.
        """
        ...

    async def submit(self, intent: Intent) -> IntentResult:
        """Do what the person asks; refusals are results, not exceptions."""
        ...

    async def diff(self, handle: str) -> WorkDiff:
        """Return a fork's changes against its base.

        Raises:
            WorktreeError: The work cannot be read.
        """
        ...

    async def complete_path(self, prefix: str, limit: int = 20) -> Sequence[str]:
        """Return project files that begin like `prefix`, for ``@file`` completion."""
        ...

    async def close(self) -> None:
        """End the session: stop and save every fork, flush the log. Safe to call twice."""
        ...


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the session list (``summary.json``)."""

    session: str
    path: str
    started_at: str
    project: str
    cwd: str
    branch: str | None = None
    title: str = ""
    forks: int = 0
    asks: int = 0
    new: int = 0
    interrupted: int = 0
    failed: int = 0
    cost_usd: str | None = None
    """Decimal text; None when part of it has no known price."""
    simulated: bool = False
    updated_at: str = ""
    log_bytes: int = 0


class StartFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the start screen shows: what is ready, what is missing, and the way out."""

    version: str
    project: str
    branch: str | None
    dirty_files: int | None
    checks: tuple[tuple[str, bool, str], ...]
    """(name, good, text): key, git, sandbox, prices, search, trust."""
    can_start: bool
    """Whether there are credentials for a live session."""
    missing: str = ""
    """Without credentials: what was looked for, and how to set a key."""
    trust: str = ""
    """``trusted``, ``changed`` or ``untrusted``; empty when the project has no such files."""
    trust_files: tuple[tuple[str, str], ...] = ()
    """(path relative to the project, content) of each file that trust is about."""


class DeckFactory(Protocol):
    """Opens decks; made by the command line and given to the user interface."""

    async def start_facts(self) -> StartFacts:
        """Look at the directory, the credentials and the host."""
        ...

    async def sessions(self, limit: int = 50) -> Sequence[SessionSummary]:
        """Return saved sessions, newest first."""
        ...

    async def open_live(self, *, demo: bool = False, resume: str | None = None) -> Deck:
        """Open a live session, or the demo, or go on with a saved one.

        Raises:
            ForkDeckError: It cannot be opened; the message says what to do.
        """
        ...

    async def open_replay(self, target: str) -> Deck:
        """Open a saved session or a log file for replay.

        Raises:
            SessionError: There is no such session, or the file is no log.
        """
        ...


# --- the model's side -----------------------------------------------------------------------


class EndpointFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the endpoint; capabilities are data, overridable in the config."""

    base_url: str
    """Shown; never with credentials in it."""
    name: str
    thinking: bool = True
    effort: bool = True
    diagnostics: bool = False
    cache_fields: bool = True
    simulated: str | None = None
    """Words to show when the model is scripted."""


class Provider(Protocol):
    """One attempt at a time at one endpoint."""

    @property
    def endpoint(self) -> EndpointFacts:
        """What is known of the endpoint."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Send a request and yield its answer; no retry inside.

        Closing the iterator (or cancelling its task) closes the HTTP stream at once. Deltas
        are joined over about 50 ms.

        Raises:
            ProviderError: Before `Opened`: the classified refusal. After it: `StreamCut`,
                `Overloaded` or `ServerFault` (a broken stream is never an answer).
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a model; unknown fields are None."""

    context_tokens: int | None = None
    max_output_tokens: int = 32_000
    cache_minimum_tokens: int = 4_096
    thinking: JsonDict | None = None
    """The ``thinking`` parameter for this model, or None to leave it out."""
    effort: str | None = None
    """The model's default effort."""


class PriceBook(Protocol):
    """Prices of models, with their source."""

    def cost_usd(self, model: str, usage: Usage) -> tuple[Decimal | None, str]:
        """Return the cost of one response and the price's source; None when unknown."""
        ...

    def read_saving_usd(self, model: str, read_tokens: int) -> Decimal | None:
        """Return what reading `read_tokens` from the cache saved against fresh input."""
        ...

    def per_token_usd(self, model: str) -> tuple[Decimal, Decimal, Decimal, Decimal] | None:
        """Return (input, cache write 5m, cache read, output) per token, or None."""
        ...

    def facts(self, model: str) -> ModelFacts:
        """Return what is known of a model; conservative for an unknown one."""
        ...


class Gate(Protocol):
    """One gate per endpoint and key: concurrency, Retry-After, back-off, jitter."""

    async def enter(self, run: str, waiting: Callable[[str, int], None]) -> None:
        """Wait for the turn to send; `waiting(reason, wait_ms)` is called when it must wait."""
        ...

    def leave(self, run: str) -> None:
        """Give the place back after the request ended, however it ended."""
        ...

    def succeeded(self) -> None:
        """Note a first byte: concurrency may climb again."""
        ...

    def wait_after(self, error: ProviderError, attempt: int) -> tuple[float, int | None] | None:
        """Say how long to wait in seconds and how many attempts there are; None: give up.

        `attempt` counts from 1. A 429 with Retry-After closes the gate for every run.
        """
        ...


class Seed(msgspec.Struct, frozen=True, kw_only=True):
    """What a fork starts from; frozen, shared by all children of a launch."""

    mode: str
    inherited_messages: int
    """Parent messages taken whole."""
    messages: tuple[msgspec.Raw, ...]
    """Messages that follow them in the child, without the directive."""
    inherited_blocks: int = 0
    """Leading blocks of the last of `messages` that are the parent's."""
    boundary: int = 0
    """Message positions inherited in all."""
    notes: tuple[str, ...] = ()


class SeedPolicy(Protocol):
    """A pure function of the parent's history."""

    name: str

    def plan(self, history: Sequence[HistoryEntry], call: str | None) -> Seed:
        """Return the seed for a call of the last assistant message (None: the person's fork).

        Raises:
            SeedRefused: The history cannot give a valid seed of this kind.
        """
        ...


# --- the machine's side ---------------------------------------------------------------------


class Enforcement(msgspec.Struct, frozen=True, kw_only=True):
    """What was probed on this host."""

    level: Level
    program: str | None = None
    """Path of the sandbox program."""
    why: str = ""
    remedy: str = ""
    notes: tuple[str, ...] = ()
    private_proc: bool = True
    """Whether a fresh ``/proc`` can be mounted; without it host processes stay visible."""


class Workspace(Protocol):
    """What one run sees of the machine: paths, files and commands, in one world.

    All paths are inside paths: what the model says and what bash sees. One value answers both,
    so `read`, `bash` and ``@file`` agree.
    """

    @property
    def root(self) -> str:
        """The project root as the run sees it."""
        ...

    @property
    def cwd(self) -> str:
        """The directory commands start in."""
        ...

    @property
    def level(self) -> Level:
        """How far the operating system enforces the view."""
        ...

    def resolve(self, path: str, *, write: bool = False) -> Path:
        """Return the host path of an inside path (relative ones start at `cwd`).

        Raises:
            PathRefused: It is hidden, special, outside, or leads outside through a link.
        """
        ...

    async def read_bytes(self, path: str, limit: int) -> bytes:
        """Return at most `limit` + 1 bytes of a regular file.

        Raises:
            PathRefused: As `resolve`.
            ToolError: It is no readable file.
        """
        ...

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Replace a file atomically, keeping its mode; makes missing directories.

        In a write fork the write goes through the sandbox.

        Raises:
            PathRefused: As `resolve`, or the view is read-only there.
        """
        ...

    async def run(
        self,
        command: str | Sequence[str],
        *,
        access: Access,
        timeout_s: float,
        spill_name: str,
        progress: Callable[[str, int], None] | None = None,
    ) -> ProcessResult:
        """Run a shell text or an argument list and wait; cancellation kills all of it.

        Raises:
            SandboxError: The sandbox did not start; the command did not run.
            ToolDenied: Without a sandbox this view cannot be given.
        """
        ...


class Tool(Protocol):
    """A built-in tool."""

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        ...

    @property
    def effects(self) -> bool:
        """Whether it can change anything (`edit`, `write`, `bash`)."""
        ...

    def describe(self, arguments: JsonDict) -> str:
        """Return the call in one line; takes any input, also a wrong one."""
        ...

    async def run(self, arguments: JsonDict, context: ToolContext) -> ToolResult:
        """Do it.

        Raises:
            ToolError: It gave no result; the text is for the model.
        """
        ...


ChangeListener: TypeAlias = Callable[[str, Sequence[str]], None]
"""Called with a handle and the changed paths, relative to its worktree."""


class Worktrees(Protocol):
    """Worktrees of write forks and the work saved from them; blocking git is off the loop."""

    async def inspect(self) -> RepoFacts:
        """Look at the project's directory; never runs repository code."""
        ...

    async def create(self, handle: str, *, dirty: bool = False) -> Lease:
        """Make a fork's worktree at the parent's HEAD, or at a snapshot of its tree.

        Raises:
            WorktreeError: It could not be made; nothing is left behind.
        """
        ...

    async def reopen(self, handle: str) -> Lease:
        """Return the lease of a worktree that still stands, for a fork that goes on.

        Raises:
            WorktreeError: There is none.
        """
        ...

    def workspace(self, lease: Lease) -> Workspace:
        """Return the fork's view of its worktree."""
        ...

    async def save(self, handle: str) -> SavedWork | None:
        """Save all work of a fork to a ref and a patch; None when nothing changed.

        Raises:
            WorktreeError: It could not be saved; the directory stays.
        """
        ...

    async def remove(self, handle: str) -> None:
        """Remove a worktree whose work was saved.

        Raises:
            WorktreeError: It is not saved, or git refused; the directory stays.
        """
        ...

    async def diff(self, base: str, commit: str) -> WorkDiff:
        """Return what changed from `base` to `commit`."""
        ...

    async def live_diff(self, handle: str) -> WorkDiff:
        """Return what a running fork has changed so far."""
        ...

    async def apply(self, work: SavedWork, *, method: str = "patch") -> AppliedWork:
        """Merge saved work into the parent's tree, 3-way.

        Raises:
            ApplyRefused: A conflict, or a file in the way; nothing was written.
        """
        ...

    async def undo(self, ref: str) -> AppliedWork:
        """Restore the parent's tree from a snapshot ref.

        Raises:
            ApplyRefused: The tree moved since; nothing was written.
        """
        ...

    async def snapshot(self, turn: int) -> str | None:
        """Keep the parent's tree in a ref before a turn changes it; None without git."""
        ...

    def watch(self, changed: ChangeListener) -> None:
        """Report changing files of every living worktree from now on, on the loop."""
        ...

    async def entries(self) -> Sequence[SavedEntry]:
        """Return every worktree and saved work of this repository."""
        ...

    async def close(self) -> None:
        """Stop watching; saves and removes nothing."""
        ...
