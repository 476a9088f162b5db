"""One message request from its bytes to its last frame: check, look up, answer, note down.

Called by the server for ``POST /v1/messages``. Reads the scenario through the script player,
the cache and the faults; writes to the connection and to the journal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from forkdeck.model.ports import Clock
from forkdeck.model.raw import JsonDict
from forkdeck.providers.rehearsal import signatures
from forkdeck.providers.rehearsal.cache import Plan, PromptCache
from forkdeck.providers.rehearsal.checks import check_body
from forkdeck.providers.rehearsal.conversation import Conversation
from forkdeck.providers.rehearsal.diagnosis import diagnose
from forkdeck.providers.rehearsal.errors import ApiRefused, error_body, invalid
from forkdeck.providers.rehearsal.faults import Fault, Frame, Refusal, refusal_of, reshape
from forkdeck.providers.rehearsal.http import Connection, to_bytes
from forkdeck.providers.rehearsal.journal import Entry, Journal
from forkdeck.providers.rehearsal.limits import RateLimits
from forkdeck.providers.rehearsal.models import Model
from forkdeck.providers.rehearsal.pace import ClientGone, Pace
from forkdeck.providers.rehearsal.positions import Position, blocks_of, level_digests, positions
from forkdeck.providers.rehearsal.reply import Reply
from forkdeck.providers.rehearsal.scenario import Scenario
from forkdeck.providers.rehearsal.script import reply_to
from forkdeck.providers.rehearsal.stream import Envelope, Rendered, render

PrefixCheck = Literal["error", "drop_block", "recorded"]
"""What happens to replayed thinking that does not stand where it was written."""


@dataclass
class House:
    """What all exchanges of one server share."""

    scenario: Scenario
    clock: Clock
    cache: PromptCache
    journal: Journal
    limits: RateLimits
    speed: float
    prefix_check: PrefixCheck = "error"
    effort_at_start: bool = True
    faults: dict[int, Fault] = field(default_factory=dict[int, Fault])
    """By the number of the message request."""
    used: dict[str, int] = field(default_factory=dict[str, int])
    """How often an equal request got its scripted fault."""


def parse_json(data: bytes) -> Any:
    """Parse a request body; key order is kept, as the cache needs it.

    Raises:
        ApiRefused: It is no JSON.
    """
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as wrong:
        raise invalid("The request body is not valid JSON") from wrong


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


@dataclass(frozen=True)
class Examined:
    """A request that passed every check."""

    body: JsonDict
    found: list[Position]
    plan: Plan
    chain: signatures.Chain


def examine(house: House, body: Any, start_ms: int, notes: list[str]) -> Examined:
    """Check a request, place its marks and look up its prefix; changes nothing.

    Raises:
        ApiRefused: What the API would answer.
    """
    checked, model = check_body(body)
    chain, wrong = signatures.walk(checked)
    if wrong:
        checked, chain = _judge_thinking(house, checked, chain, wrong, notes)
    found = positions(checked, effort_at_start=house.effort_at_start)
    _check_context(found, model)
    plan = house.cache.plan(found, model.minimum, start_ms)
    return Examined(checked, found, plan, chain)


def _check_context(found: list[Position], model: Model) -> None:
    total = found[-1].tokens
    if total > model.context:
        raise invalid(f"prompt is too long: {total} tokens > {model.context} maximum")


def _judge_thinking(
    house: House,
    body: JsonDict,
    chain: signatures.Chain,
    wrong: Sequence[signatures.Fault],
    notes: list[str],
) -> tuple[JsonDict, signatures.Chain]:
    dropped: set[tuple[int, int]] = set()
    for fault in wrong:
        where = f"messages.{fault.message}.content.{fault.block}"
        if not fault.foreign and house.prefix_check == "error":
            raise invalid(f"{where}: {fault.why}.")
        notes.append(f"{where}: {fault.why}")
        if fault.foreign or house.prefix_check == "drop_block":
            dropped.add((fault.message, fault.block))
    if not dropped:
        return body, chain
    messages: list[JsonDict] = []
    for number, message in enumerate(body["messages"]):
        blocks = blocks_of(message["content"])
        kept = [block for index, block in enumerate(blocks) if (number, index) not in dropped]
        if kept:
            messages.append({**message, "content": kept})
    left = {**body, "messages": messages}
    return left, signatures.walk(left)[0]


class Exchange:
    """One message request and its answer.

    Args:
        house: What the server shares.
        connection: Where the answer goes.
        headers: The request's headers.
        data: The request's body.
    """

    def __init__(
        self, house: House, connection: Connection, headers: JsonDict, data: bytes
    ) -> None:
        self._house = house
        self._connection = connection
        self._headers = headers
        self._data = data
        self._received = house.clock.monotonic_ms()
        self._pace = Pace(house.clock, house.speed, connection.gone)

    async def run(self) -> bool:
        """Answer; returns whether the connection can be used again.

        Raises:
            ApiRefused: The server answers with this error.
            ClientGone: The client left.
        """
        entry = self._house.journal.open(self._received, self._headers)
        try:
            body = parse_json(self._data)
            entry.body = cast("JsonDict", body) if isinstance(body, dict) else {}
            return await self._answer(entry, body)
        except ApiRefused as refused:
            entry.status, entry.error = refused.status, refused.message
            raise
        except (ClientGone, ConnectionError):
            entry.aborted = True
            raise
        finally:
            entry.ended_ms = self._house.clock.monotonic_ms()

    async def _answer(self, entry: Entry, body: Any) -> bool:
        seen = examine(self._house, body, self._received, entry.notes)
        reply, talk = reply_to(self._house.scenario, seen.body)
        entry.role, entry.handle, entry.source = talk.role, talk.handle, reply.source
        entry.run_number = self._house.journal.count(talk.role, talk.handle)
        entry.levels = level_digests(seen.found)
        entry.digests = tuple(place.digest for place in seen.found)
        fault = self._fault(entry, talk, reply, seen)
        entry.fault = fault.kind if fault else ""
        refusal = refusal_of(fault) if fault else None
        if refusal is None:
            refusal = self._house.limits.admit(seen.plan.total - seen.plan.read)
        if refusal is not None:
            return await self._refuse(entry, refusal)
        if fault is not None and fault.kind == "reset_before":
            self._connection.reset()
            return False
        if fault is not None and fault.kind == "slow_first_byte":
            await self._pace.hold(fault.seconds)
        return await self._speak(entry, seen, reply, fault)

    def _fault(
        self, entry: Entry, talk: Conversation, reply: Reply, seen: Examined
    ) -> Fault | None:
        planned = self._house.faults.pop(entry.number, None)
        if planned is not None:
            return planned
        names = ("parent",) if talk.role == "parent" else (talk.handle, talk.name)
        for each in self._house.scenario.run_faults:
            if each.hits(names, entry.run_number):
                return each.fault
        if reply.fault is None:
            return None
        key = f"{seen.found[-1].digest}|{reply.source}"
        used = self._house.used.get(key, 0)
        if used >= reply.fault.times:
            return None
        self._house.used[key] = used + 1
        return reply.fault

    async def _refuse(self, entry: Entry, refusal: Refusal) -> bool:
        entry.status, entry.error = refusal.status, refusal.message or "HTML"
        if refusal.html:
            page = refusal.html.encode()
            await self._connection.answer(refusal.status, page, kind="text/html")
            return True
        request_id = request_id_of(entry.number)
        headers = {"request-id": request_id, **refusal.headers}
        answer = to_bytes(error_body(refusal.kind, refusal.message, request_id))
        await self._connection.answer(refusal.status, answer, headers=headers)
        return True

    async def _speak(self, entry: Entry, seen: Examined, reply: Reply, fault: Fault | None) -> bool:
        digest = seen.found[-1].digest
        mark = hashlib.sha256(f"{digest}{entry.number}".encode()).hexdigest()[:20]
        envelope = Envelope(
            message_id=f"msg_{mark}",
            model=str(seen.body["model"]),
            plan=seen.plan,
            digest=digest,
            diagnostics=diagnose(seen.body, seen.found, seen.plan.read, self._house.journal),
        )
        written = render(reply, seen.body, envelope, seen.chain)
        entry.usage, entry.message_id = written.message["usage"], envelope.message_id
        entry.stop_reason, entry.status = str(written.message["stop_reason"]), 200
        headers = {"request-id": request_id_of(entry.number), **self._house.limits.headers()}
        if not seen.body.get("stream"):
            return await self._speak_whole(entry, seen.plan, written, headers)
        frames = reshape(fault, written.frames) if fault else written.frames
        return await self._write(entry, seen.plan, frames, headers)

    async def _speak_whole(
        self, entry: Entry, plan: Plan, written: Rendered, headers: dict[str, str]
    ) -> bool:
        await self._pace.until(written.frames[-1].due_ms)
        self._first_byte(entry, plan)
        await self._connection.answer(200, to_bytes(written.message), headers=headers)
        return True

    async def _write(
        self, entry: Entry, plan: Plan, frames: Sequence[Frame], headers: dict[str, str]
    ) -> bool:
        for number, frame in enumerate(frames):
            await self._pace.until(frame.due_ms)
            if number == 0:
                self._first_byte(entry, plan)
                await self._connection.begin_stream(headers)
            if not await self._write_frame(frame):
                return False
        await self._connection.end_stream()
        return True

    async def _write_frame(self, frame: Frame) -> bool:
        """Write one frame; False when it ended the connection or the stream."""
        if frame.act == "reset":
            self._connection.reset()
            return False
        if frame.act == "end":
            await self._connection.end_stream()
            return False
        if frame.act == "stall":
            await self._pace.hold(frame.seconds)
            return True
        await self._connection.chunk(frame.data())
        return True

    def _first_byte(self, entry: Entry, plan: Plan) -> None:
        self._house.cache.commit(plan)
        entry.first_byte_ms = self._house.clock.monotonic_ms()


def request_id_of(number: int) -> str:
    """Return the ``request-id`` of a request by its number."""
    return f"req_rehearsal_{number:06d}"
