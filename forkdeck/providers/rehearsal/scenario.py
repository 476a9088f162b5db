"""Scenarios: what the scripted model says and does, read from TOML.

Read once, when a server starts; played by the script player. The built-in ones stand beside
this module. A scenario also names what its session needs: the prompt, the rules that its own
commands are allowed by, and what a scripted person answers when nobody is at the keyboard.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, cast

from forkdeck.errors import ConfigError
from forkdeck.model.raw import JsonDict
from forkdeck.providers.rehearsal import templating
from forkdeck.providers.rehearsal.faults import Fault, RunFault, unknown
from forkdeck.providers.rehearsal.limits import NO_LIMITS, Limits
from forkdeck.providers.rehearsal.reply import Call

_ROLES: Final = ("parent", "fork", "agent", "any")
_FOLDER: Final = "scenarios"


@dataclass(frozen=True)
class Round:
    """One assistant message of an answer; its texts are templates."""

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    ttft_ms: float = 300
    rate: float = 60
    call_rate: float = 240
    when: str = ""
    unless: str = ""
    stop_reason: str = ""
    fault: Fault | None = None


@dataclass(frozen=True)
class Answer:
    """Rounds for one kind of prompt."""

    role: str
    match: re.Pattern[str]
    rounds: tuple[Round, ...]
    turn: int | None = None
    depth: int | None = None
    tools: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True)
class PersonAnswer:
    """What the scripted person answers to a request whose argument matches."""

    match: re.Pattern[str]
    answer: str
    after_ms: int = 0


@dataclass(frozen=True)
class Scenario:
    """A whole script."""

    name: str
    title: str = ""
    prompt: str = ""
    """What the session's person types."""
    prompts: tuple[str, ...] = ()
    """All prompts in order, when there are several; `prompt` is the last."""
    model: str = "claude-opus-5-5"
    allow: tuple[str, ...] = ()
    """Rules for exactly the script's own commands."""
    ask: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()
    person: tuple[PersonAnswer, ...] = ()
    faults: Mapping[int, Fault] | None = None
    """By the number of the message request, from 1."""
    run_faults: tuple[RunFault, ...] = ()
    """By the number of a run's own request."""
    limits: Limits = NO_LIMITS
    investigate: bool = True
    """Whether the investigator answers what no answer matches."""

    def knows(self, text: str) -> bool:
        """Whether some answer to the parent matches a text."""
        return any(
            answer.role in ("parent", "any") and answer.match.pattern and answer.match.search(text)
            for answer in self.answers
        )


EMPTY: Final = Scenario(name="investigator", title="No script: the investigator answers.")
"""Without any answer: every prompt goes to the investigator."""


def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in scenarios."""
    folder = files("forkdeck.providers.rehearsal") / _FOLDER
    names = [entry.name for entry in folder.iterdir()]
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def builtin(name: str) -> Scenario:
    """Return a built-in scenario.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in builtin_names():
        raise ConfigError(
            f"There is no built-in scenario {name!r}.", f"Built in: {', '.join(builtin_names())}."
        )
    entry = files("forkdeck.providers.rehearsal") / _FOLDER / f"{name}.toml"
    return load(entry.read_text(encoding="utf-8"))


def find(name_or_path: str) -> Scenario:
    """Return the built-in scenario of that name, or else the one in that file.

    Raises:
        ConfigError: There is neither, or the file is no scenario.
    """
    if name_or_path in builtin_names():
        return builtin(name_or_path)
    return load(Path(name_or_path))


