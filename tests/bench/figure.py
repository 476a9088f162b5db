"""What a row gives: figures with what they must reach, and how they are printed."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Args:
        name: What it is, in a few words.
        limit: What it must reach.
        value: The measured value, or None when it could not be taken.
        unit: Unit of both, such as ``ms``.
        sense: Whether the value must be at most or at least the limit.
        detail: What else was measured, for the JSON line.
        why: Why there is no value.
    """

    name: str
    limit: float
    value: float | None
    unit: str = ""
    sense: Literal["<=", ">="] = "<="
    detail: dict[str, object] = field(default_factory=lambda: {})
    why: str = ""

    @property
    def met(self) -> bool:
        """Whether the figure reaches what it must."""
        if self.value is None:
            return False
        return self.value <= self.limit if self.sense == "<=" else self.value >= self.limit

    def line(self, row: str) -> str:
        """Return the figure as one line of JSON."""
        return json.dumps(
            {
                "row": row,
                "figure": self.name,
                "must": f"{self.sense} {self.limit:g}",
                "measured": self.value,
                "unit": self.unit,
                "met": self.met,
                **({"why": self.why} if self.why else {}),
                **self.detail,
            },
            default=str,
        )

    def cells(self) -> tuple[str, str, str, str]:
        """Return the table's cells: figure, must reach, measured, met."""
        sign = "≤" if self.sense == "<=" else "≥"
        unit = f" {self.unit}" if self.unit else ""
        shown = f"not measured: {self.why}" if self.value is None else f"{number(self.value)}{unit}"
        return (self.name, f"{sign} {self.limit:g}{unit}", shown, "yes" if self.met else "NO")


@dataclass(frozen=True)
class Row:
    """A row of the benchmark: its name on the command line and what measures it."""

    name: str
    about: str
    measure: Callable[[], Sequence[Figure]]


def number(value: float) -> str:
    """Return a value with three digits that count."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:.0f}"
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 100 else 1
    return f"{value:.{digits}f}"


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value at `share` (0 to 1) of the sorted values, the nearest one."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(cells: Sequence[tuple[str, str, str, str]]) -> str:
    """Return aligned rows under a head."""
    rows = [("figure", "must reach", "measured", "met"), *cells]
    wide = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, wide, strict=True)).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("─" * width for width in wide))
    return "\n".join(lines)
