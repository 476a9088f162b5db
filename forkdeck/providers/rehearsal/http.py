"""HTTP/1.1 as far as a loopback Messages server needs it: parse requests, write answers.

Used by the server alone. Bytes come from one client connection and are hostile until parsed;
every limit has a status of its own.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

HEAD_LIMIT: Final = 64 * 1024
"""Most bytes of request line and headers."""

BODY_LIMIT: Final = 32 * 1024 * 1024
"""Most bytes of a request body, as at the real endpoint."""

_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    411: "Length Required",
    413: "Content Too Large",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
    529: "Overloaded",
}
_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")


class HttpRefused(Exception):
    """A request that is not answered as asked; the connection is closed after the answer.

    Args:
        status: HTTP status.
        why: One sentence for the client.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


@dataclass(frozen=True)
class Request:
    """One parsed request; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def keeps_alive(self) -> bool:
        """Whether the client wants to use the connection again."""
        return "close" not in self.headers.get("connection", "").lower()


class Connection:
    """One client connection: reads requests, writes answers, knows when the client left.

    Args:
        reader: Stream of the client's bytes.
        writer: Stream to the client.
        gone: Set when the client closed or reset the connection.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gone: asyncio.Event
    ) -> None:
        self._reader = reader
        self._writer = writer
        self.gone = gone

    async def read_request(self, idle_s: float) -> Request | None:
        """Return the next request, or None when the client is done or silent too long.

        Args:
            idle_s: Seconds to wait for the first and for the last byte of a head.

        Raises:
            HttpRefused: The bytes are no request this server takes.
        """
        try:
            async with asyncio.timeout(idle_s):
                head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as cut:
            if cut.partial:
                raise HttpRefused(400, "The request head is incomplete.") from cut
            return None
        except asyncio.LimitOverrunError as long:
            raise HttpRefused(431, f"A request head has at most {HEAD_LIMIT} bytes.") from long
        except TimeoutError:
            return None
        method, path, headers = _parse_head(head)
        body = await self._read_body(method, headers, idle_s)
        return Request(method, path, headers, body)

    async def _read_body(self, method: str, headers: Mapping[str, str], idle_s: float) -> bytes:
        if "transfer-encoding" in headers:
            raise HttpRefused(501, "Send a Content-Length; chunked requests are not taken.")
        text = headers.get("content-length")
        if text is None:
            if method in ("GET", "HEAD"):
                return b""
            raise HttpRefused(411, "Send a Content-Length.")
        if not (text.isascii() and text.isdigit() and len(text) <= 12):
            raise HttpRefused(400, "Content-Length is no number.")
        length = int(text)
        if length > BODY_LIMIT:
            raise HttpRefused(413, f"A request has at most {BODY_LIMIT} bytes.")
        if headers.get("expect", "").lower() == "100-continue":
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            async with asyncio.timeout(idle_s):
                return await self._reader.readexactly(length)
        except asyncio.IncompleteReadError as cut:
            raise HttpRefused(400, "The body is shorter than its Content-Length.") from cut
        except TimeoutError as slow:
            raise HttpRefused(408, "The body did not arrive in time.") from slow

    async def answer(
        self,
        status: int,
        body: bytes,
        *,
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
        close: bool = False,
    ) -> None:
        """Write a whole answer with a length."""
        fields = {"content-type": kind, "content-length": str(len(body)), **(headers or {})}
        if close:
            fields["connection"] = "close"
        self._writer.write(_head(status, fields) + body)
        await self._writer.drain()

    async def begin_stream(self, headers: Mapping[str, str]) -> None:
        """Write the head of a chunked event stream."""
        fields = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "transfer-encoding": "chunked",
            **headers,
        }
        self._writer.write(_head(200, fields))
        await self._writer.drain()

    async def chunk(self, data: bytes) -> None:
        """Write one chunk of a stream; it leaves at once."""
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end_stream(self) -> None:
        """End a stream in good order."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def reset(self) -> None:
        """Break the connection so that the client sees a reset."""
        raw: Any = self._writer.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close the connection; a client that is gone already is no error."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except (ConnectionError, TimeoutError):
            return


def _head(status: int, fields: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    lines = head[:-4].decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3:
        raise HttpRefused(400, "The request line is malformed.")
    method, path, version = parts
    if version != "HTTP/1.1":
        raise HttpRefused(505, "Only HTTP/1.1 is spoken here.")
    if not (method.isascii() and method.isalpha()) or not path.startswith("/"):
        raise HttpRefused(400, "The request line is malformed.")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or not _TOKEN.issuperset(name) or "\n" in value or "\0" in value:
            raise HttpRefused(400, "A header is malformed.")
        if name in headers and name in ("content-length", "host", "authorization", "origin"):
            raise HttpRefused(400, f"The header {name} stands twice.")
        headers[name] = value.strip()
    return method.upper(), path.partition("?")[0], headers


def to_bytes(value: Any) -> bytes:
    """Encode a JSON answer, compact, keys in their order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
