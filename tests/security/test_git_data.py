"""The work view gives a project its own git data, and never a way to run code from it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from forkdeck.errors import SandboxError
from forkdeck.sandbox import hidden
from forkdeck.sandbox.probe import probe
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.views import work_view
from forkdeck.worktrees.git import HostGit, git_program
from tests.program import git, repository

sandboxed = pytest.mark.needs_sandbox


async def work(base: Path, root: Path, script: str) -> tuple[int | None, str]:
    runner = Runner(await probe(), scratch=base / "scratch")
    view = work_view(root=root, cwd=root, scratch=runner.scratch("p"))
    result = await runner.run(view, script, timeout_s=20)
    return result.exit_code, result.head


@sandboxed
async def test_the_git_directory_cannot_be_sent_to_another_configuration(tmp_path: Path) -> None:
    root, mark = repository(tmp_path / "project"), tmp_path / "ran"
    code, said = await work(
        tmp_path,
        root,
        "mkdir evil; cp -r .git/objects .git/refs .git/HEAD evil/\n"
        f"printf '[core]\\n\\tfsmonitor = touch {mark}; false\\n' > evil/config\n"
        "rm -f .git/commondir; mv evil/HEAD .git/commondir; echo ../evil > .git/commondir",
    )
    assert code != 0
    assert "Read-only" in said
    git(root, "status")
    assert not mark.exists()
    assert git(root, "rev-parse", "--git-common-dir").strip() in (".git", str(root / ".git"))


@sandboxed
async def test_git_goes_on_working_for_model_and_person(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    who = "git -c user.name=a -c user.email=a@b"
    script = f"echo x >> notes.txt; {who} commit -qam two && git branch side && git switch -q side"
    assert await work(tmp_path, root, script) == (0, "")
    git(root, "switch", "-q", "main")
    git(root, "worktree", "add", "-q", str(tmp_path / "linked"), "side")
    git(root, "gc", "-q")
    git(root, "stash", "list")
    assert git(root, "fsck") == ""
    assert git(root, "status", "--porcelain") == ""
    # A linked worktree is the project's own too, since the repository points back at it.
    script = f"echo y >> notes.txt; {who} commit -qam three"
    assert await work(tmp_path, tmp_path / "linked", script) == (0, "")
    assert git(root, "rev-list", "--count", "side").strip() == "3"


@sandboxed
@pytest.mark.parametrize("how", ["pointer", "commondir", "worktree of another"])
async def test_a_project_cannot_name_the_repository_of_another(tmp_path: Path, how: str) -> None:
    other = repository(tmp_path / "other")
    before = git(other, "rev-parse", "main")
    root = tmp_path / "project"
    root.mkdir()
    if how == "pointer":
        (root / ".git").write_text(f"gitdir: {other}/.git\n")
    elif how == "commondir":
        repository(root)
        (root / ".git/commondir").write_text(f"{other}/.git\n")
    else:
        git(other, "worktree", "add", "-q", "-b", "w", str(tmp_path / "linked"))
        (root / ".git").write_text(f"gitdir: {other}/.git/worktrees/linked\n")
    _, said = await work(
        tmp_path,
        root,
        f"cd {other}/.git; echo {'0' * 40} > refs/heads/main; rm -rf objects; echo x > index;"
        " echo x > worktrees/linked/HEAD",
    )
    assert "Read-only" in said
    assert git(other, "rev-parse", "main") == before
    assert git(other, "fsck") == ""


@sandboxed
async def test_refs_that_are_a_link_are_refused(tmp_path: Path) -> None:
    other, root = repository(tmp_path / "other"), repository(tmp_path / "project")
    git(root, "pack-refs", "--all")
    for path in sorted((root / ".git/refs").rglob("*"), reverse=True):
        path.rmdir()
    (root / ".git/refs").rmdir()
    (root / ".git/refs").symlink_to(other / ".git/refs")
    with pytest.raises(SandboxError, match="is a link"):
        await work(tmp_path, root, "echo 0 > .git/refs/heads/main")


async def test_host_git_starts_no_program_of_the_repository(tmp_path: Path) -> None:
    """Whatever the configuration of a trusted project says, plumbing on the host runs nothing."""
    root, source, mark = repository(tmp_path / "p"), repository(tmp_path / "s"), tmp_path / "ran"
    git(source, "commit", "-q", "--allow-empty", "-m", "more")
    git(source, "bundle", "create", "-q", str(tmp_path / "bundle"), "main")
    (root / ".git/objects/info/alternates").write_text(f"{source}/.git/objects\n")
    for key in ("alternateRefsCommand", "sshCommand", "gitProxy", "fsmonitor", "pager"):
        git(root, "config", f"core.{key}", f"touch {mark};false")
    git(root, "config", "gpg.program", f"touch {mark};false")
    git(root, "config", "log.showSignature", "true")
    host = HostGit()
    try:
        await host.read(
            root / ".git", "fetch", "--quiet", "--no-tags", "--end-of-options",
            str(tmp_path / "bundle"), "+refs/heads/main:refs/forkdeck/x",
        )  # fmt: skip
        await host.read(root / ".git", "rev-list", "--objects", "refs/forkdeck/x")
        await asyncio.sleep(0)
    finally:
        host.close()
    assert not mark.exists()


def test_a_git_in_the_project_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".::bin")
    assert git_program() is None


def test_what_root_alone_may_read_is_hidden(tmp_path: Path) -> None:
    places = hidden.candidates(tmp_path)
    assert {Path("/etc/shadow"), tmp_path / ".ssh", tmp_path / ".codex/auth.json"} <= set(places)
