"""Reading fork profiles (TOML) and agent files (Markdown with a header); text in, values out.

`Profiles` fetches the bytes of trusted files and hands them over. Every fault names the file and
the field. Nothing here widens: what a profile gives is narrowed by the session's own rules.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, cast

from forkdeck.config.keys import BY_NAME
from forkdeck.config.rules import TOOLS, Rule
from forkdeck.engine.limits import NO_LIMITS, Limits
from forkdeck.errors import AdmissionRefused, ConfigError
from forkdeck.model.raw import clean_text

HINT_CHARS: Final = 4_000

_FOREIGN: Final = {"LS": "ls", "Glob": "find", "MultiEdit": "edit"}
"""Tool names of other programs' agent files that differ by more than case."""

_WITHOUT_MATCH: Final = """
AskUserQuestion BashOutput EnterPlanMode ExitPlanMode KillBash KillShell ListMcpResourcesTool LSP
NotebookEdit NotebookRead ReadMcpResourceTool SendMessage Skill SlashCommand Task TaskCreate TaskGet
TaskList TaskOutput TaskStop TaskUpdate TodoRead TodoWrite ToolSearch WebFetch WebSearch
"""
"""Tool names of other programs that nothing here stands for: passed over, and said."""

_SETTINGS: Final = {
    "model": "model",
    "effort": "forks.effort",
    "thinking": "forks.thinking",
    "seed": "forks.seed",
    "max_turns": "forks.max_turns",
    "timeout_s": "forks.timeout_s",
    "budget_usd": "forks.budget_usd",
    "budget_tokens": "forks.budget_tokens",
}
"""Fields of a profile that are checked as the setting of that name is."""

_PROFILE_FIELDS: Final = ("hint", "description", "allow", "deny", *_SETTINGS)


@dataclass(frozen=True)
class Profile:
    """What a profile or an agent file says.

    Attributes:
        name: Its name.
        description: What it is for, for those who choose one.
        hint: Words for the directive.
        body: The system prompt of a typed agent.
        tools: Tools it gives; None: all.
        denied: Tools it takes away.
        rules: Narrower rules on arguments: a call of a tool with `allow` rules must match one,
            and one that matches a `deny` rule is refused.
        model: Another model.
        effort: Another effort.
        thinking: A thinking level; ``off`` switches it off.
        seed: The seed mode when the call names none.
        limits: Its limits; the narrower of these and the call's hold.
        notes: What of it was passed over, for those who launch it.
    """

    name: str
    description: str = ""
    hint: str = ""
    body: str = ""
    tools: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = ()
    model: str | None = None
    effort: str | None = None
    thinking: str | None = None
    seed: str | None = None
    limits: Limits = NO_LIMITS
    notes: tuple[str, ...] = ()


