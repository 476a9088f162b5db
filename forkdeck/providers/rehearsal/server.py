"""The rehearsal server: a Messages API on 127.0.0.1, on a port and with a token of its own.

Started by the command line for the demo and for ``forkdeck rehearsal``, and by tests. Requests
come from the SDK; the scenario answers them. Nothing leaves the machine.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from forkdeck.model.ports import Clock
from forkdeck.model.raw import JsonDict
from forkdeck.providers.clock import SystemClock
from forkdeck.providers.rehearsal import auth, models
from forkdeck.providers.rehearsal.cache import PromptCache
from forkdeck.providers.rehearsal.errors import ApiRefused, error_body, invalid
from forkdeck.providers.rehearsal.exchange import (
    Exchange,
    House,
    PrefixCheck,
    examine,
    parse_json,
    request_id_of,
)
from forkdeck.providers.rehearsal.faults import Fault
from forkdeck.providers.rehearsal.http import (
    HEAD_LIMIT,
    Connection,
    HttpRefused,
    Request,
    to_bytes,
)
from forkdeck.providers.rehearsal.journal import Journal
from forkdeck.providers.rehearsal.limits import Limits, RateLimits
from forkdeck.providers.rehearsal.pace import ClientGone
from forkdeck.providers.rehearsal.scenario import Scenario

_HOST: Final = "127.0.0.1"
_IDLE_S: Final = 120.0
"""Seconds a connection may stand idle, or take for one request."""
_MOST_CONNECTIONS: Final = 512


class _Protocol(asyncio.StreamReaderProtocol):
    """A stream protocol that also tells at once when the client leaves."""

    def __init__(self, server: RehearsalServer, loop: asyncio.AbstractEventLoop) -> None:
        self.gone = asyncio.Event()
        self._server = server
        reader = asyncio.StreamReader(limit=HEAD_LIMIT, loop=loop)
        super().__init__(reader, self._connected, loop=loop)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server.serve(Connection(reader, writer, self.gone))

    def eof_received(self) -> bool | None:
        """Count a half-closed connection as gone: no client of the API half-closes."""
        self.gone.set()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the client left."""
        self.gone.set()
        super().connection_lost(exc)


