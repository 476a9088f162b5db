"""What these tests share: a pilot that does not sleep."""

from __future__ import annotations

from tests.ui.quick import quick_pilot

__all__ = ["quick_pilot"]
