"""The one table of slash commands, read by the prompt's completion, the palette and help.

`interpret` turns a typed line into what is to be done: an intent for the deck, or an action of
the screen. It does nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

from forkdeck.errors import UsageError
from forkdeck.model.ids import is_handle
from forkdeck.model.intents import (
    AbortFork,
    CompactParent,
    Intent,
    RunShell,
    SendPrompt,
    SetMode,
    SetModel,
    StartFork,
)
from forkdeck.model.words import Mode

MODES: tuple[Mode, ...] = get_args(Mode)
"""The approval modes, narrow to wide."""

MAX_FORKS = 8
"""How many forks one call may start."""

EFFORTS = ("low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class UiAction:
    """Something the screen does itself: the method ``do_<name>`` with `argument`."""

    name: str
    argument: str = ""


Outcome: TypeAlias = Intent | UiAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One slash command.

    ``choices`` are the words its argument may be completed with; ``run`` turns the rest of the
    line into what is to be done and raises `UsageError` when it makes no sense.
    """

    name: str
    args: str
    help: str
    run: Callable[[str], Outcome]
    choices: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """The command as it is typed, with its arguments."""
        return f"/{self.name} {self.args}".rstrip()


def _no_argument(name: str) -> Callable[[str], Outcome]:
    def run(rest: str) -> Outcome:
        if rest:
            raise UsageError(f"/{name} takes no argument.", f"Type /{name} alone.")
        return UiAction(name)

    return run


def _with_argument(name: str) -> Callable[[str], Outcome]:
    def run(rest: str) -> Outcome:
        return UiAction(name, rest)

    return run


def _fork(rest: str) -> Outcome:
    write, private, count, seed = False, False, 1, None
    text, seen = rest, set[str]()
    while text.startswith("--"):
        flag, _, text = text.partition(" ")
        text = text.lstrip()
        if flag == "--":
            break
        if flag in seen:
            raise UsageError(f"/fork got {flag} twice.", "Give it once.")
        seen.add(flag)
        if flag == "--write":
            write = True
        elif flag == "--private":
            private = True
        elif flag in {"--n", "--seed"}:
            value, _, text = text.partition(" ")
            text = text.lstrip()
            if flag == "--seed":
                seed = _seed(value)
            else:
                count = _count(value)
        else:
            raise UsageError(
                f"/fork does not know {flag}.", "It knows --write, --n N, --seed MODE, --private."
            )
    if not text.strip():
        raise UsageError("/fork needs a task.", "Type /fork find every retry in src/http")
    return StartFork(task=text.strip(), write=write, count=count, seed=seed, private=private)


def _count(value: str) -> int:
    if 1 <= _number(value) <= MAX_FORKS:
        return _number(value)
    if not value:
        raise UsageError("--n needs a number of forks.", f"Use 1 to {MAX_FORKS}.")
    if not value.isdecimal() or len(value) > 4:
        what = f"--n is a number of forks, not {value[:20]!r}."
        raise UsageError(what, f"Use 1 to {MAX_FORKS}.")
    raise UsageError(f"--n must be 1 to {MAX_FORKS}, not {value}.", "Another /fork starts more.")


def _number(text: str) -> int:
    """Return a number of at most four digits; 0 for anything else."""
    return int(text) if text.isdecimal() and len(text) <= 4 else 0


_SEEDS = ("before_call", "placeholder", "completed_turns", "turns:N", "none")


def _seed(value: str) -> str:
    kind, _, count = value.partition(":")
    turns = kind == "turns" and _number(count) > 0
    if not value:
        raise UsageError("--seed needs a value.", f"Use one of {', '.join(_SEEDS)}.")
    if not turns and value not in _SEEDS[:3] + _SEEDS[4:]:
        raise UsageError(f"There is no seed {value!r}.", f"Use one of {', '.join(_SEEDS)}.")
    return f"turns:{int(count)}" if turns else value


def _abort(rest: str) -> Outcome:
    if not rest:
        return UiAction("fork_abort")
    if rest == "all":
        return UiAction("fork_abort_all")
    name = f"f{rest}" if rest.isdecimal() else rest
    if not is_handle(name):
        raise UsageError(f"{rest!r} is no fork.", "Type /abort f3, /abort 3 or /abort all.")
    return AbortFork(handle=name)


def _model(rest: str) -> Outcome:
    words = rest.split()
    if not words:
        return UiAction("model")
    if len(words) > 2 or (len(words) == 2 and words[1] not in EFFORTS):
        raise UsageError(
            "/model takes a model and perhaps an effort.",
            f"The efforts are {', '.join(EFFORTS)}.",
        )
    return SetModel(model=words[0], effort=words[1] if len(words) == 2 else None)


