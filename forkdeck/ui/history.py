"""The prompt history: one JSON string a line in a file of the state directory, newest last.

Owned by the prompt. The file is read and written off the loop; a file that cannot be used costs
the history, never the prompt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

MAX_ENTRIES = 1_000
"""How many prompts are kept."""

MAX_ENTRY_CHARS = 20_000
"""A longer prompt is remembered for this session only."""


class PromptHistory:
    """Prompts sent before, and the place of the one that is shown.

    Args:
        path: The file, or None to remember nothing beyond this process.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._entries: list[str] = []
        self._at: int | None = None
        self._draft = ""

    @property
    def entries(self) -> tuple[str, ...]:
        """All prompts, oldest first."""
        return tuple(self._entries)

    def load(self) -> None:
        """Read the file; blocking, call it in a thread. What is no entry is passed over."""
        if self._path is None:
            return
        try:
            lines = self._path.read_text("utf-8", errors="replace").splitlines()
        except OSError:
            return
        loaded: list[str] = []
        for line in lines[-MAX_ENTRIES:]:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, str) and value:
                loaded.append(value)
        self._entries = loaded + self._entries

    def add(self, text: str) -> bool:
        """Remember a sent prompt; returns whether it is to be saved."""
        self.leave()
        text = text.strip("\n")
        if not text or (self._entries and self._entries[-1] == text):
            return False
        self._entries.append(text)
        del self._entries[:-MAX_ENTRIES]
        return len(text) <= MAX_ENTRY_CHARS

    def save(self, text: str) -> None:
        """Append one prompt to the file; blocking, call it in a thread."""
        if self._path is None:
            return
        line = json.dumps(text.strip("\n"), ensure_ascii=True) + "\n"
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(self._path, flags, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8") as file:
                file.write(line)
        except OSError:
            return

    def older(self, current: str) -> str | None:
        """Step back; the text in the prompt is kept as a draft. None at the oldest."""
        if self._at is None:
            if not self._entries:
                return None
            self._draft = current
            self._at = len(self._entries) - 1
            return self._entries[self._at]
        if self._at == 0:
            return None
        self._at -= 1
        return self._entries[self._at]

    def newer(self) -> str | None:
        """Step forward, at last to the draft; None when it is already shown."""
        if self._at is None:
            return None
        self._at += 1
        if self._at >= len(self._entries):
            draft = self._draft
            self.leave()
            return draft
        return self._entries[self._at]

    def leave(self) -> None:
        """Forget the place: the next step back begins at the newest."""
        self._at = None
        self._draft = ""

    def search(self, query: str) -> Iterator[str]:
        """Yield different prompts that contain `query`, newest first, case ignored."""
        seen: set[str] = set()
        wanted = query.casefold()
        for entry in reversed(self._entries):
            if wanted in entry.casefold() and entry not in seen:
                seen.add(entry)
                yield entry
