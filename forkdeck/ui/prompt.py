"""The prompt: a text area of one to six rows that sends, completes and remembers.

Owned by the screens that have a prompt. It posts `Sent` and asks nobody but the completer it is
given; what a sent text means is decided by the screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widgets import TextArea

from forkdeck.ui.bindings import BINDINGS
from forkdeck.ui.history import PromptHistory

MAX_ROWS = 6
"""Rows the prompt grows to."""

FOLD_CHARS = 8_000
"""A longer paste stands in the prompt as one short mark and is sent whole."""

_CONTROLS = {
    code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}


def _editing_keys() -> dict[str, str]:
    taken = {key for binding in BINDINGS if "prompt" in binding.zones for key in binding.keys}
    found: dict[str, str] = {}
    for binding in TextArea.BINDINGS:
        if isinstance(binding, Binding):
            keys = (key.strip() for key in binding.key.split(","))
            found |= {key: binding.action for key in keys if key not in taken}
    return found


_EDITING = _editing_keys()
"""Keys that edit or move, with Textual's actions."""

Choice = tuple[str, str]
"""What the prompt becomes when it is taken, and a word about it."""

Completer = Callable[[str], Awaitable[Sequence[Choice]]]
"""Takes the text up to the cursor, returns whole texts up to the cursor."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """What the prompt is for at the moment.

    ``kind`` is ``parent`` for a prompt of the conversation; else the screen's own word, with
    the fork or request it is about in `about`.
    """

    kind: str = "parent"
    about: str = ""
    hint: str = "Ask the parent     / commands     @ file     ! shell"


PARENT = Purpose()


class PromptArea(TextArea):
    """The text of the prompt and its keys.

    Args:
        history: Prompts sent before.
        complete: Finds completions; cancelled when the text changes again.
        blink: Whether the cursor blinks.
    """

    class Sent(Message):
        """Enter was pressed on `text` (pastes unfolded)."""

        def __init__(self, text: str, purpose: Purpose) -> None:
            super().__init__()
            self.text = text
            self.purpose = purpose

    class Choices(Message):
        """The completions on offer changed; none: the list closes."""

        def __init__(self, choices: Sequence[Choice], chosen: int) -> None:
            super().__init__()
            self.choices = choices
            self.chosen = chosen

    class Typed(Message):
        """The text changed, or the purpose did."""

    def __init__(
        self, history: PromptHistory, complete: Completer, *, blink: bool = True, id: str = "prompt"
    ) -> None:
        super().__init__(id=id, compact=True, soft_wrap=True, placeholder=Content(PARENT.hint))
        self.cursor_blink = blink
        self.highlight_cursor_line = False
        self.past = history
        self.purpose = PARENT
        self.hold_key: Callable[[events.Key], bool] = lambda _: False
        """Asked first: whether the screen wants this key instead of the prompt."""
        self._complete = complete
        self._choices: list[Choice] = []
        self._chosen = 0
        self._offered_for = ""
        self._searching = False
        self._finding: asyncio.Task[None] | None = None
        self._pastes: list[tuple[str, str]] = []
        self._drafts: dict[Purpose, str] = {}
        self._put_text: str | None = None

    # --- what screens use

    @property
    def whole_text(self) -> str:
        """The text as it will be sent: folded pastes in full."""
        text = self.text
        for mark, paste in self._pastes:
            text = text.replace(mark, paste, 1)
        return text

    def put(self, text: str) -> None:
        """Replace the text and put the cursor at its end."""
        self._put_text = text
        self.load_text(text)
        self.move_cursor(self.document.end)
        self.close_choices()
        self._grow()

    def turn_to(self, purpose: Purpose, text: str = "") -> None:
        """Use the prompt for something else; the text of the other purpose is kept."""
        if purpose == self.purpose:
            return
        self._drafts[self.purpose] = self.text
        self.purpose = purpose
        self.placeholder = Content(purpose.hint)
        self.put(self._drafts.pop(purpose, text) if purpose.kind == "parent" else text)
        self.post_message(self.Typed())

    def clear_text(self) -> None:
        """Empty the prompt; what stood there goes into the history of this session."""
        if self.purpose.kind == "parent" and self.text.strip():
            self.past.add(self.whole_text)
        self._pastes.clear()
        self.put("")

    def close_choices(self) -> None:
        """Close the list of completions."""
        self._searching = False
        self._stop_task()
        if self._choices:
            self._choices = []
            self.post_message(self.Choices((), 0))

    # --- keys

    async def _on_key(self, event: events.Key) -> None:
        if self.hold_key(event):
            event.prevent_default()
            return
        handled = self._choice_key(event.key) if self._choices or self._searching else False
        if handled or self._own_key(event.key):
            event.stop()
            event.prevent_default()
        elif event.key in _EDITING:
            # As a binding it would act only after bubbling up to the app, and a letter typed
            # meanwhile would overtake it.
            event.stop()
            event.prevent_default()
            await self.run_action(_EDITING[event.key])

    def _choice_key(self, key: str) -> bool:
        if not self._searching and self._before_cursor() != self._offered_for:
            # The cursor moved away from what the list was made for.
            self.close_choices()
            return False
        if key == "escape":
            self.close_choices()
        elif not self._choices:
            return False
        elif key in {"down", "ctrl+n"}:
            self._choose(self._chosen + 1)
        elif key in {"up", "ctrl+p"}:
            self._choose(self._chosen - 1)
        elif key == "ctrl+r" and self._searching:
            self._choose(self._chosen + 1)
        elif key == "tab" or (key == "enter" and (self._searching or self._differs())):
            self._take()
        else:
            return False
        return True

    def _own_key(self, key: str) -> bool:
        if key == "enter":
            self._send()
        elif key in {"ctrl+j", "shift+enter"}:
            self.insert("\n")
        elif key == "ctrl+r" and self.purpose.kind == "parent":
            self._search()
        elif key in {"up", "ctrl+p"} and self.cursor_at_first_line:
            self._recall(self.past.older(self.text))
        elif key in {"down", "ctrl+n"} and self.cursor_at_last_line:
            self._recall(self.past.newer())
        else:
            return False
        return True

    def _send(self) -> None:
        if self.text.endswith("\\") and self.purpose.kind == "parent":
            end = self.document.end
            self.replace("\n", (end[0], end[1] - 1), end)
            return
        text = self.whole_text
        if not text.strip() and self.purpose.kind == "parent":
            return
        purpose = self.purpose
        self._pastes.clear()
        self.put("")
        if purpose.kind == "parent" and self.past.add(text):
            self.run_worker(asyncio.to_thread(self.past.save, text), group="history")
        self.post_message(self.Sent(text, purpose))

    def _recall(self, text: str | None) -> None:
        if text is None or self.purpose.kind != "parent":
            return
        self.put(text)

    # --- completions

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Grow, look for completions, tell the screen."""
        event.stop()
        self._grow()
        self.post_message(self.Typed())
        if self.text == self._put_text or self.purpose.kind != "parent":
            return
        self._put_text = None
        self.past.leave()
        if self._searching:
            self._search()
        else:
            self._look()

    def _before_cursor(self) -> str:
        row, column = self.cursor_location
        lines = self.document.lines[:row]
        return "\n".join([*lines, self.document.get_line(row)[:column]])

    def _look(self) -> None:
        self._stop_task()
        before = self._before_cursor()
        word = before.rpartition("\n")[2].rpartition(" ")[2]
        if not (before.startswith("/") or word.startswith("@")):
            self._offer([])
            return
        self._finding = asyncio.create_task(self._find(before), name="completion")

    async def _find(self, before: str) -> None:
        choices = await self._complete(before)
        if self.is_mounted and self._before_cursor() == before:
            self._offer([choice for choice in choices if choice[0] != before])

    def _search(self) -> None:
        self._searching = True
        self._offer([(entry, "") for _, entry in zip(range(8), self._found(), strict=False)])

    def _found(self) -> Sequence[str]:
        return [entry for entry in self.past.search(self.text.strip()) if entry != self.text]

    def _offer(self, choices: list[Choice]) -> None:
        if not choices and not self._choices:
            return
        self._choices = choices
        self._chosen = 0
        self._offered_for = self._before_cursor()
        self.post_message(self.Choices(choices, 0))

    def _choose(self, index: int) -> None:
        self._chosen = index % len(self._choices)
        self.post_message(self.Choices(self._choices, self._chosen))

    def _differs(self) -> bool:
        """Enter takes a choice only when that changes what would be sent."""
        return self._choices[self._chosen][0].strip() != self._before_cursor().strip()

    def _take(self) -> None:
        text = self._choices[self._chosen][0]
        if self._searching:
            self.put(text)
            return
        rest = self.text[len(self._before_cursor()) :]
        self.close_choices()
        self._put_text = text + rest
        self.load_text(text + rest)
        lines = text.split("\n")
        self.move_cursor((len(lines) - 1, len(lines[-1])))

    def _stop_task(self) -> None:
        if self._finding is not None:
            self._finding.cancel()
            self._finding = None

    # --- size and pastes

    def _grow(self) -> None:
        rows = max(1, min(MAX_ROWS, self.wrapped_document.height))
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows

    async def _on_paste(self, event: events.Paste) -> None:
        text = event.text.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROLS)
        event.stop()
        event.prevent_default()
        if len(text) > FOLD_CHARS:
            mark = f"[paste {len(self._pastes) + 1}: {len(text):,} characters]"
            self._pastes.append((mark, text))
            text = mark
        self.insert(text)

    def on_resize(self) -> None:
        """Wrapping changed with the width."""
        self.call_after_refresh(self._grow)

    def on_unmount(self) -> None:
        """Stop looking for completions."""
        self._stop_task()
