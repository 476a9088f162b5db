"""What a dead process left is found, saved and offered; nothing else is touched."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forkdeck.errors import WorktreeError
from tests.worktrees.helpers import OTHER, SESSION, Bench, git

pytestmark = pytest.mark.needs_sandbox

OWNER = """
import asyncio, sys
from pathlib import Path
from tests.worktrees.helpers import Bench, OTHER
async def main():
    bench = Bench(Path(sys.argv[1]), repo=Path(sys.argv[2]), session=OTHER)
    lease = await bench.trees.create("f1")
    await bench.bash(lease, "echo unsaved > work.txt; echo c >> b.txt; git commit -qam c")
    await bench.trees.create("f2")
    print("up", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


async def test_a_killed_owners_work_is_found_saved_and_offered(bench: Bench) -> None:
    owner = subprocess.Popen(  # noqa: ASYNC220 - it is killed as a stranger would be
        [sys.executable, "-c", OWNER, str(bench.base), str(bench.repo)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert owner.stdout is not None
    assert await asyncio.to_thread(owner.stdout.readline) == b"up\n"
    rows = await bench.trees.entries()
    assert [(r.handle, r.live, r.verdict) for r in rows] == [
        ("f1", True, "in use"),
        ("f2", True, "in use"),
    ]
    assert (await bench.trees.sweep(), await bench.trees.clean())[1][0] == []
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    rows = await bench.trees.entries()
    assert [(r.session, r.handle, r.live, r.dirty, r.verdict) for r in rows] == [
        (OTHER, "f1", False, True, "not saved"),
        (OTHER, "f2", False, False, "saved"),
    ]
    assert all(r.size_bytes and r.age_s is not None for r in rows)
    removed, kept = await bench.trees.clean()
    assert removed == [f"{OTHER}/f2"]
    assert [line.split(":")[0] for line in kept] == [f"{OTHER}/f1"]
    saved, troubles = await bench.trees.sweep()
    assert troubles == []
    assert [(r.handle, r.verdict) for r in saved] == [("f1", "saved")]
    assert git(bench.repo, "show", f"{saved[0].ref}:work.txt") == "unsaved"
    assert (await bench.trees.clean())[0] == [f"{OTHER}/f1"]
    assert git(bench.repo, "worktree", "list").count("\n") == 0
    rows = await bench.trees.entries()
    assert [(r.handle, r.path, r.verdict) for r in rows] == [("f1", None, "saved")]
    work = await bench.trees.saved(OTHER, "f1")
    assert (work.commits, [f.path for f in work.files]) == (2, ["b.txt", "work.txt"])
    await bench.trees.apply(work)
    assert (bench.repo / "work.txt").read_text() == "unsaved\n"
    with pytest.raises(WorktreeError, match="No saved work"):
        await bench.trees.saved(OTHER, "f7")


async def test_the_session_goes_on_with_its_worktree(bench: Bench) -> None:
    lease = await bench.trees.create("f1")
    await bench.bash(lease, "echo 1 > n")
    await bench.trees.close()
    again = Bench(bench.base, repo=bench.repo, session=SESSION)
    assert await again.trees.reopen("f1") == lease
    code, out = await again.bash(lease, "cat n")
    assert (code, out) == (0, "1\n")
    with pytest.raises(WorktreeError):
        await again.trees.reopen("f2")
    await again.trees.close()


async def test_a_damaged_record_is_listed_and_left(bench: Bench) -> None:
    lease = await bench.trees.create("f1")
    await bench.trees.close()
    record = Path(lease.path).parent / "fork.json"
    record.write_text(record.read_text().replace('"f1"', '"f2"'))
    other = Bench(bench.base, repo=bench.repo, session=OTHER)
    (row,) = await other.trees.entries()
    assert "damaged" in row.verdict
    removed, kept = await other.trees.clean()
    assert removed == []
    assert len(kept) == 1
    assert Path(lease.path).exists()
    await other.trees.close()
