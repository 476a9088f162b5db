"""The one table of every key, from which footer, help, palette and README's table are made.

Screens ask `find` what a key means in their zones and then call the method ``do_<action>``; they
know no key by themselves. Data comes from here alone; a test looks for clashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Zone: TypeAlias = Literal[
    "prompt", "deck", "zoom", "replay", "start", "sessions", "diff", "cost", "plan",
    "cache", "notices",
]  # fmt: skip
"""Where letters mean what; ``prompt`` is the only zone where letters are letters."""

Need: TypeAlias = Literal["", "live", "worktrees"]
"""What a deck must be able to do for the binding to act (`Capabilities`)."""

Section: TypeAlias = Literal["move", "needs you", "steer and stop", "results", "view", "anywhere"]
"""Where help lists it."""

_DECKS: frozenset[Zone] = frozenset(("deck", "zoom"))
_PAGES: frozenset[Zone] = frozenset(("diff", "cost", "sessions", "plan", "cache", "notices"))
_EVERY: frozenset[Zone] = _PAGES.union(("prompt", "deck", "zoom", "replay", "start"))


def _also(zones: frozenset[Zone], *more: Zone) -> frozenset[Zone]:
    return zones.union(more)


def _but(zones: frozenset[Zone], *less: Zone) -> frozenset[Zone]:
    return zones.difference(less)


_LETTERS: frozenset[Zone] = _but(_EVERY, "prompt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One thing a key does.

    ``keys`` are single characters as typed, or Textual key names. ``word`` stands in the footer
    (only when ``rank`` is above 0, lowest first), ``help`` in the help, palette and README.
    """

    id: str
    keys: tuple[str, ...]
    zones: frozenset[Zone]
    word: str
    help: str
    action: str
    section: Section
    need: Need = ""
    rank: int = 0
    label: str = ""
    """How the keys are written; made from `keys` when empty."""

    @property
    def shown(self) -> str:
        """The keys as a person reads them."""
        return self.label or " ".join(key_name(key) for key in self.keys)


_NAMES = {
    "up": "↑", "down": "↓", "left": "←", "right": "→", "pageup": "PgUp", "pagedown": "PgDn",
    "escape": "Esc", "enter": "Enter", "tab": "Tab", "shift+tab": "Shift+Tab", "space": "Space",
    "shift+enter": "Shift+Enter", "home": "Home", "end": "End",
}  # fmt: skip


def key_name(key: str) -> str:
    """Return how a key is written: ``Ctrl+X`` for ``ctrl+x``, ``↑`` for ``up``."""
    if key in _NAMES:
        return _NAMES[key]
    if key.startswith("ctrl+"):
        return "Ctrl+" + key_name(key[5:]).capitalize()
    return key.upper() if len(key) > 1 and key[0] == "f" and key[1:].isdigit() else key


def _b(  # noqa: PLR0913 - the columns of a table, each row one line of it
    name: str,
    keys: str,
    zones: Iterable[Zone],
    word: str,
    text: str,
    section: Section,
    *,
    need: Need = "",
    rank: int = 0,
    label: str = "",
    action: str = "",
) -> Binding:
    return Binding(
        id=name,
        keys=tuple(keys.split()),
        zones=frozenset(zones),
        word=word,
        help=text,
        action=action or name.replace(".", "_").replace("-", "_"),
        section=section,
        need=need,
        rank=rank,
        label=label,
    )


_DIGITS = "1 2 3 4 5 6 7 8 9"

