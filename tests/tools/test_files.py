"""read, edit, write and ls: right answers, caps, encodings, and what they refuse."""

from __future__ import annotations

import codecs
import os
import stat

import pytest

from forkdeck.errors import ToolError
from forkdeck.tools import encodings
from forkdeck.tools.patches import patch
from tests.tools.conftest import Bench


async def test_read_numbers_lines_and_marks_the_file(bench: Bench) -> None:
    (bench.root / "a.txt").write_text("one\ntwo\n\nfour")
    result = await bench.call("read", {"path": "a.txt"})
    assert result.content == "     1\tone\n     2\ttwo\n     3\t\n     4\tfour"
    assert (result.summary, result.path, result.status) == ("4 lines", "a.txt", "ok")
    assert bench.marks.get(f"{bench.root}/a.txt") is not None


async def test_read_pages_by_lines_and_says_how_to_go_on(boxed: Bench) -> None:
    (boxed.root / "a").write_text("".join(f"{n}\n" for n in range(1, 2502)))
    first = await boxed.call("read", {"path": "a"})
    assert first.summary == "2000 lines"
    assert first.content.endswith(
        "[lines 1-2000 of 2501 (at most 2000 lines, 50 KB); go on with offset=2001]"
    )
    rest = await boxed.call("read", {"path": "a", "offset": 2001, "limit": 2})
    assert rest.content.splitlines()[:2] == ["  2001\t2001", "  2002\t2002"]
    assert "[lines 2001-2002 of 2501; go on with offset=2003]" in rest.content
    with pytest.raises(ToolError, match="has 2501 lines; there is no line 2502"):
        await boxed.call("read", {"path": "a", "offset": 2502})


async def test_read_caps_bytes_and_long_lines(boxed: Bench) -> None:
    (boxed.root / "a").write_text(("x" * 990 + "\n") * 100)
    result = await boxed.call("read", {"path": "a"})
    assert len(result.content.encode()) < 52 * 1024
    assert "[lines 1-51 of 100" in result.content
    (boxed.root / "b").write_text("y" * 5000)
    result = await boxed.call("read", {"path": "b"})
    assert "… [line of 5000 characters cut]" in result.content


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\x89PNG\r\n\0\0", "PNG"),
        (b"a\0b", "binary"),
        (b"%PDF\0", "PDF"),
        (b"\x7fELF\0", "program"),
    ],
)
async def test_read_names_what_is_no_text(boxed: Bench, data: bytes, word: str) -> None:
    (boxed.root / "f").write_bytes(data)
    with pytest.raises(ToolError, match=word):
        await boxed.call("read", {"path": "f"})


async def test_read_helps_with_missing_files_and_directories(bench: Bench) -> None:
    (bench.root / "settings.py").write_text("x")
    with pytest.raises(ToolError, match=r"does not exist.\nClose names there: settings.py"):
        await bench.call("read", {"path": "setings.py"})
    with pytest.raises(ToolError, match="is a directory"):
        await bench.call("read", {"path": "."})
    assert (await bench.call("read", {"path": "settings.py"})).summary == "1 line"
    (bench.root / "empty").write_text("")
    assert (await bench.call("read", {"path": "empty"})).content == "(the file is empty)"


async def test_a_huge_file_is_refused_with_a_way(boxed: Bench) -> None:
    with (boxed.root / "big").open("wb") as file:
        file.truncate(2 * 1024**3)
    with pytest.raises(ToolError, match=r"larger than 16 MiB.\nUse grep"):
        await boxed.call("read", {"path": "big"})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\nc\r\n", b"a\r\nX\r\nY\r\nc\r\n"),
        (codecs.BOM_UTF8 + b"a\nb\nc", codecs.BOM_UTF8 + b"a\nX\nY\nc"),
        (
            codecs.BOM_UTF16_LE + "a\nb\nc ü".encode("utf-16-le"),
            codecs.BOM_UTF16_LE + "a\nX\nY\nc ü".encode("utf-16-le"),
        ),
        (b"a\nb\n\xe9\xff", b"a\nX\nY\n\xe9\xff"),
        (b"a\r\nb\nc\r\n", b"a\r\nX\nY\nc\r\n"),
    ],
    ids=["crlf", "bom", "utf16", "latin", "mixed"],
)
async def test_edit_keeps_encoding_bom_line_ends_and_mode(
    bench: Bench, before: bytes, after: bytes
) -> None:
    path = bench.root / "f"
    path.write_bytes(before)
    path.chmod(0o751)
    await bench.call("read", {"path": "f"})
    result = await bench.call("edit", {"path": "f", "old": "b", "new": "X\nY"}, "work")
    assert path.read_bytes() == after
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert (result.summary, result.added, result.removed) == ("+2 −1", 2, 1)
    assert "+X" in result.patch
    again = await bench.call("edit", {"path": "f", "old": "X", "new": "Z"}, "work")
    assert again.status == "ok"


