"""The settings in force, as frozen values with the defaults of a fresh installation.

`loading` fills them from files, the environment and flags; the command line hands them to the
engine and the screens. Nothing here reads anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from forkdeck.model.words import Mode


def _no_strings() -> Mapping[str, str]:
    return MappingProxyType({})


def _no_flags() -> Mapping[str, bool | str]:
    return MappingProxyType({})


def _no_prices() -> Mapping[str, ModelPrice]:
    return MappingProxyType({})


class ModelPrice(msgspec.Struct, frozen=True, kw_only=True):
    """A model's price in US dollars per million tokens, as the person states it."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    """None: reads cost what fresh input costs."""
    cache_write: Decimal | None = None
    """None: writes cost what fresh input costs."""


class ForkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for forks unless their call says otherwise."""

    max_concurrency: int = 4
    max_per_directory: int = 8
    seed: str = "before_call"
    model: str | None = None
    effort: str | None = None
    thinking: str | None = None
    background: bool = False
    max_depth: int = 1
    """0 switches forks off."""
    max_turns: int = 200
    timeout_s: float | None = None
    budget_usd: Decimal | None = None
    base: Literal["head", "dirty"] = "head"
    report: Literal["scope", "free"] = "scope"
    wake: Literal["auto", "never"] = "auto"
    report_chars: int = 16_000
    batch_report_chars: int = 48_000
    plan: Literal["auto", "confirm", "never"] = "auto"
    plan_above_usd: Decimal = Decimal("0.50")
    budget_tokens: int | None = None
    """Input, output and cache writes of one fork; cache reads do not count."""
    batch_max_turns: int | None = None
    batch_timeout_s: float | None = None
    batch_budget_usd: Decimal | None = None
    batch_budget_tokens: int | None = None


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for typed agents."""

    lean: bool = True


class UiSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the screen looks."""

    cost_footer: bool = True
    theme: str | None = None
    ascii: bool = False
    reduced_motion: bool = False


class PermissionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Rules in their text form; those of every source that may give them."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for a whole session."""

    budget_usd: Decimal | None = None
    budget_tokens: int | None = None
    max_turns: int | None = None
    timeout_s: float | None = None
    compact: Literal["auto", "ask", "never"] = "auto"
    """What happens near the context limit: compact by itself, only tell, or neither."""


class StallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """From when on a fork is shown as SLOW; nothing else follows from it. 0 switches one off."""

    silence_s: float = 60.0
    """Seconds without a byte of an answer."""
    tool_s: float = 120.0
    """Seconds that one tool call runs."""
    repeats: int = 3
    """The very same call, one after the other."""
    errors: int = 3
    """The same error, one call after the other."""


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Switches of the sandbox; never from a project."""

    network: bool = False
    environment: tuple[str, ...] = ()
    """Names of variables that commands may see beside the usual ones."""
    hide: tuple[str, ...] = ()
    """Paths hidden beside the usual ones; ``~`` is the home directory."""


class EndpointSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint; only from the user's own file."""

    base_url: str | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=_no_strings)
    """May hold secrets: never shown, logged or given to a child."""
    capabilities: Mapping[str, bool | str] = msgspec.field(default_factory=_no_flags)
    """``thinking``, ``effort``, ``diagnostics``, ``cache_control``, ``ttl``, ``cache_fields``
    with true or false, and ``auth`` with ``bearer``, ``x-api-key`` or ``both``."""

    def __repr__(self) -> str:
        names = ", ".join(self.headers)
        return f"EndpointSettings(base_url={self.base_url!r}, headers=<{names}>)"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting of a session."""

    model: str = "claude-opus-5-5"
    mode: Mode = "default"
    forks: ForkSettings = ForkSettings()
    agents: AgentSettings = AgentSettings()
    ui: UiSettings = UiSettings()
    permissions: PermissionSettings = PermissionSettings()
    session: SessionSettings = SessionSettings()
    stalls: StallSettings = StallSettings()
    sandbox: SandboxSettings = SandboxSettings()
    endpoint: EndpointSettings = msgspec.field(default_factory=EndpointSettings)
    prices: Mapping[str, ModelPrice] = msgspec.field(default_factory=_no_prices)


DEFAULTS = Settings()
"""The settings of a fresh installation."""


def value_of(settings: Settings, key: str) -> Any:
    """Return the value of a dotted key, such as ``forks.max_turns``."""
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value
