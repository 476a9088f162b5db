"""Joins everything into a live deck: log, hub, endpoint, tools, sandbox, worktrees, engine.

The only place that knows all packages. A composed deck is a `LiveDeck`; what it was made of is
closed by `LiveDeck.close`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from forkdeck import __version__
from forkdeck.cli.host import Host
from forkdeck.cli.project import ProjectFacts
from forkdeck.cli.repository import hiding, make_worktrees
from forkdeck.cli.trusted_files import TrustedFiles, grant, user_file
from forkdeck.config.rules import Rule
from forkdeck.config.settings import Settings
from forkdeck.config.trust import TrustStore
from forkdeck.engine.deck import LiveDeck
from forkdeck.engine.parts import EngineParts, Person
from forkdeck.engine.profiles import offered
from forkdeck.errors import LogFormatError, SessionError, UsageError
from forkdeck.model.events import FORMAT_VERSION, Event
from forkdeck.model.events.session import NoticeRaised, SessionOpened
from forkdeck.model.ids import PARENT, new_session_id
from forkdeck.model.ports import EndpointFacts, Enforcement, Provider, Workspace
from forkdeck.model.state import EMPTY, DeckState
from forkdeck.model.work import RepoFacts
from forkdeck.providers.client import AnthropicProvider
from forkdeck.providers.credentials import Credentials
from forkdeck.providers.gate import RateGate
from forkdeck.providers.prices import Prices
from forkdeck.sandbox.probe import probe
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.sweep import kill_orphans
from forkdeck.sandbox.workspace import Project, parent_workspace, read_only_workspace
from forkdeck.seeds.head import RequestHead
from forkdeck.sessionlog.catalogue import find_session
from forkdeck.sessionlog.paths import SessionPaths, session_directory
from forkdeck.sessionlog.reader import read_log
from forkdeck.sessionlog.writer import JsonlSink
from forkdeck.store.figures import money
from forkdeck.store.hub import Hub
from forkdeck.store.reducer import fold
from forkdeck.tools.registry import BUILTIN, all_specs

LISTED = ("Anthropic", "rehearsal")
"""Endpoints whose models cost the list price; elsewhere only the person's own prices count."""
MOST_UNUSED = 8
"""Files of an untrusted project that are named."""


@dataclass(frozen=True, kw_only=True)
class LiveRequest:
    """What kind of live session is wanted."""

    project: ProjectFacts
    credentials: Credentials
    attached: bool = True
    """Whether a person sits at the deck and can answer."""
    person: Person | None = None
    simulated: str | None = None
    """Words to show when the model is scripted."""
    resume: str | None = None
    """A session id, a prefix of one, or a log's path."""
    unguarded: bool = False
    """Look commands may run although no sandbox guards them (the demo's own sample)."""
    listeners: Sequence[Callable[[Event, DeckState], None]] = field(default_factory=tuple)


async def open_live(host: Host, request: LiveRequest) -> LiveDeck:
    """Compose and open a live deck.

    Raises:
        SessionError: The session to resume cannot be found, is too new, or is open elsewhere.
        ForkDeckError: Something else that a session cannot do without failed.
    """
    # What a killed ForkDeck left running without a sandbox ends here.
    await asyncio.to_thread(kill_orphans)
    enforcement = await probe()
    paths = await asyncio.to_thread(_place, host, request)
    # The lock comes first: what is read behind it cannot change any more.
    sink = await asyncio.to_thread(JsonlSink.open, paths)
    try:
        state = await asyncio.to_thread(_state, paths) if request.resume else EMPTY
        hub = Hub(sink=sink, clock=host.clock, state=state)
        for listener in request.listeners:
            hub.listen(lambda event, each=listener: each(event, hub.state))
        parts = await _parts(host, request, enforcement, paths, hub)
        deck = await LiveDeck.open(parts, resume=request.resume is not None)
        _tell_notes(hub, parts.provider)
        if request.resume is None and request.simulated is None:
            unused = await asyncio.to_thread(_unused, host, request.project)
            if unused is not None:
                hub.append(unused)
        return deck
    except BaseException:
        await sink.close()
        raise


