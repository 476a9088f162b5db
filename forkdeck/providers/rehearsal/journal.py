"""The journal: every request a rehearsal server got, and what became of it.

Written by the server, read by tests, benchmarks and ``GET /__forkdeck/journal``. Kept in
memory only, the newest entries; credentials are never in it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import Final

from forkdeck.model.raw import JsonDict

_KEEP: Final = 1024
_HIDDEN: Final = ("authorization", "x-api-key", "cookie", "proxy-authorization")


class Entry:
    """One message request.

    Times are milliseconds of the server's clock; None until they happen.
    """

    def __init__(self, number: int, received_ms: int, headers: JsonDict) -> None:
        self.number = number
        """From 1, in order of arrival."""
        self.received_ms = received_ms
        self.headers = {key: text for key, text in headers.items() if key not in _HIDDEN}
        self.body: JsonDict = {}
        """Empty while it is not read, and when it is no JSON object."""
        self.role = ""
        self.handle = ""
        self.run_number = 0
        """From 1, in order of arrival, among the requests of the same run."""
        self.source = ""
        """Which answer and round of the scenario was played."""
        self.levels: dict[str, str] = {}
        """SHA-256 at the end of tools, system and messages, marks left out."""
        self.digests: tuple[str, ...] = ()
        """Cumulative hash of every position."""
        self.status: int | None = None
        self.error = ""
        self.fault = ""
        self.usage: JsonDict = {}
        """As the client was told; empty while there is none."""
        self.message_id = ""
        self.stop_reason = ""
        self.first_byte_ms: int | None = None
        self.ended_ms: int | None = None
        self.aborted = False
        """The client left before the answer was whole."""
        self.notes: list[str] = []

    def shared_positions(self, other: Entry) -> int:
        """Return how many leading positions this request has in common with `other`."""
        count = 0
        for mine, theirs in zip(self.digests, other.digests, strict=False):
            if mine != theirs:
                break
            count += 1
        return count

    def public(self) -> JsonDict:
        """Return the entry as JSON."""
        fields = dict(vars(self))
        fields["digests"] = list(self.digests)
        return fields


class Journal:
    """The newest requests of one server, oldest first."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=_KEEP)
        self.requests = 0
        """Message requests in all."""
        self._of_run: Counter[tuple[str, str]] = Counter()

    @property
    def entries(self) -> Sequence[Entry]:
        """The requests, oldest first."""
        return tuple(self._entries)

    def open(self, received_ms: int, headers: JsonDict) -> Entry:
        """Begin an entry for a request."""
        self.requests += 1
        entry = Entry(self.requests, received_ms, headers)
        self._entries.append(entry)
        return entry

    def count(self, role: str, handle: str) -> int:
        """Count one more request of a run and return its number, from 1."""
        self._of_run[role, handle] += 1
        return self._of_run[role, handle]

    def by_message(self, message_id: str) -> Entry | None:
        """Return the request that was answered with a message id."""
        for entry in reversed(self._entries):
            if entry.message_id == message_id:
                return entry
        return None

    def of(self, handle: str) -> Sequence[Entry]:
        """Return the requests of one fork by its handle; an empty handle is the parent."""
        return tuple(entry for entry in self._entries if entry.handle == handle)
