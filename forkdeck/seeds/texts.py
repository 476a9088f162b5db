"""The package's own texts: system prompt, shared rules, directive and report forms."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def text(name: str) -> str:
    """Return the text of ``name.md`` in this package, without a trailing newline."""
    return (files("forkdeck.seeds") / f"{name}.md").read_text(encoding="utf-8").rstrip("\n")
