"""What is found out about the host, what children are given, and small parts of the views."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forkdeck.errors import PathRefused
from forkdeck.sandbox import bubblewrap, gitdirs, hidden
from forkdeck.sandbox.environment import child_environment
from forkdeck.sandbox.probe import probe
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.view import Mount, View
from forkdeck.sandbox.views import look_view
from forkdeck.sandbox.workspace import Project, parent_workspace
from tests.sandbox.lab import Lab, git


def fake_bwrap(directory: Path, script: str) -> str:
    path = directory / "bwrap"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("words", "why", "remedy"),
    [
        ("setting up uid map: Permission denied", "AppArmor", "apparmor"),
        (
            "Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces "
            "exceeded (ENOSPC)",
            "switched off or used up",
            "user.max_user_namespaces",
        ),
        ("No permissions to create a new namespace", "container", "boundary"),
        ("Failed to make / slave: Operation not permitted", "container", "boundary"),
        ("loopback: Failed RTM_NEWADDR: Operation not permitted", "network namespace", "network"),
        ("Can't mount proc on /newroot/proc: Operation not permitted", "/proc", "unmasked"),
        ("something new", "something new", "doctor"),
    ],
)
async def test_each_host_is_told_its_own_reason(
    tmp_path: Path, words: str, why: str, remedy: str
) -> None:
    found = await probe([fake_bwrap(tmp_path, f'echo "bwrap: {words}" >&2; exit 1')])
    assert found.level == "tool-policy only"
    assert why in found.why
    assert "not restricted" in found.why
    assert remedy in found.remedy
    assert "root" not in found.remedy


@pytest.mark.parametrize("script", ["exit 0", "echo x; exit 0", "kill -9 $$", "exit 3"])
async def test_a_program_that_only_pretends_is_not_believed(tmp_path: Path, script: str) -> None:
    assert (await probe([fake_bwrap(tmp_path, script)])).level == "tool-policy only"


async def test_nothing_found_says_how_to_install() -> None:
    found = await probe([])
    assert found.level == "tool-policy only"
    assert "Install bubblewrap" in found.remedy


@pytest.mark.needs_sandbox
async def test_a_host_without_a_fresh_proc_is_labelled_weak(tmp_path: Path) -> None:
    real = bubblewrap.programs()[0]
    script = (
        'for a in "$@"; do [ "$a" = --proc ] && { echo "bwrap: Can\'t mount proc on /newroot/proc: '
        f'Operation not permitted" >&2; exit 1; }}; done; exec {real} "$@"'
    )
    found = await probe([fake_bwrap(tmp_path, script)])
    assert (found.level, found.private_proc) == ("sandboxed", False)
    assert "weak" in found.notes[0]


@pytest.mark.needs_sandbox
async def test_every_program_found_here_works_or_says_why() -> None:
    for program in bubblewrap.programs():
        found = await probe([program])
        assert found.level == "sandboxed" or found.remedy


def test_a_repository_cannot_bring_its_own_bwrap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_bwrap(tmp_path, "exit 0")
    monkeypatch.chdir(tmp_path)
    found = bubblewrap.programs({"PATH": "::.:bin:" + os.environ["PATH"]})
    assert all(
        Path(program).is_absolute() and tmp_path not in Path(program).parents for program in found
    )


def test_children_get_an_allow_list() -> None:
    source = {
        "PATH": "/bin", "HOME": "/h", "LC_ALL": "de_DE.UTF-8", "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_AUTH_TOKEN": "k", "AWS_SECRET_ACCESS_KEY": "k", "GITHUB_TOKEN": "k",
        "SSH_AUTH_SOCK": "/s", "GIT_DIR": "/g", "LD_PRELOAD": "/x", "BASH_ENV": "/x", "MINE": "m",
        "HTTPS_PROXY": "http://u:p@h", "FORKDECK_MODEL": "x", "PYTHONPATH": "/x",
    }  # fmt: skip
    plain = child_environment(environ=source)
    leaked = set(source) & set(plain) - {"PATH", "HOME"}
    assert leaked == set()
    assert (plain["TERM"], plain["GIT_EDITOR"], plain["LANG"]) == ("dumb", "true", "de_DE.UTF-8")
    named = child_environment(
        {"X": "1", "ANTHROPIC_API_KEY": "k"},
        names=["MINE", "GITHUB_TOKEN", "ANTHROPIC_API_KEY"],
        environ=source,
        read_only=True,
        network=True,
    )
    assert (named["MINE"], named["GITHUB_TOKEN"], named["X"]) == ("m", "k", "1")
    assert named["GIT_OPTIONAL_LOCKS"] == "0"
    assert named["HTTPS_PROXY"] == "http://u:p@h"
    assert "ANTHROPIC_API_KEY" not in named


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_a_hardened_process_cannot_be_inspected() -> None:
    code = (
        "import ctypes; from forkdeck.sandbox.hardening import forbid_inspection; "
        "print(forbid_inspection(), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True 0\n"


def test_later_mounts_win_and_inside_is_the_inverse(tmp_path: Path) -> None:
    for name in ("a/sub", "b"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "b" / "f").write_text("")
    view = View(
        mounts=(
            Mount("/", Path("/"), "ro"),
            Mount("/p", tmp_path / "a", "rw"),
            Mount("/p/sub", tmp_path / "b", "ro"),
            Mount("/secret", None, "hidden"),
        ),
        cwd="/p",
        root="/p",
    )
    assert view.resolve("x", write=True) == tmp_path / "a" / "x"
    assert view.resolve("sub/f") == tmp_path / "b" / "f"
    with pytest.raises(PathRefused, match="read-only"):
        view.resolve("sub/f", write=True)
    with pytest.raises(PathRefused, match="hidden"):
        view.resolve("/secret/x")
    with pytest.raises(PathRefused, match="hidden"):
        view.resolve("../secret")
    assert view.inside(tmp_path / "b" / "f") == "/p/sub/f"
    assert view.inside(tmp_path / "a" / "x") == "/p/x"
    assert view.inside(Path("/etc/hosts")) == "/etc/hosts"


def test_hidden_places_follow_links_and_skip_what_is_absent(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / ".ssh").symlink_to("real")
    (tmp_path / ".netrc").write_text("x")
    places = hidden.candidates(tmp_path, extra=["~/.config/x", "", "relative"])
    assert tmp_path / ".config" / "x" in places
    # The machine's own secrets are hidden too; here only the home counts.
    home = str(tmp_path.resolve())
    mounts = [mount for mount in hidden.mounts(places) if mount.inside.startswith(home)]
    assert {mount.inside: mount.host for mount in mounts} == {
        str((tmp_path / "real").resolve()): None,
        str((tmp_path / ".netrc").resolve()): Path("/dev/null"),
    }


def test_git_directories_are_found_without_git(lab: Lab) -> None:
    assert gitdirs.find(lab.base) is None
    dirs = gitdirs.find(lab.repo)
    assert dirs is not None
    assert dirs.git_dir == dirs.common_dir == lab.repo / ".git"
    git(lab.repo, "worktree", "add", "-q", str(lab.base / "w"))
    dirs = gitdirs.find(lab.base / "w")
    assert dirs is not None
    assert (dirs.git_dir.name, dirs.common_dir) == ("w", lab.repo / ".git")
    (lab.base / "odd").mkdir()
    (lab.base / "odd" / ".git").write_text("gitdir: /nonexistent\n")
    assert gitdirs.find(lab.base / "odd") is None


async def test_without_a_sandbox_reads_and_commands_share_the_hosts_tmp(
    lab: Lab, bare: Runner, tmp_path: Path
) -> None:
    place = Project(root=lab.repo, cwd=lab.repo, spill_directory=lab.state)
    workspace = parent_workspace(bare, place, run="p", unguarded=lambda: True)
    await workspace.run(f"echo x > {tmp_path}/f", access="work", timeout_s=5, spill_name="s")
    assert await workspace.read_bytes(f"{tmp_path}/f", 10) == b"x\n"


@pytest.mark.needs_sandbox
async def test_a_project_that_is_the_home_keeps_its_secrets_hidden(
    lab: Lab, runner: Runner
) -> None:
    view = look_view(root=lab.home, cwd=lab.home, scratch=lab.scratch(), hide=lab.hide)
    result = await runner.run(view, "cat .ssh/id .netrc; cat .bashrc", timeout_s=5)
    assert "KEY" not in result.head
    assert "PASSWORD" not in result.head
    assert "#rc" in result.head