BINDINGS: tuple[Binding, ...] = (
    # --- move
    _b("prompt.send", "enter", ["prompt"], "send", "send the prompt", "move", rank=10),
    _b("prompt.newline", "ctrl+j shift+enter", ["prompt"], "new line", "new line", "move",
       rank=20, label="Ctrl+J"),
    _b("zone.deck", "tab", ["prompt"], "deck", "from the prompt to the deck", "move", rank=30),
    _b("zone.prompt", "tab q", _but(_LETTERS, *_PAGES), "prompt",
       "back to the prompt", "move", need="live", rank=10, label="Tab q"),
    _b("prompt.older", "up", ["prompt"], "history", "older prompt, on the first line", "move",
       rank=40),
    _b("prompt.newer", "down", ["prompt"], "newer", "newer prompt, on the last line", "move"),
    _b("prompt.search", "ctrl+r", ["prompt"], "search", "search the prompt history", "move"),
    _b("prompt.editor", "ctrl+g", ["prompt"], "editor", "write the prompt in $EDITOR", "move"),
    _b("prompt.scroll-up", "pageup", ["prompt"], "scroll", "scroll the conversation up", "move"),
    _b("prompt.scroll-down", "pagedown", ["prompt"], "scroll", "scroll it down", "move"),
    _b("move.down", "j down", ["deck"], "move", "next fork", "move", rank=20, label="j ↓"),
    _b("move.up", "k up", ["deck"], "up", "previous fork", "move", label="k ↑"),
    _b("zoom.down", "j down", ["zoom"], "scroll", "one line down, in the zoom", "move",
       label="j ↓"),
    _b("zoom.up", "k up", ["zoom"], "scroll", "one line up, in the zoom", "move", label="k ↑"),
    _b("list.down", "j down", _also(_PAGES, "start"), "move", "next line", "move",
       rank=15, label="j ↓"),
    _b("list.up", "k up", _also(_PAGES, "start"), "up", "previous line", "move",
       label="k ↑"),
    _b("fork.number", _DIGITS, _DECKS, "fork", "fork by number", "move", label="1–9"),
    _b("fork.parent", "0", _DECKS, "parent", "the parent", "move"),
    _b("move.left", "h left", _DECKS, "left", "left in the grid, fold", "move", label="h ←"),
    _b("move.right", "l right", _DECKS, "right", "right in the grid, unfold", "move",
       label="l →"),
    _b("move.first", "g home", _but(_LETTERS, "replay", "start"), "first", "to the first", "move",
       label="g"),
    _b("move.last", "G end", _but(_LETTERS, "replay", "start"), "last", "to the last, follow",
       "move", label="G"),
    _b("zoom.toggle", "enter z", _DECKS, "zoom", "zoom in and out", "move", rank=30,
       label="Enter z"),
    _b("zoom.previous", "[", ["zoom"], "fork", "previous fork, in the zoom", "move"),
    _b("zoom.next", "]", ["zoom"], "fork", "next fork, in the zoom", "move", rank=25,
       label="[ ]"),
    _b("turn.previous", "{", _DECKS, "turn", "previous turn or step", "move"),
    _b("turn.next", "}", _DECKS, "turn", "next turn or step", "move"),
    _b("page.up", "pageup", _but(_LETTERS, "start"), "page up", "scroll one page up", "move"),
    _b("page.down", "pagedown", _but(_LETTERS, "start"), "page down", "scroll one page down",
       "move"),
    _b("out", "escape", _EVERY, "back", "one step outward; it stops nothing", "move"),
    # --- needs you
    _b("owed.next", "w", _DECKS, "next owed", "next that needs you, oldest first", "needs you",
       rank=80),
    _b("owed.only", "W", _DECKS, "only owed", "show only what needs you", "needs you"),
    _b("owed.settle", ".", _DECKS, "settle", "settle the owed mark", "needs you", need="live"),
    _b("answer.once", "y", _DECKS, "once", "allow the shown request once", "needs you",
       need="live"),
    _b("answer.fork", "a", _DECKS, "this fork", "allow it for this fork", "needs you",
       need="live"),
    _b("answer.batch", "A", _DECKS, "all forks", "allow all of its batch; all forks of the call",
       "needs you", need="live"),
    _b("answer.deny", "-", _DECKS, "deny", "deny the shown request", "needs you", need="live"),
    _b("answer.reason", "_", _DECKS, "deny, say why", "deny it and say why", "needs you",
       need="live"),
    _b("answer.edit", "e", _DECKS, "edit", "edit the shown command, then allow it once",
       "needs you", need="live"),
    # --- steer and stop
    _b("fork.peek", "space", _DECKS, "peek", "look closer; type to steer", "steer and stop",
       rank=40),
    _b("fork.steer", "i", _DECKS, "steer", "tell it something", "steer and stop",
       need="live", rank=65),
    _b("fork.cancel-tool", "K", _DECKS, "stop tool", "stop only its tool",
       "steer and stop", need="live", rank=75),
    _b("fork.abort", "x", _DECKS, "abort", "abort this fork; what it did is kept",
       "steer and stop", need="live", rank=50),
    _b("fork.abort-all", "X", _DECKS, "abort all", "abort all forks, asks first",
       "steer and stop", need="live"),
    _b("fork.resume", "r", _DECKS, "resume", "resume or follow up; resend a failed turn",
       "steer and stop", need="live"),
    _b("undo", "u", _also(_DECKS, "diff"), "undo", "undo the last act, names it first",
       "steer and stop", need="live"),
    _b("fork.new", "f", _DECKS, "fork", "fork from here; begins a /fork command", "steer and stop",
       need="live"),
    _b("budget", "b", _also(_DECKS, "cost"), "limits", "a fork's limits, else the session's budget",
       "steer and stop", need="live"),
    # --- results
    _b("fork.diff", "d", _DECKS, "diff", "diff against its base", "results", rank=60),
    _b("fork.apply", "m", _DECKS, "apply", "apply to your tree", "results",
       need="worktrees", rank=70),
    _b("fork.discard", "D", _also(_DECKS, "diff"), "discard", "discard its work, a copy is kept",
       "results", need="worktrees"),
    _b("copy.report", "c", _DECKS, "copy", "copy the selection or report", "results"),
    _b("copy.diff", "C", _also(_DECKS, "diff"), "copy diff", "copy the diff", "results"),
    _b("diff.apply", "m enter", ["diff"], "apply", "apply as the chosen method", "results",
       need="worktrees", rank=30, label="Enter m"),
    _b("diff.method", "1 2", ["diff"], "method", "patch, or cherry-pick", "results", rank=25,
       need="worktrees", label="1 2"),
    # --- view
    _b("view.denser", "v", _DECKS, "denser", "denser: panes, tiles, rows", "view"),
    _b("view.roomier", "V", _DECKS, "roomier", "roomier", "view"),
    _b("search.text", "/", _DECKS, "search", "search the transcript", "view"),
    _b("search.next", "n", _DECKS, "next match", "next match", "view"),
    _b("search.previous", "N", _DECKS, "match", "previous match", "view"),
    _b("view.sort", "s", _DECKS, "sort", "sort; by attention, number, age or cost", "view"),
    _b("view.verbosity", "ctrl+o", _also(_DECKS, "prompt"), "detail",
       "more or less detail", "view"),
    _b("session.rename", "R", _DECKS, "rename", "rename the session", "view", need="live"),
    # --- replay
    _b("replay.toggle", "space", ["replay"], "play, pause", "play or pause", "view", rank=12),
    _b("replay.next", ".", ["replay"], "event", "one event forward", "view", rank=14,
       label=". ,"),
    _b("replay.previous", ",", ["replay"], "event", "one event back", "view"),
    _b("replay.forward", "right", ["replay"], "5 s", "5 seconds forward", "view", rank=16,
       label="← →"),
    _b("replay.back", "left", ["replay"], "5 s", "5 seconds back", "view"),
    _b("replay.slower", "<", ["replay"], "slower", "half the speed", "view"),
    _b("replay.faster", ">", ["replay"], "speed", "twice the speed", "view", rank=18,
       label="< >"),
    _b("replay.idle", "I", ["replay"], "skip idle", "cut idle time, or play it", "view",
       rank=22),
    _b("replay.goto", "'", ["replay"], "go to", "go to a time or percent", "view", rank=24),
    _b("replay.timeline", "t", ["replay"], "timeline", "show or hide the timeline", "view"),
    _b("replay.owed", "w", ["replay"], "next owed", "play on to the next that needed someone",
       "view", rank=26),
    _b("replay.turn-next", "}", ["replay"], "turn", "on to the next turn", "view"),
    _b("replay.turn-previous", "{", ["replay"], "turn", "back to the turn before", "view"),
    # --- start and session list
    _b("start.open", "enter", ["start", "sessions"], "open", "open the session", "move",
       rank=20),
    _b("start.number", "1 2 3 4 5", ["start"], "open", "open by number", "move", rank=22,
       label="1–5"),
    _b("start.new", "n", ["start"], "new", "new session here", "move", rank=24),
    _b("start.demo", "d", ["start"], "demo", "the demo, offline, no key", "move", rank=26),
    _b("start.replay", "r", ["start", "sessions"], "replay", "play it in the deck", "move",
       rank=28),
    _b("start.sessions", "/", ["start"], "search", "all sessions, with search", "move",
       rank=29),
    _b("sessions.search", "/", ["sessions"], "search", "search the list", "move", rank=29),
    # --- launch plan
    _b("plan.launch", "enter y", ["plan"], "launch", "launch the planned forks", "needs you",
       need="live", rank=10, label="Enter y"),
    _b("plan.refuse", "-", ["plan"], "refuse", "refuse; nothing has started", "needs you",
       need="live", rank=12),
    _b("plan.reason", "_", ["plan"], "say why", "refuse and say why", "needs you", need="live",
       rank=13),
    _b("plan.leave", "x", ["plan"], "leave out", "leave this fork out", "needs you", need="live",
       rank=14),
    # --- cost and cache
    _b("cache.open", "enter", ["cache"], "zoom", "zoom into the run", "move", rank=20),
    _b("cost.open", "enter", ["cost"], "zoom", "zoom into the run", "move", rank=20),
    _b("cost.copy", "c", ["cost"], "copy as CSV", "copy the table as CSV", "results", rank=30),
    # --- anywhere
    _b("leader", "ctrl+x", ["prompt", "deck", "zoom", "replay"], "fork",
       "fork from anywhere; then 1–9, 0, w (next owed) or x (abort)", "anywhere",
       label="Ctrl+X 1–9"),
    _b("mode.cycle", "shift+tab", ["prompt", "deck", "zoom"], "mode",
       "approval mode; plan, default, accept-edits, auto", "anywhere", need="live"),
    _b("interrupt", "ctrl+c", _EVERY, "copy, clear, stop",
       "copy, clear, stop; selection, prompt, parent, then quit", "anywhere"),
    _b("quit", "ctrl+d", _EVERY, "quit", "quit; says what becomes of the forks", "anywhere"),
    _b("repaint", "ctrl+l", _EVERY, "repaint", "paint the screen anew", "anywhere"),
    _b("mouse", "f8", _EVERY, "mouse", "mouse on or off", "anywhere"),
    _b("palette", ":", _LETTERS, "palette", "every command", "anywhere", rank=900),
    _b("help", "? f1", _LETTERS, "help", "the keys of this zone", "anywhere", rank=990,
       label="?"),
    _b("prompt.help", "f1", ["prompt"], "help", "the keys, from the prompt", "anywhere",
       rank=990),
)  # fmt: skip
"""Every binding, in the order help and README list them."""

