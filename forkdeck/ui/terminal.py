"""What is said to the terminal beside the frames: the mouse, a clean repaint."""

from __future__ import annotations

from collections.abc import Callable

_MOUSE_MODES = (1000, 1003, 1015, 1006)
"""The modes Textual turns on, in its order."""


class Terminal:
    """Writes control sequences.

    Args:
        write: Writes a sequence to the terminal.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self.mouse = True
        """Whether the mouse is ours; off, the terminal's own selection works."""

    def toggle_mouse(self) -> bool:
        """Turn mouse reports off or on; returns whether they are on now."""
        self.mouse = not self.mouse
        letter = "h" if self.mouse else "l"
        self._write("".join(f"\x1b[?{mode}{letter}" for mode in _MOUSE_MODES))
        return self.mouse

    def clear(self) -> None:
        """Clear the screen, so that the next frame starts on a clean one."""
        self._write("\x1b[2J\x1b[H")
