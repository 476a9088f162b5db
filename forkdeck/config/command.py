"""A shell command taken apart for the permission rules.

Used by `rules` alone. `Command.simple` is what an allow rule must cover, word for word;
`Command.barred` says why no allow rule may match at all; `Command.suspects` is everything that
might be run, read generously, for ask and deny rules. Nothing is ever executed or expanded.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

LONGEST = 32_768
"""Characters of a command that is still read; longer ones match no allow rule."""

RUNNABLE = 131_072
"""Characters above which no system starts a shell with the command: not even looked at."""

_OPERATORS = ";|&()<>"
# Stand-ins for quoted operator characters, so that the lexer cannot take them for operators.
_MASKS = {char: chr(0xE000 + index) for index, char in enumerate(_OPERATORS)}
_UNMASK = {ord(mask): char for char, mask in _MASKS.items()}
_DESCRIPTORS = frozenset(("1", "2", "-"))
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[^\]]*\])?\+?=")
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox"))
_EVALUATORS = {"python": "c", "perl": "eE", "ruby": "er", "node": "epr", "php": "rB", "lua": "e"}
# fmt: off
_WRAPPERS = frozenset((
    "eval", "env", "xargs", "sudo", "doas", "su", "exec", "source", ".", "command", "builtin",
    "nohup", "setsid", "nice", "ionice", "timeout", "stdbuf", "time", "watch", "parallel",
    "chroot", "unshare", "strace", "script", "ssh", "flock", "chrt", "taskset",
))
_KEYWORDS = frozenset((
    "if", "then", "elif", "else", "do", "while", "until", "for", "case", "!", "{", "}", "time",
    "coproc", "function",
))
# fmt: on
_CRUDE_SPLIT = re.compile(r"\$\(|[;&|()`\n\r{}<>]")


@dataclass(frozen=True)
class Command:
    """A command, taken apart.

    Attributes:
        simple: Words of each simple command in order, quotes removed.
        barred: Why no allow rule may match, in words; empty when one may.
        suspects: Word lists that may be run; more than there are, rather than fewer.
    """

    simple: tuple[tuple[str, ...], ...]
    barred: str
    suspects: tuple[tuple[str, ...], ...]


@lru_cache(maxsize=256)
def parse(text: str) -> Command:
    """Take a command apart; takes any text."""
    if len(text) > RUNNABLE:
        return Command((), "too long to be run", ())
    if len(text) > LONGEST:
        return Command((), "too long to be read", _suspects(text, ()))
    masked, barred = _scan(text)
    simple: list[tuple[str, ...]] = []
    if masked is not None:
        simple, redirected = _split(masked)
        barred = barred or redirected
    if not simple:
        barred = barred or "not a command"
    for words in simple:
        barred = barred or _bar(words)
    return Command(tuple(simple), barred, _suspects(text, tuple(simple)))


def _scan(text: str) -> tuple[str | None, str]:
    """Follow the quotes: return the text with quoted operators masked, and what bars it."""
    out: list[str] = []
    quote = ""
    barred = ""
    index = 0
    while index < len(text):
        char = text[index]
        if char in "\n\r":
            barred = barred or "a newline"
        elif _odd(char):
            barred = barred or "an invisible or control character"
        if char == "\\" and quote != "'":
            following = text[index + 1 : index + 2]
            if following and (following in "\n\r" or _odd(following)):
                barred = barred or "a newline or an invisible character"
            out.append(char + _MASKS.get(following, following))
            index += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        if quote != "'" and char in "$`":
            barred = barred or "a substitution"
        if not quote:
            barred = barred or _expansion(text, index)
        quoted = quote and char in _MASKS
        out.append(_MASKS[char] if quoted else char)
        index += 1
    if quote:
        return None, barred or "an open quote"
    return "".join(out), barred


def _expansion(text: str, index: int) -> str:
    """Say why an unquoted character may become words that the rule never saw."""
    char = text[index]
    if char == "{":
        # Braces make options out of nothing, as in `find . {-exec,touch,x,\\;}`.
        return "a brace expansion"
    if char in "*?[":
        # A pattern that can begin with a dash may match a file that is named like an option.
        start = 1 + max(text.rfind(stop, 0, index) for stop in " \t" + _OPERATORS)
        alone = text[index + 1 : index + 2] in ("", " ", "\t", "?", "[")
        if text[start] == "-" or (start == index and (char != "*" or alone)):
            return "a pattern that may become an option"
    return ""


def _odd(char: str) -> bool:
    """Tell whether a character is one that a shell and a reader may see differently."""
    if char in "\t\n\r" or " " <= char <= "~":
        return False
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp")


def _split(masked: str) -> tuple[list[tuple[str, ...]], str]:
    """Return the simple commands of a masked text, and why a redirection bars it."""
    lexer = shlex.shlex(masked, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        return [], "it cannot be parsed"
    simple: list[tuple[str, ...]] = []
    words: list[str] = []
    barred = ""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        index += 1
        if not token or token[0] not in _OPERATORS:
            words.append(token.translate(_UNMASK))
            continue
        if "<" in token or ">" in token:
            target = tokens[index] if index < len(tokens) else ""
            # A number after `>&` is a descriptor; after a bare `>` it would be a file.
            if (token == ">&" and target in _DESCRIPTORS) or (
                token in (">", ">>", "&>", "&>>") and target == "/dev/null"
            ):
                index += 1
                continue
            barred = barred or "a redirection"
            continue
        if words:
            simple.append(tuple(words))
            words = []
    if words:
        simple.append(tuple(words))
    return simple, barred


def _bar(words: tuple[str, ...]) -> str:
    """Say why this simple command can be allowed by no rule, or return an empty text."""
    first = words[0]
    name = first.rsplit("/", 1)[-1]
    if _ASSIGNMENT.match(first):
        return "a variable set for the command"
    if name in _WRAPPERS:
        return f"{name} runs another command"
    if name in _KEYWORDS or name == "[[":
        return "shell syntax"
    options = [word for word in words[1:] if word.startswith("-") and not word.startswith("--")]
    if "-c" in options:
        return "-c"
    if name in _SHELLS and any("c" in word for word in options):
        return "-c"
    letters = next((flags for tool, flags in _EVALUATORS.items() if name.startswith(tool)), "")
    if letters and _evaluates(words[1:], letters):
        return "code on the command line"
    if any(word in ("-exec", "-execdir", "-ok", "-okdir", "-delete") for word in options):
        return "find with an action"
    return ""


def _evaluates(words: tuple[str, ...], letters: str) -> bool:
    for word in words:
        if word == "-m":
            return False
        if word.startswith(("--eval", "--print", "--require", "--import")):
            return True
        if word.startswith("-") and not word.startswith("--") and set(word) & set(letters):
            return True
    return False


def _suspects(
    text: str, simple: tuple[tuple[str, ...], ...], depth: int = 0
) -> tuple[tuple[str, ...], ...]:
    found: dict[tuple[str, ...], None] = {}
    for words in (*simple, *_crude(text)):
        found.update(dict.fromkeys(_unwrapped(words)))
        if depth >= 2:
            continue
        # A quoted argument may be a command line of its own, as in `bash -c "…"`.
        for word in words[1:]:
            if any(char in word for char in " ;&|"):
                found.update(dict.fromkeys(_suspects(word, (), depth + 1)))
    return tuple(found)


def _crude(text: str) -> list[tuple[str, ...]]:
    """Split at everything that could begin a command, quoted or not."""
    found: list[tuple[str, ...]] = []
    for piece in _CRUDE_SPLIT.split(text.replace("\\\n", "")):
        try:
            words = shlex.split(piece) if len(text) <= LONGEST else piece.split()
        except ValueError:
            words = [word.strip("'\"\\") for word in piece.split()]
        if words:
            found.append(tuple(words))
    return found


def _unwrapped(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return a command, without what stands before it, and by its bare name."""
    start = 0
    while start < len(words) and (words[start] in _KEYWORDS or _ASSIGNMENT.match(words[start])):
        start += 1
    words = words[start:]
    if not words:
        return []
    name = words[0].rsplit("/", 1)[-1]
    found = [words, (name, *words[1:])]
    if name in _WRAPPERS or name in _SHELLS:
        for index in range(1, min(len(words), 12)):
            tail = words[index:]
            found.append((tail[0].rsplit("/", 1)[-1], *tail[1:]))
    return found
