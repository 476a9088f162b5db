"""SVG to PNG, with a monospaced font that every machine of ours has."""

from __future__ import annotations

import re
from pathlib import Path

import resvg_py

_FONTS = re.compile(r"@font-face\s*\{.*?\}", re.DOTALL)


def write_png(svg: Path) -> Path:
    """Draw `svg` beside itself as a PNG and return its path."""
    text = _FONTS.sub("", svg.read_text(encoding="utf-8"))
    text = text.replace("Fira Code, monospace", "DejaVu Sans Mono").replace(
        "font-family: arial", "font-family: DejaVu Sans"
    )
    target = svg.with_suffix(".png")
    target.write_bytes(
        bytes(resvg_py.svg_to_bytes(svg_string=text, monospace_family="DejaVu Sans Mono"))
    )
    return target
