"""What endpoints can do: one table, the person's corrections, and what a refusal taught.

Used by `client` for every request. The table comes from the providers' own pages; an endpoint
that has no row gets the careful one. A refusal that names a parameter is learned once and holds
for the session: the parameter is left out of every later request to the endpoint, the parent's
and the forks' alike, so their prefixes stay equal. The engine compares bodies before this, and
the same body always loses the same parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

import msgspec

from forkdeck.errors import BadRequest, ProviderError
from forkdeck.model.raw import JsonDict

Auth: TypeAlias = Literal["bearer", "x-api-key", "both"]
"""Which header carries an API key."""

Parameter: TypeAlias = Literal["thinking", "effort", "diagnostics", "cache_control", "ttl"]
"""What can be left out of a request."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What one endpoint can do; the defaults are those of an endpoint nobody knows.

    Thinking and effort are assumed, because most unknown endpoints are gateways to the real one
    and a refusal is learned from; what only the real one is known to have is not.
    """

    name: str = ""
    """As it is shown; empty: the host's name."""
    thinking: bool = True
    effort: bool = True
    diagnostics: bool = False
    cache_control: bool = True
    ttl: bool = False
    """Whether a cache mark may ask for an hour."""
    cache_fields: bool = True
    """Whether answers tell what was read from the cache."""
    auth: Auth = "both"


REAL = Capabilities(name="Anthropic", diagnostics=True, ttl=True, auth="bearer")
"""The API itself."""

_FOREIGN_MODELS = Capabilities(thinking=False, effort=False)
_LOCAL_MODELS = Capabilities(thinking=False, effort=False, cache_fields=False)


def _row(base: Capabilities, name: str, auth: Auth = "both") -> Capabilities:
    return msgspec.structs.replace(base, name=name, auth=auth)


ENDPOINTS: Mapping[str, Capabilities] = {
    "api.anthropic.com": REAL,
    "api.deepseek.com": _row(_FOREIGN_MODELS, "DeepSeek"),
    "api.moonshot.ai": _row(_FOREIGN_MODELS, "Moonshot", "bearer"),
    "api.moonshot.cn": _row(_FOREIGN_MODELS, "Moonshot", "bearer"),
    "api.kimi.com": _row(_FOREIGN_MODELS, "Kimi", "bearer"),
    "api.z.ai": _row(_FOREIGN_MODELS, "Z.ai", "bearer"),
    "open.bigmodel.cn": _row(_FOREIGN_MODELS, "BigModel", "bearer"),
    ".aliyuncs.com": _row(_FOREIGN_MODELS, "DashScope"),
    "openrouter.ai": _row(Capabilities(), "OpenRouter", "bearer"),
    "ollama.com": _row(_LOCAL_MODELS, "Ollama", "bearer"),
    "localhost:11434": _row(_LOCAL_MODELS, "Ollama"),
    "localhost:1234": _row(_LOCAL_MODELS, "LM Studio"),
    "localhost:4000": _row(Capabilities(ttl=True), "LiteLLM", "bearer"),
}
"""Known endpoints by host: an exact name, a name's ending from a dot on, or one with a port."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def known(base_url: str) -> Capabilities:
    """Return the row of an endpoint, or the careful one with the host as its name."""
    parts = urlsplit(base_url)
    name = parts.hostname or ""
    with_port = f"localhost:{parts.port}" if name in _LOOPBACK else f"{name}:{parts.port}"
    for host, row in ENDPOINTS.items():
        if host in (name, with_port) or (host.startswith(".") and name.endswith(host)):
            return row
    return Capabilities(name=parts.netloc)


def corrected(row: Capabilities, settings: Mapping[str, bool | str]) -> Capabilities:
    """Return `row` as the person's settings have it; names it does not know are left alone."""
    names = set(Capabilities.__struct_fields__) - {"name"}
    changes: dict[str, Any] = {key: value for key, value in settings.items() if key in names}
    return msgspec.structs.replace(row, **changes)


def fitted(body: JsonDict, able: Capabilities) -> JsonDict:
    """Return a body without what the endpoint does not take; `body` stays as it is.

    Key order is kept, and nothing else changes, so equal prefixes stay equal.
    """
    made = dict(body)
    if not able.thinking:
        made.pop("thinking", None)
    if not able.effort and "output_config" in made:
        left = {key: value for key, value in made["output_config"].items() if key != "effort"}
        made["output_config"] = left
        if not left:
            del made["output_config"]
    if not able.diagnostics:
        made.pop("diagnostics", None)
    if not able.cache_control or not able.ttl:
        for key in ("tools", "system"):
            if isinstance(made.get(key), list):
                made[key] = [_mark_fitted(block, able) for block in made[key]]
        made["messages"] = [_message_fitted(message, able) for message in made["messages"]]
    return made


def _message_fitted(message: JsonDict, able: Capabilities) -> JsonDict:
    content: Any = message.get("content")
    if not isinstance(content, list):
        return message
    blocks = cast("list[JsonDict]", content)
    if not any("cache_control" in block for block in blocks):
        return message
    return {**message, "content": [_mark_fitted(block, able) for block in blocks]}


def _mark_fitted(block: JsonDict, able: Capabilities) -> JsonDict:
    mark: Any = block.get("cache_control")
    if mark is None:
        return block
    if not able.cache_control:
        return {key: value for key, value in block.items() if key != "cache_control"}
    if "ttl" not in mark:
        return block
    return {**block, "cache_control": {key: mark[key] for key in mark if key != "ttl"}}


