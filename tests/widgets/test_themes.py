"""Themes: every shipped one parses, can be read, and survives fewer colours."""

from __future__ import annotations

import colorsys
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem
from textual.theme import Theme

from forkdeck.ui import theme as themes
from tests.widgets import scenes
from tests.widgets.host import DeckHost

FOLDER = themes.shipped_folder() or Path("themes")
PATHS = sorted(FOLDER.glob("*.toml"))
SHADES = ("background", "surface", "panel")
TINTS = ("warning-tint", "error-tint", "success-tint")
COLOURS = ("primary", "secondary", "warning", "error", "success", "syntax-string")


def colours(theme: Theme) -> dict[str, str]:
    fields = {key: getattr(theme, key) for key in themes.KEYS if hasattr(theme, key)}
    return {**theme.variables, **fields}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_eight_themes_are_shipped_and_all_load() -> None:
    assert len(PATHS) >= 8
    found, faults = themes.load_themes([FOLDER])
    assert faults == []
    assert {path.stem for path in PATHS} == {theme.name for theme in found}
    assert found[0].name == themes.DEFAULT_THEME
    assert sum(not theme.dark for theme in found) >= 3


def test_the_built_in_theme_equals_its_file() -> None:
    built, read = themes.default_theme(), themes.read_theme(FOLDER / "forkdeck-dark.toml")
    assert colours(built) == colours(read)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_contrast(path: Path) -> None:
    found = colours(themes.read_theme(path))
    texts = ("foreground", "text-muted", *COLOURS)
    pairs = [(text, shade, 4.5) for shade in SHADES for text in texts]
    pairs += [(t, s, 4.5) for s in ("selected", *TINTS) for t in ("foreground", "text-muted")]
    pairs += [(badge, "selected", 3.0) for badge in ("primary", "warning", "error", "success")]
    pairs += [("foreground", f"diff-{kind}-word", 4.5) for kind in ("add", "del")]
    code = ("secondary", "syntax-string")
    pairs += [(tone, tint, 4.5) for tint in ("error-tint", "success-tint") for tone in code]
    pairs += [
        ("ask-text", "ask", 4.5), ("chip-text", "primary", 4.5), ("warning", "warning-tint", 4.5),
        ("error", "error-tint", 4.5), ("success", "success-tint", 4.5),
    ]  # fmt: skip
    low = {
        (text, on): round(contrast(found[text], found[on]), 2)
        for text, on, least in pairs
        if contrast(found[text], found[on]) < least
    }
    assert low == {}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_shades_stay_apart_with_256_colours(path: Path) -> None:
    theme = themes.read_theme(path)
    found = colours(theme)
    if theme.dark:
        greys = [found[name] for name in (*SHADES, "rule", "plot-ghost")]
        parts = [[int(grey[at : at + 2], 16) / 255 for at in (1, 3, 5)] for grey in greys]
        assert all(colorsys.rgb_to_hls(*part)[2] < 0.15 for part in parts)
    eight_bit = [Color.parse(found[n]).downgrade(ColorSystem.EIGHT_BIT).number for n in
                 ("background", "panel", "foreground")]  # fmt: skip
    assert len(set(eight_bit)) == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name = ", "not TOML"),
        ('name = "X y"\ndark = true', "lower case"),
        ('name = "a"\ndark = "no"', "dark must"),
        ('name = "a"\ndark = true', "[colours]"),
        ('name = "a"\ndark = true\n[colours]\nbackground = "red"', "background must be a colour"),
        ('name = "a"\ndark = true\n[colours]\nbackground = "#111111"', "surface must be a colour"),
    ],
)
def test_a_bad_file_is_named_and_left_out(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    found, faults = themes.load_themes([tmp_path])
    assert [theme.name for theme in found] == [themes.DEFAULT_THEME]
    assert len(faults) == 1
    assert why in faults[0]
    assert "mine.toml" in faults[0]
    assert str(tmp_path) not in faults[0]


def test_the_persons_own_theme_wins(tmp_path: Path) -> None:
    text = (FOLDER / "forkdeck-dark.toml").read_text().replace("#84b6f4", "#ffffff")
    (tmp_path / "x.toml").write_text(text)
    found, faults = themes.load_themes([FOLDER, tmp_path, tmp_path / "missing"])
    assert faults == []
    assert next(theme for theme in found if theme.name == "forkdeck-dark").primary == "#ffffff"


def test_own_themes_lie_beside_the_configuration(tmp_path: Path) -> None:
    assert themes.user_folder({"FORKDECK_CONFIG_DIR": str(tmp_path)}) == tmp_path / "themes"


def test_defaults_cover_every_variable_that_is_no_field() -> None:
    defaults = themes.variable_defaults()
    assert set(defaults) == set(themes.KEYS) - {
        "primary", "secondary", "warning", "error", "success", "foreground", "background",
        "surface", "panel",
    }  # fmt: skip


@pytest.mark.parametrize("name", [path.stem for path in PATHS])
async def test_every_theme_draws_and_switches(name: str) -> None:
    script = scenes.deck(3)
    app = DeckHost(script.state(), script.at_ms, panes=("f2",), selected="f2")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.theme = name
        await pilot.pause()
        found = colours(themes.read_theme(FOLDER / f"{name}.toml"))
        pane = app.query_one("#pane-f2")
        strip = pane.render_line(0)
        assert {
            segment.style.bgcolor.get_truecolor().hex
            for segment in strip
            if segment.style and segment.style.bgcolor
        } == {found["selected"], found["ask"]}


async def test_a_stock_theme_does_not_stop_the_app() -> None:
    script = scenes.deck(3)
    app = DeckHost(script.state(), script.at_ms, panes=("f2",))
    async with app.run_test(size=(100, 30)) as pilot:
        app.theme = "textual-light"
        await pilot.pause()
        assert app.is_running
