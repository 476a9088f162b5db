"""Request checks: what the Messages API answers with a 400, and in which words.

Called by the server after the JSON was parsed and before anything is looked up. The order is
that of the API as far as it is documented: parameters, then messages, then tools and results.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from forkdeck.model.raw import JsonDict
from forkdeck.providers.rehearsal.errors import ApiRefused, invalid, object_in
from forkdeck.providers.rehearsal.faults import STRANGER
from forkdeck.providers.rehearsal.models import Model, lookup
from forkdeck.providers.rehearsal.positions import blocks_of

_PARAMETER_NAMES: Final = """
cache_control container diagnostics inference_geo max_tokens messages metadata model
output_config service_tier speed stop_sequences stream system temperature thinking
tool_choice tools top_k top_p user_profile_id workspace_id
"""
_PARAMETERS: Final = frozenset(_PARAMETER_NAMES.split())
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
_MOST_MESSAGES: Final = 100_000
_IN_ROLE: Final = {
    "user": ("text", "image", "document", "tool_result", "search_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use"),
    "system": ("text",),
}


def check_body(value: Any) -> tuple[JsonDict, Model]:
    """Check everything about a request that needs no cache and no signature.

    Returns:
        The body and its model's facts.

    Raises:
        ApiRefused: 400, or 404 for the model.
    """
    if not isinstance(value, dict):
        raise invalid("The request body is not a JSON object")
    body = cast("JsonDict", value)
    model = _check_parameters(body)
    _check_thinking(body, model)
    _check_tools(body, model)
    _check_system(body)
    messages = _check_messages(body, model)
    _check_pairs(messages)
    return body, model


def _check_parameters(body: JsonDict) -> Model:
    name: Any = body.get("model")
    if not isinstance(name, str) or not name:
        raise invalid("model: Field required")
    model = lookup(name)
    if model is None:
        raise ApiRefused(404, "not_found_error", f"model: {name}")
    for key in body:
        if key not in _PARAMETERS:
            raise invalid(f"{key}: Extra inputs are not permitted")
    if not model.sampling:
        for key in ("temperature", "top_p", "top_k"):
            if key in body:
                raise invalid(f"{key}: sampling parameters are not supported")
    _check_limits(body, model)
    return model


def _check_limits(body: JsonDict, model: Model) -> None:
    limit: Any = body.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise invalid("max_tokens: Field required")
    if limit < 0:
        raise invalid("max_tokens: Input should be greater than or equal to 0")
    if limit > model.output:
        raise invalid(f"max_tokens: {limit} > {model.output}, the most for {body['model']}")
    if limit == 0 and (body.get("stream") or object_in(body, "tool_choice").get("type") == "any"):
        raise invalid("max_tokens: 0 is for warming the cache, without stream or forced tools")
    effort: Any = object_in(body, "output_config").get("effort")
    if effort is not None and effort not in _EFFORTS:
        raise invalid(f"output_config.effort: Input should be one of {', '.join(_EFFORTS)}")


def _check_thinking(body: JsonDict, model: Model) -> None:
    thinking = object_in(body, "thinking")
    if body.get("thinking") is None:
        return
    kind: Any = thinking.get("type")
    if kind not in model.thinking:
        raise invalid(
            f'thinking.type: "{kind}" is not supported for this model. '
            f"Use one of: {', '.join(model.thinking)}"
        )
    if kind == "enabled":
        budget: Any = thinking.get("budget_tokens")
        if not isinstance(budget, int) or budget < 1024:
            raise invalid("thinking.enabled.budget_tokens: Input should be at least 1024")
        if budget >= body["max_tokens"]:
            raise invalid("`max_tokens` must be greater than `thinking.budget_tokens`")
    display: Any = thinking.get("display", "omitted")
    if display not in ("omitted", "summarized"):
        raise invalid("thinking.display: use omitted or summarized")


def _check_tools(body: JsonDict, model: Model) -> None:
    tools: Any = body.get("tools")
    names: set[str] = set()
    if tools is not None and not isinstance(tools, list):
        raise invalid("tools: Input should be a valid list")
    for index, tool in enumerate(cast("list[Any]", tools or [])):
        if not isinstance(tool, dict):
            raise invalid(f"tools.{index}: Input should be an object")
        entry = cast("JsonDict", tool)
        name = entry.get("name")
        if not isinstance(name, str) or not _NAME.match(name):
            raise invalid(f"tools.{index}.name: String should match '^[a-zA-Z0-9_-]{{1,128}}$'")
        if name in names:
            raise invalid("tools: Tool names must be unique.")
        names.add(name)
        schema: Any = entry.get("input_schema")
        if not isinstance(schema, dict) or cast("JsonDict", schema).get("type") != "object":
            raise invalid(f"tools.{index}.input_schema.type: Input should be 'object'")
    if body.get("tool_choice") is None:
        return
    kind: Any = object_in(body, "tool_choice").get("type")
    if kind not in ("auto", "any", "tool", "none"):
        raise invalid("tool_choice.type: use auto, any, tool or none")
    if kind in ("any", "tool") and not model.forced_tools:
        raise invalid(f'tool_choice: "{kind}" is not supported for this model')


def _check_system(body: JsonDict) -> None:
    system: Any = body.get("system")
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        raise invalid("system: Input should be a string or a list of text blocks")
    for index, block in enumerate(cast("list[Any]", system)):
        if not isinstance(block, dict) or cast("JsonDict", block).get("type") != "text":
            raise invalid(f"system.{index}: Input should be a text block")
        if not cast("JsonDict", block).get("text"):
            raise invalid("system: text content blocks must be non-empty")


def _check_messages(body: JsonDict, model: Model) -> list[JsonDict]:
    given: Any = body.get("messages")
    if not isinstance(given, list) or not given:
        raise invalid("messages: at least one message is required")
    entries = cast("list[Any]", given)
    if len(entries) > _MOST_MESSAGES:
        raise invalid(f"messages: at most {_MOST_MESSAGES} messages are taken")
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise invalid(f"messages.{number}: Input should be an object")
        _check_message(cast("JsonDict", entry), number)
    messages = cast("list[JsonDict]", entries)
    if messages[0]["role"] != "user":
        raise invalid('messages: first message must use the "user" role')
    _check_system_role(messages)
    if messages[-1]["role"] == "assistant" and not model.prefill:
        raise invalid(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    return messages


def _check_message(entry: JsonDict, number: int) -> None:
    role: Any = entry.get("role")
    if role not in _IN_ROLE:
        raise invalid(f'messages: Unexpected role "{role}". Allowed: "user", "assistant", "system"')
    if set(entry) - {"role", "content"}:
        raise invalid(f"messages.{number}: Extra inputs are not permitted")
    content: Any = entry.get("content")
    if not isinstance(content, str | list):
        raise invalid(f"messages.{number}.content: Input should be a string or a list of blocks")
    if not content:
        raise invalid(f"messages.{number}: content must not be empty")
    blocks: list[Any] = list(blocks_of(content))
    for index, block in enumerate(blocks):
        where = f"messages.{number}.content.{index}"
        if not isinstance(block, dict):
            raise invalid(f"{where}: Input should be an object")
        _check_block(cast("JsonDict", block), role, where)


def _check_block(block: JsonDict, role: str, where: str) -> None:
    kind = block.get("type")
    if role == "assistant" and block == STRANGER:
        return
    if kind not in _IN_ROLE[role]:
        an = "an" if role == "assistant" else "a"
        raise invalid(f"{where}: a block of type {kind!r} cannot stand in {an} {role} message")
    if kind == "text":
        if not isinstance(block.get("text"), str):
            raise invalid(f"{where}.text.text: Field required")
        if not block["text"].strip():
            raise invalid("messages: text content blocks must be non-empty")
    elif kind == "tool_use":
        if not isinstance(block.get("id"), str) or not isinstance(block.get("name"), str):
            raise invalid(f"{where}.tool_use: id and name are required")
        if not isinstance(block.get("input"), dict):
            raise invalid(f"{where}.tool_use.input: Input should be a valid dictionary")
    elif kind == "tool_result":
        _check_result(block, where)
    elif kind == "thinking" and not isinstance(block.get("signature"), str):
        raise invalid(f"{where}.thinking.signature: Field required")


def _check_result(block: JsonDict, where: str) -> None:
    if not isinstance(block.get("tool_use_id"), str):
        raise invalid(f"{where}.tool_result.tool_use_id: Field required")
    content: Any = block.get("content", "")
    if not isinstance(content, str | list):
        raise invalid(f"{where}.tool_result.content: Input should be a string or a list")
    if block.get("is_error") and not content:
        raise invalid(f"{where}.tool_result: content cannot be empty if is_error is true")


def _check_system_role(messages: Sequence[JsonDict]) -> None:
    for number, message in enumerate(messages):
        if message["role"] != "system":
            continue
        after = messages[number + 1]["role"] if number + 1 < len(messages) else "assistant"
        if messages[number - 1]["role"] != "user" or after != "assistant":
            raise invalid(
                f"messages.{number}: a system message must follow a user turn and be last or "
                "stand before an assistant turn"
            )


def _joined(messages: Sequence[JsonDict]) -> list[tuple[int, str, list[JsonDict]]]:
    """Join neighbours of one role, as the API does; keep the number of the first."""
    turns: list[tuple[int, str, list[JsonDict]]] = []
    for number, message in enumerate(messages):
        blocks = blocks_of(message["content"])
        if message["role"] == "system":
            continue
        if turns and turns[-1][1] == message["role"]:
            turns[-1][2].extend(blocks)
        else:
            turns.append((number, str(message["role"]), list(blocks)))
    return turns


def _check_pairs(messages: Sequence[JsonDict]) -> None:
    """Every tool_use has its result in the next user turn, first there, and nowhere else."""
    seen: set[str] = set()
    opened: list[str] = []
    opened_at = 0
    for number, role, blocks in _joined(messages):
        if role == "assistant":
            opened = [str(block["id"]) for block in blocks if block["type"] == "tool_use"]
            opened_at = number
            for call in opened:
                if call in seen:
                    raise invalid(f"messages.{number}: `tool_use` ids must be unique")
                seen.add(call)
            continue
        _check_answers(number, blocks, opened, opened_at)
        opened = []
    if opened:
        raise _orphans(opened_at, opened)


def _check_answers(
    number: int, blocks: Sequence[JsonDict], opened: Sequence[str], opened_at: int
) -> None:
    answered: list[str] = []
    text_seen = False
    for index, block in enumerate(blocks):
        if block["type"] != "tool_result":
            text_seen = True
            continue
        call = str(block["tool_use_id"])
        where = f"messages.{number}.content.{index}"
        if call not in opened:
            raise invalid(
                f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous "
                "message."
            )
        if call in answered:
            raise invalid(
                f"{where}: each tool_use must have a single result. Found multiple `tool_result` "
                f"blocks with id: {call}"
            )
        if text_seen:
            raise invalid(f"{where}: `tool_result` blocks must stand first in the message")
        answered.append(call)
    missing = [call for call in opened if call not in answered]
    if missing:
        raise _orphans(opened_at, missing)


def _orphans(number: int, calls: Sequence[str]) -> ApiRefused:
    return invalid(
        f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(calls)}. Each `tool_use` block must have a corresponding "
        "`tool_result` block in the next message."
    )
