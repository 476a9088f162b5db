"""Style names to colours: the palette every line widget paints with.

Reads the app's theme variables; owns nothing else. A palette lives as long as one theme.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from rich.segment import Segment
from rich.style import Style

from forkdeck.store.rows_types import Span

_LOOKS: Final[dict[str, tuple[str, str]]] = {
    "text": ("foreground", ""),
    "strong": ("foreground", "b"),
    "muted": ("text-muted", ""),
    "note": ("text-muted", "i"),
    "rule": ("rule", ""),
    "live": ("primary", ""),
    "title": ("primary", "b"),
    "good": ("success", ""),
    "good-strong": ("success", "b"),
    "bad": ("error", ""),
    "bad-strong": ("error", "b"),
    "warn": ("warning", ""),
    "warn-strong": ("warning", "b"),
    "ask": ("warning", "b"),
    "key": ("foreground", "b"),
    "code": ("foreground", ""),
    "inline": ("syntax-string", ""),
    "heading": ("foreground", "b"),
    "keyword": ("secondary", ""),
    "string": ("syntax-string", ""),
    "add-sign": ("success", "b"),
    "del-sign": ("error", "b"),
    "ghost": ("plot-ghost", ""),
}
"""Style name → (variable of the colour, b bold or i italic)."""

_CHIPS: Final[dict[str, tuple[str, str]]] = {
    "chip-ask": ("ask-text", "ask"),
    "chip-zone": ("chip-text", "primary"),
    "add-word": ("foreground", "diff-add-word"),
    "del-word": ("foreground", "diff-del-word"),
}
"""Style name → (colour, background): the few that bring their own background."""

_FILLS: Final = {
    "": "",
    "background": "background",
    "surface": "surface",
    "panel": "panel",
    "selected": "selected",
    "add": "success-tint",
    "del": "error-tint",
    "warn": "warning-tint",
    "error": "error-tint",
}

_BARS: Final = {"focus": "primary", "rest": "rule", "warn": "warning", "error": "error"}

_TOKEN: Final = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\b\d[\d_.]*\b)"""
    r"""|(?P<note>(?:(?<=\s)|^)(?:\#|//)\s.*$)"""
    r"""|(?P<keyword>\b(?:and|as|assert|async|await|break|case|class|const|continue|def|del|do|elif"""
    r"""|else|enum|except|export|extends|fi|finally|fn|for|from|func|function|if|impl|import|in"""
    r"""|interface|is|lambda|let|match|mod|mut|new|not|or|package|pass|pub|raise|return|static"""
    r"""|struct|switch|then|throw|trait|try|type|use|var|void|while|with|yield|None|True|False|null"""
    r"""|true|false|nil)\b)""",
    re.VERBOSE,
)

_LIKES: Final = str.maketrans("…–—−•×✓“”‘’▌→←↑↓·■□", "~---*xv\"\"''|><^v.#o")

_FALLBACK: Final = {"background": "#121417", "foreground": "#d8dce4"}


def highlight(code: str) -> list[tuple[str, str]]:
    """Return a line of code in at most three tones; any language, by words alone."""
    if len(code) > 400:
        return [("code", code)]
    spans: list[tuple[str, str]] = []
    at = 0
    for found in _TOKEN.finditer(code):
        if found.start() > at:
            spans.append(("code", code[at : found.start()]))
        kind = found.lastgroup or "code"
        spans.append(("muted" if kind == "note" else kind, found[0]))
        at = found.end()
    if at < len(code):
        spans.append(("code", code[at:]))
    return spans


def to_ascii(text: str) -> str:
    """Return text for a terminal without UTF-8: our marks by their likes, the rest as ``?``."""
    return text.translate(_LIKES).encode("ascii", "replace").decode("ascii")


class Palette:
    """Rich styles by name for one set of theme variables; cached, so painting only looks up."""

    def __init__(
        self, variables: Mapping[str, str], *, colour: bool = True, ascii_only: bool = False
    ) -> None:
        self._variables = variables
        self._colour = colour
        self._ascii = ascii_only
        self._styles: dict[tuple[str, str], Style] = {}

    def _value(self, name: str) -> str | None:
        value = self._variables.get(name) or _FALLBACK.get(name)
        # Mixed colours ("auto 87%", an alpha) are no plain colour a cell could take.
        return value if value is not None and re.fullmatch(r"#[0-9a-fA-F]{6}", value) else None

    @property
    def has_colour(self) -> bool:
        """Whether anything is drawn in colour."""
        return self._colour

    def colour_of(self, variable: str) -> str | None:
        """Return a theme variable as ``#rrggbb``, or None when it is no plain colour."""
        return self._value(variable)

    def style(self, name: str, fill: str = "") -> Style:
        """Return the style of a span on a fill; `fill` names a shade or a tint."""
        key = (name, fill)
        found = self._styles.get(key)
        if found is None:
            found = self._styles[key] = self._make(name, fill)
        return found

    def _make(self, name: str, fill: str) -> Style:
        if name in _CHIPS:
            front, back = (self._value(variable) for variable in _CHIPS[name])
            bold = name.startswith("chip")
            # Without colour a chip is reverse video: the one badge that must not be missed.
            if not self._colour:
                return Style(bold=bold, reverse=True)
            return Style(color=front, bgcolor=back, bold=bold or None)
        if name.startswith("bar-"):
            variable, extra = _BARS[name.removeprefix("bar-")], ""
        else:
            variable, extra = _LOOKS.get(name, ("foreground", ""))
        back = _FILLS.get(fill, fill)
        return Style(
            color=self._value(variable) if self._colour else None,
            bgcolor=self._value(back) if back and self._colour else None,
            bold=True if "b" in extra else None,
            italic=True if "i" in extra else None,
            underline=True if not self._colour and name == "add-word" else None,
        )

    def segments(self, spans: Iterable[tuple[str, str] | Span], fill: str = "") -> list[Segment]:
        """Return spans as segments; code is highlighted here, when it is painted."""
        found: list[Segment] = []
        for name, text in spans:
            if self._ascii and not text.isascii():
                text = to_ascii(text)  # noqa: PLW2901 - the same text, in the other set
            if name == "code":
                found += [Segment(part, self.style(tone, fill)) for tone, part in highlight(text)]
            elif text:
                found.append(Segment(text, self.style(name, fill)))
        return found
