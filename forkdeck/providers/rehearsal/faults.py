"""Faults on demand: what a client must survive, per request or by scenario.

A fault either replaces the whole answer (`refusal_of`) or reshapes the stream of frames that
an answer is written as (`reshape`). Pure functions; the server carries them out.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

from forkdeck.errors import ConfigError
from forkdeck.model.raw import JsonDict

Act = Literal["reset", "end", "stall"]

KINDS: Final = {
    "rate_limited": "429 with Retry-After when retry_after_s is set, without it otherwise",
    "spend_limit": "429 without Retry-After that waiting does not help",
    "overloaded": "529",
    "server_error": "500",
    "html_502": "502 with an HTML page, as proxies answer",
    "unauthorized": "401",
    "forbidden": "403",
    "bad_request": "400",
    "context_exceeded": "400, the prompt is too long",
    "too_large": "413",
    "reset_before": "the connection is reset before an answer",
    "slow_first_byte": "the first byte comes `seconds` late",
    "error_event": "an overloaded_error event after `after` events",
    "reset": "the connection is reset after `after` events",
    "clean_end": "the stream ends in good order after `after` events, without message_stop",
    "half_json": "a tool call's input stops in the middle, then a clean end",
    "half_json_stop": "a tool call's input stops in the middle, then a whole ending",
    "stall": "silence of `seconds` after `after` events",
    "slow_chunks": "`seconds` of silence before every event after `after` events",
    "malformed_line": "a data line that is no JSON after `after` events",
    "missing_usage": "no usage anywhere",
    "null_cache": "cache fields are null, the whole prompt counts as input",
    "unknown_events": "an unknown event, block type and delta type stand in the stream",
    "unnamed_events": "records without an event line",
    "unsigned_thinking": "thinking without a signature",
    "no_message_start": "message_start is left out",
    "unknown_stop_reason": "a stop reason nobody knows",
    "refusal": "a refusal in mid-stream after `after` events",
    "context_stop": "stop reason model_context_window_exceeded",
    "pause_turn": "stop reason pause_turn",
}
"""Every kind and what the client sees."""


@dataclass(frozen=True)
class Fault:
    """One fault.

    ``after`` counts events already written; ``seconds`` are real ones, not scaled; ``times``
    says how often an equal request gets it.
    """

    kind: str
    retry_after_s: float | None = None
    after: int = 4
    seconds: float = 3600
    times: int = 1
    message: str = ""

    @classmethod
    def parse(cls, value: Any, where: str) -> Fault:
        """Read a fault from a scenario's table, or from its kind alone.

        Raises:
            ConfigError: An unknown kind or field, or a value of the wrong type.
        """
        fields = cast("JsonDict", value) if isinstance(value, dict) else {"kind": value}
        known = {"kind", "retry_after_s", "after", "seconds", "times", "message"}
        extra = sorted(set(fields) - known)
        if extra:
            raise unknown(where, "fault field", extra[0], sorted(known))
        if fields.get("kind") not in KINDS:
            raise unknown(where, "fault", str(fields.get("kind")), KINDS)
        for key, item in fields.items():
            wanted = str if key in ("kind", "message") else int | float
            if not isinstance(item, wanted) or isinstance(item, bool):
                raise ConfigError(f"{where}: fault field {key} has the wrong type.")
        return cls(**fields)


@dataclass(frozen=True)
class RunFault:
    """A fault of one run's own request.

    Attributes:
        run: ``parent``, a fork's handle, or the name of its task.
        request: Number among the requests of that run, from 1; a request that is sent again
            counts again, and ``times`` of the fault says how many in a row get it. The server
            counts for as long as it runs: a second session's ``f1`` goes on where the first
            one's ended, so such faults want a server of their own.
        fault: The fault.
    """

    run: str
    request: int
    fault: Fault

    def hits(self, names: Sequence[str], request: int) -> bool:
        """Tell whether the run with these names gets it at its request of this number."""
        last = self.request + max(1, self.fault.times)
        return self.run in names and self.request <= request < last


def unknown(where: str, what: str, given: str, known: Iterable[str]) -> ConfigError:
    """Return the error of a name that means nothing, with the nearest one and all that do."""
    names = list(known)
    near = difflib.get_close_matches(given, names, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ConfigError(f"{where}: unknown {what} {given!r}.{hint}", f"Known: {', '.join(names)}.")


@dataclass(frozen=True)
class Frame:
    """One piece of a stream: an event, or an act on the connection.

    ``due_ms`` is when it leaves, counted from the request's arrival.
    """

    due_ms: float
    event: JsonDict | None = None
    raw: bytes = b""
    """Bytes to be written instead of the event."""
    named: bool = True
    act: Act | None = None
    seconds: float = 0

    def data(self) -> bytes:
        """Return the frame as an SSE record."""
        if self.event is None:
            return self.raw
        body = json.dumps(self.event, ensure_ascii=False, separators=(",", ":"))
        name = f"event: {self.event['type']}\n" if self.named else ""
        return f"{name}data: {body}\n\n".encode("utf-8", "replace")


@dataclass(frozen=True)
class Refusal:
    """An answer that is no message at all."""

    status: int
    kind: str
    message: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    html: str = ""


_REFUSALS: Final = {
    "spend_limit": (429, "rate_limit_error", "You have reached your monthly spend limit."),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "server_error": (500, "api_error", "Internal server error"),
    "unauthorized": (401, "authentication_error", "invalid bearer token"),
    "forbidden": (403, "permission_error", "Your account may not use this."),
    "bad_request": (400, "invalid_request_error", "The request was refused."),
    "too_large": (413, "request_too_large", "Request exceeds the maximum size"),
    "context_exceeded": (
        400,
        "invalid_request_error",
        "prompt is too long: 1000001 tokens > 1000000 maximum",
    ),
}
_HTML: Final = (
    "<html><head><title>502 Bad Gateway</title></head>"
    "<body><h1>502 Bad Gateway</h1><hr>gateway</body></html>"
)


def refusal_of(fault: Fault) -> Refusal | None:
    """Return the answer that replaces the message, or None when the stream is what breaks."""
    if fault.kind == "html_502":
        return Refusal(502, "", "", html=_HTML)
    if fault.kind == "rate_limited":
        headers: dict[str, str] = {}
        if fault.retry_after_s is not None:
            headers["retry-after"] = f"{fault.retry_after_s:g}"
        text = fault.message or "This request would exceed your rate limit."
        return Refusal(429, "rate_limit_error", text, headers)
    if fault.kind not in _REFUSALS:
        return None
    status, kind, text = _REFUSALS[fault.kind]
    return Refusal(status, kind, fault.message or text)


def reshape(fault: Fault, frames: Sequence[Frame]) -> list[Frame]:
    """Return the frames of an answer as the fault leaves them."""
    if fault.kind == "slow_chunks":
        return _slowed(fault, frames)
    if fault.kind in _CUTS:
        return _cut(fault, frames)
    if fault.kind in _SHAPES:
        return [after for frame in frames for after in _shaped(fault.kind, frame)]
    if fault.kind == "refusal":
        return _refused(fault, frames)
    if fault.kind in ("half_json", "half_json_stop"):
        return _half_json(fault, frames)
    return list(frames)


_CUTS: Final = ("error_event", "reset", "clean_end", "stall", "malformed_line")


def _cut(fault: Fault, frames: Sequence[Frame]) -> list[Frame]:
    cut = min(max(fault.after, 0), max(len(frames) - 1, 0))
    kept = list(frames[:cut])
    due = kept[-1].due_ms if kept else 0.0
    if fault.kind == "stall":
        rest = [replace(frame) for frame in frames[cut:]]
        return [*kept, Frame(due, act="stall", seconds=fault.seconds), *rest]
    if fault.kind == "reset":
        return [*kept, Frame(due, act="reset")]
    if fault.kind == "malformed_line":
        kept.append(Frame(due, raw=b'event: content_block_delta\ndata: {"type": "content_\n\n'))
    if fault.kind == "error_event":
        error = {"type": "overloaded_error", "message": fault.message or "Overloaded"}
        kept.append(Frame(due, {"type": "error", "error": error}))
    return [*kept, Frame(due, act="end")]


def _slowed(fault: Fault, frames: Sequence[Frame]) -> list[Frame]:
    """Put a silence before every frame but the first ones."""
    made: list[Frame] = []
    for number, frame in enumerate(frames):
        if number > 0 and number >= fault.after:
            made.append(Frame(frame.due_ms, act="stall", seconds=fault.seconds))
        made.append(frame)
    return made


def _delta_kind(event: JsonDict) -> str:
    delta: JsonDict = event.get("delta") or {}
    return str(delta.get("type", ""))


def _half_json(fault: Fault, frames: Sequence[Frame]) -> list[Frame]:
    """Stop a call's input after its first piece that is no whole JSON."""
    kept: list[Frame] = []
    index: int | None = None
    for frame in frames:
        event = frame.event or {}
        if _delta_kind(event) == "input_json_delta" and index is None:
            delta: JsonDict = event["delta"]
            if not delta["partial_json"]:
                kept.append(frame)
                continue
            index = event["index"]
            text = str(delta["partial_json"])
            half = {**delta, "partial_json": text[: max(1, len(text) // 2)]}
            kept.append(replace(frame, event={**event, "delta": half}))
            if fault.kind == "half_json":
                return [*kept, Frame(frame.due_ms, act="end")]
        elif _delta_kind(event) != "input_json_delta" or event["index"] != index:
            kept.append(frame)
    return kept


def _refused(fault: Fault, frames: Sequence[Frame]) -> list[Frame]:
    """Break off and refuse, in an answer that is whole by its form."""
    kept: list[Frame] = []
    opened: int | None = None
    for frame in frames[: max(fault.after, 2)]:
        event = frame.event or {}
        if event.get("type") in ("message_delta", "message_stop"):
            break
        if event.get("type") == "content_block_start":
            opened = event["index"]
        elif event.get("type") == "content_block_stop":
            opened = None
        kept.append(frame)
    due = kept[-1].due_ms if kept else 0.0
    if opened is not None:
        kept.append(Frame(due, {"type": "content_block_stop", "index": opened}))
    details = {"type": "refusal", "category": "cyber", "explanation": fault.message or None}
    delta = {"stop_reason": "refusal", "stop_sequence": None, "stop_details": details}
    kept.append(
        Frame(due, {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 8}})
    )
    return [*kept, Frame(due, {"type": "message_stop"})]


_SHAPES: Final = (
    "missing_usage",
    "null_cache",
    "unknown_events",
    "unnamed_events",
    "unsigned_thinking",
    "no_message_start",
    "unknown_stop_reason",
    "context_stop",
    "pause_turn",
)
_STOPS: Final = {
    "unknown_stop_reason": "something_new",
    "context_stop": "model_context_window_exceeded",
    "pause_turn": "pause_turn",
}
_CACHE_FIELDS: Final = ("cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation")


def _shaped(kind: str, frame: Frame) -> list[Frame]:
    event = frame.event or {}
    name = event.get("type")
    if kind == "no_message_start" and name == "message_start":
        return []
    if kind == "unnamed_events":
        return [replace(frame, named=False)]
    if kind == "unknown_events" and name == "message_start":
        return [frame, *_strangers(frame.due_ms)]
    if kind == "unknown_events" and "index" in event:
        return [replace(frame, event={**event, "index": event["index"] + 1})]
    if kind == "unsigned_thinking" and _delta_kind(event) == "signature_delta":
        return []
    if kind in _STOPS and name == "message_delta":
        delta = {**event["delta"], "stop_reason": _STOPS[kind]}
        return [replace(frame, event={**event, "delta": delta})]
    if kind in ("missing_usage", "null_cache"):
        return [replace(frame, event=_without_usage(kind, event))]
    return [frame]


STRANGER: Final[JsonDict] = {"type": "hologram", "scene": "none"}
"""The block of a kind that no client knows; the server takes it back as it sent it."""


def _strangers(due: float) -> list[Frame]:
    """Return events, blocks and deltas of a kind that no client knows; they take index 0."""
    return [
        Frame(due, {"type": "weather_report", "sky": "clear"}),
        Frame(
            due,
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": STRANGER,
            },
        ),
        Frame(
            due,
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "hologram_delta", "light": "blue"},
            },
        ),
        Frame(due, {"type": "content_block_stop", "index": 0}),
    ]


def _without_usage(kind: str, event: JsonDict) -> JsonDict:
    if event.get("type") == "message_start":
        message: JsonDict = event["message"]
        return {**event, "message": _stripped(kind, message)}
    if event.get("type") == "message_delta":
        return _stripped(kind, event)
    return event


def _stripped(kind: str, holder: JsonDict) -> JsonDict:
    if kind == "missing_usage":
        return {key: value for key, value in holder.items() if key != "usage"}
    usage: JsonDict = {**holder["usage"], **dict.fromkeys(_CACHE_FIELDS)}
    if "input_tokens" in usage:
        # Who counts no cache counts the whole prompt as input.
        counted = ("input_tokens", *_CACHE_FIELDS[:2])
        usage["input_tokens"] = sum(holder["usage"].get(name) or 0 for name in counted)
    return {**holder, "usage": usage}