LEADER: dict[str, str] = {
    **{str(digit): "fork_number" for digit in range(1, 10)},
    "0": "fork_parent",
    "w": "owed_next",
    "x": "fork_abort",
}
"""What follows ``Ctrl+X``: key → action."""


def _index() -> dict[tuple[Zone, str], Binding]:
    table: dict[tuple[Zone, str], Binding] = {}
    for binding in BINDINGS:
        for zone in binding.zones:
            for key in binding.keys:
                table.setdefault((zone, key), binding)
    return table


_INDEX = _index()


def find(zones: Sequence[Zone], key: str) -> Binding | None:
    """Return what `key` does in the first of `zones` that binds it, or None."""
    for zone in zones:
        binding = _INDEX.get((zone, key))
        if binding is not None:
            return binding
    return None


def of_zones(zones: Sequence[Zone]) -> list[Binding]:
    """Return the bindings that act in `zones`, table order; an earlier zone shadows a later."""
    found: list[Binding] = []
    for binding in BINDINGS:
        if any(zone in binding.zones for zone in zones) and any(
            find(zones, key) is binding for key in binding.keys
        ):
            found.append(binding)
    return found


_STAYS_FROM = 900
"""Bindings of this rank and above stand at the footer's right end and leave last."""

Keys: TypeAlias = list[tuple[str, str]]
"""(keys, word) pairs of a footer."""


def footer_keys(
    zones: Sequence[Zone], *, live: bool = True, worktrees: bool = True
) -> tuple[Keys, Keys]:
    """Return the footer of `zones`: its keys, most wanted first, and those that stay."""
    shown = [
        binding
        for binding in of_zones(zones)
        if binding.rank and usable(binding, live=live, worktrees=worktrees)
    ]
    shown.sort(key=lambda binding: binding.rank)
    left = [(_footer_label(item), item.word) for item in shown if item.rank < _STAYS_FROM]
    right = [(_footer_label(item), item.word) for item in shown if item.rank >= _STAYS_FROM]
    return left, right


_FOOTER_LABELS = {
    "move.down": "j k", "list.down": "j k", "zone.prompt": "Tab", "zoom.toggle": "Enter",
    "diff.apply": "Enter", "plan.launch": "Enter",
}  # fmt: skip


def _footer_label(binding: Binding) -> str:
    return _FOOTER_LABELS.get(binding.id, binding.shown)


def usable(binding: Binding, *, live: bool, worktrees: bool) -> bool:
    """Tell whether a deck with these capabilities can do what `binding` stands for."""
    if binding.need == "live":
        return live
    return live and worktrees if binding.need == "worktrees" else True
