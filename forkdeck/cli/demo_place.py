"""The demo's own world: a sample repository, a state directory and a model, all temporary.

The sample is made a git repository with a fixed identity and dates, so that every demo is the
same. Only the model is scripted; tools, git and the sandbox are real.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path

from forkdeck.cli.alive import Alive
from forkdeck.cli.compose import LiveRequest, open_live
from forkdeck.cli.host import Host, rehearsal_speed
from forkdeck.cli.project import ProjectFacts, look_at_project
from forkdeck.config.rules import Rule
from forkdeck.engine.deck import LiveDeck
from forkdeck.errors import UsageError
from forkdeck.model.events import Event
from forkdeck.model.events.tool import ApprovalAsked
from forkdeck.model.ports import Clock
from forkdeck.model.state import DeckState
from forkdeck.model.words import Answer
from forkdeck.providers.credentials import Credentials
from forkdeck.providers.rehearsal.scenario import PersonAnswer, Scenario, builtin
from forkdeck.providers.rehearsal.server import RehearsalServer

_DATE = "2026-11-02T09:00:00+00:00"
_IDENTITY = {
    "GIT_AUTHOR_NAME": "Sample Author",
    "GIT_AUTHOR_EMAIL": "sample@example.invalid",
    "GIT_AUTHOR_DATE": _DATE,
    "GIT_COMMITTER_NAME": "Sample Author",
    "GIT_COMMITTER_EMAIL": "sample@example.invalid",
    "GIT_COMMITTER_DATE": _DATE,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
}


@dataclass(frozen=True)
class ScriptedPerson:
    """Answers requests as a scenario says; implements `forkdeck.engine.parts.Person`."""

    answers: Sequence[PersonAnswer]
    clock: Clock

    async def answer(self, asked: ApprovalAsked) -> tuple[Answer, str] | None:
        """Return the first answer whose pattern is found in the request's argument."""
        for each in self.answers:
            if each.match.search(asked.argument):
                await self.clock.sleep(each.after_ms / 1000)
                return _answer_word(each.answer), "answered by the scenario's scripted person"
        return None


def _answer_word(text: str) -> Answer:
    words: dict[str, Answer] = {word: word for word in ("once", "fork", "batch", "session", "deny")}  # type: ignore[assignment] # a literal's members, spelled once
    return words.get(text, "deny")


class DemoPlace:
    """A demo's directories and its running model; made by `make`, removed by `close`."""

    def __init__(
        self, host: Host, alive: Alive, scenario: Scenario, server: RehearsalServer
    ) -> None:
        self._alive = alive
        self._base = base = alive.directory
        self._host = replace(host, state=base / "state", config=base / "config")
        self._server = server
        self.scenario = scenario

    @property
    def project(self) -> Path:
        """The sample repository."""
        return self._base / "tally"

    @property
    def state(self) -> Path:
        """The demo's own state directory, where its session is saved."""
        return self._host.state

    @property
    def prompts(self) -> tuple[str, ...]:
        """What the demo's person types, in order."""
        return self.scenario.prompts or (self.scenario.prompt,)

    @classmethod
    async def make(cls, host: Host) -> DemoPlace:
        """Copy the sample, make it a repository, start the model.

        Raises:
            UsageError: There is no git, or the temporary directory cannot be written.
        """
        scenario = builtin("demo")
        server = RehearsalServer(scenario, speed=rehearsal_speed())
        alive = await asyncio.to_thread(_make_directories)
        try:
            await asyncio.to_thread(_make_repository, alive.directory / "tally")
            await server.start()
        except BaseException:
            alive.remove()
            raise
        return cls(host, alive, scenario, server)

    async def open(
        self,
        *,
        attached: bool,
        listeners: Sequence[Callable[[Event, DeckState], None]] = (),
    ) -> LiveDeck:
        """Open the demo's session; nothing is sent yet."""
        person = ScriptedPerson(self.scenario.person, self._host.clock)
        request = LiveRequest(
            project=await asyncio.to_thread(self._facts),
            credentials=Credentials.for_rehearsal(self._server.base_url, self._server.token),
            attached=attached,
            person=None if attached else person,
            simulated="scripted model, simulated at list price",
            unguarded=True,
            listeners=listeners,
        )
        return await open_live(self._host, request)

    def _facts(self) -> ProjectFacts:
        rules = [Rule.parse(text, "allow") for text in self.scenario.allow]
        rules += [Rule.parse(text, "ask") for text in self.scenario.ask]
        flags = {"model": self.scenario.model, "mode": "default"}
        return look_at_project(self._host, self.project, flags, trust_once=True, more_rules=rules)

    async def close(self) -> None:
        """Stop the model and remove everything; safe to call twice."""
        await self._server.stop()
        await asyncio.to_thread(self._alive.remove)


def _make_directories() -> Alive:
    try:
        alive = Alive.make("forkdeck-demo-")
        base = alive.directory
        with as_file(files("forkdeck") / "sample") as sample:
            shutil.copytree(
                sample, base / "tally", ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
            )
        (base / "state").mkdir(mode=0o700)
        (base / "config").mkdir(mode=0o700)
    except OSError as error:
        raise UsageError(
            f"The demo's directory cannot be made: {error}.",
            "Set TMPDIR to a directory that can be written.",
        ) from error
    return alive


def _make_repository(project: Path) -> None:
    environment = {**os.environ, **_IDENTITY}
    commands = (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        ["commit", "-q", "--no-verify", "-m", "Tally, a small invoice printer"],
    )
    try:
        for command in commands:
            # A new repository of our own files: nothing in it was configured by anyone else.
            subprocess.run(
                ["git", "-C", str(project), *command],
                env=environment, check=True, capture_output=True, timeout=30,
            )  # fmt: skip
    except FileNotFoundError as error:
        raise UsageError(
            "The demo needs git, and it is not on PATH.",
            "Install it: 'apt install git', 'dnf install git', or 'brew install git'.",
        ) from error
    except subprocess.SubprocessError as error:
        raise UsageError(f"git could not make the sample repository: {error}.") from error
