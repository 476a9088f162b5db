"""Nothing a repository or a fork planted runs on the host, and nothing leads out."""

from __future__ import annotations

import ast
import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from forkdeck.errors import WorktreeError
from forkdeck.worktrees.git import HOST_VERBS, HostGit
from tests.worktrees.helpers import NO_SANDBOX, Bench, git, make_repo

PACKAGE = Path(__file__).parents[2] / "forkdeck" / "worktrees"
sandboxed = pytest.mark.needs_sandbox


def plant_everything(place: Path, mark: Path) -> str:
    """Return a shell text that plants every known way to run code, leaving `mark` when it does."""
    run = f"sh -c \\'touch {mark}; cat\\'"
    return f"""
cd {place}
d=$(git rev-parse --git-dir); mkdir -p $d/hooks
for h in pre-commit post-checkout post-index-change reference-transaction post-merge pre-auto-gc; do
  printf '#!/bin/sh\\ntouch {mark}\\n' > $d/hooks/$h; chmod +x $d/hooks/$h; done
git config core.hooksPath $d/hooks
git config core.fsmonitor 'touch {mark}; false'
git config filter.x.clean $'{run}'; git config filter.x.smudge $'{run}'
git config filter.y.process $'{run}'
git config diff.x.textconv 'touch {mark}; cat'; git config diff.x.command 'touch {mark}'
git config diff.external 'touch {mark}'
git config merge.x.driver 'touch {mark}'
git config core.pager 'touch {mark}'; git config core.editor 'touch {mark}'
git config gpg.program 'touch {mark}'; git config core.sshCommand 'touch {mark}'
git config include.path {place}/inc; printf '[core]\\nfsmonitor = touch {mark}\\n' > inc
echo '* filter=x diff=x merge=x' > .gitattributes
mkdir -p deep && cd deep && git init -q . && echo 1 > z && git add z && git -c user.name=a \
  -c user.email=a@b commit -qm z
git config core.fsmonitor 'touch {mark}; false'
printf '#!/bin/sh\\ntouch {mark}\\n' > .git/hooks/post-index-change
chmod +x .git/hooks/post-index-change
echo 2 > z
"""