class RehearsalServer:
    """A scripted Messages API.

    Args:
        scenario: What it answers.
        clock: Where cache life times and waits come from.
        port: Port to listen on; 0 takes a free one.
        speed: 2 writes answers twice as fast, 0 without any wait. Only the script is scaled,
            never a fault's own seconds.
        prefix_check: What happens to replayed thinking that was changed or moved.
        effort_at_start: Whether thinking and effort part the whole cache, or messages only.
        token: The bearer token; a new one, when left out.
        limits: What a minute holds; the scenario's, when left out.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        clock: Clock | None = None,
        port: int = 0,
        speed: float = 1.0,
        prefix_check: PrefixCheck = "error",
        effort_at_start: bool = True,
        token: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.scenario = scenario
        self.token = token or auth.new_token()
        self.journal = Journal()
        time = clock or SystemClock()
        self._house = House(
            scenario=scenario,
            clock=time,
            cache=PromptCache(time),
            journal=self.journal,
            limits=RateLimits(limits or scenario.limits, time),
            speed=speed,
            prefix_check=prefix_check,
            effort_at_start=effort_at_start,
            faults=dict(scenario.faults or {}),
        )
        self._wanted_port = port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: list[BaseException] = []
        self._port = 0

    @property
    def port(self) -> int:
        """The port it listens on; 0 before `start`."""
        return self._port

    @property
    def base_url(self) -> str:
        """The address for a client, without ``/v1``."""
        return f"http://{_HOST}:{self._port}"

    def inject(self, fault: Fault | str, request: int | None = None) -> None:
        """Give a fault to one message request.

        Args:
            fault: The fault, or its kind.
            request: The number of the request, from 1; the next one, when left out.
        """
        number = self.journal.requests + 1 if request is None else request
        self._house.faults[number] = (
            Fault.parse(fault, "inject") if isinstance(fault, str) else fault
        )

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: The port is taken.
        """
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Protocol(self, loop), _HOST, self._wanted_port
        )
        self._port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening and end every connection; safe to call twice.

        Raises:
            BaseException: What broke a connection's task, if any did: a fault of this server
                is never silent.
        """
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._failures:
            raise self._failures.pop()

    def serve(self, connection: Connection) -> None:
        """Take a new connection; called by the protocol."""
        task = asyncio.get_running_loop().create_task(self._connection(connection))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._failures.append(failure)

    async def _connection(self, connection: Connection) -> None:
        try:
            if len(self._tasks) > _MOST_CONNECTIONS:
                await self._refuse(connection, 503, "api_error", "Too many connections.", True)
                return
            while await self._one(connection):
                pass
        except (ConnectionError, ClientGone):
            pass
        finally:
            await connection.close()

    async def _one(self, connection: Connection) -> bool:
        """Answer one request; False when the connection is done."""
        try:
            request = await connection.read_request(_IDLE_S)
        except HttpRefused as wrong:
            kind = "request_too_large" if wrong.status == 413 else "invalid_request_error"
            await self._refuse(connection, wrong.status, kind, wrong.why, True)
            return False
        if request is None:
            return False
        try:
            auth.check(request.headers, token=self.token, port=self._port)
            again = await self._route(request, connection)
        except ApiRefused as refused:
            await self._refuse(connection, refused.status, refused.kind, refused.message, False)
            again = True
        return again and request.keeps_alive

    async def _refuse(
        self, connection: Connection, status: int, kind: str, message: str, close: bool
    ) -> None:
        request_id = request_id_of(self.journal.requests)
        body = to_bytes(error_body(kind, message, request_id))
        headers = {"request-id": request_id}
        await connection.answer(status, body, headers=headers, close=close)

    async def _route(self, request: Request, connection: Connection) -> bool:
        path, method = request.path.rstrip("/"), request.method
        if path == "/__forkdeck/journal" and method == "GET":
            entries = [entry.public() for entry in self.journal.entries]
            await connection.answer(200, to_bytes({"requests": entries}))
            return True
        if not path.startswith("/v1/"):
            raise ApiRefused(404, "not_found_error", f"There is nothing at {path or '/'}.")
        if not request.headers.get("anthropic-version"):
            raise invalid("anthropic-version: header is required")
        if path == "/v1/messages" and method == "POST":
            headers: JsonDict = dict(request.headers)
            return await Exchange(self._house, connection, headers, request.body).run()
        if path == "/v1/messages/count_tokens" and method == "POST":
            await connection.answer(200, to_bytes(self._count(request.body)))
            return True
        if method == "GET" and (path == "/v1/models" or path.startswith("/v1/models/")):
            await connection.answer(200, to_bytes(_models(path.removeprefix("/v1/models"))))
            return True
        raise ApiRefused(404, "not_found_error", f"There is no {method} {path}.")

    def _count(self, data: bytes) -> JsonDict:
        """Count a request's tokens with the same checks as a message request."""
        body = parse_json(data)
        counted = {"max_tokens": 1, **cast("JsonDict", body)} if isinstance(body, dict) else body
        now = self._house.clock.monotonic_ms()
        return {"input_tokens": examine(self._house, counted, now, []).plan.total}


def _models(name: str) -> JsonDict:
    name = name.strip("/")
    if not name:
        listed = [_model(entry) for entry in models.known()]
        ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]}
        return {"data": listed, "has_more": False, **ends}
    if models.lookup(name) is None:
        raise ApiRefused(404, "not_found_error", f"model: {name}")
    return _model(name)


def _model(name: str) -> JsonDict:
    facts = models.lookup(name) or models.UNKNOWN
    words = name.removeprefix("claude-").split("-")
    shown = f"Claude {words[0].capitalize()} {'.'.join(words[1:])}"
    return {
        "type": "model",
        "id": name,
        "display_name": f"{shown} (scripted)",
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": facts.context,
        "max_tokens": facts.output,
    }