def read_profile(name: str, path: str, data: bytes) -> Profile:
    """Read a profile, such as ``.forkdeck/profiles/reviewer.toml``.

    Raises:
        AdmissionRefused: It is no TOML, or a field is unknown or wrong; both are named.
    """
    try:
        table: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AdmissionRefused(f"profile: {path} is no TOML: {error}.") from error
    for field in table:
        if field not in _PROFILE_FIELDS:
            near = difflib.get_close_matches(field, _PROFILE_FIELDS, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise _fault("profile", path, field, f"there is no such field.{hint}")
    tools, allowed = _rules(table, path, "allow")
    whole, denied = _rules(table, path, "deny")
    values = {field: _setting(table, path, field) for field in _SETTINGS}
    return Profile(
        name=name,
        description=_words(table, path, "description"),
        hint=_words(table, path, "hint"),
        tools=frozenset(tools) if "allow" in table else None,
        denied=frozenset(whole),
        rules=(*allowed, *denied),
        model=values["model"],
        effort=values["effort"],
        thinking=values["thinking"],
        seed=values["seed"],
        limits=Limits(
            max_turns=values["max_turns"],
            timeout_s=values["timeout_s"],
            budget_usd=cast("Decimal | None", values["budget_usd"]),
            budget_tokens=values["budget_tokens"],
        ),
    )


def read_agent(name: str, path: str, data: bytes) -> Profile:
    """Read an agent file: a header of name, description, tools and model, then its prompt.

    Fields that other programs put there are passed over.

    Raises:
        AdmissionRefused: It is no text, the header is no header, the prompt is empty, or a field
            is wrong.
    """
    text = _text(path, data)
    header: dict[str, list[str]] = {}
    if text.startswith("---"):
        head, closed, text = text[3:].partition("\n---")
        if not closed:
            raise AdmissionRefused(
                f"subagent_type: {path}: the header has no closing line of dashes."
            )
        header = parse_header(head)
    body = text.strip()
    if not body:
        raise AdmissionRefused(f"subagent_type: {path} has no prompt behind its header.")
    values = {key: " ".join(value) for key, value in header.items() if value}
    tools, unmatched = _tools(header.get("tools"), path, "tools")
    denied, _ = _tools(header.get("disallowedTools"), path, "disallowedTools")
    model, unread = _model(values.get("model"))
    own = values.get("name", name)
    return Profile(
        name=own,
        description=values.get("description", ""),
        body=body,
        tools=tools,
        denied=denied or frozenset(),
        model=model,
        notes=tuple(f"agent {own}: {note}" for note in (unmatched, unread) if note),
        effort=_setting(values, path, "effort", what="subagent_type"),
    )


def parse_header(text: str) -> dict[str, list[str]]:
    """Read ``key: value``, ``key: [a, b]``, lists of ``- item`` lines and block texts.

    No more of YAML: anchors, tags and nested mappings are passed over.
    """
    found: dict[str, list[str]] = {}
    key, block = "", False
    for line in text.splitlines():
        stripped = line.strip()
        nested = line[:1].isspace()
        if not stripped or (stripped.startswith("#") and not block):
            continue
        if block and nested:
            found[key].append(stripped)
        elif stripped.startswith("- ") and key:
            found[key].append(_plain(stripped[2:]))
        elif ":" in stripped and not nested:
            key, _, value = stripped.partition(":")
            key, value = key.strip(), value.strip()
            block = value in ("|", ">", "|-", ">-", "|+", ">+")
            listed = value.startswith("[") and value.endswith("]")
            parts = [] if block else value[1:-1].split(",") if listed else [value]
            found[key] = [_plain(part) for part in parts if _plain(part)]
    return found


def _plain(text: str) -> str:
    return text.strip().strip("\"'")


def _fault(what: str, path: str, field: str, why: str) -> AdmissionRefused:
    return AdmissionRefused(f"{what}: {path}: {field}: {why}")


def _words(table: dict[str, Any], path: str, field: str) -> str:
    value = table.get(field, "")
    if not isinstance(value, str) or len(value) > HINT_CHARS:
        raise _fault("profile", path, field, f"must be a text of at most {HINT_CHARS} characters.")
    return clean_text(value).strip()


def _setting(table: dict[str, Any], path: str, field: str, *, what: str = "profile") -> Any:
    if field not in table:
        return None
    read: Callable[[Any], Any] = BY_NAME[_SETTINGS[field]].read
    try:
        return read(table[field])
    except ValueError as error:
        raise _fault(what, path, field, f"must be {error}.") from error


def _rules(table: dict[str, Any], path: str, field: str) -> tuple[set[str], list[Rule]]:
    """Return the tools that are named whole or in part, and the rules with arguments.

    For ``deny`` only the tools that are named without arguments.
    """
    given = table.get(field, [])
    if not isinstance(given, list):
        raise _fault("profile", path, field, 'must be a list, such as ["read", "bash(pytest)"].')
    tools: set[str] = set()
    rules: list[Rule] = []
    for text in cast("list[Any]", given):
        try:
            rule = Rule.parse(str(text), "allow" if field == "allow" else "deny")
        except ConfigError as error:
            raise _fault("profile", path, field, str(error)) from error
        if rule.inner is not None:
            rules.append(rule)
        if rule.inner is None or field == "allow":
            tools.add(rule.tool)
    if field == "allow":
        # "bash" beside "bash(pytest)" gives all of bash.
        whole = {str(text).strip() for text in cast("list[Any]", given)} & set(TOOLS)
        rules = [rule for rule in rules if rule.tool not in whole]
    return tools, rules


def _text(path: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AdmissionRefused(f"subagent_type: {path} is no text in UTF-8: {error}.") from error
    if "\0" in text:
        raise AdmissionRefused(f"subagent_type: {path} is no text: it holds a NUL character.")
    return clean_text(text).removeprefix("\ufeff").strip()


def _tools(names: list[str] | None, path: str, field: str) -> tuple[frozenset[str] | None, str]:
    """Return the named tools (None: all), and a note on those that have no match here."""
    if names is None:
        return None, ""
    found: set[str] = set()
    passed: list[str] = []
    for each in (part.strip() for entry in names for part in entry.split(",")):
        if each == "*":
            return None, ""
        tool = _FOREIGN.get(each, each.lower())
        if tool in TOOLS:
            found.add(tool)
        elif each in _WITHOUT_MATCH.split() or each.startswith("mcp__"):
            passed.append(each)
        elif each:
            near = difflib.get_close_matches(tool, TOOLS, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise _fault("subagent_type", path, field, f"there is no tool {each!r}.{hint}")
    note = f"{', '.join(passed)} in {field} has no match here and is passed over."
    return frozenset(found), note if passed else ""


def _model(name: str | None) -> tuple[str | None, str]:
    """Return a model's full name, and a note on one that is not; ``inherit``: the parent's."""
    if not name or name == "inherit":
        return None, ""
    if re.search(r"\d", name) and "-" in name:
        return name, ""
    note = f"the model {name!r} is no full name of one and is passed over, as if it named none."
    return None, note