_REFUSAL = re.compile(
    r"extra (inputs|fields)|additional propert"
    r"|\bnot (currently |yet )?(supported|permitted|allowed|recogni[sz]ed|available|implemented)"
    r"|\bun(supported|known|recogni[sz]ed|expected)\b"
    r"|\b(does not|doesn't|do not|cannot|no longer) (support|accept|take|allow|recogni[sz]e)"
    r"|invalid (field|parameter|argument|key|property)",
    re.IGNORECASE,
)
_IN_MESSAGES = re.compile(r"\bmessages[.\[]\S*")
_NAMES: Mapping[Parameter, re.Pattern[str]] = {
    "ttl": re.compile(r"\bttl\b"),
    "cache_control": re.compile(r"\bcache_control\b"),
    # Blocks of thinking are history; only the parameter can be left out.
    "thinking": re.compile(r"\bthinking\b(?![`'\"]*\s+blocks?)", re.IGNORECASE),
    "effort": re.compile(r"\boutput_config\b|\beffort\b", re.IGNORECASE),
    "diagnostics": re.compile(r"\bdiagnostics\b|\bprevious_message_id\b"),
}
_SHOWN: Mapping[Parameter, str] = {"ttl": "cache_control.ttl", "effort": "output_config.effort"}


def sent(body: JsonDict) -> frozenset[Parameter]:
    """Return which of the parameters that can be left out a body holds."""
    found: set[Parameter] = set()
    if body.get("thinking") is not None:
        found.add("thinking")
    if "effort" in (body.get("output_config") or {}):
        found.add("effort")
    if "diagnostics" in body:
        found.add("diagnostics")
    for mark in _marks(body):
        found.add("cache_control")
        if "ttl" in mark:
            found.add("ttl")
    return frozenset(found)


def _marks(body: JsonDict) -> list[JsonDict]:
    blocks: list[Any] = []
    for key in ("tools", "system"):
        blocks += body[key] if isinstance(body.get(key), list) else []
    for message in body["messages"]:
        blocks += message["content"] if isinstance(message.get("content"), list) else []
    return [block["cache_control"] for block in blocks if block.get("cache_control")]


def refused(error: ProviderError, body: JsonDict) -> frozenset[Parameter]:
    """Return the parameters of `body` that an error names as not taken.

    Only a refusal of the parameter itself counts, not of its value or of a block of history.
    """
    if not isinstance(error, BadRequest) or error.status not in (400, 422):
        return frozenset()
    outside = _IN_MESSAGES.sub("", error.what)
    named: set[Parameter] = set()
    for name, pattern in _NAMES.items():
        words = error.what if name in ("ttl", "cache_control") else outside
        if pattern.search(words):
            named.add(name)
    if not _REFUSAL.search(error.what):
        # Diagnostics stand outside the conversation: whatever is wrong with them, they can go.
        named &= {"diagnostics"}
    found = named & sent(body)
    # A mark's life time is the smaller loss: the mark itself stays.
    return frozenset(found - {"cache_control"} if "ttl" in found else found)


class Memory:
    """What is known of one endpoint, with what it refused in this session.

    Args:
        row: What is known beforehand.
        shown: The endpoint's name in notes.
    """

    def __init__(self, row: Capabilities, shown: str) -> None:
        self._row = row
        self._shown = shown
        self._of_model: dict[str, set[Parameter]] = {}

    @property
    def all(self) -> Capabilities:
        """What holds for every model."""
        return self._row

    def of(self, model: str) -> Capabilities:
        """Return what holds for requests to one model."""
        lost = self._of_model.get(model)
        return _without(self._row, lost) if lost else self._row

    def cache_fields(self, told: bool) -> None:
        """Note whether the last whole answer told what was read from the cache."""
        self._row = msgspec.structs.replace(self._row, cache_fields=told)

    def learn(self, error: ProviderError, body: JsonDict) -> tuple[bool, tuple[str, ...]]:
        """Take a refusal; returns (whether to send again without, notes to be shown).

        A refusal that speaks of the model holds for that model alone. Of several requests that
        were refused at once every one is sent again, and one note is given.
        """
        found = refused(error, body)
        if not found:
            return False, ()
        model = str(body.get("model", ""))
        before = self.of(model)
        new = sorted(name for name in found if getattr(before, name))
        one_model = re.search(r"\b(this|the|that) model\b|\bmodel\b.*\bdoes", error.what)
        if one_model:
            self._of_model.setdefault(model, set()).update(found)
        else:
            self._row = _without(self._row, set(found))
        where = f"{self._shown} with {model}" if one_model else self._shown
        return True, tuple(_note(name, where) for name in new)


def _without(row: Capabilities, lost: set[Parameter]) -> Capabilities:
    return msgspec.structs.replace(row, **dict.fromkeys(lost, False))


def _note(name: str, where: str) -> str:
    shown = _SHOWN.get(cast("Parameter", name), name)
    loses = " Nothing is cached there." if name == "cache_control" else ""
    return (
        f"{where} does not take {shown}: it is left out from now on, for the parent and every"
        f" fork alike.{loses} With endpoint.capabilities.{name} = false it is not tried at all."
    )