def _unused(host: Host, project: ProjectFacts) -> NoticeRaised | None:
    """List the project's files that do not count, because nobody has trusted them."""
    files = () if project.trusted else TrustStore(host.state).files(project.root)
    if not files:
        return None
    shown = [file.path for file in files[:MOST_UNUSED]]
    more = f" and {len(files) - len(shown)} more" if len(files) > len(shown) else ""
    return NoticeRaised(
        severity="info",
        what=f"Not used, the project is not trusted: {', '.join(shown)}{more}.",
        remedy="/trust shows each file first.",
    )


def _tell_notes(hub: Hub, provider: Provider) -> None:
    """Show what was corrected at the endpoint's address, or learned from its refusals."""

    def tell(note: str) -> None:
        hub.append(NoticeRaised(severity="info", what=note))

    if isinstance(provider, AnthropicProvider):
        for note in provider.notes:
            tell(note)
        provider.on_note(tell)


def prices_listed(host: Host, settings: Settings) -> bool:
    """Tell whether the list prices hold at the endpoint that a live session would use."""
    return _endpoint(host, settings).name in LISTED


def endpoint_name(host: Host, settings: Settings) -> str:
    """Return the endpoint that a live session would use, as it may be shown."""
    return _endpoint(host, settings).name


def _endpoint(host: Host, settings: Settings) -> EndpointFacts:
    return AnthropicProvider(host.credentials, base_url=settings.endpoint.base_url).endpoint


def check_budget(host: Host, request: LiveRequest) -> None:
    """Refuse a budget that nothing could keep, before anything is spent.

    Raises:
        UsageError: There is a budget, and no price is known.
    """
    settings = request.project.loaded.settings
    budget = settings.session.budget_usd
    if budget is None:
        return
    endpoint = _endpoint(host, settings)
    prices = Prices(settings.prices, listed=endpoint.name in LISTED)
    if prices.per_token_usd(settings.model) is None:
        raise UsageError(
            f"The budget of {money(budget)} cannot be kept: no price of {settings.model} at"
            f" {endpoint.base_url} is known.",
            f'Give it as [prices."{settings.model}"] in your config.toml, or set no budget.',
        )


def _place(host: Host, request: LiveRequest) -> SessionPaths:
    """Return the session's directory; one to resume must be the person's own."""
    if request.resume is None:
        session = new_session_id(host.clock.now())
        return SessionPaths(session_directory(host.state, request.project.root, session))
    paths = find_session(host.state, request.resume)
    own = (host.state / "sessions").resolve()
    if own not in paths.events.resolve().parents:
        raise SessionError(
            f"{paths.events} is not one of your own sessions, so it can only be replayed.",
            f"Use: forkdeck replay {paths.events}",
        )
    return paths


def _state(paths: SessionPaths) -> DeckState:
    """Return a saved session's state."""
    log = read_log(paths.events)
    if log.newer:
        raise LogFormatError(
            f"Session {paths.session} was written by a newer ForkDeck.",
            "Replay it here, or go on with it in the newer version.",
        )
    return fold(log.events)