@sandboxed
async def test_what_a_fork_planted_never_runs_on_the_host(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    lease = await bench.trees.create("f1")
    _, out = await bench.bash(lease, plant_everything(bench.repo, mark) + "exit 0")
    assert not mark.exists()
    before, files = bench.parent(), bench.files()
    live = await bench.trees.live_diff("f1")
    assert any(f.path == ".gitattributes" for f in live.files), out
    work = await bench.trees.save("f1")
    assert work is not None
    await bench.trees.diff(work.base, work.commit)
    await bench.trees.entries()
    await bench.trees.remove("f1")
    assert (bench.parent(), bench.files()) == (before, files)
    applied = await bench.trees.apply(work)
    await bench.trees.snapshot(1)
    await bench.trees.inspect()
    await bench.trees.undo(applied.undo_ref)
    assert bench.files() == files
    assert not mark.exists()


@sandboxed
@pytest.mark.parametrize("trusted", [False, True])
async def test_what_a_repository_configures(tmp_path: Path, trusted: bool) -> None:
    mark = tmp_path / "ran"
    repo = make_repo(tmp_path / "proj")
    script = tmp_path / "plant.sh"
    script.write_text(plant_everything(repo, mark))
    await asyncio.to_thread(subprocess.run, ["bash", script], capture_output=True, check=False)
    mark.unlink(missing_ok=True)
    bench = Bench(tmp_path, repo=repo, trusted=trusted)
    facts = await bench.trees.inspect()
    if not trusted:
        assert facts.kind == "unsafe"
        assert "core.fsmonitor" in facts.reason
        assert "/trust" in facts.reason
        with pytest.raises(WorktreeError, match="/trust"):
            await bench.trees.create("f1")
        assert await bench.trees.snapshot(1) is None
    else:
        lease = await bench.trees.create("f1", dirty=True)
        await bench.bash(lease, "echo 1 > n")
        work = await bench.trees.save("f1")
        assert work is not None
        await bench.trees.apply(work)
        await bench.trees.remove("f1")
    assert not mark.exists(), "filters of a trusted project run inside, where the mark is not"
    git(repo, "status", ok=False)
    assert mark.exists(), "the trap works: an ordinary git on the host would have run it"
    await bench.trees.close()


@sandboxed
async def test_a_fork_cannot_reach_beyond_its_tree(bench: Bench, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("v")
    one, two = await bench.trees.create("f1"), await bench.trees.create("f2")
    before, files = bench.parent(), bench.files()
    main = git(bench.repo, "rev-parse", "main")
    for attack in (
        f"echo x > {victim}",
        f"echo x > {one.path}/a.txt",
        f"echo x > {two.path}/a.txt",
        "rm -f .git; echo z > .git; mv .git g2",
        "p=$(cat .git); p=${p#gitdir: }; rm -rf ${p%/git}/objects/*; echo x > ${p%/git}/dotgit",
        "git update-ref refs/heads/main HEAD; git branch -D main; git push . HEAD:refs/heads/x -f",
        "git config core.worktree /etc; git config core.bare true",
        "umount .git; mount -o remount,rw /; mount --bind / /mnt",
        f"cat {bench.state}/worktrees/*/*/f2/fork.json && touch {tmp_path}/read",
    ):
        await bench.bash(one, attack)
    assert victim.read_text() == "v"
    assert (bench.parent(), bench.files()) == (before, files)
    assert git(bench.repo, "rev-parse", "main") == main
    assert (Path(two.path) / "a.txt").read_text().startswith("l0\n")
    assert (Path(one.path) / ".git").read_text().startswith("gitdir: ")
    assert await bench.trees.save("f2") is None
    await bench.bash(one, "echo fine > n")
    work = await bench.trees.save("f1")
    assert work is not None
    assert git(bench.repo, "fsck") == ""


@sandboxed
async def test_a_tree_replaced_by_a_link_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "precious"
    outside.mkdir()
    (outside / "file").write_text("keep")
    lease = await bench.trees.create("f1")
    tree = Path(lease.path)
    await asyncio.to_thread(shutil.rmtree, tree)
    tree.symlink_to(outside)
    await bench.trees.save("f1")
    await bench.trees.remove("f1")
    assert (outside / "file").read_text() == "keep"


@sandboxed
async def test_git_refuses_evil_names_and_the_directory_stays(bench: Bench) -> None:
    lease = await bench.trees.create("f1")
    await bench.bash(lease, "mkdir d; echo x > d/.GIT; echo x > 'd/git~1'; echo keep > n")
    with pytest.raises(WorktreeError):
        await bench.trees.save("f1")
    with pytest.raises(WorktreeError):
        await bench.trees.remove("f1")
    assert (Path(lease.path) / "n").exists()


@sandboxed
async def test_links_of_a_fork_arrive_as_links(bench: Bench) -> None:
    lease = await bench.trees.create("f1")
    await bench.bash(lease, "ln -s /etc/passwd evil; rm -r sub; ln -s / sub")
    work = await bench.trees.save("f1")
    assert work is not None
    assert {(f.path, f.warning) for f in work.files} >= {("evil", "symlink"), ("sub", "symlink")}
    await bench.trees.remove("f1")
    assert Path("/etc/passwd").exists()


async def test_without_a_sandbox_an_untrusted_project_is_left_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path, level=NO_SANDBOX)
    facts = await bench.trees.inspect()
    assert facts.dirty_files is None
    assert "/trust" in facts.reason
    with pytest.raises(WorktreeError, match="bubblewrap"):
        await bench.trees.create("f1")
    assert bench.refs() == []
    await bench.trees.close()


async def test_without_a_sandbox_a_trusted_project_works_with_mapped_paths(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, level=NO_SANDBOX, trusted=True)
    before, files = bench.parent(), bench.files()
    lease = await bench.trees.create("f1")
    assert lease.level == "tool-policy only"
    space = bench.trees.workspace(lease)
    await space.write_bytes(f"{bench.repo}/b.txt", b"mapped\n")
    await space.write_bytes(f"{lease.path}/n.txt", b"own path\n")
    assert await space.read_bytes("b.txt", 100) == b"mapped\n"
    code, out = await bench.bash(
        lease, "pwd; cat n.txt; git commit -qam w && git status --porcelain"
    )
    assert (code, out) == (0, f"{lease.path}\nown path\n?? n.txt\n")
    work = await bench.trees.save("f1")
    assert work is not None
    assert {f.path for f in work.files} == {"b.txt", "n.txt"}
    assert (bench.parent(), bench.files()) == (before, files)
    await bench.trees.remove("f1")
    assert not Path(lease.path).parent.exists()
    assert git(bench.repo, "worktree", "list").count("\n") == 0
    applied = await bench.trees.apply(work)
    await bench.trees.undo(applied.undo_ref)
    assert bench.files() == files
    await bench.trees.close()


async def test_only_harmless_verbs_run_on_the_host(tmp_path: Path) -> None:
    host = HostGit()
    for verb in ("status", "add", "diff", "stash", "reset", "checkout", "read-tree", "merge-tree"):
        assert verb not in HOST_VERBS
        with pytest.raises(ValueError, match="host"):
            await host.call(tmp_path, verb)
    host.close()


def test_destructive_words_stand_only_where_they_are_meant() -> None:
    allowed = {
        "removal.py": {"rmtree"},
        "remove.py": {"--force"},
        "create.py": {"--force"},
    }
    words = re.compile(r"--force|rmtree|reset.{0,4}--hard|\"clean\"|git clean|unlink\(")
    for path in sorted(PACKAGE.glob("*.py")):
        text = path.read_text()
        found = {
            word
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Constant | ast.Attribute)
            for word in words.findall(
                str(node.value) if isinstance(node, ast.Constant) else node.attr
            )
        }
        assert found <= allowed.get(path.name, set()), path.name


def test_gitpython_is_used_in_one_file_and_late() -> None:
    for path in sorted(PACKAGE.glob("*.py")):
        tree = ast.parse(path.read_text())
        top = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
        names = {a.name for n in top if isinstance(n, ast.Import) for a in n.names}
        names |= {n.module or "" for n in top if isinstance(n, ast.ImportFrom)}
        assert not names & {"git", "git.exc", "watchfiles", "pathspec"}, path.name
        if path.name != "git.py":
            assert "from git import" not in path.read_text()
