"""An answer put together from stream events, tolerant where that is safe and strict where not.

Used by `client`, and by anyone with events as plain dicts; knows no SDK and no network. Events it
does not know pass by. A turn is valid only with ``message_stop`` and a stop reason: until
`Accumulator.completed` returns, nothing of it may be executed.

A tool call whose input was cut off by a token or context limit stays in the message (it must be
answered), but its input is replaced by one that no tool accepts, and its id stands in
`Completed.unreadable_calls`. Any other input that is no JSON object makes the stream a cut one.
"""

from __future__ import annotations

import json
from typing import Any, cast

from forkdeck.errors import StreamCut
from forkdeck.model.raw import JsonDict, clean_text, to_raw
from forkdeck.model.stream import CallPart, Completed, Opened, StreamPart, TextPart, ThinkingPart
from forkdeck.providers.usage_fields import UsageFields

UNREADABLE = "input_cut_off"
"""The only key of the input that replaces one that was cut off; no tool takes it."""

LONGEST_ANSWER = 16 * 1024 * 1024
"""Characters of text, thinking and inputs in one answer; no model writes a tenth of it."""

_CUT_REASONS = frozenset(("max_tokens", "model_context_window_exceeded", "refusal"))


class _Block:
    """A content block while it grows."""

    def __init__(self, start: JsonDict) -> None:
        self.value = start
        self.json: list[str] = []
        self.stopped = False

    @property
    def kind(self) -> str:
        return str(self.value.get("type", ""))

    @property
    def is_call(self) -> bool:
        return self.kind.endswith("tool_use")

    @property
    def is_empty_text(self) -> bool:
        return (
            self.kind == "text" and not self.value.get("text") and not self.value.get("citations")
        )

    def append(self, key: str, text: str) -> None:
        """Add text to a field, whatever stood there."""
        old = self.value.get(key)
        self.value[key] = (old if isinstance(old, str) else "") + text