def _mode(rest: str) -> Outcome:
    if not rest:
        return UiAction("mode_cycle")
    if rest not in MODES:
        raise UsageError(f"There is no mode {rest!r}.", f"Use one of {', '.join(MODES)}.")
    return SetMode(mode=rest)


COMMANDS: tuple[Command, ...] = (
    Command(name="help", args="", help="keys and commands", run=_no_argument("help")),
    Command(
        name="fork",
        args="[--write] [--n N] [--seed MODE] [--private] <task>",
        help="start a fork from this conversation",
        run=_fork,
        choices=("--write", "--n", "--seed", "--private"),
    ),
    Command(
        name="abort",
        args="[f3 | all]",
        help="abort the selected fork, one by handle, or all",
        run=_abort,
        choices=("all",),
    ),
    Command(
        name="model", args="[NAME [effort]]", help="another model; makes a new prefix", run=_model
    ),
    Command(
        name="mode",
        args="[MODE]",
        help="what needs a question: plan, default, accept-edits, auto",
        run=_mode,
        choices=MODES,
    ),
    Command(
        name="plan", args="", help="the launch that waits for a yes, in full",
        run=_no_argument("plan"),
    ),
    Command(
        name="compact", args="[HINT]", help="replace older messages by a summary; a new prefix",
        run=lambda rest: CompactParent(hint=rest),
    ),
    Command(name="cost", args="", help="cost and cache of every run", run=_no_argument("cost")),
    Command(
        name="cache", args="", help="the shared prefix of every run: read, missed, and why",
        run=_no_argument("cache"),
    ),
    Command(
        name="notices", args="", help="everything this session has said",
        run=_no_argument("notices"),
    ),
    Command(
        name="theme", args="[NAME]", help="another theme, or the next one",
        run=_with_argument("theme"),
    ),
    Command(
        name="trust", args="", help="the project's files that could change how ForkDeck acts",
        run=_no_argument("trust"),
    ),
    Command(
        name="sessions", args="", help="saved sessions: open, replay, search",
        run=_no_argument("sessions"),
    ),
    Command(
        name="replay", args="[SESSION | FILE]", help="play a saved session in this deck",
        run=_with_argument("replay"),
    ),
    Command(
        name="clear", args="", help="close this session and open a new one",
        run=_no_argument("clear"),
    ),
    Command(name="quit", args="", help="quit, says what becomes of the forks",
            run=_no_argument("quit")),
)  # fmt: skip
"""Every slash command, in the order help lists them."""

_BY_NAME = {command.name: command for command in COMMANDS}


def interpret(text: str) -> Outcome:
    """Return what a typed prompt asks for.

    A line that begins with ``/`` and a word is a command, one with ``!`` a shell command, the
    rest a prompt. A path such as ``/etc/hosts is wrong`` is a prompt.

    Raises:
        UsageError: The command does not exist, or its arguments make no sense.
    """
    stripped = text.strip()
    if stripped.startswith("!"):
        command = stripped[1:].strip()
        if not command:
            raise UsageError("! needs a command.", "Type !git status")
        return RunShell(command=command)
    if not stripped.startswith("/"):
        return SendPrompt(text=text)
    name, _, rest = stripped[1:].partition(" ")
    if "/" in name or not name:
        return SendPrompt(text=text)
    command_entry = _BY_NAME.get(name)
    if command_entry is None:
        near = [entry.name for entry in COMMANDS if entry.name.startswith(name[:2])]
        hint = f"Did you mean /{near[0]}?" if near and name else "Type / to see the commands."
        raise UsageError(f"There is no command /{name}.", hint)
    return command_entry.run(rest.strip())


def runs_alone(command: str) -> bool:
    """Tell whether a command such as ``/cost`` takes no argument, so that it can run at once."""
    entry = _BY_NAME.get(command.removeprefix("/"))
    return entry is not None and not entry.args


def completions(
    text: str, handles: Sequence[str] = (), themes: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Return (whole line, help) for what a command line that begins like `text` may become."""
    if not text.startswith("/") or "\n" in text:
        return []
    name, space, rest = text[1:].partition(" ")
    if not space:
        return [
            (f"/{entry.name} " if entry.args else f"/{entry.name}", entry.help)
            # What is typed whole comes first: /mode must not become /model.
            for entry in sorted(COMMANDS, key=lambda entry: entry.name != name)
            if entry.name.startswith(name)
        ]
    entry = _BY_NAME.get(name)
    if entry is None:
        return []
    choices = {"abort": (*handles, *entry.choices), "theme": tuple(themes)}.get(name, entry.choices)
    head, _, last = rest.rpartition(" ")
    start = f"/{name} {head} " if head else f"/{name} "
    return [
        (f"{start}{choice}", entry.usage)
        for choice in choices
        if choice.startswith(last) and choice != last and (last or name != "fork")
    ]
