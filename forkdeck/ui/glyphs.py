"""Glyphs and badges: what stands for a state, in both character sets.

Pure data for the widgets. Every glyph is one cell wide and present in the common terminal
fonts; the ASCII set is for terminals without UTF-8 and for ``--ascii``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from forkdeck.store.rows_types import ASCII_GLYPHS, UNICODE_GLYPHS, Glyphs


class Badge(NamedTuple):
    """A state's word, its glyph, and the style both are drawn in."""

    word: str
    glyph: str
    style: str


_UNICODE: Final = {
    "ASK": "◆", "FAIL": "×", "SLOW": "!", "PART": "◕", "INTR": "†", "NEW": "✓", "RUN": "●",
    "START": "◎", "WAIT": "~", "QUE": "…", "STOP": "□", "PAUSE": "║", "SAVE": "↓", "DONE": "✓",
    "ABRT": "■", "PLAN": "·",
}  # fmt: skip

_ASCII: Final = {
    "ASK": "?", "FAIL": "x", "SLOW": "!", "PART": "%", "INTR": "^", "NEW": "+", "RUN": "*",
    "START": "o", "WAIT": "~", "QUE": ":", "STOP": "/", "PAUSE": "=", "SAVE": "s", "DONE": "+",
    "ABRT": "#", "PLAN": ".",
}  # fmt: skip

_STYLES: Final[dict[str, str]] = {
    "ASK": "chip-ask", "FAIL": "bad-strong", "SLOW": "warn-strong", "PART": "warn-strong",
    "INTR": "warn-strong", "NEW": "good-strong", "RUN": "live",
}  # fmt: skip

WORDS: Final = tuple(_UNICODE)
"""Every word a badge can show, in order of attention."""


class Marks(NamedTuple):
    """The characters widgets draw besides the rows' own."""

    bar: str = "▌"
    thumb: str = "▐"
    follow: str = "▼"
    meter: str = "━"
    rest: str = "─"
    eighths: str = "▁▂▃▄▅▆▇█"
    taken: str = "■"
    left: str = "□"
    divider: str = "│"
    wait: str = "┄"
    idle: str = "·"
    cross: str = "┿"
    play: str = "▶"
    pause: str = "║"
    knob: str = "●"
    flag: str = "▲"
    ask: str = "◆"
    times: str = "×"


UNICODE_MARKS: Final = Marks()
ASCII_MARKS: Final = Marks(
    bar="|", thumb="|", follow="v", meter="=", rest="-", eighths="_.-:=+*#", taken="#", left="o",
    divider="|", wait=".", idle=".", cross="+", play=">", pause="=", knob="O", flag="^", ask="?",
    times="x",
)  # fmt: skip


def badge(word: str, *, ascii_only: bool = False) -> Badge:
    """Return the badge of a state word; an unknown word is shown muted with ``·``."""
    table = _ASCII if ascii_only else _UNICODE
    return Badge(word, table.get(word, "." if ascii_only else "·"), _STYLES.get(word, "muted"))


def row_glyphs(*, ascii_only: bool = False, motion: bool = True) -> Glyphs:
    """Return the characters the transcript rows draw; without motion there is no spinner."""
    glyphs = ASCII_GLYPHS if ascii_only else UNICODE_GLYPHS
    return glyphs if motion else glyphs._replace(spinner="")


def marks(*, ascii_only: bool = False) -> Marks:
    """Return the widgets' own characters."""
    return ASCII_MARKS if ascii_only else UNICODE_MARKS


def sparkline(values: list[float], *, ascii_only: bool = False) -> str:
    """Return one character per value, its height a share of the largest."""
    steps = marks(ascii_only=ascii_only).eighths
    top = max(values, default=0.0)
    if top <= 0:
        return steps[0] * len(values)
    return "".join(steps[min(7, int(max(0.0, value) / top * 7.999))] for value in values)


def meter_cells(share: float, cells: int) -> int:
    """Return how many of `cells` a share fills; something is never shown as nothing."""
    if share <= 0:
        return 0
    return max(1, min(cells, round(share * cells)))
