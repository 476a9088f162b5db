"""Copy to the clipboard: OSC 52, then tmux, then a file; says which way it went.

Whether a terminal takes OSC 52 cannot be asked, so it is used where it usually works, and the
message names the way. The screen supplies the writer to the terminal.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

OSC52_LIMIT_BYTES = 74_994
"""Longest text that common terminals take: 100,000 bytes of sequence after base64."""

_TMUX_TIMEOUT_S = 3.0
_NO_OSC52 = frozenset(("dumb", "linux", ""))


@dataclass(frozen=True, slots=True)
class Copied:
    """What became of a copy; `text` is for the strip."""

    way: str
    text: str


def osc52(text: str, *, in_tmux: bool) -> str:
    """Return the sequence that sets the clipboard, wrapped to pass through tmux."""
    payload = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    sequence = f"\x1b]52;c;{payload}\x07"
    if not in_tmux:
        return sequence
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


async def copy(
    text: str,
    *,
    write: Callable[[str], None],
    environ: Mapping[str, str],
    fallback: Path,
) -> Copied:
    """Copy `text` by the first way that works.

    Args:
        text: What to copy.
        write: Writes a sequence to the terminal.
        environ: The environment, to know the terminal and tmux.
        fallback: File to write when nothing else works; mode 0600.
    """
    size = f"{len(text):,} characters"
    in_tmux = bool(environ.get("TMUX"))
    fits = len(text.encode("utf-8", "replace")) <= OSC52_LIMIT_BYTES
    if fits and environ.get("TERM", "") not in _NO_OSC52:
        write(osc52(text, in_tmux=in_tmux))
        if not in_tmux:
            return Copied("osc52", f"copied {size} (OSC 52)")
        # tmux may be set to swallow the sequence: its own buffer holds the text in any case.
        buffered = await _tmux_buffer(text)
        way = "OSC 52 and the tmux buffer" if buffered else "OSC 52 through tmux"
        return Copied("osc52", f"copied {size} ({way})")
    if in_tmux and await _tmux_buffer(text):
        return Copied("tmux", f"copied {size} (tmux buffer; prefix ] pastes)")
    return await asyncio.to_thread(_to_file, text, fallback, size)


async def _tmux_buffer(text: str) -> bool:
    try:
        process = await asyncio.create_subprocess_exec(
            "tmux", "load-buffer", "-",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return False
    try:
        async with asyncio.timeout(_TMUX_TIMEOUT_S):
            await process.communicate(text.encode("utf-8", "replace"))
    except TimeoutError:
        process.kill()
        await process.wait()
        return False
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return process.returncode == 0


def _to_file(text: str, path: Path, size: str) -> Copied:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        return Copied("none", f"not copied: no clipboard, and {path} cannot be written ({error})")
    return Copied("file", f"wrote {size} to {path} (no clipboard here)")
