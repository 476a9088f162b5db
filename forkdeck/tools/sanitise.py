"""Makes command output fit for a screen and a log: no terminal control sequence survives.

Used by `bash` for the text of the model and for progress. File contents are not changed by it:
the model must see what stands in a file, and the screen neutralises on its own.
"""

from __future__ import annotations

import re

_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|[\x1b]\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"  # OSC, also an unfinished one
    r"|\x1b[PX^_][^\x1b\x9c]*(?:\x1b\\|\x9c|$)"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"  # other escapes
    r"|\x9b[0-?]*[ -/]*[@-~]",  # 8-bit CSI
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def sanitise(text: str) -> str:
    """Return `text` without control sequences and characters; line breaks and tabs stay.

    A carriage return inside a line means it was overwritten (a progress bar): what was written
    last is kept.
    """
    text = _SEQUENCES.sub("", text).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(_overwritten(line) for line in text.split("\n"))
    return _CONTROLS.sub("\ufffd", text)


def _overwritten(line: str) -> str:
    parts = [part for part in line.split("\r") if part]
    return parts[-1] if parts else ""
