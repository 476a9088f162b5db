"""Text of files with what must be kept when it is written back: encoding, BOM and line ends."""

from __future__ import annotations

import codecs
from typing import Literal

import msgspec

from forkdeck.errors import ToolError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SNIFF_BYTES = 8192


class Decoded(msgspec.Struct, frozen=True):
    """A file's text, with line feeds for line ends where the file's are uniform.

    Args:
        text: The text, without the BOM.
        encoding: Codec name; ``latin-1`` when it is not valid UTF-8.
        bom: The byte order mark to put back.
        newline: Line end of the whole file, or ``mixed`` (then the text is as it stands).
    """

    text: str
    encoding: str
    bom: bytes
    newline: Literal["\n", "\r\n", "mixed"]

    def encode(self, text: str) -> bytes:
        """Return the bytes of a changed text in the file's own manner.

        Raises:
            ToolError: The encoding cannot hold a character of it.
        """
        if self.newline == "\r\n":
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"The file is in {self.encoding}, which cannot hold {error.object[error.start]!r}.",
                "Use characters of that encoding, or convert the file first.",
            ) from error


def decode(data: bytes) -> Decoded | None:
    """Return a file's text, or None when it is binary."""
    bom, encoding = b"", "utf-8"
    for mark, name in _BOMS:
        if data.startswith(mark):
            bom, encoding = mark, name
            break
    body = data[len(bom) :]
    if not encoding.startswith("utf-16") and b"\0" in body[:_SNIFF_BYTES]:
        return None
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        if bom:
            return None
        # Every byte has a character in Latin-1, so it goes back as it came.
        encoding = "latin-1"
        text = body.decode(encoding)
    breaks, windows = text.count("\n"), text.count("\r\n")
    if not windows:
        return Decoded(text, encoding, bom, "\n")
    if windows == breaks:
        return Decoded(text.replace("\r\n", "\n"), encoding, bom, "\r\n")
    return Decoded(text, encoding, bom, "mixed")
