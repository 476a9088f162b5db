"""Where everything goes on the deck screen: three tiers, a pure function of a few numbers.

The deck screen asks for a plan whenever size, fork count, density or zoom change, and applies
it; a plan that is equal to the last one costs nothing. All figures are terminal cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Density: TypeAlias = Literal["panes", "tiles", "rows"]
"""How a fork is drawn: a live pane, a tile, or one row."""

DENSITIES: tuple[Density, ...] = ("panes", "tiles", "rows")
"""Roomy to dense."""

MIN_WIDTH, MIN_HEIGHT = 40, 10
"""Below this the deck says what it needs and nothing else."""

PANE_WIDTH, PANE_HEIGHT = 40, 8
"""No live pane is smaller; it becomes a row."""

MEDIUM, LARGE, HUGE = 100, 160, 240
"""Columns at which the tiers M and L and the 3x2 grid begin."""

FACTS_WIDTH = 36
"""The side column of the zoom."""


@dataclass(frozen=True, slots=True)
class Size:
    """Columns and rows of a part; 0 by 0 is hidden."""

    width: int = 0
    height: int = 0

    def __bool__(self) -> bool:
        return self.width > 0 and self.height > 0


HIDDEN = Size()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Sizes of all parts of the body.

    ``panes`` are the live panes in reading order; ``columns`` how many stand side by side.
    ``stacked`` puts the parent above the deck instead of beside it.
    """

    tier: Literal["S", "M", "L"]
    stacked: bool
    parent: Size
    board: Size
    panes: tuple[Size, ...] = ()
    columns: int = 1
    facts: Size = HIDDEN
    empty: Size = HIDDEN
    density: Density = "panes"
    board_beside: bool = False
    """The board has its own column, left of the panes."""
    zoomed: bool = False


def tier_of(width: int) -> Literal["S", "M", "L"]:
    """Return the tier of a width in columns."""
    return "S" if width < MEDIUM else "M" if width < LARGE else "L"


def plan(
    width: int, height: int, forks: int, *, density: Density | None = None, zoomed: bool = False
) -> Plan:
    """Lay out a body of `width` by `height` for so many forks.

    Args:
        width: Columns of the body.
        height: Rows between the title and the strips above the prompt.
        forks: Forks to show.
        density: What the person chose; None: by count and space.
        zoomed: One run fills the body.
    """
    tier = tier_of(width)
    if zoomed:
        side = FACTS_WIDTH if tier != "S" else 0
        return Plan(tier=tier, stacked=False, parent=HIDDEN, board=HIDDEN, zoomed=True,
                    panes=(Size(width - side, height),), facts=Size(side, height))  # fmt: skip
    if forks == 0:
        return _without_forks(tier, width, height)
    if tier == "S":
        return _small(width, height, forks, density)
    if tier == "M":
        return _medium(width, height, forks, density)
    return _large(width, height, forks, density)


def _without_forks(tier: Literal["S", "M", "L"], width: int, height: int) -> Plan:
    if tier == "S":
        empty = min(8, max(0, height - 8)) if height >= 16 else 0
        return Plan(tier=tier, stacked=True, parent=Size(width, height - empty), board=HIDDEN,
                    empty=Size(width, empty))  # fmt: skip
    left = _parent_width(width)
    return Plan(tier=tier, stacked=False, parent=Size(left, height), board=HIDDEN,
                empty=Size(width - left - 1, height))  # fmt: skip


def _parent_width(width: int) -> int:
    return width * 48 // 100 if width < LARGE else width * 40 // 100


TILE_WIDTH, TILE_HEIGHT = 44, 4
"""Cells of one tile on the board."""


