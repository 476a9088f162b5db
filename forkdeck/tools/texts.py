"""Reads the tool texts that lie beside the code; they are part of the cached prefix."""

from __future__ import annotations

from importlib.resources import files


def text(name: str) -> str:
    """Return the text the model reads for a tool, without its final newline."""
    return files("forkdeck.tools").joinpath(f"{name}.md").read_text(encoding="utf-8").strip()
