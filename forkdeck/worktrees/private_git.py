"""The private git directory of a write fork, and the pointer that leads to it.

Inside the sandbox the fork's tree stands at the parent's path with this directory behind it: it
borrows the parent's objects read-only, knows its branches and tags, and commits, stashes or
rebases on its own. Called by `create`.
"""

from __future__ import annotations

import os
from pathlib import Path

from forkdeck.worktrees.git import HostGit
from forkdeck.worktrees.layout import ForkPlace, Repo, write_private
from forkdeck.worktrees.scratch import carried_settings, copy_plain, write_git_dir

_NAMES = ("user.name", "user.email")
_FALLBACK = {"user.name": "ForkDeck", "user.email": "forkdeck@localhost"}


async def identity(git: HostGit, known: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return who commits in a fork: the project's or the person's identity, or a fallback.

    Without a name and an address git refuses to commit.
    """
    have = {key for key, _ in known}
    found: list[tuple[str, str]] = []
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git/config"
    files = [file for file in (Path.home() / ".gitconfig", home) if file.is_file()]
    for name in _NAMES:
        if name in have:
            continue
        value = ""
        for file in files:
            answer = await git.call(
                file.parent, "config", "--file", str(file), "--no-includes", "--get", name
            )
            value = value or (answer.text if answer.code == 0 else "")
        found.append((name, value or _FALLBACK[name]))
    return found


async def make_private_git(
    place: ForkPlace, repo: Repo, base: str, *, mapped: bool, git: HostGit
) -> None:
    """Make the private git directory of a fork, at commit `base`, without an index.

    Args:
        place: The fork's place; its directory exists.
        repo: The project.
        base: Commit the fork starts from.
        mapped: Whether the tree will stand at the parent's path (in the sandbox); else at its own.
        git: Host git.

    Raises:
        WorktreeError: git failed, or a path cannot be used.
    """
    settings = await carried_settings(git, repo)
    tree = repo.top if mapped else place.tree
    settings = [*settings, *await identity(git, settings), ("core.worktree", str(tree))]
    answer = await git.read(
        repo.common,
        "for-each-ref",
        "--format=%(objectname) %(refname)",
        "refs/heads",
        "refs/remotes",
        "refs/tags",
    )
    refs = sorted(
        (name, commit) for commit, _, name in (line.partition(" ") for line in answer.splitlines())
    )
    packed = "# pack-refs with: sorted \n" + "".join(f"{commit} {name}\n" for name, commit in refs)
    known = "".join(f"{commit}\n" for _, commit in refs) + f"{base}\n"

    def write() -> None:
        objects = place.objects if mapped else repo.common / "objects"
        place.objects.mkdir(mode=0o700)
        write_git_dir(place.git, repo=repo, settings=settings, head=base, objects=(objects,))
        (place.git / "packed-refs").write_bytes(os.fsencode(packed))
        write_private(place.known, known.encode())
        write_private(place.pointer, b"gitdir: " + os.fsencode(place.git) + b"\n")
        copy_plain(repo.common / "shallow", place.git / "shallow")

    await git.thread(write)
