"""Permission rules: their text form, and what they say about one tool call.

Text form: ``tool`` matches every call of a tool, ``bash(pytest -q)`` commands that begin with
these words, ``edit(src/**)`` paths by a gitignore-style pattern relative to the root. Used by the
engine's dispatcher for every call; `config` checks the texts when it loads them.

``deny`` wins over ``ask``, ``ask`` over ``allow``, whatever file a rule came from. ``allow`` is
narrow on purpose (`command` says what it never takes), ``ask`` and ``deny`` are wide.
"""

from __future__ import annotations

import difflib
import posixpath
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from forkdeck.config.command import Command, parse
from forkdeck.errors import ConfigError
from forkdeck.model.raw import JsonDict
from forkdeck.model.words import RuleKind

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

PATH_TOOLS = ("read", "edit", "write", "grep", "find", "ls")
FORK_TOOLS = ("fork_join", "fork", "agent")
TOOLS = ("bash", *PATH_TOOLS, *FORK_TOOLS)
"""Names a rule may begin with."""

_EXAMPLE = 'Write "tool" or "tool(words)", such as "read", "bash(pytest -q)" or "edit(src/**)".'


@dataclass(frozen=True)
class Judgement:
    """What the rules say about a call.

    Attributes:
        kind: The strongest kind of rule that matched, or None when none did.
        rule_text: The rule in its text form (several joined by `` + ``), or empty.
    """

    kind: RuleKind | None
    rule_text: str = ""


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        kind: What it does with a call it matches.
        tool: The tool it is about.
        inner: What stands in the parentheses; None for every call of the tool.
        text: The text form.
        words: Leading words of a ``bash`` rule.
    """

    kind: RuleKind
    tool: str
    inner: str | None
    text: str
    words: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, kind: RuleKind) -> Rule:
        """Read a rule's text form.

        Raises:
            ConfigError: It is none; the message names the text and the right form.
        """
        text = text.strip()
        tool, opened, rest = text.partition("(")
        tool = tool.strip()
        if tool not in TOOLS:
            near = difflib.get_close_matches(tool, TOOLS, 1)
            hint = f' Did you mean "{near[0]}"?' if near else ""
            raise ConfigError(f'The rule "{text}" names no tool.{hint}', _EXAMPLE)
        if not opened:
            return cls(kind, tool, None, tool)
        inner = rest[:-1].strip()
        if not rest.endswith(")") or not inner or "\n" in inner or "\0" in inner:
            raise ConfigError(f'The rule "{text}" cannot be read.', _EXAMPLE)
        if tool in FORK_TOOLS:
            raise ConfigError(f'The rule "{text}" has words, but {tool} takes none.', _EXAMPLE)
        words: tuple[str, ...] = ()
        if tool == "bash":
            try:
                words = tuple(shlex.split(inner))
            except ValueError:
                raise ConfigError(f'The rule "{text}" has an open quote.', _EXAMPLE) from None
        else:
            _spec(inner)
        return cls(kind, tool, inner, f"{tool}({inner})", words)

    @classmethod
    def from_log(cls, text: str) -> Rule:
        """Read a rule as `logged` wrote it.

        Raises:
            ConfigError: It is none.
        """
        kind, _, words = text.partition(" ")
        return cls.parse(words, "allow" if kind == "allow" else "deny")

    @property
    def logged(self) -> str:
        """The rule with its kind, such as ``deny bash(git push)``: a fork's are logged so."""
        return f"{self.kind} {self.text}"

    def covers(self, words: Sequence[str]) -> bool:
        """Tell whether a simple command begins with this rule's words."""
        return tuple(words[: len(self.words)]) == self.words


def judge(
    rules: Iterable[Rule], tool: str, arguments: JsonDict, *, root: str = "", cwd: str | None = None
) -> Judgement:
    """Say what `rules` do with one call.

    Args:
        rules: Rules of any kind, in any order.
        tool: Name of the called tool.
        arguments: The call's input; a wrong one matches no allow rule.
        root: The project root as the run sees it, to which path patterns are relative.
        cwd: Where relative paths start; None: at the root.
    """
    mine = [rule for rule in rules if rule.tool == tool]
    if not mine:
        return Judgement(None)
    if tool == "bash":
        return _judge_command(mine, arguments)
    return _judge_path(mine, tool, arguments, root, cwd)


