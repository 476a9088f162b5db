"""What the statuses of the Messages API mean for a person.

Used by `classify`: a table for what is one thing only, and code for what depends on the words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from forkdeck.errors import (
    AuthFailed,
    BadRequest,
    ContextTooLong,
    ModelNotFound,
    NotAnEndpoint,
    Overloaded,
    ProviderError,
    RateLimited,
    ServerFault,
    SpendLimit,
    Unreachable,
)
from forkdeck.model.raw import JsonDict
from forkdeck.providers.scrub import scrub

_CONTEXT = re.compile(
    r"prompt is too long|context (window|length|limit)|maximum context|exceeds? .{0,20}context"
    r"|too many (input )?tokens|input is too long|input length and `?max_tokens`? exceed",
    re.IGNORECASE,
)
_SPEND = re.compile(
    r"credit balance|spend(ing)? (limit|cap)|usage limits?\b|billing|insufficient.quota"
    r"|your current quota|insufficient (funds|balance)|monthly (limit|cap|spend)|payment"
    r"|out of credits|prepaid",
    re.IGNORECASE,
)
_OWN_ANSWER = re.compile(
    r"signature\W{0,3}(in )?\W{0,3}thinking|thinking\W{0,3}signature"
    r"|thinking\b.{0,60}(cannot be modified|was removed)",
    re.IGNORECASE,
)
_HTML = re.compile(r"\s*(<!doctype|<html|<\?xml|<head|<body)", re.IGNORECASE)
AGAIN = "It is tried again by itself; press r to send the turn again later."
"""Remedy of failures that pass."""


class Failure:
    """Where a request went, for the texts of its errors.

    Args:
        endpoint: Address of the endpoint, without credentials.
        model: Model of the request.
        origin: Where the credentials came from, in words.
        secrets: Values that may appear in no text.
    """

    def __init__(
        self, endpoint: str, model: str = "", origin: str = "", secrets: Sequence[str] = ()
    ) -> None:
        self.endpoint = endpoint
        self.model = model
        self.origin = origin or "the credentials"
        self.secrets = tuple(secrets)

    def said(self, text: str) -> str:
        """Return the endpoint's own words as a sentence to append, or an empty text."""
        words = scrub(text, self.secrets)
        return f' It said: "{words}"' if words else ""


_TABLE: Mapping[int, tuple[type[ProviderError], str, str]] = {
    401: (
        AuthFailed,
        "The endpoint does not accept {origin}",
        "Check the key, set it and start forkdeck again.",
    ),
    403: (
        AuthFailed,
        "The endpoint does not allow this with {origin}",
        "Check what the key may do, or set another one and start forkdeck again.",
    ),
    402: (
        SpendLimit,
        "A spend limit is reached or the balance is empty",
        "Waiting does not help: raise the limit or add credit at the endpoint, then press r.",
    ),
    404: (
        ModelNotFound,
        "{endpoint} does not know the model {model}, or has no Messages API",
        "Choose another model with /model, or check the endpoint's address.",
    ),
    405: (
        NotAnEndpoint,
        "{endpoint} does not take this kind of request",
        "Check the address of the endpoint.",
    ),
    408: (Unreachable, "The endpoint gave up waiting for the request", AGAIN),
    409: (ServerFault, "The endpoint was busy with the same thing", AGAIN),
    413: (
        BadRequest,
        "The request is larger than the endpoint takes",
        "Start a new session, or fork with --seed none.",
    ),
    425: (Unreachable, "The endpoint was not ready for the request", AGAIN),
    429: (
        RateLimited,
        "The endpoint's rate limit is reached",
        "Forks wait by themselves; fewer at once help.",
    ),
    529: (Overloaded, "The endpoint is overloaded", AGAIN),
}


def from_status(
    status: int,
    headers: Mapping[str, str],
    body: object,
    failure: Failure,
    *,
    now: datetime | None = None,
) -> ProviderError:
    """Return the error for a response that is no success.

    Args:
        status: HTTP status.
        headers: Response headers; names in lower case are looked up.
        body: The decoded JSON, or its text when it was none.
        failure: Where the request went.
        now: The time, for a Retry-After that is a date.
    """
    error = error_of(body)
    message = word(error.get("message"))
    html = isinstance(body, str) and _HTML.match(body) is not None
    if not message and isinstance(body, str) and not html:
        message = body
    facts: dict[str, Any] = {
        "status": status,
        "request_id": headers.get("request-id"),
        "retry_after_s": retry_after_s(headers, now or datetime.now(UTC)),
    }
    if word(error.get("type")) == "overloaded_error":
        status = 529
    special = _special(status, message, html, failure, facts)
    if special is not None:
        return special
    kind, what, remedy = _TABLE.get(
        status,
        (ServerFault, "The endpoint failed", AGAIN)
        if status >= 500
        else (
            BadRequest,
            "The endpoint refused the request",
            "Sending it again changes nothing; change the model, the settings or the prompt.",
        ),
    )
    what = what.format(
        origin=failure.origin,
        endpoint=failure.endpoint,
        model=f'"{scrub(failure.model)}"' if failure.model else "that was asked for",
    )
    return kind(f"{what} (HTTP {facts['status']}).{failure.said(message)}", remedy, **facts)


def _special(
    status: int, message: str, html: bool, failure: Failure, facts: dict[str, Any]
) -> ProviderError | None:
    """Return the error of a status whose meaning depends on the body, or None."""
    said = failure.said(message)
    if html and status < 500 and status not in (413, 429):
        return NotAnEndpoint(
            f"{failure.endpoint} answered with a web page (HTTP {status}), not with the"
            " Messages API.",
            "Check the address of the endpoint; a proxy or a login page may stand before it.",
            **facts,
        )
    if 300 <= status < 400:
        return NotAnEndpoint(
            f"{failure.endpoint} sends requests on to another address (HTTP {status}), which is"
            " not followed, so that the key stays here.",
            "Set the endpoint's address to the one that answers.",
            **facts,
        )
    if status in (400, 413, 422) and _CONTEXT.search(message):
        return ContextTooLong(
            f"The conversation no longer fits the model's context (HTTP {status}).{said}",
            "Nothing is lost: go on with a new session, or fork with --seed turns:N or none.",
            **facts,
        )
    if status in (400, 422) and _OWN_ANSWER.search(message):
        return BadRequest(
            f"The endpoint refused the thinking blocks of an earlier answer (HTTP {status}).{said}",
            "The last prompt is not the cause. Choose another model with /model, which leaves "
            "earlier thinking out, or start a new session.",
            **facts,
        )
    waits = status == 429 and facts["retry_after_s"] is not None
    if status in (400, 403, 422, 429) and not waits and _SPEND.search(message):
        _, what, remedy = _TABLE[402]
        return SpendLimit(f"{what} (HTTP {status}).{said}", remedy, **facts)
    return None


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return how many seconds the endpoint asks to wait, or None.

    Reads ``retry-after-ms`` first, then ``retry-after`` as seconds or as a date.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            seconds = float(text) / scale
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    text = headers.get("retry-after")
    if text is None:
        return None
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError):
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())


def error_of(body: object) -> JsonDict:
    """Return the error object of a response body, whatever its shape."""
    if not isinstance(body, dict):
        return {}
    error = cast("JsonDict", body).get("error")
    if isinstance(error, dict):
        return cast("JsonDict", error)
    if isinstance(error, str):
        return {"message": error}
    return cast("JsonDict", body)


def word(value: object) -> str:
    """Return `value` when it is a text, else an empty one."""
    return value if isinstance(value, str) else ""