class Accumulator:
    """Takes the events of one answer in order."""

    def __init__(self) -> None:
        self.opened = False
        """Whether ``message_start`` was seen."""
        self.stopped = False
        """Whether ``message_stop`` was seen: nothing follows it."""
        self._blocks: dict[int, _Block] = {}
        self._characters = 0
        self._usage = UsageFields()
        self._id = ""
        self._model = ""
        self._stop_reason: str | None = None
        self._refusal: str | None = None

    @property
    def usage(self) -> UsageFields:
        """What the endpoint has told of the tokens so far."""
        return self._usage

    def feed(self, event: JsonDict) -> list[StreamPart]:
        """Take one event and return what it is for the screen.

        Raises:
            StreamCut: The event contradicts what came before; the answer is lost.
        """
        if self.stopped:
            return []
        match event.get("type"):
            case "message_start":
                return self._start(_dict(event.get("message")))
            case "content_block_start":
                self._start_block(event)
            case "content_block_delta":
                return self._delta(event)
            case "content_block_stop":
                block = self._blocks.get(self._index(event))
                if block is not None:
                    block.stopped = True
            case "message_delta":
                self._message_delta(event)
            case "message_stop":
                self.stopped = True
            case _:
                pass
        return []

    def completed(self) -> Completed:
        """Return the whole answer, once the stream has ended.

        Raises:
            StreamCut: It ended without ``message_stop`` or a stop reason, or a call's input is no
                JSON object.
        """
        if not self.stopped or not self._stop_reason:
            raise cut("The answer ended before it was complete.")
        content: list[JsonDict] = []
        unreadable: list[str] = []
        seen: set[str] = set()
        for block in self._blocks.values():
            # The API refuses an empty text when the message is sent back to it.
            if block.is_empty_text:
                continue
            if block.is_call and not self._close_call(block, seen):
                unreadable.append(str(block.value["id"]))
            _mend(block.value)
            content.append(block.value)
        return Completed(
            message=to_raw({"role": "assistant", "content": content}),
            stop_reason=self._stop_reason,
            usage=self._usage.usage(),
            message_id=self._id,
            refusal=self._refusal,
            unreadable_calls=tuple(unreadable),
        )

    def partial_text(self) -> str:
        """Return the text that arrived so far, for an answer that broke."""
        texts = [str(block.value.get("text", "")) for block in self._blocks.values()]
        return mended("".join(texts))

    def _start(self, message: JsonDict) -> list[StreamPart]:
        name = _text(message.get("id"))
        if self.opened:
            if name == self._id:
                return []
            raise cut("Another answer began in the middle of this one.")
        self.opened = True
        self._id = name
        self._model = _text(message.get("model"))
        self._usage.take(_dict(message.get("usage")))
        content = message.get("content")
        if isinstance(content, list):
            for index, block in enumerate(cast("list[Any]", content)):
                self._blocks[index] = _Block(_copy(block))
        diagnostics = _dict(message.get("diagnostics"))
        reason = _text(_dict(diagnostics.get("cache_miss_reason")).get("type"))
        return [
            Opened(
                message_id=self._id,
                model=self._model,
                usage=self._usage.usage(),
                cache_miss_reason=reason or None,
            )
        ]

    def _start_block(self, event: JsonDict) -> None:
        self._need_start()
        block = _Block(_copy(event.get("content_block")))
        index = event.get("index")
        number = index if isinstance(index, int) else len(self._blocks)
        old = self._blocks.get(number)
        if old is not None and (old.stopped or not old.is_empty_text):
            raise cut("Two parts of the answer claim the same place.")
        self._blocks[number] = block

    def _delta(self, event: JsonDict) -> list[StreamPart]:
        self._need_start()
        delta = _dict(event.get("delta"))
        self._characters += sum(len(text) for text in delta.values() if isinstance(text, str))
        if self._characters > LONGEST_ANSWER:
            raise cut("The answer is longer than any model writes.")
        index = self._index(event)
        kind = delta.get("type")
        block = self._blocks.get(index)
        if block is None:
            block = self._unannounced(index, kind)
        if block is None:
            return []
        match kind:
            case "text_delta":
                text = _text(delta.get("text"))
                block.append("text", text)
                return [TextPart(index, text)] if text else []
            case "thinking_delta":
                text = _text(delta.get("thinking"))
                block.append("thinking", text)
                return [ThinkingPart(index, text)] if text else []
            case "input_json_delta":
                text = _text(delta.get("partial_json"))
                block.json.append(text)
                return [CallPart(index, _text(block.value.get("name")), text)] if text else []
            case "signature_delta":
                block.value["signature"] = _text(delta.get("signature"))
            case "citations_delta":
                given = block.value.get("citations")
                kept = cast("list[Any]", given) if isinstance(given, list) else []
                block.value["citations"] = [*kept, delta.get("citation")]
            case "compaction_delta":
                block.value.update({k: v for k, v in delta.items() if k != "type"})
            case _:
                pass
        return []

    def _unannounced(self, index: int, kind: object) -> _Block | None:
        """Make the block that a delta belongs to although nothing announced it."""
        match kind:
            case "text_delta":
                block = _Block({"type": "text", "text": ""})
            case "thinking_delta":
                block = _Block({"type": "thinking", "thinking": ""})
            case "input_json_delta":
                raise cut("A tool call arrived without its name.")
            case _:
                return None
        self._blocks[index] = block
        return block

    def _message_delta(self, event: JsonDict) -> None:
        self._need_start()
        delta = _dict(event.get("delta"))
        self._stop_reason = _text(delta.get("stop_reason")) or self._stop_reason
        self._usage.take(_dict(event.get("usage")))
        details = _dict(delta.get("stop_details"))
        if self._stop_reason == "refusal":
            words = [_text(details.get("category")), _text(details.get("explanation"))]
            self._refusal = ": ".join(word for word in words if word) or "no reason given"

    def _close_call(self, block: _Block, seen: set[str]) -> bool:
        """Give a call its input; False when the input was cut off."""
        value = block.value
        name, call = value.get("name"), value.get("id")
        if not isinstance(name, str) or not isinstance(call, str) or not name or not call:
            raise cut("A tool call arrived without its name or id.")
        if call in seen:
            raise cut("Two tool calls have the same id.")
        seen.add(call)
        text = "".join(block.json)
        parsed: Any = value.get("input") or {}
        if text.strip():
            try:
                parsed = json.loads(text)
            except (ValueError, RecursionError):
                parsed = None
        limited = self._stop_reason in _CUT_REASONS
        if isinstance(parsed, dict) and (block.stopped or not limited):
            value["input"] = parsed
            return True
        if not limited:
            raise cut(f"The input of a call of {clean_text(name)[:60]} is no JSON object.")
        value["input"] = {UNREADABLE: True}
        return False

    def _need_start(self) -> None:
        if not self.opened:
            raise cut("The answer began in its middle.")

    @staticmethod
    def _index(event: JsonDict) -> int:
        index = event.get("index")
        return index if isinstance(index, int) else 0


def cut(what: str) -> StreamCut:
    """Return the error of an answer that broke, with the remedy that fits all of them."""
    return StreamCut(what, "Nothing of it was run; the step is sent again.")


def mended(text: str) -> str:
    """Return `text` with surrogate halves joined, and lone ones replaced by U+FFFD.

    Two deltas may each carry one half, written as a JSON escape.
    """
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _mend(value: JsonDict) -> None:
    for key in ("text", "thinking"):
        text = value.get(key)
        if isinstance(text, str):
            value[key] = mended(text)


def _dict(value: object) -> JsonDict:
    return cast("JsonDict", value) if isinstance(value, dict) else {}


def _copy(value: object) -> JsonDict:
    return dict(_dict(value))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
