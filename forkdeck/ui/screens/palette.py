"""The palette: every command and key by its words; typing narrows, Enter does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events

from forkdeck.store.cells import fit
from forkdeck.ui.bindings import Zone, of_zones, usable
from forkdeck.ui.commands import COMMANDS
from forkdeck.ui.lines import BLANK, Row, line
from forkdeck.ui.screens.dialog import SheetDialog


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the palette: ``action`` of a key, or ``command`` to type."""

    label: str
    help: str
    action: str = ""
    key: str = ""
    command: str = ""


def entries(zones: Sequence[Zone], *, live: bool, worktrees: bool) -> list[Entry]:
    """Return everything that can be done in `zones`: commands first, then keys."""
    found = [Entry(command.usage, command.help, command=f"/{command.name}") for command in COMMANDS]
    for binding in of_zones(zones):
        if usable(binding, live=live, worktrees=worktrees) and binding.id not in {
            "palette", "list.down", "list.up", "prompt.send", "leader", "fork.number",
        }:  # fmt: skip
            found.append(Entry(binding.shown, binding.help, binding.action, binding.keys[0]))
    return found


def matches(entry: Entry, query: str) -> bool:
    """Tell whether every word of `query` is somewhere in the entry."""
    text = f"{entry.label} {entry.help}".casefold()
    return all(word in text for word in query.casefold().split())


class PaletteScreen(SheetDialog[Entry | None]):
    """A list that typing narrows; the chosen entry is the result.

    Args:
        zones: The zones the palette was opened in.
        live: Whether the deck takes live keys.
        worktrees: Whether write forks work here.
    """

    def __init__(self, zones: Sequence[Zone], *, live: bool, worktrees: bool) -> None:
        super().__init__("", (("Enter", "do it"), ("Esc", "close")))
        self._entries = entries(zones, live=live, worktrees=worktrees)
        self._query = ""
        self._chosen = 0

    @property
    def found(self) -> list[Entry]:
        """What matches now."""
        return [entry for entry in self._entries if matches(entry, self._query)]

    def fill(self) -> None:
        """Draw; the head holds what is typed."""
        self.dialog_title = f": {self._query}_"
        super().fill()
        self.sheet.reveal(self._chosen + 1)

    def dialog_rows(self, width: int) -> Sequence[Row]:
        """Return the matching entries."""
        found = self.found
        self._chosen = max(0, min(self._chosen, len(found) - 1))
        if not found:
            return [line([("muted", "nothing has that in it")], width=width, margin=2)]
        label = min(30, max(14, width // 3))
        return [
            line(
                [("key", f"  {fit(entry.label, label)}"), ("muted", f"  {entry.help}")],
                width=width,
                fill="selected" if index == self._chosen else "",
                bar="focus" if index == self._chosen else "",
            )
            for index, entry in enumerate(found)
        ] + [BLANK] * max(0, 12 - len(found))

    def on_key(self, event: events.Key) -> None:
        """Type, move, choose, close."""
        event.stop()
        if event.key in {"escape", "ctrl+c"}:
            self.dismiss(None)
        elif event.key == "enter":
            found = self.found
            self.dismiss(found[self._chosen] if found else None)
        elif event.key in {"down", "ctrl+n", "tab"}:
            self._chosen = min(self._chosen + 1, max(0, len(self.found) - 1))
            self.fill()
        elif event.key in {"up", "ctrl+p", "shift+tab"}:
            self._chosen = max(0, self._chosen - 1)
            self.fill()
        elif event.key == "backspace":
            self._query, self._chosen = self._query[:-1], 0
            self.fill()
        elif event.is_printable and event.character:
            self._query, self._chosen = self._query + event.character, 0
            self.fill()
