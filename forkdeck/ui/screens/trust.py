"""``/trust``: the project's files that could change how ForkDeck acts, and the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events

from forkdeck.model.ports import StartFacts
from forkdeck.ui.bindings import Keys, Zone
from forkdeck.ui.keyboard import key_of
from forkdeck.ui.lines import BLANK, Row, line, outside, rule, wrapped
from forkdeck.ui.screens.page import Page

_ARMED_AFTER_MS = 400


class TrustScreen(Page):
    """Shows every file in full; ``y`` trusts them as they are now.

    Args:
        grant: Called when the person trusts the files.
    """

    ZONE: ClassVar[Zone] = "cost"
    CHIP: ClassVar[str] = "TRUST"

    def __init__(self, grant: Callable[[], None]) -> None:
        super().__init__()
        self._grant = grant
        self._facts: StartFacts | None = None
        self._trouble = ""
        self._shown_ms = 0

    def on_mount(self) -> None:
        """Read the files off the first paint."""
        self.run_worker(self._load(), exit_on_error=False)

    async def _load(self) -> None:
        self._facts, self._trouble = await self.deck_app.start_facts()
        self._shown_ms = self.deck_app.clock.monotonic_ms()
        self.refresh_rows()

    def page_rows(self, width: int, height: int) -> Sequence[Row]:
        """Return the explanation and the files."""
        rows: list[Row] = [BLANK, line([("heading", "trust this project?")], width=width, margin=2),
                           rule(width, margin=2)]  # fmt: skip
        facts = self._facts
        if facts is None:
            text = self._trouble or "reading the project's files"
            return [*rows, *wrapped(text, width=width, margin=2, style="muted")]
        state = {
            "trusted": "These files are trusted as they stand here.",
            "changed": "A file changed since it was trusted: nothing of them is used until then.",
        }.get(facts.trust, "Not trusted: from these files only what narrows is used.")
        rows += wrapped(
            f"{state} Trusting lets them allow commands, choose mode and model, and add agents and"
            " profiles. The endpoint, credentials, sandbox and network never come from a project.",
            width=width,
            margin=2,
        )
        rows.append(BLANK)
        if not facts.trust_files:
            return [*rows, line([("muted", "There is no such file here.")], width=width, margin=2)]
        for path, content in facts.trust_files:
            rows.append(line([("strong", outside(path))], width=width, margin=2, fill="panel"))
            rows += wrapped(content.rstrip("\n"), width=width, margin=4, style="muted")
            rows.append(BLANK)
        return rows

    def page_keys(self) -> tuple[Keys, Keys]:
        """Return the footer's keys; the answer only once everything was on screen."""
        keys = [("Esc", "back")] if self.sheet.at_end else [("Esc", "back"), ("PgDn", "more")]
        return ([("y", "trust these files"), *keys] if self._can_answer else keys), []

    @property
    def _can_answer(self) -> bool:
        facts = self._facts
        asks = facts is not None and bool(facts.trust_files) and facts.trust != "trusted"
        return asks and self.sheet.at_end

    async def on_key(self, event: events.Key) -> None:
        """``y`` trusts; every other key is the page's."""
        if key_of(event) == "y":
            event.stop()
            event.prevent_default()
            waited = self.deck_app.clock.monotonic_ms() - self._shown_ms
            if self._can_answer and waited >= _ARMED_AFTER_MS:
                self.dismiss()
                self._grant()
            return
        self.call_after_refresh(self.refresh_rows)
