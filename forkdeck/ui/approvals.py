"""When an answer to a parked request counts: the guard against a key meant for something else.

The deck screen tells it what is on screen and when a key came; it knows no widget and no clock.
"""

from __future__ import annotations

ON_SCREEN_MS = 400
"""A request must have been on screen this long."""

QUIET_MS = 250
"""No key may have come for this long before the answer."""


class AnswerGuard:
    """Decides whether an answer key may act on the shown request."""

    def __init__(self) -> None:
        self._request: str | None = None
        self._since_ms = 0
        self._last_key_ms: int | None = None
        self._seen_whole: set[str] = set()

    def showing(self, request: str | None, now_ms: int, *, whole: bool) -> None:
        """Note which request's card is on screen, and whether its last line is too."""
        if request != self._request:
            self._request = request
            self._since_ms = now_ms
        if request is not None and whole:
            self._seen_whole.add(request)

    def key_came(self, now_ms: int) -> None:
        """Note a key, after the answer it may have been was judged."""
        self._last_key_ms = now_ms

    def refusal(self, request: str, now_ms: int, *, allows: bool) -> str:
        """Return why an answer does not count now, or an empty string.

        Args:
            request: The request that would be answered.
            now_ms: Monotonic time, milliseconds.
            allows: Whether the answer allows something (a denial is never held back by
                lines that were not read).
        """
        if request != self._request:
            return "the request is not on screen: w goes to it"
        if now_ms - self._since_ms < ON_SCREEN_MS:
            return "the request has just appeared: read it, then press the key again"
        if self._last_key_ms is not None and now_ms - self._last_key_ms < QUIET_MS:
            return "keys came too fast: press the key again"
        if allows and request not in self._seen_whole:
            return "its last line was not on screen: PgDn shows it"
        return ""
