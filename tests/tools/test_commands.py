"""bash, grep and find: what the model gets, what the screen gets, and the same hits both ways."""

from __future__ import annotations

import asyncio
import time

import pytest

from forkdeck.errors import PathRefused, ToolDenied, ToolError
from forkdeck.model.ports import Enforcement
from forkdeck.sandbox.runner import Runner
from forkdeck.sandbox.workspace import Project, parent_workspace
from forkdeck.tools import grep as grep_module
from forkdeck.tools.sanitise import sanitise
from tests.tools.conftest import Bench


async def test_bash_names_view_and_exit(boxed: Bench) -> None:
    result = await boxed.call("bash", {"command": "echo one; echo two >&2; exit 3"})
    assert result.content == "[look view · exit 3]\none\ntwo"
    assert (result.status, result.summary, result.exit_code) == ("error", "exit 3", 3)
    assert (result.view, result.wants_work) == ("look", False)
    result = await boxed.call("bash", {"command": "printf 'a\\nb\\n'"})
    assert (result.status, result.summary) == ("ok", "2 lines")
    result = await boxed.call("bash", {"command": "true"})
    assert result.content == "[look view · exit 0 · no output]"


@pytest.mark.parametrize(
    "command",
    ["echo x > new", "python3 -c \"open('new','w')\"", "mkdir new", "LANG=de_DE.UTF-8 touch new"],
)
async def test_a_read_only_refusal_wants_work(boxed: Bench, command: str) -> None:
    result = await boxed.call("bash", {"command": command})
    assert result.wants_work is True
    again = await boxed.call("bash", {"command": command}, "work")
    assert (again.status, again.view, again.wants_work) == ("ok", "work", False)
    assert (boxed.root / "new").exists()


async def test_long_output_is_cut_and_the_whole_can_be_read(boxed: Bench) -> None:
    result = await boxed.call("bash", {"command": "seq 1 30000"})
    assert "[119,742 bytes left out; whole output: /tmp/forkdeck/call-1.txt]" in result.content
    assert result.content.startswith("[look view · exit 0]\n1\n2\n")
    assert result.content.endswith("29999\n30000")
    assert result.spill == "call-1.txt"
    found = await boxed.call("grep", {"pattern": "^12345$", "path": "/tmp/forkdeck/call-1.txt"})
    assert found.content == "/tmp/forkdeck/call-1.txt:12345:12345"
    read = await boxed.call(
        "read", {"path": "/tmp/forkdeck/call-1.txt", "offset": 20_000, "limit": 1}
    )
    assert read.content.startswith(" 20000\t20000\n")


async def test_output_between_head_and_both_is_whole(boxed: Bench) -> None:
    result = await boxed.call("bash", {"command": "seq 1 8000"})
    assert result.content.split("\n", 1)[1] == "\n".join(str(n) for n in range(1, 8001))
    assert result.spill is None


async def test_timeout_is_said(boxed: Bench) -> None:
    result = await boxed.call("bash", {"command": "echo a; sleep 60", "timeout_s": 1})
    assert result.content == "[look view · killed · killed after 1 s (timeout_s)]\na"
    assert (result.status, result.exit_code, result.summary) == ("timeout", None, "killed")


async def test_control_sequences_reach_neither_text_nor_progress(boxed: Bench) -> None:
    script = (
        "printf '\\033]0;evil\\007\\033[2Jred\\033[31m\\a x\\n10%%\\r20%%\\r\\n'; sleep 0.4; echo"
    )
    result = await boxed.call("bash", {"command": script})
    assert "red\ufffd x\n20%" in result.content
    assert "\033" not in result.content
    assert boxed.seen
    assert all("\033" not in tail for tail, _ in boxed.seen)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r\x1b\\a", "a"),
        ("\x1b]0;never closed", ""),
        ("\x9b31mred", "red"),
        ("a\x1b(Bb\x1b=c", "abc"),
        ("tab\tstays\r\nnext", "tab\tstays\nnext"),
        ("a\rb\rc\nd\r", "c\nd"),
        ("nul\0bell\x07del\x7f", "nul\ufffdbell\ufffddel\ufffd"),
        ("ünïcode →", "ünïcode →"),
    ],
)
def test_sanitise(raw: str, clean: str) -> None:
    assert sanitise(raw) == clean


