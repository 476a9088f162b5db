"""The rules of the file tools, and that they and commands see one world."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from forkdeck.errors import PathRefused, SandboxError, ToolDenied, ToolError
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.views import fork_view, work_view
from forkdeck.sandbox.workspace import (
    Project,
    RunWorkspace,
    parent_workspace,
    read_only_workspace,
)
from tests.sandbox.lab import Lab, git
from tests.soak import laws

LIMIT = 1_000_000


def project(lab: Lab, cwd: str = "") -> Project:
    return Project(
        root=lab.repo, cwd=lab.repo / cwd, spill_directory=lab.state, hide=lambda: lab.hide
    )


@pytest.fixture
def parent(lab: Lab, runner: Runner) -> RunWorkspace:
    return parent_workspace(runner, project(lab), run="p")


def fork(lab: Lab, runner: Runner) -> RunWorkspace:
    places, scratch = lab.fork("f1"), runner.scratch("f1")
    return RunWorkspace(
        runner,
        lambda _access: fork_view(
            root=lab.repo, cwd=lab.repo, scratch=scratch, places=places, hide=lab.hide
        ),
        spill_directory=lab.state,
        reads="fork",
        writes="fork",
    )


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("", PathRefused),
        ("a\0b", PathRefused),
        ("/proc/self/environ", PathRefused),
        ("/proc/1/root/etc/passwd", PathRefused),
        ("/sys/kernel/notes", PathRefused),
        ("/dev/zero", PathRefused),
        ("src/../../../../../../dev/zero", PathRefused),
        ("fifo", PathRefused),
        ("out", PathRefused),
        ("outdir/id", PathRefused),
        ("chain", PathRefused),
        ("loop", PathRefused),
        ("dev", PathRefused),
        ("src", ToolError),
        ("src/a.txt/b", ToolError),
        ("src/a.txt/", ToolError),
        ("missing/../src/a.txt", ToolError),
        ("~/x", ToolError),
        ("missing", ToolError),
        ("-n", ToolError),
        ("a\nb", ToolError),
        ("x" * 300, ToolError),
        ("x/" * 3000, ToolError),
    ],
    ids=lambda value: repr(value)[:20] if isinstance(value, str) else value.__name__,
)
async def test_bad_paths_are_refused_by_name(
    lab: Lab, parent: RunWorkspace, path: str, error: type[Exception]
) -> None:
    os.mkfifo(lab.repo / "fifo")
    (lab.repo / "out").symlink_to(lab.victim)
    (lab.repo / "outdir").symlink_to(lab.home / ".ssh")
    (lab.repo / "chain").symlink_to("out")
    (lab.repo / "loop").symlink_to("loop")
    (lab.repo / "dev").symlink_to("/dev/zero")
    with pytest.raises(error) as caught:
        await asyncio.wait_for(parent.read_bytes(path, LIMIT), 5)
    assert str(caught.value).strip()


async def test_hidden_places_and_forkdecks_own_are_refused(lab: Lab, parent: RunWorkspace) -> None:
    (lab.state / "log").write_text("x")
    (lab.home / "keys").symlink_to(lab.home / ".ssh")
    for path in (
        lab.home / ".ssh/id",
        lab.home / ".netrc",
        lab.state / "log",
        lab.home / "keys/id",
    ):
        with pytest.raises(PathRefused, match="hidden"):
            await parent.read_bytes(str(path), LIMIT)


async def test_a_secret_that_appears_later_is_hidden_too(lab: Lab, parent: RunWorkspace) -> None:
    (lab.home / ".aws").mkdir()
    (lab.home / ".aws" / "credentials").write_text("AWS")
    with pytest.raises(PathRefused):
        await parent.read_bytes(str(lab.home / ".aws/credentials"), LIMIT)


async def test_links_inside_and_reads_outside_work(lab: Lab, parent: RunWorkspace) -> None:
    (lab.repo / "in").symlink_to("src/../src/a.txt")
    (lab.repo / "abs").symlink_to(lab.repo / "src")
    assert await parent.read_bytes("in", LIMIT) == b"a\n"
    assert await parent.read_bytes("abs/a.txt", LIMIT) == b"a\n"
    assert await parent.read_bytes(str(lab.victim), LIMIT) == b"victim\n"
    assert await parent.read_bytes("src/a.txt", 1) == b"a\n"


async def test_without_a_sandbox_reads_outside_must_be_allowed(lab: Lab, bare: Runner) -> None:
    allowed = False
    workspace = parent_workspace(bare, project(lab), run="p", unguarded=lambda: allowed)
    with pytest.raises(PathRefused, match="nothing guards"):
        await workspace.read_bytes(str(lab.victim), LIMIT)
    with pytest.raises(ToolDenied, match="forkdeck doctor"):
        await workspace.run("cat x", access="look", timeout_s=5, spill_name="s")
    allowed = True
    assert await workspace.read_bytes(str(lab.victim), LIMIT) == b"victim\n"
    result = await workspace.run("echo hi", access="look", timeout_s=5, spill_name="s")
    assert result.head == "hi\n"
    with pytest.raises(PathRefused):
        await workspace.read_bytes(str(lab.home / ".ssh/id"), LIMIT)


@pytest.mark.parametrize("kind", ["sandboxed", "bare"])
async def test_writes_are_atomic_keep_the_mode_and_stay_inside(
    lab: Lab, runner: Runner, bare: Runner, kind: str
) -> None:
    workspace = parent_workspace(runner if kind == "sandboxed" else bare, project(lab), run="p")
    script = lab.repo / "run.sh"
    script.write_text("old")
    script.chmod(0o755)
    os.link(script, lab.base / "twin")
    await workspace.write_bytes("run.sh", b"new \xff\0")
    assert script.read_bytes() == b"new \xff\0"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert (lab.base / "twin").read_text() == "old"
    await workspace.write_bytes("deep/er/-n.txt", b"x")
    assert (lab.repo / "deep/er/-n.txt").read_bytes() == b"x"
    (lab.repo / "out").symlink_to(lab.victim)
    (lab.repo / "outdir").symlink_to(lab.home)
    os.mkfifo(lab.repo / "fifo")
    bad = ("out", "outdir/new", str(lab.victim), "/tmp/x", "../x", "fifo", "src", "/proc/self/comm")
    for path in (*bad, ".git/hooks/post-checkout", ".git/config", "src/a.txt/x"):
        with pytest.raises(ToolError):
            await workspace.write_bytes(path, b"pwn")
    assert lab.victim.read_text() == "victim\n"
    assert not (lab.home / "new").exists()
    assert [p.name for p in lab.repo.rglob("*.part")] == []


async def test_large_writes_go_through(lab: Lab, parent: RunWorkspace) -> None:
    await parent.write_bytes("big", b"x" * 5_000_000)
    assert (lab.repo / "big").stat().st_size == 5_000_000


@pytest.mark.needs_sandbox
async def test_a_write_fork_writes_its_own_tree_by_the_parents_path(
    lab: Lab, runner: Runner
) -> None:
    workspace = fork(lab, runner)
    path = f"{lab.repo}/src/a.txt"
    await workspace.write_bytes(path, b"forked\n")
    assert (lab.repo / "src" / "a.txt").read_text() == "a\n"
    assert (lab.state / "f1" / "tree" / "src" / "a.txt").read_text() == "forked\n"
    assert await workspace.read_bytes(path, LIMIT) == b"forked\n"
    result = await workspace.run(f"cat {path}", access="fork", timeout_s=5, spill_name="s")
    assert result.head == "forked\n"
    for bad in (".git", f"{lab.state}/f2/x", str(lab.victim)):
        with pytest.raises(ToolError):
            await workspace.write_bytes(bad, b"x")


@pytest.mark.needs_sandbox
async def test_a_directory_swapped_for_a_link_does_not_lead_a_write_out(
    lab: Lab, runner: Runner
) -> None:
    workspace = fork(lab, runner)
    tree = lab.state / "f1" / "tree"
    (tree / "d").mkdir()
    (tree / "d" / "f").write_text("x")
    stop = False

    async def swap() -> None:
        # A write may make the directory anew in between; then that step fails and the next goes on.
        d, e = tree / "d", tree / "e"
        while not stop:
            shutil.rmtree(e, ignore_errors=True)
            with contextlib.suppress(OSError):
                d.rename(e)
            with contextlib.suppress(OSError):
                d.symlink_to(lab.home)
            await asyncio.sleep(0)
            with contextlib.suppress(OSError):
                d.unlink()
            with contextlib.suppress(OSError):
                e.rename(d)
            await asyncio.sleep(0)

    swapping = asyncio.create_task(swap())
    for _ in range(15):
        try:
            await workspace.write_bytes("d/f", b"pwn")
        except ToolError:
            continue
    stop = True
    await swapping
    assert not (lab.home / "f").exists()


async def test_read_only_runs_write_and_work_nowhere(lab: Lab, runner: Runner) -> None:
    workspace = read_only_workspace(runner, project(lab), run="f9")
    with pytest.raises(ToolDenied, match="read-only"):
        await workspace.write_bytes("src/a.txt", b"x")
    with pytest.raises(ToolDenied, match="read-only"):
        workspace.resolve("src/a.txt", write=True)
    for access in ("work", "outside", "fork"):
        with pytest.raises(ToolDenied, match="look view"):
            await workspace.run("true", access=access, timeout_s=5, spill_name="s")  # pyright: ignore[reportArgumentType]


@pytest.mark.needs_sandbox
async def test_a_spill_file_is_seen_by_the_path_the_model_is_told(
    lab: Lab, parent: RunWorkspace
) -> None:
    await parent.run("seq 100000", access="look", timeout_s=20, spill_name="call-1.txt")
    inside = "/tmp/forkdeck/call-1.txt"
    whole = await parent.read_bytes(inside, LIMIT)
    assert whole.endswith(b"99999\n100000\n")
    result = await parent.run(
        f"tail -1 {inside}; ls /tmp/forkdeck; echo x >> {inside}; rm -f {inside}",
        access="look", timeout_s=20, spill_name="call-2.txt",
    )  # fmt: skip
    assert result.head.startswith("100000\ncall-1.txt\n")
    assert (lab.state / "call-1.txt").read_bytes() == whole
    with pytest.raises(ToolError):
        await parent.write_bytes(inside, b"x")
    with pytest.raises(PathRefused):
        parent.share("../x", lab.victim)


@pytest.mark.needs_sandbox
async def test_tmp_is_private_and_the_same_for_both(parent: RunWorkspace) -> None:
    await parent.run("echo mine > /tmp/note", access="look", timeout_s=5, spill_name="s")
    assert await parent.read_bytes("/tmp/note", LIMIT) == b"mine\n"
    assert not Path("/tmp/note").exists()


@pytest.mark.needs_sandbox
async def test_a_project_below_tmp_is_put_back(tmp_path: Path, runner: Runner) -> None:
    (tmp_path / "f").write_text("here\n")
    git(tmp_path, "init", "-q")
    workspace = parent_workspace(
        runner, Project(root=tmp_path, cwd=tmp_path, spill_directory=tmp_path), run="p"
    )
    result = await workspace.run("cat f; echo x > f", access="look", timeout_s=5, spill_name="s")
    assert result.head.startswith("here\n")
    assert (tmp_path / "f").read_text() == "here\n"
    await workspace.run("echo x > f", access="work", timeout_s=5, spill_name="s")
    assert (tmp_path / "f").read_text() == "x\n"
    assert await workspace.read_bytes("f", LIMIT) == b"x\n"


def test_work_view_refuses_links_it_cannot_protect(lab: Lab) -> None:
    hooks = lab.repo / ".git" / "hooks"
    hooks.rename(lab.base / "hooks")
    hooks.symlink_to(lab.base / "hooks")
    with pytest.raises(SandboxError, match="link"):
        work_view(root=lab.repo, cwd=lab.repo, scratch=lab.scratch())


@pytest.mark.needs_sandbox
async def test_work_view_of_a_linked_worktree_commits(lab: Lab, runner: Runner) -> None:
    tree = lab.base / "linked"
    git(lab.repo, "worktree", "add", "-q", str(tree))
    workspace = parent_workspace(
        runner, Project(root=tree, cwd=tree, spill_directory=lab.state), run="p"
    )
    commit = "git -c user.name=x -c user.email=x@y commit -q --allow-empty -m w"
    script = f"{commit}; echo 'gitdir: /tmp' > .git; rm -f .git; echo x > {lab.repo}/.git/config"
    await workspace.run(script, access="work", timeout_s=10, spill_name="s")
    assert git(tree, "rev-list", "--count", "HEAD") == "2"


def test_discarding_scratch_removes_what_took_its_rights_away(lab: Lab, runner: Runner) -> None:
    scratch = runner.scratch("f3")
    (scratch.tmp / "a" / "b").mkdir(parents=True)
    (scratch.tmp / "out").symlink_to(lab.home)
    (scratch.tmp / "a" / "b").chmod(0)
    (scratch.tmp / "a").chmod(0)
    runner.discard_scratch("f3")
    assert not scratch.tmp.exists()
    assert (lab.home / ".netrc").exists()


async def _answer(workspace: RunWorkspace, path: str) -> bytes | str:
    try:
        return await workspace.read_bytes(path, LIMIT)
    except ToolError as error:
        return str(error)


NAMES = st.sampled_from(["a", "b", "c", "d e", "-n", "ü", "l1", "l2"])
TARGETS = st.sampled_from(
    ["a", "../a", "b/c", "./b", "/etc/hostname", "REPO/a", "../../x", "l1", "l2/a", "..", ".", "/"]
)
ACTIONS = st.one_of(
    st.tuples(st.just("file"), NAMES, st.binary(max_size=20)),
    st.tuples(st.just("dir"), NAMES, NAMES),
    st.tuples(st.just("link"), NAMES, TARGETS),
)


@pytest.mark.needs_sandbox
@laws(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(ACTIONS, min_size=3, max_size=10))
def test_cat_inside_equals_read(
    lab: Lab, runner: Runner, actions: list[tuple[str, str, object]]
) -> None:
    """One world: what `read` answers is what a command sees, and what it refuses is no file."""
    for old in sorted(lab.repo.iterdir()):
        if old.name != ".git":
            if old.is_dir() and not old.is_symlink():
                shutil.rmtree(old)
            else:
                old.unlink()
    for kind, name, value in actions:
        path = lab.repo / name
        if os.path.lexists(path):
            continue
        if kind == "file":
            assert isinstance(value, bytes)
            path.write_bytes(value)
        elif kind == "dir":
            path.mkdir()
            (path / str(value)).write_bytes(name.encode())
        else:
            path.symlink_to(str(value).replace("REPO", str(lab.repo)))
    workspace = parent_workspace(runner, project(lab), run="p")
    asked = [f"{a}{b}" for a in ("a", "b", "l1", "ü") for b in ("", "/a", "/../a", "/")]

    async def compare() -> None:
        script = "; ".join(
            f"printf '%s ' $(cat -- './{path}' 2>/dev/null | base64 -w0 || true)"
            f"; [ -f './{path}' ] && cat -- './{path}' >/dev/null 2>&1 && echo y || echo n"
            for path in asked
        )
        result = await workspace.run(script, access="look", timeout_s=20, spill_name="s")
        for path, line in zip(asked, result.head.splitlines(), strict=True):
            encoded, readable = line.rsplit(" ", 1)
            answer = await _answer(workspace, path)
            if isinstance(answer, bytes):
                assert (readable, base64.b64decode(encoded)) == ("y", answer), path
            else:
                assert readable == "n" or "out of the project" in answer, (path, answer)

    asyncio.run(compare())