async def _parts(
    host: Host,
    request: LiveRequest,
    enforcement: Enforcement,
    paths: SessionPaths,
    hub: Hub,
) -> EngineParts:
    project, settings = request.project, request.project.loaded.settings
    scratch = host.state / "scratch" / paths.session
    runner = Runner(enforcement, scratch=scratch, environment_names=settings.sandbox.environment)
    place = Project(
        root=project.root,
        cwd=project.cwd,
        spill_directory=paths.spill,
        hide=hiding(host, project),
        network=settings.sandbox.network,
    )
    unguarded = _unguarded(hub, request)
    manager = make_worktrees(
        host, project, paths, runner, trusted=project.trusted or request.unguarded
    )
    repo = await manager.inspect()
    provider = _provider(host, request)

    parent = parent_workspace(runner, place, run=PARENT, unguarded=unguarded)

    def fork_workspace(handle: str) -> Workspace:
        return read_only_workspace(runner, place, run=handle, unguarded=unguarded)

    files = TrustedFiles(TrustStore(host.state), project.root) if project.trusted else None
    return EngineParts(
        hub=hub,
        clock=host.clock,
        provider=provider,
        # Every fork that may run at once, and the parent beside them.
        gate=RateGate(host.clock, width=settings.forks.max_per_directory + 1),
        prices=Prices(settings.prices, listed=provider.endpoint.name in LISTED),
        settings=settings,
        paths=paths,
        tools={tool.spec.name: tool for tool in BUILTIN},
        specs=all_specs(),
        parent_workspace=parent,
        share=parent.share,
        fork_workspace=fork_workspace,
        enforcement=enforcement,
        opened=_opened(host, request, paths, repo),
        head=await asyncio.to_thread(_stored_head, paths, hub.state),
        worktrees=manager,
        instructions=project.instructions,
        rules=project.rules,
        trusted=project.trusted,
        attached=request.attached,
        person=request.person,
        places=host.state / "places",
        project=files,
        offered=() if files is None else await asyncio.to_thread(offered, files),
        user_file=partial(user_file, host.config),
        discard=runner.discard_scratch,
        trust=partial(grant, TrustStore(host.state), project.root),
    )


def _provider(host: Host, request: LiveRequest) -> AnthropicProvider:
    if request.simulated is not None:
        # The scripted model gets nothing of the person's endpoint, headers least of all.
        return AnthropicProvider(request.credentials, simulated=request.simulated, clock=host.clock)
    endpoint = request.project.loaded.settings.endpoint
    return AnthropicProvider(
        request.credentials,
        base_url=endpoint.base_url,
        headers=endpoint.headers,
        capabilities=endpoint.capabilities,
        clock=host.clock,
    )


def _unguarded(hub: Hub, request: LiveRequest) -> Callable[[], bool]:
    """Look commands without a sandbox need the demo, or a rule that allows all of bash."""

    def allows_all(rules: Sequence[Rule]) -> bool:
        return any(rule.kind == "allow" and rule.text == "bash" for rule in rules)

    from_settings = request.unguarded or allows_all(request.project.rules)

    def unguarded() -> bool:
        granted = hub.state.rules
        return from_settings or any(r.kind == "allow" and r.text == "bash" for r in granted)

    return unguarded


def _opened(
    host: Host, request: LiveRequest, paths: SessionPaths, repo: RepoFacts
) -> SessionOpened:
    settings = request.project.loaded.settings
    budget = settings.session.budget_usd
    return SessionOpened(
        format_version=FORMAT_VERSION,
        app_version=__version__,
        session=paths.session,
        started_at=host.clock.now().isoformat(timespec="seconds"),
        cwd=str(request.project.cwd),
        project=request.project.root.name or str(request.project.root),
        model=settings.model,
        mode=settings.mode,
        git_head=repo.head,
        branch=repo.branch,
        dirty_files=repo.dirty_files,
        budget_usd=None if budget is None else str(budget),
        simulated=request.simulated,
    )


def _stored_head(paths: SessionPaths, state: DeckState) -> RequestHead | None:
    """Return the parent's recorded head of a resumed session.

    Raises:
        LogFormatError: It is recorded, but not there or not what was recorded.
    """
    facts = state.parent.head
    if facts is None:
        return None
    path = paths.heads / f"{facts.sha256}.json"
    try:
        head = RequestHead.from_text(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise LogFormatError(
            f"The session's request head {path.name} cannot be read: {error}.",
            "The session can still be replayed.",
        ) from error
    if head.sha256 != facts.sha256:
        raise LogFormatError(f"The session's request head {path.name} was changed.")
    return head
