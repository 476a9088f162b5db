"""The files beside the code are found from a wheel, an editable install and the source tree."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.program import ROOT, Program

LOOK = """
import sys
from importlib.resources import files
from pathlib import Path
import forkdeck
from forkdeck.providers.rehearsal.scenario import builtin, builtin_names
from forkdeck.seeds.directive import shared_rules_block
from forkdeck.tools.registry import all_specs
from forkdeck.ui.theme import load_themes

themes, faults = load_themes()
print("place", Path(forkdeck.__file__).parent)
print("themes", len(themes), *faults)
print("tools", len(all_specs()), all(spec.description for spec in all_specs()))
print("scenarios", *builtin_names(), len(builtin("demo").answers))
print("sample", (files("forkdeck") / "sample" / "tally" / "money.py").is_file())
print("rules", bool(shared_rules_block()["text"].strip()))
print("styles", all((files("forkdeck.ui") / name).is_file() for name in ("prompt_box.tcss",)))
print("typed", (files("forkdeck") / "py.typed").is_file())
"""


def look(first: Path | None, where: Path) -> dict[str, str]:
    """Run `LOOK` with `first` before everything else that is installed."""
    path = f"import sys; sys.path.insert(0, {str(first)!r})\n" if first else ""
    done = subprocess.run(
        [sys.executable, "-P", "-c", path + LOOK], cwd=where, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def is_whole(found: dict[str, str]) -> None:
    shipped = len(list((ROOT / "themes").glob("*.toml")))
    assert shipped >= 8
    assert found["themes"] == str(shipped)
    assert found["tools"] == "10 True"
    assert {"demo", "investigator"} <= set(found["scenarios"].split())
    assert (found["sample"], found["rules"], found["styles"], found["typed"]) == ("True",) * 4


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="NO HATCHLING HERE: the wheel is not tested")
    out = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


def test_from_the_source_tree(tmp_path: Path) -> None:
    found = look(ROOT, tmp_path)
    assert found["place"] == str(ROOT / "forkdeck")
    is_whole(found)


def test_from_the_install_that_runs_these_tests(tmp_path: Path) -> None:
    is_whole(look(None, tmp_path))


def test_from_a_wheel(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(site)
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests/")]
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    found = look(site, tmp_path)
    assert found["place"] == str(site / "forkdeck")
    is_whole(found)
    place = Program(tmp_path)
    place.more["PYTHONPATH"] = str(site)
    done = place.run("demo", "--plain")
    assert (done.code, "the sample's tests: OK" in done.out) == (0, True), done.err


def test_the_command_is_declared(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith("entry_points.txt"))
        assert "forkdeck = forkdeck.__main__:main" in archive.read(name).decode()