async def test_edit_needs_one_match_and_a_fresh_read(bench: Bench) -> None:
    path = bench.root / "f"
    path.write_text("a\nb\na\n")
    with pytest.raises(ToolError, match="was not read"):
        await bench.call("edit", {"path": "f", "old": "b", "new": "c"}, "work")
    await bench.call("read", {"path": "f"})
    with pytest.raises(ToolError, match=r"occurs 2 times in f \(lines 1, 3\)"):
        await bench.call("edit", {"path": "f", "old": "a", "new": "c"}, "work")
    with pytest.raises(ToolError, match="does not occur"):
        await bench.call("edit", {"path": "f", "old": "z", "new": "c"}, "work")
    with pytest.raises(ToolError, match="first line stands in line 2"):
        await bench.call("edit", {"path": "f", "old": "b\nb", "new": "c"}, "work")
    with pytest.raises(ToolError, match="are the same"):
        await bench.call("edit", {"path": "f", "old": "a", "new": "a"}, "work")
    await bench.call("edit", {"path": "./f", "old": "a", "new": "c", "replace_all": True}, "work")
    assert path.read_text() == "c\nb\nc\n"
    path.write_text("somebody else\nb\n")
    with pytest.raises(ToolError, match="changed since"):
        await bench.call("edit", {"path": "f", "old": "b", "new": "c"}, "work")
    assert path.read_text() == "somebody else\nb\n"


async def test_edit_refuses_what_the_encoding_cannot_hold(boxed: Bench) -> None:
    (boxed.root / "f").write_bytes(b"a\xe9")
    await boxed.call("read", {"path": "f"})
    with pytest.raises(ToolError, match="latin-1, which cannot hold '→'"):
        await boxed.call("edit", {"path": "f", "old": "a", "new": "→"}, "work")


async def test_write_makes_files_but_replaces_only_what_was_read(bench: Bench) -> None:
    made = await bench.call("write", {"path": "d/new.txt", "content": "1\n2\n"}, "work")
    assert (bench.root / "d" / "new.txt").read_text() == "1\n2\n"
    assert (made.summary, made.path) == ("+2 −0", "d/new.txt")
    again = await bench.call("write", {"path": "d/new.txt", "content": "1\n3\n"}, "work")
    assert again.summary == "+1 −1"
    (bench.root / "old").write_text("precious")
    with pytest.raises(ToolError, match="was not read"):
        await bench.call("write", {"path": "old", "content": "x"}, "work")
    assert (bench.root / "old").read_text() == "precious"
    with pytest.raises(ToolError, match="directory"):
        await bench.call("write", {"path": "d", "content": "x"}, "work")
    await bench.call("write", {"path": "odd", "content": "a\ud800b"}, "work")
    assert (bench.root / "odd").read_text() in {"a\ufffdb", "a?b"}
    assert list(bench.root.rglob("*.part")) == []


async def test_ls_shows_kinds_and_caps(bench: Bench) -> None:
    (bench.root / "d").mkdir()
    (bench.root / "l").symlink_to("d")
    (bench.root / "a\nb").write_text("12345")
    result = await bench.call("ls", {})
    assert result.content == "'a\\nb'  5 bytes\nd/\nl -> d"
    assert result.summary == "3 entries"
    for number in range(600):
        (bench.root / "d" / f"{number:03}").touch()
    result = await bench.call("ls", {"path": "d"})
    assert result.content.endswith("[500 of 600 entries; use find with a pattern]")
    with pytest.raises(ToolError, match="is a file"):
        await bench.call("ls", {"path": "a\nb"})


@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("read", {}, "path is missing"),
        ("read", {"path": 3}, "path must be of type string"),
        ("read", {"path": ""}, "path must not be empty"),
        ("read", {"path": "a", "offset": 0}, "offset must be at least 1"),
        ("read", {"path": "a", "offset": True}, "offset must be of type integer"),
        ("read", {"path": "a", "limit": 5000}, "limit must be at most 2000"),
        ("edit", {"path": "a", "old": "", "new": ""}, "old must not be empty"),
        ("edit", {"path": "a", "old_string": "x"}, "no argument 'old_string'"),
        ("bash", {"command": "x", "access": "root"}, "access must be one of look, work, outside"),
        ("bash", {"command": "  "}, "command must not be blank"),
        ("bash", {"command": "a\0b"}, "NUL"),
        ("grep", {"pattern": "a\nb"}, "one line"),
        ("find", {"glob": "a\0"}, "NUL"),
        ("ls", [], "must be an object"),
    ],
)
async def test_wrong_arguments_are_named(
    boxed: Bench, name: str, arguments: dict[str, object], field: str
) -> None:
    with pytest.raises(ToolError, match=field):
        await boxed.call(name, arguments)


async def test_null_arguments_count_as_absent(boxed: Bench) -> None:
    (boxed.root / "a").write_text("x")
    result = await boxed.call("read", {"path": "a", "offset": None, "limit": None})
    assert result.summary == "1 line"


def test_a_patch_is_right_in_the_middle_of_a_large_file() -> None:
    lines = [f"{n}\n" for n in range(20_000)]
    new = lines.copy()
    new[10_000] = "changed\n"
    change = patch("f", "".join(lines), "".join(new))
    assert (change.added, change.removed) == (1, 1)
    assert "@@ -9998,7 +9998,7 @@" in change.text
    huge = patch("f", "".join(lines), "x\n" * 20_000)
    assert (huge.added, huge.removed) == (20_000, 20_000)
    assert len(huge.text) < 500
    added = patch("f", "", "x\n" * 1000)
    assert added.text.endswith("more lines of this patch]")
    assert "\\ No newline at end of file" in patch("f", "a\n", "a").text


def test_every_decoded_text_goes_back_as_it_came() -> None:
    for data in (os.urandom(300).replace(b"\0", b"x"), b"", b"\r\n", b"a\rb\n", "ü€".encode()):
        decoded = encodings.decode(data)
        if decoded is not None:
            assert decoded.encode(decoded.text) == data
