"""Every way a request can fail, turned into an error a person can act on.

Used by `client` for exceptions and for ``error`` events. Works on shapes (status, body, names in
the class tree), not on the SDK's classes, so that it needs no SDK. No text from a transport error
is shown, because such texts quote headers; texts from an endpoint are scrubbed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import cast

from forkdeck.errors import (
    AuthFailed,
    BadRequest,
    NotAnEndpoint,
    Overloaded,
    ProviderError,
    ServerFault,
    StreamCut,
    Unreachable,
)
from forkdeck.model.raw import JsonDict
from forkdeck.providers.scrub import scrub
from forkdeck.providers.statuses import AGAIN, Failure, error_of, from_status, word

_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def classify(
    error: Exception, failure: Failure, *, opened: bool, now: datetime | None = None
) -> ProviderError:
    """Return the error that stands for any exception of a request.

    Args:
        error: What was raised.
        failure: Where the request went.
        opened: Whether ``message_start`` had arrived: then it is a broken stream.
        now: The time, for a Retry-After that is a date.
    """
    if isinstance(error, ProviderError):
        return error
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(status, int) and response is not None:
        headers = cast("Mapping[str, str]", getattr(response, "headers", {}))
        body = getattr(error, "body", None)
        if opened or status < 300:
            return stream_error(error_of(body), failure, opened=opened)
        return from_status(status, headers, body, failure, now=now)
    if opened:
        return _broken(error, names)
    if names & {"CredentialsError", "WorkloadIdentityError"}:
        words = scrub(str(error), failure.secrets)
        return AuthFailed(
            f"The credentials ({failure.origin}) cannot be used: {words}",
            "Sign in again, or set ANTHROPIC_API_KEY and start forkdeck again.",
        )
    if isinstance(error, TypeError) and "authentication" in str(error):
        return AuthFailed(
            "There are no credentials to sign the request with.",
            "Set ANTHROPIC_API_KEY and start forkdeck again.",
        )
    if isinstance(error, UnicodeEncodeError | OverflowError | RecursionError):
        return BadRequest(
            "The request holds something that cannot be written as JSON.",
            "Take back the last prompt or start a new session; please report this as a bug.",
        )
    return _transport(error, names, failure)


def stream_error(error: JsonDict, failure: Failure, *, opened: bool) -> ProviderError:
    """Return the error for an ``error`` event in a stream whose status was a success.

    Args:
        error: The event's ``error`` object.
        failure: Where the request went.
        opened: Whether the answer had begun.
    """
    kind, message = word(error.get("type")), word(error.get("message"))
    said = failure.said(message)
    if not opened:
        status = _STATUS_OF.get(kind, 500)
        return from_status(status, {}, {"error": error}, failure)
    again = "Nothing of the answer was run; the step is sent again."
    if kind in ("overloaded_error", "rate_limit_error"):
        return Overloaded(f"The endpoint broke the answer off: overloaded.{said}", again)
    if kind in ("api_error", "timeout_error", "server_error", ""):
        return ServerFault(f"The endpoint broke the answer off: it failed.{said}", again)
    return StreamCut(f"The endpoint broke the answer off ({scrub(kind)}).{said}", again)


def _broken(error: Exception, names: set[str]) -> StreamCut:
    if names & {"TimeoutException", "APITimeoutError", "TimeoutError"}:
        why = "The answer went silent."
    elif names & {"TransportError", "APIConnectionError", "OSError"}:
        why = "The connection broke in the middle of the answer."
    else:
        why = f"The answer could not be read ({type(error).__name__})."
    return StreamCut(why, "Nothing of it was run; the step is sent again.")


def _transport(error: Exception, names: set[str], failure: Failure) -> ProviderError:
    causes = _causes(error)
    chain = " ".join(f"{type(link).__name__} {link}" for link in causes).lower()
    where = failure.endpoint
    if names & {"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"}:
        return BadRequest(
            "The request cannot be sent: the address or a header has a form that is not allowed.",
            "Check ANTHROPIC_BASE_URL, ANTHROPIC_CUSTOM_HEADERS and the endpoint's settings.",
        )
    if "certificate" in chain or "ssl" in chain:
        return Unreachable(
            f"The certificate of {where} is not accepted.",
            "Check the address and the clock; behind a company proxy set SSL_CERT_FILE.",
        )
    for sign, what, remedy in _CONNECTION_SIGNS:
        if sign in chain:
            return Unreachable(what.format(where=where), remedy)
    linked = {kind.__name__ for link in causes for kind in type(link).__mro__}
    if linked & {"TimeoutException", "APITimeoutError", "TimeoutError"}:
        return Unreachable(f"{where} did not answer in time.", "Check the network. " + AGAIN)
    if linked & {"TransportError", "APIConnectionError", "OSError"}:
        return Unreachable(
            f"The connection to {where} failed before the answer began.",
            "Check the network and the endpoint's address. " + AGAIN,
        )
    return NotAnEndpoint(
        f"The answer of {where} could not be read ({type(error).__name__}).",
        "Check the address of the endpoint; it does not seem to speak the Messages API.",
    )


_CONNECTION_SIGNS = (
    (
        "connectionrefusederror",
        "{where} refuses connections.",
        "Check that the endpoint runs and that its address and port are right.",
    ),
    (
        "gaierror",
        "The name in {where} cannot be looked up.",
        "Check the network and the endpoint's address.",
    ),
    ("network is unreachable", "There is no network to reach {where}.", "Check the network."),
    ("proxyerror", "The proxy before {where} refuses the connection.", "Check HTTPS_PROXY."),
)


def _causes(error: BaseException) -> list[BaseException]:
    """Return an exception and what led to it, members of groups included."""
    found: list[BaseException] = []
    waiting: list[BaseException] = [error]
    while waiting and len(found) < 20:
        link = waiting.pop(0)
        if link in found:
            continue
        found.append(link)
        if isinstance(link, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", link).exceptions
        cause = link.__cause__ or link.__context__
        if cause is not None:
            waiting.append(cause)
    return found
