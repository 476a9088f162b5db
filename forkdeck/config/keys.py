"""The table of setting keys: kind, allowed values, and who may set them.

One row per key. Loading, the listing, error messages and the check of a project's files are all
driven by it; `settings` holds the same keys as typed values, and a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, TypeAlias, cast

from forkdeck.config.settings import ModelPrice

Scope: TypeAlias = Literal["project", "limit", "look", "rules", "never project", "user file"]
"""Who may set a key: `project` a trusted one; `limit` an untrusted one too, but only lower;
`look` any; `rules` see `loading`; `never project` the user, environment and flags; `user file`
the user's own file alone."""

Reader: TypeAlias = Callable[[Any], Any]
"""Turns a TOML value into a setting; raises ValueError with the allowed values in words."""

MODES = ("plan", "default", "accept-edits", "auto")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
THINKING = ("off", "minimal", "low", "medium", "high", "xhigh")
CAPABILITIES = ("thinking", "effort", "diagnostics", "cache_control", "ttl", "cache_fields")
AUTH = ("bearer", "x-api-key", "both")
_SEED = re.compile(r"before_call|placeholder|completed_turns|none|turns:[1-9][0-9]{0,3}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True)
class Key:
    """One setting.

    Attributes:
        name: Dotted name, as in the files.
        read: Checks and converts a TOML value.
        scope: Who may set it.
        kind: What its text in the environment or a flag is.
    """

    name: str
    read: Reader
    scope: Scope = "project"
    kind: Literal["text", "value", "list"] = "value"


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _whole(least: int, most: int) -> Reader:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return value

    return read


def _seconds(value: Any) -> float:
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or not 1 <= value <= 604_800:
        raise ValueError("seconds, from 1 to 604800")
    return float(value)


def _seconds_or_off(value: Any) -> float:
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or not (value == 0 or 1 <= value <= 86_400):
        raise ValueError("seconds, from 1 to 86400, or 0 for never")
    return float(value)


def _dollars(value: Any) -> Decimal:
    words = 'an amount in US dollars, such as 2.50 or "2.50"'
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(words)
    try:
        amount = Decimal(str(value).strip())
    except InvalidOperation:
        raise ValueError(words) from None
    if not amount.is_finite() or not 0 <= amount <= 1_000_000:
        raise ValueError(words)
    # A billionth of a dollar is finer than any price; 1E-999999 would be a megabyte of zeros.
    return amount if amount.as_tuple().exponent in range(-12, 7) else round(amount, 9)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError("a text of one line")
    return value.strip()


def _one_of(*words: str) -> Reader:
    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError("one of " + ", ".join(words))
        return value

    return read


def _seed(value: Any) -> str:
    if not isinstance(value, str) or not _SEED.fullmatch(value):
        raise ValueError("before_call, placeholder, completed_turns, turns:N or none")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError('a list of texts, such as ["bash(pytest)"]')
    return tuple(_text(item) for item in cast("list[Any]", value))


def _variables(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    if not all(_VARIABLE.fullmatch(name) for name in names):
        raise ValueError("a list of variable names")
    if any(name.startswith("ANTHROPIC_") for name in names):
        raise ValueError("a list of variable names; credentials cannot be passed on")
    return names


def _base_url(value: Any) -> str:
    text = _text(value)
    if not text.startswith(("https://", "http://")):
        raise ValueError("an address that starts with https:// or http://")
    if "@" in text:
        raise ValueError("an address without a name or password in it")
    return text


def _table(value: Any, words: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(words)
    return cast("dict[str, Any]", value)


def _headers(value: Any) -> dict[str, str]:
    words = "a table of header names and texts"
    found = _table(value, words)
    for name, text in found.items():
        good = isinstance(text, str) and text.isascii() and text.isprintable()
        if not good or not _HEADER.fullmatch(name):
            raise ValueError(words)
    return dict(found)


def _capabilities(value: Any) -> dict[str, bool | str]:
    words = (
        f"a table of {', '.join(CAPABILITIES)} with true or false,"
        f" and auth with one of {', '.join(AUTH)}"
    )
    found = _table(value, words)
    for name, given in found.items():
        good = given in AUTH if name == "auth" else isinstance(given, bool)
        if not good or name not in (*CAPABILITIES, "auth"):
            raise ValueError(words)
    return dict(found)


def _prices(value: Any) -> dict[str, ModelPrice]:
    words = (
        "a table per model with input and output, and perhaps cache_read and cache_write,"
        " in US dollars per million tokens"
    )
    names = {"input", "output", "cache_read", "cache_write"}
    prices: dict[str, ModelPrice] = {}
    for model, given in _table(value, words).items():
        row = _table(given, words)
        if not {"input", "output"} <= row.keys() <= names:
            raise ValueError(words)
        prices[model] = ModelPrice(**{name: _dollars(amount) for name, amount in row.items()})
    return prices


KEYS: tuple[Key, ...] = (
    Key("model", _text, kind="text"),
    Key("mode", _one_of(*MODES), kind="text"),
    Key("forks.max_concurrency", _whole(1, 8), "limit"),
    Key("forks.max_per_directory", _whole(1, 64), "limit"),
    Key("forks.seed", _seed, kind="text"),
    Key("forks.model", _text, kind="text"),
    Key("forks.effort", _one_of(*EFFORTS), kind="text"),
    Key("forks.thinking", _one_of(*THINKING), kind="text"),
    Key("forks.background", _boolean),
    Key("forks.max_depth", _whole(0, 8), "limit"),
    Key("forks.max_turns", _whole(1, 10_000), "limit"),
    Key("forks.timeout_s", _seconds, "limit"),
    Key("forks.budget_usd", _dollars, "limit"),
    Key("forks.base", _one_of("head", "dirty"), kind="text"),
    Key("forks.report", _one_of("scope", "free"), kind="text"),
    Key("forks.wake", _one_of("auto", "never"), kind="text"),
    Key("forks.report_chars", _whole(500, 1_000_000), "limit"),
    Key("forks.batch_report_chars", _whole(500, 4_000_000), "limit"),
    Key("forks.plan", _one_of("auto", "confirm", "never"), kind="text"),
    Key("forks.plan_above_usd", _dollars, "limit"),
    Key("forks.budget_tokens", _whole(1, 1_000_000_000), "limit"),
    Key("forks.batch_max_turns", _whole(1, 100_000), "limit"),
    Key("forks.batch_timeout_s", _seconds, "limit"),
    Key("forks.batch_budget_usd", _dollars, "limit"),
    Key("forks.batch_budget_tokens", _whole(1, 1_000_000_000), "limit"),
    Key("agents.lean", _boolean),
    Key("ui.cost_footer", _boolean),
    Key("ui.theme", _text, "look", "text"),
    Key("ui.ascii", _boolean),
    Key("ui.reduced_motion", _boolean),
    Key("permissions.allow", _texts, "rules", "list"),
    Key("permissions.ask", _texts, "rules", "list"),
    Key("permissions.deny", _texts, "rules", "list"),
    Key("session.budget_usd", _dollars, "limit"),
    Key("session.budget_tokens", _whole(1, 10_000_000_000), "limit"),
    Key("session.max_turns", _whole(1, 1_000_000), "limit"),
    Key("session.timeout_s", _seconds, "limit"),
    Key("session.compact", _one_of("auto", "ask", "never"), kind="text"),
    Key("stalls.silence_s", _seconds_or_off),
    Key("stalls.tool_s", _seconds_or_off),
    Key("stalls.repeats", _whole(0, 1_000)),
    Key("stalls.errors", _whole(0, 1_000)),
    Key("sandbox.network", _boolean, "never project"),
    Key("sandbox.environment", _variables, "never project", "list"),
    Key("sandbox.hide", _texts, "never project", "list"),
    Key("endpoint.base_url", _base_url, "user file", "text"),
    Key("endpoint.headers", _headers, "user file"),
    Key("endpoint.capabilities", _capabilities, "user file"),
    Key("prices", _prices, "user file"),
)
"""Every setting there is."""

BY_NAME: dict[str, Key] = {key.name: key for key in KEYS}
"""The same, by dotted name."""

SECTIONS = frozenset(key.name.split(".")[0] for key in KEYS if "." in key.name)
"""Names of the tables a file may hold, without ``prices``."""
