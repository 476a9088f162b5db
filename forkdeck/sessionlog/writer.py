"""The log's writer: takes events from the hub and brings them to the disk on a thread of its own.

`put` encodes and queues, and never blocks. The thread writes all that is queued in one batch, at
most every 20 ms, at once when someone waits for the disk. What cannot be written is kept in
memory and tried again; `trouble` says so meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

from forkdeck.errors import SessionError
from forkdeck.model.events import Event
from forkdeck.sessionlog.codec import encode
from forkdeck.sessionlog.logfile import LogFile
from forkdeck.sessionlog.paths import SessionPaths

GATHER_S = 0.02
"""How long lines gather before they are written; a kill loses at most this much."""

RETRY_S = 0.5
"""How long to wait before a failed batch is tried again."""

UNSAVED_LIMIT_BYTES = 8 * 1024 * 1024
"""Unsaved lines up to which running streams may go on; behind it they pause."""

_CLOSE_TRIES = 4


class JsonlSink:
    """A session's log, open for writing; implements `LogSink`.

    Made by `open`; used from one event loop. Events are kept in order and each is written once.
    """

    def __init__(self, paths: SessionPaths, file: LogFile) -> None:
        self.paths = paths
        self.kept_aside_bytes = file.kept_aside_bytes
        """Bytes of a torn last line that were kept aside at opening."""
        self._file = file
        self._changed = threading.Condition()
        self._lines: list[bytes] = []
        self._unsaved_bytes = 0
        self._waiting: list[Future[None]] = []
        self._closing = False
        self._ended = False
        self._sync_owed = False
        self._finished: Future[None] = Future()
        self._trouble: str | None = None
        self._thread = threading.Thread(target=self._work, name="log", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, paths: SessionPaths) -> JsonlSink:
        """Lock a session and open its log; makes both when they are new (0700 and 0600).

        A torn last line is kept aside first.

        Raises:
            SessionBusy: Another process holds the session.
            SessionError: The directory or the log cannot be opened.
        """
        return cls(paths, LogFile(paths))

    @property
    def trouble(self) -> str | None:
        """Why lines are unsaved at the moment, or None."""
        return self._trouble

    @property
    def unsaved_bytes(self) -> int:
        """Bytes that wait to be written."""
        return self._unsaved_bytes

    @property
    def full(self) -> bool:
        """Whether so much is unsaved that running streams should pause."""
        return self._trouble is not None and self._unsaved_bytes > UNSAVED_LIMIT_BYTES

    def put(self, event: Event) -> None:
        """Take an event in order.

        Raises:
            UnicodeEncodeError: A text in it holds a lone surrogate; nothing was taken.
            SessionError: The log is closed.
        """
        line = encode(event) + b"\n"
        with self._changed:
            if self._closing:
                raise SessionError("the session log is closed")
            self._lines.append(line)
            self._unsaved_bytes += len(line)
            if len(self._lines) == 1:
                self._changed.notify()

    async def sync(self) -> None:
        """Return when everything put so far is on the disk, or the trouble is known."""
        done: Future[None] = Future()
        with self._changed:
            if self._ended:
                return
            self._waiting.append(done)
            self._changed.notify()
        await asyncio.wrap_future(done)

    async def close(self) -> None:
        """Write what is left, sync, and release the lock; safe to call twice.

        Raises:
            SessionError: Lines could not be written in about two seconds; they are lost.
        """
        with self._changed:
            first = not self._closing
            self._closing = True
            self._changed.notify()
        await asyncio.shield(asyncio.wrap_future(self._finished))
        if first and self._lines:
            raise SessionError(
                f"{len(self._lines)} events could not be saved: {self._trouble}",
                "Free some space; the session's log is whole up to there.",
            )

    # --- the log thread ---

    def _work(self) -> None:
        tries = 0
        while True:
            with self._changed:
                self._gather(after_failure=tries > 0)
                batch, waiting, closing = list(self._lines), self._waiting, self._closing
                self._waiting = []
            saved = self._save(batch, sync=bool(waiting) or closing)
            tries = 0 if saved else tries + 1
            for done in waiting:
                if done.set_running_or_notify_cancel():
                    done.set_result(None)
            if closing and (saved or tries > _CLOSE_TRIES) and self._end(saved):
                return

    def _gather(self, *, after_failure: bool) -> None:
        """Wait until there is something to do; lines then gather a moment, unless one waits."""

        def pressing() -> bool:
            return bool(self._waiting)

        if after_failure:
            self._changed.wait_for(pressing, RETRY_S)
            return
        self._changed.wait_for(lambda: bool(self._lines) or self._closing or pressing())
        self._changed.wait_for(lambda: self._closing or pressing(), GATHER_S)

    def _save(self, batch: list[bytes], *, sync: bool) -> bool:
        try:
            if batch:
                self._file.append(b"".join(batch))
                with self._changed:
                    del self._lines[: len(batch)]
                    self._unsaved_bytes -= sum(map(len, batch))
            if sync or self._sync_owed:
                self._sync_owed = True
                self._file.sync()
                self._sync_owed = False
        except (OSError, SessionError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else problem.what
            self._trouble = (
                f"The session log cannot be written: {reason or problem}."
                " Nothing is lost yet: the lines are kept and tried again. Nothing new starts"
                f" meanwhile. Free some space or repair {self.paths.directory}."
            )
            return False
        self._trouble = None
        return True

    def _end(self, saved: bool) -> bool:
        """Stop, unless lines or waiters came meanwhile; those get one more round."""
        with self._changed:
            if saved and (self._lines or self._waiting):
                return False
            self._ended = True
            waiting, self._waiting = self._waiting, []
        for done in waiting:
            if done.set_running_or_notify_cancel():
                done.set_result(None)
        self._file.close()
        self._finished.set_result(None)
        return True
