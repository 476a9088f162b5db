"""Write the prompt in ``$VISUAL`` or ``$EDITOR``, while everything else goes on."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from textual.app import App, SuspendNotSupported

from forkdeck.errors import UsageError


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """Return the person's editor as an argument list.

    Raises:
        UsageError: None is set, or its value cannot be read.
    """
    text = environ.get("VISUAL") or environ.get("EDITOR") or ""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"$EDITOR cannot be read: {error}.") from error
    if not words:
        raise UsageError("No editor is set.", "Set EDITOR, such as: export EDITOR=vim")
    return words


async def edit(app: App[int], text: str, environ: Mapping[str, str]) -> str:
    """Return `text` as it was left in the editor; the loop runs on meanwhile.

    Raises:
        UsageError: There is no editor, it failed, or this terminal cannot be handed over.
    """
    command = editor_command(environ)
    path = await asyncio.to_thread(_write, text)
    try:
        # No frame may be drawn while the terminal is the editor's.
        with app.suspend(), app.batch_update():
            process = await asyncio.create_subprocess_exec(*command, str(path), env=dict(environ))
            code = await process.wait()
        if code != 0:
            raise UsageError(f"{command[0]} ended with {code}.", "The prompt is as it was.")
        return (await asyncio.to_thread(path.read_text, "utf-8", "replace")).rstrip("\n")
    except SuspendNotSupported as error:
        raise UsageError("This terminal cannot be handed to an editor.") from error
    except OSError as error:
        raise UsageError(f"{command[0]} could not be run: {error.strerror}.") from error
    finally:
        await asyncio.to_thread(path.unlink, missing_ok=True)


def _write(text: str) -> Path:
    descriptor, name = tempfile.mkstemp(prefix="forkdeck-prompt-", suffix=".md")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(name)
