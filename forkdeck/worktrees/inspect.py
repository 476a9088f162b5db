"""Looks at the project's directory and says whether write forks work there, and if not, why.

Nothing here runs code of the repository: ``rev-parse`` finds it, its own configuration files are
parsed and never obeyed, and the count of uncommitted files comes from the git sandbox. Called by
`forkdeck.worktrees.manager`.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

import msgspec

from forkdeck.errors import WorktreeError
from forkdeck.model.work import RepoFacts
from forkdeck.worktrees.git import HostGit, git_program
from forkdeck.worktrees.git_sandbox import NOT_TRUSTED, GitSandbox
from forkdeck.worktrees.layout import Repo
from forkdeck.worktrees.scratch import own_settings

_RUNS_CODE: Final = re.compile(
    r"filter\..*\.(clean|smudge|process)|diff\..*\.(command|textconv)|diff\.external"
    r"|merge\..*\.driver|core\.(fsmonitor|hookspath|sshcommand|alternaterefscommand)"
    r"|remote\..*\.(uploadpack|vcs)|include\.path|includeif\..*\.path",
    re.IGNORECASE | re.DOTALL,
)
_HARMLESS: Final = frozenset(("", "false", "no", "off", "0"))

STATUS_SCRIPT: Final = """
git status --porcelain=v1 -z --untracked-files=all --ignore-submodules=dirty > "$OUT/status"
"""


class Found(msgspec.Struct, frozen=True):
    """What `look` found; `repo` is None unless `facts.kind` is ``ok`` or ``empty``."""

    facts: RepoFacts
    repo: Repo | None = None


class ParentState(msgspec.Struct, frozen=True):
    """HEAD, the index's hash and the status lines of the parent's tree at one time."""

    head: str | None
    index_sha256: str
    status: frozenset[str]

    def moved(self, later: ParentState) -> tuple[str, ...]:
        """Return what differs in a later state: status lines, ``HEAD`` and ``index``."""
        moved = sorted(self.status ^ later.status)
        moved += ["HEAD"] if self.head != later.head else []
        moved += ["index"] if self.index_sha256 != later.index_sha256 else []
        return tuple(moved)


async def look(cwd: Path, git: HostGit, sandbox: GitSandbox) -> Found:
    """Look at a directory; blocking work is off the loop.

    Raises:
        WorktreeError: git was found and then did not start.
    """
    if git_program() is None:
        return _no("no git", "git is not installed; install it to use write forks.")
    # The bare question first: asked for a working tree, git fails in a bare repository.
    answer = await git.discover(cwd, "--is-bare-repository")
    if answer.code:
        return _refusal(answer.err)
    if answer.text == "true":
        return _no("bare", "This is a bare repository; write forks need one with files.")
    answer = await git.discover(
        cwd,
        "--path-format=absolute",
        "--show-toplevel",
        "--git-dir",
        "--git-common-dir",
        "--show-object-format",
    )
    lines = answer.text.split("\n")
    if answer.code or len(lines) != 4:
        if answer.code:
            return _no("bare", "This directory is inside git's own data; start in the files.")
        return _no("unsafe", "The project's path has a line break; write forks do not work there.")
    repo = await git.thread(lambda: _repo(lines))
    return await _known(repo, git, sandbox)


def _repo(lines: list[str]) -> Repo:
    top, git_dir, common = (Path(line).resolve() for line in lines[:3])
    return Repo(top=top, git_dir=git_dir, common=common, object_format=lines[3])


async def _known(repo: Repo, git: HostGit, sandbox: GitSandbox) -> Found:
    head = await git.commit_of(repo.git_dir, "HEAD")
    branch = await git.call(repo.git_dir, "rev-parse", "--symbolic-full-name", "HEAD")
    name = branch.text if branch.code == 0 else ""
    if head is None:
        name = await git.thread(lambda: _unborn_branch(repo))
    facts = RepoFacts(
        kind="ok",
        root=str(repo.top),
        common_dir=str(repo.common),
        head=head,
        branch=name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None,
    )
    reason = await _danger(repo, git, sandbox)
    if reason:
        return Found(msgspec.structs.replace(facts, kind="unsafe", reason=reason))
    if head is None:
        reason = "This repository has no commit yet; write forks need one: commit, then try again."
        return Found(msgspec.structs.replace(facts, kind="empty", reason=reason), repo)
    if not sandbox.available:
        return Found(msgspec.structs.replace(facts, reason=" ".join(NOT_TRUSTED)), repo)
    return Found(facts, repo)


async def count_dirty(repo: Repo, head: str | None, sandbox: GitSandbox, git: HostGit) -> int:
    """Return how many files differ from HEAD or are untracked, without touching the index.

    Raises:
        WorktreeError: git failed, or must not run here.
    """
    return len(await _status(repo, head, sandbox, git))


async def with_count(found: Found, sandbox: GitSandbox, git: HostGit) -> RepoFacts:
    """Return the facts with the number of uncommitted files, where it can be counted."""
    if found.repo is None or not sandbox.available:
        return found.facts
    try:
        dirty = await count_dirty(found.repo, found.facts.head, sandbox, git)
    except WorktreeError:
        # The count is a courtesy; what is broken is told by what needs it.
        return found.facts
    return msgspec.structs.replace(found.facts, dirty_files=dirty)


async def parent_state(
    repo: Repo, head: str | None, sandbox: GitSandbox, git: HostGit
) -> ParentState:
    """Return what a fork must leave as it is.

    Raises:
        WorktreeError: git failed, or must not run here.
    """
    changed = await _status(repo, head, sandbox, git)
    index = await git.thread(lambda: _digest(repo.git_dir / "index"))
    return ParentState(head, index, frozenset(changed))


async def _status(repo: Repo, head: str | None, sandbox: GitSandbox, git: HostGit) -> list[str]:
    async with sandbox.scratch(repo, head=head, index=repo.git_dir / "index") as scratch:
        await sandbox.run(scratch, STATUS_SCRIPT, repo=repo, tree=repo.top)
        data = await git.thread(lambda: scratch.read("status"))
    entries: list[str] = []
    renamed = False
    for entry in data.split(b"\0"):
        if renamed or not entry:
            renamed = False
            continue
        entries.append(os.fsdecode(entry))
        renamed = entry[:1] in b"RC" or entry[1:2] in b"RC"
    return entries


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


async def _danger(repo: Repo, git: HostGit, sandbox: GitSandbox) -> str:
    if sandbox.trusted:
        return ""
    names = sorted(
        {
            key
            for key, value in await own_settings(git, repo)
            if _RUNS_CODE.fullmatch(key) and value.strip().lower() not in _HARMLESS
        }
    )
    if not names:
        return ""
    shown = ", ".join(name[:60] for name in names[:5]) + (" …" if len(names) > 5 else "")
    return (
        f"This repository's own configuration runs programs or reads other files ({shown}). "
        "Write forks are off until you trust the project with /trust."
    )


def _unborn_branch(repo: Repo) -> str:
    try:
        text = (repo.git_dir / "HEAD").read_text(errors="replace")[:300]
    except OSError:
        return ""
    return text.removeprefix("ref: ").strip() if text.startswith("ref: ") else ""


def _refusal(words: str) -> Found:
    if "dubious ownership" in words:
        advice = words.strip().removeprefix("fatal: ")
        return _no("unsafe", f"git does not trust this repository's owner. {advice}")
    if "not a git repository" in words:
        return _no("none", "This directory is in no git repository; write forks need one.")
    return _no("unsafe", f"git cannot read this repository: {words.strip()[-400:]}")


def _no(kind: str, reason: str) -> Found:
    facts = msgspec.convert({"kind": kind, "reason": reason}, RepoFacts)
    return Found(facts)


def usable(found: Found) -> Repo:
    """Return the repository when write forks work in it.

    Raises:
        WorktreeError: They do not; the text says why and what to do.
    """
    if found.repo is None or found.facts.kind != "ok" or found.facts.reason:
        raise WorktreeError(found.facts.reason or "Write forks do not work in this directory.")
    return found.repo
