"""Refusals of the rehearsal server, in the shape of the Messages API."""

from __future__ import annotations

from typing import Any


class ApiRefused(Exception):
    """A request that is answered with an API error.

    Args:
        status: HTTP status.
        kind: The API's error type, such as ``invalid_request_error``.
        message: Its message.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message


def invalid(message: str) -> ApiRefused:
    """Return a 400 with the API's ``invalid_request_error``."""
    return ApiRefused(400, "invalid_request_error", message)


def error_body(kind: str, message: str, request_id: str) -> dict[str, Any]:
    """Return an API error as its JSON body."""
    return {
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": request_id,
    }
