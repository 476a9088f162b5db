"""The only use of GitPython: one short-lived git process at a time, on the host.

Only verbs that execute nothing a repository configures run here, each from a bare environment
and always against an explicit git directory, so no working tree is looked at. Everything that
reads or writes a working tree runs in `forkdeck.worktrees.git_sandbox` instead. Called by the
other modules of this package; its blocking calls stand on the executor ``git``.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from forkdeck.errors import WorktreeError

Made = TypeVar("Made")

HOST_VERBS: Final = frozenset(
    (
        "cat-file",
        "commit-tree",
        "config",
        "diff-tree",
        "fetch",
        "for-each-ref",
        "init",
        "ls-tree",
        "merge-base",
        "rev-list",
        "rev-parse",
        "update-ref",
        "version",
        "worktree",
    )
)
"""What may run on the host: plumbing on commits and refs. ``config`` only reads a named file."""

IDENTITY: Final[Mapping[str, str]] = {
    "GIT_AUTHOR_NAME": "ForkDeck",
    "GIT_AUTHOR_EMAIL": "forkdeck@localhost",
    "GIT_COMMITTER_NAME": "ForkDeck",
    "GIT_COMMITTER_EMAIL": "forkdeck@localhost",
}
"""Who commits snapshots and saved work: explicit, so that a host without identity can save."""

SAFE_CONFIG: Final = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.quotePath", "false"),
    ("core.attributesFile", "/dev/null"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    # Each of these names a program that some plumbing would start.
    ("core.alternateRefsCommand", "true"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", "false"),
    ("gpg.program", "false"),
    ("credential.helper", ""),
    ("log.showSignature", "false"),
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("transfer.fsckObjects", "true"),
    ("fetch.fsckObjects", "true"),
)

_NOT_WRITABLE: Final = (
    "Read-only file system",
    "Permission denied",
    "insufficient permission for adding an object",
)

_INHERITED: Final = ("PATH", "HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME", "TMPDIR")


class GitAnswer(msgspec.Struct, frozen=True):
    """How a git command ended."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """Output without its last newline; bytes that are no UTF-8 as surrogates."""
        return os.fsdecode(self.out).rstrip("\n")


def config_environment(pairs: Sequence[tuple[str, str]] = SAFE_CONFIG) -> dict[str, str]:
    """Return variables that set these git settings above every configuration file."""
    variables = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables


def refusal(what: str, words: str, git_dir: Path) -> WorktreeError:
    """Return the error of a failed command; a git directory that cannot be written is named.

    Args:
        what: What failed.
        words: git's own words.
        git_dir: The git directory it worked on.
    """
    sign = next((sign for sign in _NOT_WRITABLE if sign in words), None)
    if sign is None:
        return WorktreeError(f"{what}: {words.strip()[-600:]}")
    return WorktreeError(
        f"git cannot write to {git_dir} ({sign}), and write forks keep their work there.",
        "Make it writable for your user, work in a clone, or fork without --write.",
    )


def git_program() -> str | None:
    """Return the path of git, or None when it is not installed.

    Relative entries of PATH are left out: a repository could hold a ``git``.
    """
    entries = [each for each in os.environ.get("PATH", os.defpath).split(":") if each[:1] == "/"]
    return shutil.which("git", path=":".join(entries)) if entries else None


def _bare_environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {
        **kept,
        **config_environment(),
        **IDENTITY,
        "LC_ALL": "C",
        "LANGUAGE": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GIT_EDITOR": "true",
        "GIT_PAGER": "cat",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
    }


def _execute(directory: str, arguments: Sequence[str]) -> GitAnswer:
    program = git_program()
    if program is None:
        raise WorktreeError(
            "git is not installed, so write forks cannot work.", "Install git and start again."
        )
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    from git import Git  # noqa: PLC0415 - costs 60 ms and looks for git: only when it is used
    from git.exc import GitCommandNotFound  # noqa: PLC0415 - as above

    # GitPython merges its environment into ours; `env -i` is what keeps ours out.
    pairs = [f"{name}={value}" for name, value in _bare_environment().items()]
    command = ["/usr/bin/env", "-i", *pairs, program, *arguments]
    try:
        answer = Git(directory).execute(
            command,
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
            shell=False,
        )
    except (GitCommandNotFound, OSError) as error:
        raise WorktreeError(f"git could not start: {error}", "Check PATH and git.") from error
    code, out, err = answer
    return GitAnswer(code, out, err)


class HostGit:
    """Runs safe git commands of one process on four threads."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(4, thread_name_prefix="git")
        self._closed = False
        self.settings: dict[Path, tuple[tuple[int, ...], Sequence[tuple[str, str]]]] = {}
        """Settings by file, with what the file was when git read it."""

    async def thread(self, work: Callable[[], Made]) -> Made:
        """Do blocking file work on the executor ``git``.

        Raises:
            WorktreeError: The session's git is closed already.
        """
        if self._closed:
            raise WorktreeError("The session is closing; its git does nothing more.")
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    async def discover(self, cwd: Path, *arguments: str) -> GitAnswer:
        """Run ``rev-parse`` in a directory, to find its repository by git's own rules."""
        return await self.thread(lambda: _execute(str(cwd), ("rev-parse", *arguments)))

    async def call(self, git_dir: Path, *arguments: str) -> GitAnswer:
        """Run one command against a git directory and return how it ended.

        Raises:
            ValueError: The verb may not run on the host.
            WorktreeError: git is not installed or does not start.
        """
        if arguments[0] not in HOST_VERBS:
            raise ValueError(f"git {arguments[0]} must not run on the host")
        command = (f"--git-dir={git_dir}", *arguments)
        return await self.thread(lambda: _execute(str(git_dir), command))

    async def read(self, git_dir: Path, *arguments: str) -> str:
        """Run one command and return its output.

        Raises:
            WorktreeError: It failed; the text holds git's own words.
        """
        answer = await self.call(git_dir, *arguments)
        if answer.code:
            raise refusal(f"git {arguments[0]} failed", answer.err, git_dir)
        return answer.text

    async def commit_of(self, git_dir: Path, name: str) -> str | None:
        """Return the commit a ref or id names, or None."""
        answer = await self.call(
            git_dir, "rev-parse", "-q", "--verify", "--end-of-options", f"{name}^{{commit}}"
        )
        return answer.text if answer.code == 0 else None

    def close(self) -> None:
        """Let the threads end; what runs is not waited for."""
        self._closed = True
        self._executor.shutdown(wait=False)