def load(path_or_text: str | Path) -> Scenario:
    """Read a scenario from a file, or from TOML text (a string with a line break).

    Raises:
        ConfigError: It cannot be read, is no TOML, or names something unknown.
    """
    where = "scenario"
    text = path_or_text
    if isinstance(path_or_text, Path) or "\n" not in path_or_text:
        where = str(path_or_text)
        try:
            text = Path(path_or_text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as wrong:
            why = getattr(wrong, "strerror", None) or wrong
            raise ConfigError(
                f"The scenario {where} cannot be read: {why}.",
                f"Give a TOML file in UTF-8, or a built-in one: {', '.join(builtin_names())}.",
            ) from wrong
    try:
        table = tomllib.loads(str(text))
    except tomllib.TOMLDecodeError as wrong:
        raise ConfigError(f"{where} is no TOML: {wrong}.") from wrong
    return _scenario(table, where)


def _scenario(table: JsonDict, where: str) -> Scenario:
    fields = _Fields(table, where)
    pace = _Fields(fields.take("pace", dict, {}), f"{where} [pace]")
    defaults = {key: pace.number(key) for key in ("ttft_ms", "rate", "call_rate")}
    pace.end()
    rules = _Fields(fields.take("rules", dict, {}), f"{where} [rules]")
    allow, ask = rules.strings("allow"), rules.strings("ask")
    rules.end()
    limits = _Fields(fields.take("limits", dict, {}), f"{where} [limits]")
    rpm, itpm = limits.whole("requests_per_minute"), limits.whole("input_tokens_per_minute")
    limits.end()
    faults, run_faults = _faults(fields.tables("fault"), where)
    prompts = fields.strings("prompts")
    prompt = fields.text("prompt") or (prompts[-1] if prompts else "")
    made = Scenario(
        name=fields.text("name") or "scenario",
        title=fields.text("title"),
        prompt=prompt,
        prompts=prompts or ((prompt,) if prompt else ()),
        model=fields.text("model") or "claude-opus-5-5",
        allow=allow,
        ask=ask,
        answers=tuple(
            _answer(_Fields(entry, f"{where} answer {number}"), defaults)
            for number, entry in enumerate(fields.tables("answer"), 1)
        ),
        person=tuple(
            _person(_Fields(entry, f"{where} person {number}"))
            for number, entry in enumerate(fields.tables("person"), 1)
        ),
        faults=faults,
        run_faults=run_faults,
        limits=Limits(rpm, itpm),
        investigate=bool(fields.take("investigate", bool, True)),
    )
    fields.end()
    return made


def _faults(
    entries: Sequence[JsonDict], where: str
) -> tuple[dict[int, Fault], tuple[RunFault, ...]]:
    by_number: dict[int, Fault] = {}
    of_runs: list[RunFault] = []
    for entry in entries:
        fields = dict(entry)
        number: Any = fields.pop("request", None)
        run: Any = fields.pop("run", None)
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise ConfigError(f"{where}: a [[fault]] needs the number of its request, from 1.")
        if run is not None and (not isinstance(run, str) or not run):
            raise ConfigError(
                f"{where}: the run of a [[fault]] is a text.",
                "Use parent, a fork's handle, or the name of its task.",
            )
        whose = f" of {run}" if run else ""
        fault = Fault.parse(fields, f"{where} fault at request {number}{whose}")
        if run:
            of_runs.append(RunFault(run, number, fault))
        else:
            by_number[number] = fault
    return by_number, tuple(of_runs)


def _person(fields: _Fields) -> PersonAnswer:
    made = PersonAnswer(
        match=templating.compiled(fields.text("match"), fields.where),
        answer=fields.text("answer") or "once",
        after_ms=int(fields.number("after_ms") or 0),
    )
    fields.end()
    return made


def _answer(fields: _Fields, defaults: Mapping[str, float | None]) -> Answer:
    role = fields.text("role") or "any"
    if role not in _ROLES:
        raise ConfigError(f"{fields.where}: unknown role {role!r}.", f"Use {', '.join(_ROLES)}.")
    turn, depth = fields.number("turn"), fields.number("depth")
    rounds = fields.tables("round")
    if not rounds:
        raise ConfigError(f"{fields.where}: it has no [[answer.round]].")
    made = Answer(
        role=role,
        match=templating.compiled(fields.text("match"), fields.where),
        rounds=tuple(
            _round(_Fields(entry, f"{fields.where} round {number}"), defaults)
            for number, entry in enumerate(rounds, 1)
        ),
        turn=int(turn) if turn is not None else None,
        depth=int(depth) if depth is not None else None,
        tools=fields.strings("tools"),
        title=fields.text("title"),
    )
    fields.end()
    return made


def _round(fields: _Fields, defaults: Mapping[str, float | None]) -> Round:
    times: dict[str, float] = {}
    for key, default in defaults.items():
        value = fields.number(key)
        value = default if value is None else value
        if value is not None:
            times[key] = value
    fault = fields.take("fault", object, None)
    made = Round(
        text=fields.text("text"),
        thinking=fields.text("thinking"),
        calls=tuple(
            _call(_Fields(entry, f"{fields.where} call {number}"), number)
            for number, entry in enumerate(fields.tables("call"), 1)
        ),
        when=fields.text("when"),
        unless=fields.text("unless"),
        stop_reason=fields.text("stop_reason"),
        fault=Fault.parse(fault, fields.where) if fault is not None else None,
        **times,
    )
    fields.end()
    for template in (made.text, made.thinking):
        templating.check(template, fields.where)
    for condition in (made.when, made.unless):
        if condition:
            templating.check_condition(condition, fields.where)
    return made


def _call(fields: _Fields, number: int) -> Call:
    tool = fields.text("tool")
    if not tool:
        raise ConfigError(f"{fields.where}: it names no tool.")
    made = Call(tool, dict(fields.take("input", dict, {})), fields.text("as") or f"call{number}")
    fields.end()
    return made


class _Fields:
    """A table whose fields are taken one by one; what is left is unknown."""

    def __init__(self, table: JsonDict, where: str) -> None:
        self.table = dict(table)
        self.where = where
        self._known: list[str] = []

    def take(self, key: str, kind: type | tuple[type, ...], default: Any) -> Any:
        """Take a field of a type."""
        self._known.append(key)
        value = self.table.pop(key, default)
        if not isinstance(value, kind) and value is not default:
            raise ConfigError(f"{self.where}: {key} has the wrong type.")
        return value

    def text(self, key: str) -> str:
        """Take a text; empty when absent."""
        return str(self.take(key, str, "")).strip("\n")

    def number(self, key: str) -> float | None:
        """Take a number that is not negative; None when absent."""
        value: Any = self.take(key, (int, float), None)
        if value is not None and (isinstance(value, bool) or not 0 <= value < 1e9):
            raise ConfigError(f"{self.where}: {key} is no number from 0 on.")
        return value

    def whole(self, key: str) -> int | None:
        """Take a whole number from 1 on; None when absent."""
        value = self.number(key)
        if value is not None and (value != int(value) or value < 1):
            raise ConfigError(f"{self.where}: {key} is no whole number from 1 on.")
        return None if value is None else int(value)

    def strings(self, key: str) -> tuple[str, ...]:
        """Take a list of texts."""
        return tuple(str(item) for item in cast("list[Any]", self.take(key, list, [])))

    def tables(self, key: str) -> list[JsonDict]:
        """Take a list of tables."""
        found = cast("list[Any]", self.take(key, list, []))
        if not all(isinstance(item, dict) for item in found):
            raise ConfigError(f"{self.where}: {key} is a list of tables.")
        return cast("list[JsonDict]", found)

    def end(self) -> None:
        """Refuse what was not taken."""
        if self.table:
            raise unknown(self.where, "field", sorted(self.table)[0], sorted(self._known))
