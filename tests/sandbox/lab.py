"""A repository, a home with secrets and a victim file, for the sandbox tests."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from forkdeck.sandbox import hidden
from forkdeck.sandbox.views import ForkPlaces, Scratch

GIT_ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def git(directory: Path, *arguments: str, check: bool = True) -> str:
    """Run git on the host, without the user's configuration."""
    done = subprocess.run(
        ["git", "-C", str(directory), *arguments],
        env=GIT_ENV,
        capture_output=True,
        text=True,
        check=check,
    )
    return done.stdout.strip()


_TEMPLATE: list[tuple[Path, str]] = []


def _repository(repo: Path) -> str:
    """Fill `repo` with one commit and one saved ref; made by git once, then copied."""
    if _TEMPLATE:
        source, head = _TEMPLATE[0]
        shutil.copytree(source, repo, symlinks=True, dirs_exist_ok=True)
        return head
    git(repo, "init", "-q", "-b", "main")
    (repo / "src" / "a.txt").write_text("a\n")
    (repo / ".gitignore").write_text("ignored/\n.env\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "first")
    head = git(repo, "rev-parse", "main")
    git(repo, "update-ref", "refs/forkdeck/s/f1/base", head)
    kept = Path(tempfile.mkdtemp(prefix="forkdeck-template-")) / "repo"
    atexit.register(shutil.rmtree, kept.parent, ignore_errors=True)
    shutil.copytree(repo, kept, symlinks=True)
    _TEMPLATE.append((kept, head))
    return head


class Lab:
    """The places of one test."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.repo, self.home, self.state = base / "repo", base / "home", base / "state"
        self.victim = base / "victim.txt"
        for path in (self.repo / "src", self.home / ".ssh", self.state):
            path.mkdir(parents=True)
        (self.home / ".ssh" / "id").write_text("KEY\n")
        (self.home / ".bashrc").write_text("#rc\n")
        (self.home / ".netrc").write_text("PASSWORD\n")
        self.victim.write_text("victim\n")
        self.victim.chmod(0o644)
        os.utime(self.victim, (1e9, 1e9))
        self.head = _repository(self.repo)

    @property
    def hide(self) -> tuple[Path, ...]:
        return hidden.candidates(self.home, own=(self.state,), extra=("~/absent",))

    def scratch(self, name: str = "x") -> Scratch:
        base = self.state / "scratch" / name
        places = Scratch(base / "tmp", base / "share")
        places.tmp.mkdir(parents=True, exist_ok=True)
        places.share.mkdir(parents=True, exist_ok=True)
        return places

    def fork(self, handle: str) -> ForkPlaces:
        """Make a linked worktree with a private git directory, as the worktree manager does."""
        base = self.state / handle
        tree, private = base / "tree", base / "git"
        base.mkdir()
        git(self.repo, "worktree", "add", "-q", "--detach", str(tree), "main")
        objects = base / "objects"
        for path in (private / "objects" / "info", private / "refs" / "heads", objects):
            path.mkdir(parents=True)
        (private / "objects" / "info" / "alternates").write_text(f"{objects}\n")
        (private / "HEAD").write_text(f"{self.head}\n")
        (private / "config").write_text(
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
            f"\tworktree = {self.repo}\n[user]\n\tname = f\n\temail = f@x\n"
        )
        index = Path(git(tree, "rev-parse", "--path-format=absolute", "--git-path", "index"))
        (private / "index").write_bytes(index.read_bytes())
        pointer = base / "dotgit"
        pointer.write_text(f"gitdir: {private}\n")
        return ForkPlaces(
            tree=tree,
            git_dir=private,
            pointer=pointer,
            objects=self.repo / ".git" / "objects",
            objects_inside=str(objects),
        )
