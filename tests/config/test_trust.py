"""Trust in a project's files, and the project's own texts."""

from __future__ import annotations

import os
import stat

import pytest

from forkdeck.config.instructions import LIMIT_BYTES, project_instructions
from forkdeck.config.project_files import project_root, read
from forkdeck.config.trust import TrustStore
from forkdeck.errors import ConfigError


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / ".forkdeck/agents").mkdir(parents=True)
    (root / ".claude/agents").mkdir(parents=True)
    (root / ".forkdeck/config.toml").write_text("mode = 'auto'\n")
    (root / ".forkdeck/agents/a.md").write_text("a")
    (root / ".claude/agents/b.md").write_text("b")
    (root / ".claude/settings.json").write_text("{}")
    (root / ".worktreeinclude").write_text(".env\n")
    return root


@pytest.fixture
def store(tmp_path):
    return TrustStore(tmp_path / "state")


def test_files_are_listed_with_what_they_are_for(store, project):
    assert [(file.path, file.what) for file in store.files(project)] == [
        (".claude/agents/b.md", "agent"),
        (".forkdeck/agents/a.md", "agent"),
        (".forkdeck/config.toml", "settings"),
        (".worktreeinclude", "ignored files for worktrees"),
    ]
    assert store.files(project)[0].size_bytes == 1


def test_granting_and_asking_again(store, project, tmp_path):
    assert store.state(project) == "untrusted"
    store.grant(project)
    assert store.state(project) == "trusted"
    again = TrustStore(tmp_path / "state")
    assert again.state(project) == "trusted"
    (project / ".forkdeck/agents/a.md").write_text("evil")
    assert store.state(project) == "changed"
    assert store.changed(project) == (".forkdeck/agents/a.md",)
    store.grant(project)
    (project / ".forkdeck/new.md").write_text("x")
    assert store.state(project) == "changed"
    store.grant(project)
    (project / ".worktreeinclude").unlink()
    assert store.state(project) == "changed"


def test_trust_is_kept_outside_the_repository_and_private(store, project, tmp_path):
    before = sorted(project.rglob("*"))
    store.grant(project)
    assert sorted(project.rglob("*")) == before
    file = tmp_path / "state/trust.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_projects_are_told_apart_also_through_links(store, project, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    link = tmp_path / "link"
    link.symlink_to(project)
    store.grant(project)
    assert store.state(other) == "untrusted"
    assert store.state(link) == "trusted"


def test_a_project_without_files_can_be_trusted(store, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert store.state(empty) == "untrusted"
    assert store.grant(empty) == ()
    assert store.state(empty) == "trusted"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"projects": 3}', b"\xff"])
def test_a_broken_store_trusts_nothing(store, project, tmp_path, content):
    store.grant(project)
    (tmp_path / "state/trust.json").write_bytes(content)
    assert store.state(project) == "untrusted"
    store.grant(project)
    assert store.state(project) == "trusted"


def test_a_state_directory_that_cannot_be_written_is_said(project, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(ConfigError, match="could not be stored"):
        TrustStore(blocked).grant(project)


def test_reading_gives_only_what_was_trusted(store, project):
    assert store.read(project, ".forkdeck/agents/a.md", 100) is None
    store.grant(project)
    assert store.read(project, ".forkdeck/agents/a.md", 100) == b"a"
    assert store.read(project, ".claude/settings.json", 100) is None
    (project / ".forkdeck/agents/a.md").write_text("evil")
    assert store.read(project, ".forkdeck/agents/a.md", 100) is None


def test_links_out_of_the_root_are_not_followed(store, project, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "s.md").write_text("s3cret")
    (project / ".forkdeck/agents/out.md").symlink_to(secret / "s.md")
    (project / ".forkdeck/dir").symlink_to(secret)
    (project / ".forkdeck/in.md").symlink_to(project / ".forkdeck/agents/a.md")
    (project / ".forkdeck/loop").symlink_to("loop")
    os.mkfifo(project / ".forkdeck/pipe")
    paths = [file.path for file in store.files(project)]
    assert ".forkdeck/in.md" in paths
    assert not {path for path in paths if path.endswith(("out.md", "s.md", "pipe", "loop"))}
    for name in (
        ".forkdeck/agents/out.md",
        ".forkdeck/dir/s.md",
        "../secret/s.md",
        ".forkdeck/pipe",
    ):
        assert read(project, name, 100) is None
    assert read(project, str(secret / "s.md"), 100) is None
    assert read(project, "a\0b", 100) is None


def test_a_linked_directory_as_a_whole_is_not_entered(store, tmp_path):
    root, outside = tmp_path / "p", tmp_path / "o"
    root.mkdir()
    outside.mkdir()
    (outside / "config.toml").write_text("")
    (root / ".forkdeck").symlink_to(outside)
    assert store.files(root) == ()


def test_project_root(project):
    (project / ".git").mkdir()
    assert project_root(project / ".forkdeck/agents") == project
    (project / ".forkdeck/.git").write_text("gitdir: x")
    assert project_root(project / ".forkdeck/agents") == project / ".forkdeck"


def test_instructions(tmp_path):
    assert project_instructions(tmp_path) == ()
    (tmp_path / "AGENTS.md").write_bytes(b"\xef\xbb\xbfBe careful.\n")
    (tmp_path / "CLAUDE.md").write_text("  \n")
    found = project_instructions(tmp_path)
    assert [(one.name, one.text, one.cut) for one in found] == [("AGENTS.md", "Be careful.", False)]
    (tmp_path / "CLAUDE.md").unlink()
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert len(project_instructions(tmp_path)) == 1


def test_long_instructions_are_cut_visibly_between_characters(tmp_path):
    (tmp_path / "AGENTS.md").write_text("x" + "é" * LIMIT_BYTES, "utf-8")
    (one,) = project_instructions(tmp_path)
    assert one.cut
    assert one.text.endswith("é\n[cut here: only the first 32 KiB of AGENTS.md are quoted]")
    assert "\ufffd" not in one.text
    (tmp_path / "AGENTS.md").write_text("x" * LIMIT_BYTES)
    assert not project_instructions(tmp_path)[0].cut


def test_instructions_outside_or_special_are_not_read(tmp_path):
    root = tmp_path / "p"
    root.mkdir()
    (tmp_path / "secret").write_text("s3cret")
    (root / "AGENTS.md").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "CLAUDE.md")
    assert project_instructions(root) == ()
