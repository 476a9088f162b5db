"""Parses the arguments of `fork_join`, `fork` and `agent` into one kind of call.

Called by the engine before anything starts. Names of other systems are taken as aliases; what
they accept and ignore becomes a note; what is unknown or contradictory is refused by name.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final, Literal, cast

import msgspec

from forkdeck.errors import AdmissionRefused
from forkdeck.model.ids import TASK_ID, slug
from forkdeck.model.raw import JsonDict
from forkdeck.tools import fork_specs
from forkdeck.tools.fork_fields import Fields

MAX_TASKS: Final = 8
MAX_CONCURRENCY: Final = 8

_SEED = re.compile(r"before_call|placeholder|completed_turns|none|turns:[1-9][0-9]{0,3}")
_TOOLS: Final = ("read", "bash", "grep", "find", "ls", "edit", "write")
_CHANGING: Final = ("edit", "write")
_MAX_TURNS = 10_000
_MAX_TIMEOUT_S = 7 * 86_400.0
_MAX_BUDGET_USD = 100_000.0


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One fork that was asked for; None means the setting decides."""

    id: str
    task: str
    write: bool = False
    seed: str | None = None
    """``before_call``, ``placeholder``, ``completed_turns``, ``turns:N`` or ``none``."""
    model: str | None = None
    effort: str | None = None
    thinking: Literal["off"] | None = None
    """``off`` switches thinking off; every other level is an effort."""
    max_turns: int | None = None
    timeout_s: float | None = None
    budget_usd: Decimal | None = None
    base: Literal["head", "dirty"] | None = None
    output_schema: JsonDict | None = None
    profile: str | None = None
    tools: tuple[str, ...] | None = None
    """The only built-in tools it may call; None for all."""
    agent_type: str | None = None
    """A typed agent (its file's name); None for a fork."""


class ForkCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that may be admitted."""

    tool: Literal["fork_join", "fork", "agent"]
    tasks: tuple[TaskSpec, ...]
    max_concurrency: int
    background: bool
    notes: tuple[str, ...] = ()
    """What was accepted and ignored, in words for the result."""


def parse(
    name: str,
    arguments: object,
    *,
    max_concurrency: int = 4,
    background: bool = False,
) -> ForkCall:
    """Return the call, checked.

    Args:
        name: ``fork_join``, ``fork`` or ``agent``.
        arguments: The model's input.
        max_concurrency: What holds when the call does not say (``forks.max_concurrency``).
        background: What holds when the call does not say (``forks.background``).

    Raises:
        AdmissionRefused: A field is missing, unknown, wrong or contradictory; it is named.
    """
    fields = Fields(name, "", arguments)
    notes: list[str] = []
    if name == "fork_join":
        return _fork_join(fields, notes, max_concurrency, background)
    if name == "fork":
        return _fork(fields, notes, background)
    if name == "agent":
        return _agent(fields, notes, background)
    raise AdmissionRefused(f"{name} is no fork tool.")


def _fork_join(
    fields: Fields, notes: list[str], max_concurrency: int, background: bool
) -> ForkCall:
    tasks = fields.take("tasks")
    if not isinstance(tasks, list) or not tasks:
        raise fields.refuse("tasks", f"must be a list of 1 to {MAX_TASKS} tasks")
    items = cast("list[Any]", tasks)
    if len(items) > MAX_TASKS:
        raise fields.refuse(
            "tasks", f"holds {len(items)} tasks; at most {MAX_TASKS} go in one call"
        )
    write = fields.flag("write")
    limit = fields.integer("max_concurrency", "maxConcurrency", least=1, most=MAX_CONCURRENCY)
    in_background = fields.flag("background", "run_in_background", "runInBackground")
    fields.finish("tasks, max_concurrency, write, background")
    specs = tuple(
        _task(Fields("fork_join", f"tasks[{index}].", item), write or False, notes)
        for index, item in enumerate(items)
    )
    seen: set[str] = set()
    for index, spec in enumerate(specs):
        if spec.id in seen:
            raise fields.refuse(f"tasks[{index}].id", f"{spec.id!r} is used twice")
        seen.add(spec.id)
    return ForkCall(
        tool="fork_join",
        tasks=specs,
        max_concurrency=limit or max(1, min(max_concurrency, MAX_CONCURRENCY)),
        background=background if in_background is None else in_background,
        notes=tuple(notes),
    )


def _task(fields: Fields, write: bool, notes: list[str]) -> TaskSpec:
    task_id = fields.take("id")
    if not isinstance(task_id, str) or TASK_ID.match(task_id) is None:
        raise fields.refuse("id", "must match [A-Za-z0-9_.-]{1,32}")
    task = fields.prose("task")
    if task is None:
        raise fields.refuse("task", "is missing")
    own = fields.flag("write")
    may_write = write if own is None else own
    _ignored(fields, notes, "inherit_context", "forks always inherit by their seed")
    model = fields.text("model")
    seed = _seed(fields)
    effort, thinking = _effort(fields)
    spec = TaskSpec(
        id=task_id,
        task=task,
        write=may_write,
        seed=seed,
        model=model,
        effort=effort,
        thinking=thinking,
        max_turns=fields.integer("max_turns", "maxTurns", least=1, most=_MAX_TURNS),
        timeout_s=fields.amount("timeout_s", "timeoutS", most=_MAX_TIMEOUT_S),
        budget_usd=_money(fields),
        base=_base(fields, may_write),
        output_schema=_schema(fields),
        profile=fields.text("profile", "fork_profile", limit=64),
        tools=_tools(fields, may_write),
    )
    fields.finish(
        "id, task, write, seed, model, effort, max_turns, timeout_s, budget_usd, base, "
        "output_schema, profile, tools"
    )
    return spec


def _fork(fields: Fields, notes: list[str], background: bool) -> ForkCall:
    task = fields.prose("task", "prompt", "directive")
    if task is None:
        raise fields.refuse("task", "is missing")
    _ignored(fields, notes, "inherit_context", "forks always inherit by their seed")
    in_background = fields.flag("background", "run_in_background", "runInBackground")
    effort, thinking = _effort(fields)
    spec = TaskSpec(
        id=_name(fields, task),
        task=task,
        write=fields.flag("write") or False,
        seed=_seed(fields),
        model=fields.text("model"),
        effort=effort,
        thinking=thinking,
    )
    fields.finish("task, model, thinking, effort, background, write, seed")
    return ForkCall(
        tool="fork",
        tasks=(spec,),
        max_concurrency=1,
        background=background if in_background is None else in_background,
        notes=tuple(notes),
    )


def _agent(fields: Fields, notes: list[str], background: bool) -> ForkCall:
    prompt = fields.prose("prompt")
    if prompt is None:
        raise fields.refuse("prompt", "is missing")
    description = fields.prose("description")
    if description is None:
        raise fields.refuse("description", "is missing")
    kind = fields.take("subagent_type", "subagentType")
    if kind is not None and (not isinstance(kind, str) or TASK_ID.match(kind) is None):
        if kind != "":
            raise fields.refuse("subagent_type", "must match [A-Za-z0-9_.-]{1,32}")
        kind = None
    agent_type = None if kind == "fork" else kind
    isolation = fields.choice("isolation", options=("worktree", "off", "none"))
    in_background = fields.flag("run_in_background", "runInBackground", "background")
    for ignored, why in (
        ("inherit_context", "a fork inherits by its seed, a typed agent never"),
        ("isolated", "agents have no extensions here"),
    ):
        _ignored(fields, notes, ignored, why)
    for missing in ("resume", "schedule"):
        if fields.take(missing) is not None:
            raise fields.refuse(missing, "is not supported", "Start a new agent instead.")
    if agent_type is None and in_background is False:
        notes.append("run_in_background: false was ignored: a fork by agent is always background")
    effort, thinking = _effort(fields)
    write = isolation == "worktree"
    spec = TaskSpec(
        id=_name(fields, description),
        task=prompt,
        write=write,
        seed=_agent_seed(fields, agent_type),
        model=fields.text("model"),
        effort=effort,
        thinking=thinking,
        max_turns=fields.integer("max_turns", "maxTurns", least=1, most=_MAX_TURNS),
        profile=fields.text("fork_profile", "profile", limit=64),
        tools=_tools(fields, write),
        agent_type=agent_type,
    )
    fields.finish("prompt, description, subagent_type, isolation, run_in_background, model")
    if agent_type is None:
        in_background = True
    return ForkCall(
        tool="agent",
        tasks=(spec,),
        max_concurrency=1,
        background=background if in_background is None else in_background,
        notes=tuple(notes),
    )


def _agent_seed(fields: Fields, agent_type: str | None) -> str:
    turns = fields.take("fork_turns")
    if agent_type is not None:
        if turns is not None:
            raise fields.refuse("fork_turns", "contradicts subagent_type: a typed agent has none")
        return "none"
    if turns is None or turns == "all":
        return "placeholder"
    seed = f"turns:{turns}"
    if isinstance(turns, bool) or _SEED.fullmatch(seed) is None:
        raise fields.refuse("fork_turns", 'must be "all" or a number of turns')
    return seed


def _seed(fields: Fields) -> str | None:
    seed = fields.take("seed")
    if seed is not None and (not isinstance(seed, str) or _SEED.fullmatch(seed) is None):
        raise fields.refuse(
            "seed", "must be before_call, placeholder, completed_turns, turns:N or none"
        )
    return seed


def _effort(fields: Fields) -> tuple[str | None, Literal["off"] | None]:
    """Map ``thinking`` to an effort; ``off`` is no effort but switches thinking off."""
    effort = fields.choice("effort", options=fork_specs.EFFORT)
    thinking = fields.choice("thinking", options=fork_specs.THINKING)
    if thinking is None:
        return effort, None
    if thinking == "off":
        return effort, "off"
    mapped = "low" if thinking == "minimal" else thinking
    if effort is not None and effort != mapped:
        raise fields.refuse("thinking", f"contradicts effort {effort!r}")
    return mapped, None


def _money(fields: Fields) -> Decimal | None:
    amount = fields.amount("budget_usd", "budgetUsd", most=_MAX_BUDGET_USD)
    return None if amount is None else Decimal(str(amount))


def _base(fields: Fields, write: bool) -> Literal["head", "dirty"] | None:
    base = fields.choice("base", options=("head", "dirty"))
    if base is not None and not write:
        raise fields.refuse("base", "contradicts write: false; only a write fork has a base")
    return cast('Literal["head", "dirty"] | None', base)


def _schema(fields: Fields) -> JsonDict | None:
    schema = fields.mapping("output_schema", "outputSchema")
    if schema is not None and schema.get("type") != "object":
        raise fields.refuse("output_schema", 'must describe an object ("type": "object")')
    return schema


def _tools(fields: Fields, write: bool) -> tuple[str, ...] | None:
    value = fields.take("tools", "fork_tools")
    if value is None:
        return None
    if isinstance(value, dict):
        return _filtered(fields, cast("dict[str, Any]", value))
    names = _names(fields, "tools", value)
    changing = [name for name in names if name in _CHANGING]
    if changing and not write:
        raise fields.refuse("tools", f"names {changing[0]}, which contradicts write: false")
    return names


def _filtered(fields: Fields, value: dict[str, Any]) -> tuple[str, ...]:
    unknown = [name for name in value if name not in {"allow", "deny"}]
    if unknown:
        raise fields.refuse(f"tools.{unknown[0]}", "is not known", "Known here: allow, deny.")
    allow = _names(fields, "tools.allow", value["allow"]) if "allow" in value else _TOOLS
    deny = _names(fields, "tools.deny", value["deny"]) if "deny" in value else ()
    return tuple(name for name in allow if name not in deny)


def _names(fields: Fields, field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise fields.refuse(field, "must be a list of tool names")
    names = cast("list[Any]", value)
    for name in names:
        if name not in _TOOLS:
            raise fields.refuse(
                field, f"names the unknown tool {name!r}", f"Known: {', '.join(_TOOLS)}."
            )
    return tuple(dict.fromkeys(names))


def _name(fields: Fields, words: str) -> str:
    name = fields.take("id", "name")
    if name is None:
        return slug(words)
    if not isinstance(name, str) or TASK_ID.match(name) is None:
        raise fields.refuse("name", "must match [A-Za-z0-9_.-]{1,32}")
    return name


def _ignored(fields: Fields, notes: list[str], name: str, why: str) -> None:
    if fields.take(name) is not None:
        note = f"{name} was ignored: {why}"
        if note not in notes:
            notes.append(note)