async def test_secrets_do_not_reach_a_command(
    boxed: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("MY_TOKEN", "sk-secret")
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    for access in ("look", "outside"):
        result = await boxed.call("bash", {"command": "env"}, access)  # pyright: ignore[reportArgumentType]
        assert "sk-secret" not in result.content
        assert "GIT_DIR" not in result.content


async def test_without_a_sandbox_look_is_refused_with_the_way_out(tmp_path: object) -> None:
    from pathlib import Path

    base = Path(str(tmp_path))
    runner = Runner(Enforcement(level="tool-policy only"), scratch=base / "s")
    workspace = parent_workspace(
        runner, Project(root=base, cwd=base, spill_directory=base), run="p"
    )
    with pytest.raises(ToolDenied, match="forkdeck doctor"):
        await workspace.run("true", access="look", timeout_s=5, spill_name="x")
    result = await workspace.run("pwd", access="work", timeout_s=5, spill_name="x")
    assert result.head.strip() == str(base)


def plant(bench: Bench) -> None:
    root = bench.root
    (root / "src" / "deep").mkdir(parents=True)
    (root / "node").mkdir()
    (root / ".git").mkdir()
    (root / ".hidden").mkdir()
    files = {
        ".gitignore": "node/\n*.log\n!keep.log\n",
        "a.py": "import os\nneedle one\n",
        "src/b.py": "x\nNeedle two\nneedle (three)\r\n",
        "src/deep/c.txt": "needle four",
        "src/.gitignore": "deep/no.py\n",
        "src/deep/no.py": "needle hidden by nested ignore",
        "node/d.py": "needle ignored\n",
        "x.log": "needle ignored\n",
        "keep.log": "needle kept\n",
        ".git/e.py": "needle in git\n",
        ".hidden/f.py": "needle dotted\n",
        "-n.py": "needle dash\n",
        "bin.dat": "needle\0binary",
    }
    for name, content in files.items():
        (root / name).write_bytes(content.encode())
    (root / "link.py").symlink_to("/etc/hostname")
    (root / "up").symlink_to("..")


NEEDLES = [
    "-n.py:1:needle dash",
    ".hidden/f.py:1:needle dotted",
    "a.py:2:needle one",
    "keep.log:1:needle kept",
    "src/b.py:3:needle (three)",
    "src/deep/c.txt:1:needle four",
]


@pytest.mark.parametrize("engine", ["ripgrep", "own"])
async def test_grep_gives_the_same_hits_with_and_without_ripgrep(
    bench: Bench, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "own":
        monkeypatch.setattr(grep_module, "ripgrep", lambda: None)
    elif grep_module.ripgrep() is None:
        pytest.skip("ripgrep is not installed")
    plant(bench)

    async def hits(**arguments: object) -> list[str]:
        result = await bench.call("grep", dict(arguments))
        return sorted(result.content.splitlines())

    assert await hits(pattern="needle") == sorted(NEEDLES)
    assert await hits(pattern="needle", path="src") == sorted(NEEDLES[4:])
    assert await hits(pattern="needle", path="a.py") == ["a.py:2:needle one"]
    assert await hits(pattern="needle", glob="*.txt") == ["src/deep/c.txt:1:needle four"]
    assert await hits(pattern="needle", glob="src/**/*.txt") == ["src/deep/c.txt:1:needle four"]
    assert await hits(pattern="needle (three)", literal=True) == ["src/b.py:3:needle (three)"]
    assert len(await hits(pattern="needle", ignore_case=True)) == 7
    assert await hits(pattern="-n", path="-n.py") == ["no hits"]
    assert await hits(pattern="zzz") == ["no hits"]
    with pytest.raises(ToolError):
        await bench.call("grep", {"pattern": "(unclosed"})
    with pytest.raises(ToolError, match="does not exist"):
        await bench.call("grep", {"pattern": "x", "path": "missing"})
    with pytest.raises(PathRefused):
        await bench.call("grep", {"pattern": "x", "path": "/proc/self"})
    with pytest.raises(PathRefused):
        await bench.call("grep", {"pattern": "x", "path": "up"})


@pytest.mark.parametrize("engine", ["ripgrep", "own"])
async def test_grep_caps_hits(boxed: Bench, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine == "own":
        monkeypatch.setattr(grep_module, "ripgrep", lambda: None)
    (boxed.root / "many").write_text("needle\n" * 5000)
    result = await boxed.call("grep", {"pattern": "needle"})
    assert 150 < int(result.summary.removesuffix("+ hits")) <= 200
    assert result.content.endswith("hits; narrow the pattern, the path or the glob]")
    (boxed.root / "many").write_text(("needle" + "x" * 5000 + "\n") * 300)
    result = await boxed.call("grep", {"pattern": "needle"})
    assert len(result.content) < 70_000
    assert "+ hits" in result.summary


async def test_a_pattern_that_never_ends_does_not_hold_the_loop(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grep_module, "ripgrep", lambda: None)
    monkeypatch.setattr("forkdeck.tools.search.TIMEOUT_S", 1.0)
    (bench.root / "a").write_text("a" * 40 + "b")
    longest, work = 0.0, asyncio.create_task(bench.call("grep", {"pattern": "^(a+)+$"}))
    while not work.done():
        before = time.monotonic()
        await asyncio.sleep(0.02)
        longest = max(longest, time.monotonic() - before)
    with pytest.raises(ToolError, match="took more than"):
        await work
    assert longest < 0.7


async def test_find_by_name_and_by_path(bench: Bench) -> None:
    plant(bench)
    result = await bench.call("find", {"glob": "*.py"})
    assert sorted(result.content.splitlines()) == ["-n.py", ".hidden/f.py", "a.py", "src/b.py"]
    assert result.summary == "4 files"
    result = await bench.call("find", {"glob": "src/**/*.txt"})
    assert result.content == "src/deep/c.txt"
    result = await bench.call("find", {"glob": "*.txt", "path": "src"})
    assert result.content == "src/deep/c.txt"
    assert (await bench.call("find", {"glob": "*.none"})).content == "no files"
    with pytest.raises(ToolError, match="does not exist"):
        await bench.call("find", {"glob": "*", "path": "missing"})


async def test_find_caps_and_escapes(boxed: Bench) -> None:
    (boxed.root / "a\nb").touch()
    assert (await boxed.call("find", {"glob": "a*"})).content == "'a\\nb'"
    for number in range(700):
        (boxed.root / f"f{number:03}").touch()
    result = await boxed.call("find", {"glob": "f*"})
    assert result.summary == "500+ files"


async def test_cancelling_bash_ends_it(boxed: Bench) -> None:
    work = asyncio.create_task(boxed.call("bash", {"command": "sleep 60"}))
    await asyncio.sleep(0.2)
    started = time.monotonic()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert time.monotonic() - started < 2
