"""The list of built-in tools and of everything the model sees; its order is part of the cache.

Used by the engine to dispatch calls and to build the request head. Append only: a changed order or
text costs every running session its cached prefix.
"""

from __future__ import annotations

from typing import Final

from forkdeck.model.ports import Tool
from forkdeck.model.tooling import ToolSpec
from forkdeck.tools import fork_specs
from forkdeck.tools.bash import BashTool
from forkdeck.tools.edit import EditTool
from forkdeck.tools.find import FindTool
from forkdeck.tools.grep import GrepTool
from forkdeck.tools.ls import LsTool
from forkdeck.tools.read import ReadTool
from forkdeck.tools.write import WriteTool

BUILTIN: Final[tuple[Tool, ...]] = (
    ReadTool(),
    BashTool(),
    GrepTool(),
    FindTool(),
    LsTool(),
    EditTool(),
    WriteTool(),
)
"""The tools that run in a workspace, in the order of their declaration."""


def all_specs() -> tuple[ToolSpec, ...]:
    """Return every declaration, in order: the built-in tools, then the fork tools."""
    return (*(tool.spec for tool in BUILTIN), *fork_specs.ALL)


def by_name(name: str) -> Tool | None:
    """Return the built-in tool of that name, or None."""
    return next((tool for tool in BUILTIN if tool.spec.name == name), None)
