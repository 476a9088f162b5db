"""The exception tree. Anyone may import it; it imports nothing of ForkDeck.

::

    ForkDeckError
    ├── UsageError            wrong flags or arguments              (exit code 2)
    ├── ConfigError           a settings file or value is wrong     (exit code 2)
    ├── SessionError          a session cannot be found or opened
    │   ├── LogFormatError    a log that is no log, or too new
    │   └── SessionBusy       another process holds the session
    ├── HistoryError          a message history that cannot be sent
    │   ├── SeedRefused       a seed that cannot be made valid
    │   └── PrefixChanged     a request that lost its shared prefix
    ├── ProviderError         the endpoint refused or failed
    │   ├── AuthFailed · ModelNotFound · BadRequest · NotAnEndpoint
    │   ├── ContextTooLong · SpendLimit
    │   ├── RateLimited · Overloaded · ServerFault · Unreachable    (retried)
    │   └── StreamCut         the stream broke after its first byte (resent)
    ├── ToolError             a tool call that gave no result
    │   ├── PathRefused       a path outside what the run may see
    │   └── ToolDenied        refused by rule, mode or person
    ├── SandboxError          the sandbox could not start
    ├── WorktreeError         git or a worktree refused
    ├── ApplyRefused          work that cannot be applied; nothing was written
    └── AdmissionRefused      a fork call refused before anything started

Every message says what happened, why, and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence


class ForkDeckError(Exception):
    """Root of every error ForkDeck raises on purpose.

    Args:
        what: What happened, in one sentence.
        remedy: What the person can do about it, or an empty string.
    """

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what if not remedy else f"{what}\n{remedy}")
        self.what = what
        self.remedy = remedy


class UsageError(ForkDeckError):
    """Wrong flags or arguments on the command line."""


class ConfigError(ForkDeckError):
    """A settings file, key or value that cannot be used."""


class SessionError(ForkDeckError):
    """A session cannot be found or opened."""


class LogFormatError(SessionError):
    """A file that is no session log, or one of a newer major version."""


class SessionBusy(SessionError):
    """Another process holds the session's lock."""


class HistoryError(ForkDeckError):
    """A message history that must not be sent."""


class SeedRefused(HistoryError):
    """A seed that cannot be made valid; the whole call fails, nothing started."""


class PrefixChanged(HistoryError):
    """A request whose shared positions differ from its parent's.

    Args:
        what: What happened.
        position: Index of the first differing position (tools, system, messages in order).
        where: The position in words, such as ``messages[3] block 1``.
    """

    def __init__(self, what: str, position: int, where: str) -> None:
        super().__init__(what, "The request was not sent; the parent is unharmed.")
        self.position = position
        self.where = where


class ProviderError(ForkDeckError):
    """The endpoint refused a request or failed while answering.

    Args:
        what: What happened, in one sentence.
        remedy: What the person can do.
        status: HTTP status, or None when no response arrived.
        request_id: The endpoint's request id, when it gave one.
        retry_after_s: Seconds the endpoint asked to wait, when it did.
    """

    word = "error"
    retryable = False
    """Whether the same request may go out again by itself, after a pause."""

    def __init__(
        self,
        what: str,
        remedy: str = "",
        *,
        status: int | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(what, remedy)
        self.status = status
        self.request_id = request_id
        self.retry_after_s = retry_after_s


class AuthFailed(ProviderError):
    """401 or 403, or no credentials at all."""

    word = "auth"


class ModelNotFound(ProviderError):
    """404 for the model, or an endpoint without the Messages API."""

    word = "not-found"


class BadRequest(ProviderError):
    """400, 413 or 422: the request itself is wrong."""

    word = "bad-request"


class NotAnEndpoint(ProviderError):
    """An answer that is not the Messages API at all, such as HTML."""

    word = "not-an-endpoint"


class ContextTooLong(ProviderError):
    """The conversation no longer fits the model's context."""

    word = "context"


class SpendLimit(ProviderError):
    """A spend limit or an empty balance: waiting does not help."""

    word = "spend-limit"


class RateLimited(ProviderError):
    """429: wait as told, or back off."""

    word = "429"
    retryable = True


class Overloaded(ProviderError):
    """529, or an ``overloaded_error`` event."""

    word = "529"
    retryable = True


class ServerFault(ProviderError):
    """500 and its relatives."""

    word = "5xx"
    retryable = True


class Unreachable(ProviderError):
    """No connection, or it timed out before the first byte."""

    word = "connection"
    retryable = True


class StreamCut(ProviderError):
    """A stream that broke, ended early or went silent after its first byte."""

    word = "cut"


class ToolError(ForkDeckError):
    """A tool call that gave no result; its text goes to the model."""


class PathRefused(ToolError):
    """A path that this run may not see or write."""


class ToolDenied(ToolError):
    """A call refused by a rule, a mode, a policy or the person."""


class SandboxError(ToolError):
    """The sandbox could not start; the command did not run."""


class WorktreeError(ForkDeckError):
    """Git or a worktree refused; nothing was lost."""


class ApplyRefused(ForkDeckError):
    """Work that cannot be applied; nothing was written.

    Args:
        what: Why not.
        remedy: What to do instead.
        conflicts: Paths in conflict, relative to the repository root.
    """

    def __init__(self, what: str, remedy: str = "", conflicts: Sequence[str] = ()) -> None:
        super().__init__(what, remedy)
        self.conflicts = tuple(conflicts)


class AdmissionRefused(ForkDeckError):
    """A fork call that was refused before anything started."""
