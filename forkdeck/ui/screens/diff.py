"""A fork's diff, and the sheet that applies or discards it.

The diff is read by the deck; nothing in the parent's tree changes before Enter on a method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from forkdeck.errors import ForkDeckError
from forkdeck.model.intents import ApplyWork, DiscardWork, Intent, UndoLast
from forkdeck.model.ports import Deck
from forkdeck.model.state import ForkState
from forkdeck.model.work import FileChange, WorkDiff
from forkdeck.store import selectors
from forkdeck.store.cells import cut_path
from forkdeck.store.figures import plural
from forkdeck.ui.bindings import Zone, footer_keys
from forkdeck.ui.keyboard import Keyed
from forkdeck.ui.lines import BLANK, Row, Span, line, outside, wrapped
from forkdeck.ui.screens.once import LeavesOnce
from forkdeck.ui.sheet import Sheet
from forkdeck.ui.widgets.diff_view import DiffView
from forkdeck.ui.widgets.status_line import FooterLine, TitleLine

Method = Literal["patch", "cherry-pick"]

_NOTHING = "It changed nothing: there is nothing to apply."

_METHODS: tuple[tuple[Method, str], ...] = (
    ("patch", "into the working tree, uncommitted"),
    ("cherry-pick", "the fork's own commits, on top of yours"),
)
_LIST_WIDTH = 36


def file_row(file: FileChange, width: int, *, selected: bool) -> Row:
    """Return one changed file: path cut at a separator, lines added and removed."""
    figures: list[Span] = []
    if file.added is None and file.removed is None:
        figures.append(("muted", "binary " if file.kind != "mode" else "mode "))
    else:
        figures += [("good", f"+{file.added or 0}"), ("bad", f" −{file.removed or 0} ")]
    if file.warning:
        figures.insert(0, ("warn-strong", "! "))
    taken = sum(len(text) for _, text in figures)
    path = cut_path(outside(file.path), max(8, width - taken - 5))
    return line([("strong" if selected else "text", f"  {path}")], figures, width=width,
                fill="selected" if selected else "", bar="focus" if selected else "")  # fmt: skip


class DiffScreen(Keyed, LeavesOnce[None], inherit_bindings=False):
    """Files at the left, lines at the right, the apply sheet below.

    Args:
        deck: Reads the diff and takes the intents.
        handle: The write fork.
    """

    CSS_PATH = "diff.tcss"
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, deck: Deck, handle: str) -> None:
        super().__init__()
        self._deck = deck
        self._handle = handle
        self.title_line = TitleLine(id="diff-title")
        self.head = Sheet(id="diff-head", shade="panel")
        self.files = Sheet(id="diff-files", shade="surface")
        self.view = DiffView(id="diff-view")
        self.sheet = Sheet(id="diff-apply", shade="surface")
        self.footer = FooterLine(id="diff-footer")
        self.selected = 0
        self.method: Method = "patch"
        self._diff: WorkDiff | None = None
        self._note: tuple[str, str] = ("", "reading the diff")
        self._busy = False

    @property
    def zones(self) -> tuple[Zone, ...]:
        """The diff's own zone."""
        return ("diff",)

    @property
    def _empty(self) -> bool:
        """Whether the diff was read and holds nothing to apply."""
        return self._diff is not None and not self._diff.files

    @property
    def fork(self) -> ForkState:
        """The fork as it is now."""
        return self._deck.state.forks[self._handle]

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield self.title_line
        yield self.head
        with Horizontal(id="diff-body"):
            yield self.files
            yield self.view
        with Vertical(id="diff-below"):
            yield self.sheet
        yield self.footer

    def on_mount(self) -> None:
        """Read the diff off the first paint."""
        self.view.focus()
        self.run_worker(self._load(), exit_on_error=False)
        self.refresh_rows()

    async def _load(self) -> None:
        try:
            self._diff = await self._deck.diff(self._handle)
        except ForkDeckError as error:
            self._note = ("warn", f"{error.what} {error.remedy}".strip())
        else:
            self._note = ("", "")
            self.view.show(self._diff)
        self.refresh_rows()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.call_after_refresh(self.refresh_rows)

    def refresh_rows(self) -> None:
        """Draw everything anew."""
        width = self.size.width
        if not width:
            return
        self.files.display = width >= 90
        state = self._deck.state
        self.title_line.update_state(state, self._deck.now_ms())
        self.head.show([self._head_row(width)])
        self._draw_files()
        rows = self._sheet_rows(width)
        self.sheet.styles.height = len(rows)
        self.sheet.show(rows)
        live = self._deck.capabilities
        left, right = footer_keys(self.zones, live=live.live, worktrees=live.worktrees)
        if self._empty:
            left = [pair for pair in left if pair[0] != "Enter"]
        self.footer.update_state("DIFF", [("Esc", "back"), *left], right)

    def _draw_files(self) -> None:
        changed = self._diff.files if self._diff else ()
        self.selected = max(0, min(self.selected, len(changed) - 1))
        rows = [BLANK]
        for index, file in enumerate(changed):
            rows.append(file_row(file, _LIST_WIDTH, selected=index == self.selected))
            if file.warning and index == self.selected:
                rows.append(line([("warn", f"    {outside(file.warning)}")], width=_LIST_WIDTH))
        self.files.show(rows)
        self.files.reveal(self.selected + 1)

    def _head_row(self, width: int) -> Row:
        fork = self.fork
        word = selectors.badge(self._deck.state, self._handle)
        badge = self.head.badge(word)
        left: list[Span] = [
            ("muted", f" {self._handle[1:]:>2}  "), (badge.style, f" {badge.glyph} {badge.word} "),
            ("text", "  "),
            ("strong", outside(fork.name)),
        ]  # fmt: skip
        base = fork.work.base if fork.work else fork.worktree.base if fork.worktree else ""
        if base:
            left.append(("muted", f"   against {outside(base)[:10]}"))
        right: list[Span] = []
        if self._diff is not None:
            added = [file.added for file in self._diff.files if file.added is not None]
            removed = [file.removed for file in self._diff.files if file.removed is not None]
            right = [("muted", f"{plural(len(self._diff.files), 'file')}   "),
                     ("good", f"+{sum(added)}"), ("bad", f" −{sum(removed)} ")]  # fmt: skip
        return line(left, right, width=width, fill="panel")

    def say(self, text: str) -> None:
        """Show one line in the sheet."""
        self._note = ("", text)
        self.refresh_rows()

    # --- the apply sheet

    def _sheet_rows(self, width: int) -> list[Row]:
        fork = self.fork
        branch = outside(self._deck.state.session.branch or "your tree")
        until: list[Span] = (
            [] if self._empty else [("muted", "nothing changes until you press Enter")]
        )
        rows = [line([("heading", f"apply to {branch}")], until, width=width, margin=1,
                     fill="panel")]  # fmt: skip
        style, text = self._note
        if text:
            return [*rows, *wrapped(text, width=width, margin=2, style=style or "muted")]
        if self._empty and fork.settled:
            return [*rows, line([("muted", _NOTHING)], width=width, margin=2)]
        work = fork.work
        if work is None:
            why = "It is at work: its diff is live, and can be applied when it ends."
            if fork.settled:
                why = _NOTHING
            return [*rows, line([("muted", why)], width=width, margin=2)]
        if work.applied_ref:
            rows.append(line([("good-strong", "applied"), ("muted", "   u takes it back exactly")],
                             width=width, margin=2))  # fmt: skip
        elif work.discarded:
            text = f"discarded; kept in {outside(work.ref)}, u takes it back"
            rows.append(line([("muted", text)], width=width, margin=2))
        rows += self._refusal_rows(width)
        for index, (method, words) in enumerate(_METHODS):
            chosen = method == self.method
            note = words
            if method == "cherry-pick":
                note = f"{plural(work.commits, 'commit')} of its own" if work.commits else (
                    "it made no commits of its own")  # fmt: skip
            left: list[Span] = [
                ("muted", f" {index + 1}  "),
                ("strong" if chosen else "text", f"{method:<14}"),
                ("muted", note),
            ]
            rows.append(
                line(left, width=width, fill="selected" if chosen else "",
                     bar="focus" if chosen else "")
            )  # fmt: skip
        rows.append(line([("muted", f"kept in {outside(work.ref)}")], width=width, margin=4))
        return rows

    def _refusal_rows(self, width: int) -> Sequence[Row]:
        work = self.fork.work
        if work is None or not work.refused:
            return []
        rows = wrapped(f"refused: {work.refused}", width=width, margin=2, style="warn", fill="warn",
                       bar="warn")  # fmt: skip
        rows += [
            line([("warn", "conflict  "), ("text", cut_path(outside(path), width - 16))],
                 width=width, margin=2, fill="warn", bar="warn")
            for path in work.conflicts[:6]
        ]  # fmt: skip
        more = len(work.conflicts) - 6
        if more > 0:
            rows.append(line([("muted", f"and {more} more")], width=width, margin=2, fill="warn"))
        return rows

    # --- keys

    async def on_key(self, event: events.Key) -> None:
        """Do what the key means here."""
        if await self.press(event):
            event.stop()

    def _submit(self, intent: Intent) -> None:
        if not self._busy:
            self._busy = True
            self.run_worker(self._do(intent), exit_on_error=False)

    async def _do(self, intent: Intent) -> None:
        self._note = ("", "working")
        self.refresh_rows()
        try:
            result = await self._deck.submit(intent)
        except ForkDeckError as error:
            self._note = ("warn", f"{error.what} {error.remedy}".strip())
        else:
            refused = not result.ok and not (self.fork.work and self.fork.work.refused)
            self._note = ("warn" if refused else "", result.text if refused else "")
        finally:
            self._busy = False
        self.refresh_rows()

    def do_diff_apply(self) -> None:
        """Apply by the chosen method."""
        work = self.fork.work
        if work is None:
            self._note = ("", "its work is not saved yet; it is when the fork has ended")
            self.refresh_rows()
            return
        if self._diff is None:
            self._note = ("", "the diff is still being read; then Enter applies it")
            self.refresh_rows()
            return
        if self._empty:
            self._note = ("", _NOTHING)
            self.refresh_rows()
            return
        if work.applied_ref:
            self._note = ("", "it is applied already: u takes it back")
            self.refresh_rows()
            return
        self._submit(ApplyWork(handle=self._handle, method=self.method))

    def do_diff_method(self) -> None:
        """Choose how to apply."""
        self.method = _METHODS[int(self.key) - 1][0]
        self._note = ("", "")
        self.refresh_rows()

    def do_fork_discard(self) -> None:
        """Discard, after asking."""
        from forkdeck.ui.screens.deck_acts import discard_dialog  # noqa: PLC0415 - a cycle

        if self.fork.work is not None:
            self.deck_app.push_screen(discard_dialog(self.fork), self._discarded)

    def _discarded(self, yes: bool | None) -> None:
        if yes:
            self._submit(DiscardWork(handle=self._handle))

    def do_undo(self) -> None:
        """Take back the last apply or discard of this fork; asks when files change."""
        from forkdeck.ui.screens.deck_acts import undo_dialog  # noqa: PLC0415 - a cycle

        state = self._deck.state
        entry = next((each for each in reversed(state.undo) if each.run == self._handle), None)
        if entry is None:
            self.say(f"nothing of {self.fork.name} can be undone")
        elif entry.kind == "discard":
            self._submit(UndoLast(handle=self._handle))
        else:
            self.deck_app.push_screen(undo_dialog(entry), self._undone)

    def _undone(self, yes: bool | None) -> None:
        if yes:
            self._submit(UndoLast(handle=self._handle))

    async def do_copy_diff(self) -> None:
        """Copy the whole diff."""
        if self._diff is not None:
            text = "\n".join(item.text for item in self._diff.lines)
            await self.deck_app.copy_text(text + "\n")

    def do_list_down(self) -> None:
        """Next file."""
        self._file(self.selected + 1)

    def do_list_up(self) -> None:
        """Previous file."""
        self._file(self.selected - 1)

    def _file(self, index: int) -> None:
        count = len(self._diff.files) if self._diff else 0
        if count:
            self.selected = max(0, min(count - 1, index))
            self.view.to_file(self.selected)
            self._draw_files()

    def do_move_first(self) -> None:
        """The first line."""
        self.view.to_start()

    def do_move_last(self) -> None:
        """The last line."""
        self.view.to_end()

    def do_page_down(self) -> None:
        """One page down."""
        self.view.scroll_page(1)

    def do_page_up(self) -> None:
        """One page up."""
        self.view.scroll_page(-1)

    def do_out(self) -> None:
        """Back to the deck."""
        self.dismiss()
