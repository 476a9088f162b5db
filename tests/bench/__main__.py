"""``python -m tests.bench [NAME…]``: measures rows and prints a table and JSON lines."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from tests.bench.figure import Figure, Row, table
from tests.bench.table import ROWS


def main() -> int:
    """Measure the rows that were named, or all; 1 when a figure is not met."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows to measure; all by default")
    parser.add_argument("--list", action="store_true", help="list the rows and leave")
    given = parser.parse_args()
    if given.list:
        for row in ROWS:
            print(f"{row.name:12}  {row.about}")
        return 0
    known = {row.name: row for row in ROWS}
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"no row is called {unknown[0]!r}; there are {', '.join(known)}")
    chosen = [known[name] for name in given.names] if given.names else ROWS
    return _run(chosen)


def _run(rows: Sequence[Row]) -> int:
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, load {load:.1f}; ratios and medians of this run\n")
    cells: list[tuple[str, str, str, str]] = []
    met = True
    for row in rows:
        started = time.monotonic()
        for figure in _figures(row):
            print(figure.line(row.name), flush=True)
            cells.append(figure.cells())
            met = met and figure.met
        took = time.monotonic() - started
        print(f"{row.name}: {took:.0f} s, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    print(f"\n{table(cells)}")
    return 0 if met else 1


def _figures(row: Row) -> Sequence[Figure]:
    try:
        return row.measure()
    except Exception as error:  # noqa: BLE001 - one broken row must not hide the others
        print(f"{row.name}: {error}", file=sys.stderr)
        lines = str(error).strip().splitlines() or [""]
        return [Figure(row.name, 0, None, why=f"{type(error).__name__}: {lines[-1]}"[:90])]


if __name__ == "__main__":
    sys.exit(main())
