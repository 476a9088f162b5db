"""The project's own texts for a model: ``AGENTS.md`` and ``CLAUDE.md``.

Read by the command line when a session opens; quoted to the model as the project's text, never as
the operator's word. They need no trust, because nothing in them is obeyed by ForkDeck itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forkdeck.config.project_files import read

NAMES = ("AGENTS.md", "CLAUDE.md")
LIMIT_BYTES = 32 * 1024
"""Bytes taken of each text."""


@dataclass(frozen=True)
class Instruction:
    """One of the project's texts.

    Attributes:
        name: File name, relative to the root.
        text: Its text; when cut, it ends with a line that says so.
        cut: Whether it was longer than the limit.
    """

    name: str
    text: str
    cut: bool


def project_instructions(root: Path) -> tuple[Instruction, ...]:
    """Return the project's texts: regular files inside `root`, 32 KiB of each, no empty ones.

    A text that stands there under both names is returned once.
    """
    found: list[Instruction] = []
    for name in NAMES:
        data = read(root, name, LIMIT_BYTES)
        if data is None:
            continue
        cut = len(data) > LIMIT_BYTES
        # A character that the limit split is dropped whole.
        text = data[:LIMIT_BYTES].decode("utf-8-sig", "ignore" if cut else "replace").strip()
        if cut:
            text += f"\n[cut here: only the first {LIMIT_BYTES // 1024} KiB of {name} are quoted]"
        if text and all(text != other.text for other in found):
            found.append(Instruction(name, text, cut))
    return tuple(found)
