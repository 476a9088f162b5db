"""What works on this machine and what does not, each with its remedy.

Read by the start screen and by ``forkdeck doctor``. Looks only; changes and sends nothing.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from forkdeck.cli.compose import endpoint_name, prices_listed
from forkdeck.cli.host import Host
from forkdeck.cli.project import ProjectFacts, look_at_project
from forkdeck.cli.repository import visiting_worktrees
from forkdeck.config.loading import NOT_TRUSTED
from forkdeck.config.trust import CONFIG_FILE
from forkdeck.model.ports import Enforcement
from forkdeck.model.work import RepoFacts
from forkdeck.providers.prices import Prices
from forkdeck.sandbox.probe import probe

_GIT_REMEDIES = {
    "none": "Start it in a repository, or make one: git init, then a first commit.",
    "bare": "Start it in a clone or a worktree of it.",
    "no git": "Install it: 'apt install git', 'dnf install git', or 'brew install git'.",
}
"""What to do, where the reason does not say it already."""


@dataclass(frozen=True)
class Check:
    """One row: whether it is good, in a few words, and what to do when it is not."""

    name: str
    good: bool
    text: str
    remedy: str = ""


async def checks(
    host: Host, cwd: Path, flags: Mapping[str, object] | None = None, *, quick: bool = False
) -> tuple[list[Check], RepoFacts]:
    """Look at everything a session needs; returns the rows and the repository's facts.

    Args:
        host: This process.
        cwd: The directory to work in, resolved.
        flags: Settings given on the command line, by dotted key.
        quick: Name the price list without looking the model up in it: loading the list takes
            memory that a screen which may be left again should not take.

    Raises:
        ConfigError: A settings file, key or value is wrong.
    """
    enforcement, project = await asyncio.gather(
        probe(), asyncio.to_thread(look_at_project, host, cwd, flags)
    )
    repo = await _repository(host, project, enforcement)
    settings = project.loaded.settings
    rows = [_key(host), _git(repo), _sandbox(enforcement)]
    prices = Prices(settings.prices, listed=prices_listed(host, settings))
    if settings.model in settings.prices:
        origin = project.loaded.origins["prices"]
        rows.append(Check("prices", True, f"{settings.model}, yours from {origin}"))
    elif quick and prices_listed(host, settings):
        rows.append(Check("prices", True, f"list prices of {_list_name()}"))
    else:
        where = "" if prices_listed(host, settings) else f" at {endpoint_name(host, settings)}"
        rows.append(await asyncio.to_thread(_prices, prices, settings.model, where))
    rows += [_search(), _state(host), _trust(project)]
    return rows, repo


async def _repository(host: Host, project: ProjectFacts, enforcement: Enforcement) -> RepoFacts:
    manager = visiting_worktrees(host, project, enforcement)
    try:
        return await manager.inspect()
    finally:
        await manager.close()


def _key(host: Host) -> Check:
    credentials = host.credentials
    if credentials.found:
        return Check("key", True, credentials.origin)
    words = "cannot be used" if credentials.trouble else "none found; demo and replay need none"
    return Check("key", False, words, credentials.looked_for)


def _git(repo: RepoFacts) -> Check:
    if repo.kind == "ok":
        return Check("git", True, "worktrees work here")
    first, _, rest = repo.reason.partition("\n")
    return Check("git", False, first or repo.kind, rest or _GIT_REMEDIES.get(repo.kind, ""))


def _sandbox(enforcement: Enforcement) -> Check:
    if enforcement.level == "sandboxed":
        return Check("sandbox", True, "read-only enforced by the system")
    return Check("sandbox", False, f"{enforcement.level}: {enforcement.why}", enforcement.remedy)


def _prices(prices: Prices, model: str, where: str) -> Check:
    if prices.per_token_usd(model) is None:
        return Check(
            "prices",
            False,
            f"no price known for {model}{where}; costs show as –",
            f'Set it in your config.toml: [prices."{model}"] with input and output per million.',
        )
    return Check("prices", True, f"{model}, list prices of {_list_name()}")


def _list_name() -> str:
    return f"genai-prices {version('genai-prices')}"


def _search() -> Check:
    if shutil.which("rg"):
        return Check("search", True, "rg")
    return Check(
        "search", False, "rg not found, built-in is slower", "Install ripgrep for faster search."
    )


def _state(host: Host) -> Check:
    directory = host.state
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    try:
        probe_file = directory / ".forkdeck-write-test"
        probe_file.touch()
        probe_file.unlink()
    except OSError as error:
        return Check(
            "state",
            False,
            f"{host.state} cannot be written: {error.strerror}",
            "Set FORKDECK_STATE_DIR to a directory of yours; sessions are saved there.",
        )
    return Check("state", True, str(host.state))


def _trust(project: ProjectFacts) -> Check:
    if project.trusted:
        return Check("project", True, "trusted as its files are now")
    if project.changed_files:
        names = ", ".join(project.changed_files)
        return Check("project", False, f"changed since trusted: {names}", "/trust shows them.")
    broken = next((each for each in project.loaded.not_used if each.key == CONFIG_FILE), None)
    if broken is not None:
        # None of it holds then, not even its deny rules.
        return Check("project", False, broken.reason, "Mend the file, or move it away.")
    unused = sum(each.reason == NOT_TRUSTED for each in project.loaded.not_used)
    if not unused:
        return Check("project", True, "has no settings of its own")
    words = "1 entry is" if unused == 1 else f"{unused} entries are"
    return Check("project", False, f"{words} not used: not trusted", "/trust shows them.")
