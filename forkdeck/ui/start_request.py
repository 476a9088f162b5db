"""What the app opens first, and what it is told about the terminal; plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class StartRequest:
    """What to open: the start screen, a live deck, the demo, a saved session, or a replay.

    ``target`` is the session to go on with, or the session or file to replay. ``prompt`` is
    sent once a live deck is open.
    """

    kind: Literal["start", "live", "demo", "resume", "replay", "sessions"] = "start"
    target: str = ""
    prompt: str = ""


def speaks_utf8(environ: Mapping[str, str]) -> bool:
    """Tell whether the locale of `environ` can show more than ASCII.

    ``LC_ALL`` wins over ``LC_CTYPE`` over ``LANG``; the ``C`` locale without a codeset cannot.
    """
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        value = environ.get(name, "")
        if value:
            return value.lower().replace("-", "").partition(".")[2].startswith("utf8")
    return False