def grant_text(
    tool: str, arguments: JsonDict, *, root: str = "", cwd: str | None = None
) -> str | None:
    """Return the rule that the person's "always" would grant for this call, or None.

    For ``bash`` the whole simple command, so that nothing shorter is granted than was shown; a
    path for ``edit`` and its like. None: no allow rule could match this call again.
    """
    if tool == "bash":
        command = parse(_text(arguments, "command"))
        if command.barred or len(command.simple) != 1:
            return None
        return f"bash({shlex.join(command.simple[0])})"
    if tool in PATH_TOOLS:
        path = _inside(_path(tool, arguments), root, cwd)
        return None if not path or not path.isprintable() else f"{tool}(/{_escaped(path)})"
    return tool if tool in FORK_TOOLS else None


def _judge_command(rules: list[Rule], arguments: JsonDict) -> Judgement:
    command = parse(_text(arguments, "command"))
    for kind in ("deny", "ask"):
        for rule in rules:
            if rule.kind == kind and _catches(rule, command):
                return Judgement(kind, rule.text)
    allowing = [rule for rule in rules if rule.kind == "allow"]
    if command.barred or not command.simple:
        return Judgement(None)
    used: list[str] = []
    for words in command.simple:
        rule = next((rule for rule in allowing if rule.covers(words)), None)
        if rule is None:
            return Judgement(None)
        if rule.text not in used:
            used.append(rule.text)
    return Judgement("allow", " + ".join(used))


def _catches(rule: Rule, command: Command) -> bool:
    return rule.inner is None or any(rule.covers(words) for words in command.suspects)


def _judge_path(
    rules: list[Rule], tool: str, arguments: JsonDict, root: str, cwd: str | None
) -> Judgement:
    given = _path(tool, arguments) if tool in PATH_TOOLS else ""
    path = _inside(given, root, cwd)
    for kind in ("deny", "ask", "allow"):
        for rule in rules:
            if rule.kind != kind:
                continue
            if rule.inner is None:
                return Judgement(kind, rule.text)
            # Outside the root a pattern still bars, read as if the file system were the root.
            wide = posixpath.normpath(given).lstrip("/.") if kind != "allow" else None
            tried = path if path is not None else wide
            if tried and _spec(rule.inner).match_file(tried):
                return Judgement(kind, rule.text)
    return Judgement(None)


def _text(arguments: JsonDict, name: str) -> str:
    value = arguments.get(name)
    return value if isinstance(value, str) else ""


def _path(tool: str, arguments: JsonDict) -> str:
    given = _text(arguments, "path")
    return given or ("." if tool in ("grep", "find", "ls") else "")


def _inside(given: str, root: str, cwd: str | None) -> str | None:
    """Return a path relative to the root, or None when it is outside or no path at all."""
    if not given or "\0" in given:
        return None
    start = cwd if cwd is not None else root
    full = posixpath.normpath(posixpath.join(start or "/", given))
    relative = posixpath.relpath(full, root or "/")
    return None if relative == ".." or relative.startswith("../") else relative


def _escaped(path: str) -> str:
    return "".join(f"\\{char}" if char in "\\*?[]!# " else char for char in path)


@lru_cache(maxsize=512)
def _spec(pattern: str) -> GitIgnoreSpec:
    import pathspec  # noqa: PLC0415 - only rules with paths need it

    if pattern.startswith(("!", "#")):
        raise ConfigError(f'The path pattern "{pattern}" matches nothing.', _EXAMPLE)
    try:
        return pathspec.GitIgnoreSpec.from_lines([pattern])
    except ValueError:
        raise ConfigError(f'The path pattern "{pattern}" cannot be read.', _EXAMPLE) from None
