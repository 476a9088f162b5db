"""Who may talk to the rehearsal server: its own token, its own address, no browser.

Called by the server for every request before anything is parsed further.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping

from forkdeck.providers.rehearsal.errors import ApiRefused


def new_token() -> str:
    """Return a bearer token for one start of the server."""
    return f"rehearsal-{secrets.token_urlsafe(24)}"


def check(headers: Mapping[str, str], *, token: str, port: int) -> None:
    """Let a request pass, or refuse it.

    A foreign ``Host`` is a rebound name, an ``Origin`` is a browser: neither is ForkDeck.

    Args:
        headers: Header names in lower case.
        token: The token of this start.
        port: The port the server listens on.

    Raises:
        ApiRefused: 401 or 403.
    """
    if headers.get("host", "").lower() not in (f"127.0.0.1:{port}", f"localhost:{port}"):
        raise ApiRefused(403, "permission_error", "This server answers on 127.0.0.1 only.")
    if "origin" in headers:
        raise ApiRefused(403, "permission_error", "Requests from a web page are refused.")
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        how = "x-api-key is not taken" if "x-api-key" in headers else "Authorization is missing"
        raise ApiRefused(401, "authentication_error", f"{how}; send Authorization: Bearer TOKEN.")
    if not hmac.compare_digest(given.strip().encode("latin-1", "replace"), token.encode("ascii")):
        raise ApiRefused(401, "authentication_error", "The bearer token is not this server's.")
