"""The table of keys as Markdown, for README; made from the one table of bindings."""

from __future__ import annotations

from forkdeck.ui.bindings import BINDINGS, Binding, Section

_SECTIONS: tuple[Section, ...] = (
    "move", "needs you", "steer and stop", "results", "view", "anywhere",
)  # fmt: skip
_ZONE_ORDER = ("prompt", "deck", "zoom", "replay", "start", "sessions", "diff", "cost")


def markdown() -> str:
    """Return one Markdown table of all keys, by section, ending with a newline."""
    lines = ["| key | where | what it does |", "|---|---|---|"]
    for section in _SECTIONS:
        lines.append(f"| **{section}** | | |")
        lines += [_row(binding) for binding in BINDINGS if binding.section == section]
    return "\n".join(lines) + "\n"


def _row(binding: Binding) -> str:
    keys = binding.shown.replace("|", "\\|")
    return f"| `{keys}` | {_where(binding)} | {binding.help} |"


def _where(binding: Binding) -> str:
    if len(binding.zones) == len(_ZONE_ORDER):
        return "everywhere"
    if binding.zones == frozenset(_ZONE_ORDER) - {"prompt"}:
        return "everywhere but the prompt"
    return ", ".join(zone for zone in _ZONE_ORDER if zone in binding.zones)