def board_rows(forks: int, density: Density, width: int) -> int:
    """Return the rows a board of `width` wants: its head, then its rows or tiles."""
    if density != "tiles":
        return 1 + forks
    columns = max(1, width // TILE_WIDTH)
    return 1 + -(-forks // columns) * TILE_HEIGHT


def _small(width: int, height: int, forks: int, density: Density | None) -> Plan:
    if forks == 1 and density in {None, "panes"} and height >= PANE_HEIGHT + 2:
        pane = max(PANE_HEIGHT, height - height // 2)
        return Plan(tier="S", stacked=True, parent=Size(width, height - pane), board=HIDDEN,
                    panes=(Size(width, pane),))  # fmt: skip
    shape: Density = "tiles" if density == "tiles" else "rows"
    wanted = board_rows(forks, shape, width)
    parent = 2 if height >= 12 else 1 if height >= 6 else 0
    with_pane = height - parent - PANE_HEIGHT >= min(wanted, 4)
    room = height - parent - (PANE_HEIGHT if with_pane else 0)
    board = max(1, min(wanted, room))
    rest = height - board
    if not with_pane:
        return Plan(tier="S", stacked=True, parent=Size(width, rest), board=Size(width, board),
                    density=shape)  # fmt: skip
    pane = max(PANE_HEIGHT, (rest + 1) // 2)
    return Plan(tier="S", stacked=True, parent=Size(width, rest - pane), density=shape,
                board=Size(width, board), panes=(Size(width, pane),))  # fmt: skip


def _medium(width: int, height: int, forks: int, density: Density | None) -> Plan:
    left = _parent_width(width)
    right = width - left - 1
    parent = Size(left, height)
    if density in {None, "panes"} and forks <= 3 and height // forks >= PANE_HEIGHT:
        return Plan(tier="M", stacked=False, parent=parent, board=HIDDEN,
                    panes=_shares(right, height, forks))  # fmt: skip
    shape: Density = "tiles" if density == "tiles" else "rows"
    wanted = board_rows(forks, shape, right)
    if height - min(wanted, max(5, height // 2)) < PANE_HEIGHT:
        return Plan(tier="M", stacked=False, parent=parent, board=Size(right, height),
                    density=shape)  # fmt: skip
    board = min(wanted, max(5, height * 3 // 5, 0), height - PANE_HEIGHT)
    return Plan(tier="M", stacked=False, parent=parent, board=Size(right, board), density=shape,
                panes=(Size(right, height - board),))  # fmt: skip


def _large(width: int, height: int, forks: int, density: Density | None) -> Plan:
    if density in {None, "panes"} and forks <= 3 and height // forks >= PANE_HEIGHT:
        left = _parent_width(width)
        return Plan(tier="L", stacked=False, parent=Size(left, height), board=HIDDEN,
                    panes=_shares(width - left - 1, height, forks))  # fmt: skip
    shape: Density = "tiles" if density == "tiles" else "rows"
    columns = max(1, min(3 if width >= HUGE else 2, (width - 97) // (PANE_WIDTH + 1)))
    columns = min(columns, forks)
    grid = columns * PANE_WIDTH + columns - 1
    rest = width - grid - 2
    left = min(_parent_width(width), rest * 46 // 100)
    rows = 2 if height >= 2 * PANE_HEIGHT and forks > columns else 1
    heights = [part.height for part in _shares(1, height, rows)]
    panes = tuple(
        Size(PANE_WIDTH, heights[index // columns]) for index in range(min(forks, rows * columns))
    )
    wanted = board_rows(forks, shape, rest - left) + 1
    board = min(height, wanted) if height - wanted >= 12 else height
    list_width = rest - left
    return Plan(tier="L", stacked=False, parent=Size(left, height), density=shape,
                board=Size(list_width, board), panes=panes, columns=columns, board_beside=True,
                facts=Size(list_width, height - board))  # fmt: skip


def _shares(width: int, height: int, parts: int) -> tuple[Size, ...]:
    each, more = divmod(height, parts)
    return tuple(Size(width, each + (1 if index < more else 0)) for index in range(parts))


def assign(
    places: int, current: Sequence[str], order: Sequence[str], selected: str | None
) -> list[str]:
    """Return which forks the live panes show; a fork keeps its pane as long as it can.

    Args:
        places: Live panes there are.
        current: What they show now, in pane order.
        order: All forks, most wanted first.
        selected: Must be shown when there is a pane at all.
    """
    known = set(order)
    shown = [handle for handle in current if handle in known][:places]
    for handle in order:
        if len(shown) >= places:
            break
        if handle not in shown:
            shown.append(handle)
    if selected is not None and shown and selected in known and selected not in shown:
        shown[-1] = selected
    return shown
