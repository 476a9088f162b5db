"""Writes the generated parts of the README: ``make readme``. A test compares them."""

from __future__ import annotations

import re
from pathlib import Path

from forkdeck.ui.cache_rows import VERDICTS
from forkdeck.ui.commands import COMMANDS
from forkdeck.ui.key_table import markdown

README = Path(__file__).parents[1] / "README.md"


def commands_table() -> str:
    """Return the table of slash commands."""
    rows = ["| command | what it does |", "|---|---|"]
    for each in COMMANDS:
        words = f"/{each.name} {each.args}".strip().replace("|", "\\|")
        rows.append(f"| `{words}` | {each.help} |")
    return "\n".join(rows)


def verdicts_table() -> str:
    """Return the table of cache verdicts."""
    rows = ["| verdict | means |", "|---|---|"]
    return "\n".join(rows + [f"| {word} | {meaning} |" for word, meaning in VERDICTS])


def with_tables(text: str) -> str:
    """Return the README's text with its generated parts as they should be."""
    tables = {"keys": markdown(), "commands": commands_table(), "verdicts": verdicts_table()}
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- {name}: [^\n]* -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text, found = pattern.subn(
            lambda match, table=table: f"{match[1]}{table.strip()}\n{match[2]}", text
        )
        if found != 1:
            raise ValueError(f"README.md has {found} places for the {name}")
    return text


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")
