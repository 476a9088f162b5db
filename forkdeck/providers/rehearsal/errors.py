"""Refusals of the rehearsal server, in the shape of the Messages API."""

from __future__ import annotations

from typing import Any, cast

from forkdeck.model.raw import JsonDict


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


def object_in(body: JsonDict, key: str) -> JsonDict:
    """Return the object at `key` of a body; empty when it is absent or null.

    Raises:
        ApiRefused: 400, it is something else.
    """
    value: Any = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid(f"{key}: Input should be an object")
    return cast("JsonDict", value)


def error_body(kind: str, message: str, request_id: str) -> JsonDict:
    """Return an API error as its JSON body."""
    return {
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": request_id,
    }
