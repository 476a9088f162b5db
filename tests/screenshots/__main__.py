"""Draws every picture, or those named on the command line, into ``screenshots/``."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

os.environ["TEXTUAL_ANIMATIONS"] = "none"
for name in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_DIM_FACTOR"):
    os.environ.pop(name, None)

from forkdeck.ui.app import ForkDeckApp  # noqa: E402 - after the lines above, which it reads
from forkdeck.ui.start_request import StartRequest  # noqa: E402
from tests.screenshots.png import write_png  # noqa: E402
from tests.screenshots.shots import Shot, shots  # noqa: E402
from tests.screenshots.still import StillDeck, StillFactory  # noqa: E402
from tests.ui.fakes import ENVIRON, FakeClock  # noqa: E402

TARGET = Path(__file__).parents[2] / "screenshots"


async def draw(shot: Shot, target: Path) -> Path:
    """Draw one picture as SVG and PNG."""
    moment = shot.moment
    deck = StillDeck(moment) if moment is not None else None

    def opened() -> StillDeck:
        assert deck is not None
        return deck

    with tempfile.TemporaryDirectory() as state:
        app = ForkDeckApp(
            StillFactory(opened),
            clock=FakeClock(),
            start=StartRequest(kind="start" if deck is None else "live"),
            theme_name=shot.theme,
            reduced_motion=True,
            state_dir=Path(state),
            environ=ENVIRON,
        )
        async with app.run_test(size=shot.size) as pilot:
            await pilot.pause(0.3)
            for key in shot.keys:
                await pilot.press(key)
            await pilot.pause(0.3)
            svg = target / f"{shot.name}.svg"
            svg.write_text(app.export_screenshot(title="forkdeck"), encoding="utf-8")
    return write_png(svg)


def main(names: list[str]) -> None:
    """Draw the pictures called `names`, or all."""
    TARGET.mkdir(exist_ok=True)
    for shot in shots():
        if not names or shot.name in names:
            print(asyncio.run(draw(shot, TARGET)).relative_to(TARGET.parent))


if __name__ == "__main__":
    main(sys.argv[1:])
