"""The credentials of the endpoint, read once and taken out of the environment.

The command line calls `Credentials.take` before anything else runs, so that no child process can
inherit a key. The values go to `client` and nowhere else: they stand in no text of this class, in
no log and in no error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from forkdeck.errors import UsageError

DEFAULT_BASE_URL = "https://api.anthropic.com"

_PREFIX = "ANTHROPIC_"
_SECRET = frozenset(
    (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_IDENTITY_TOKEN",
        "ANTHROPIC_CUSTOM_HEADERS",
        "ANTHROPIC_WEBHOOK_SIGNING_KEY",
    )
)

Kind: TypeAlias = Literal["key", "token", "profile", "federation", "rehearsal", "none"]


class Credentials:
    """What is needed to speak to the endpoint; opaque, and silent about its values.

    Args:
        values: The ``ANTHROPIC_*`` variables that were set and not empty.
        config_dir: Directory of profiles on disk.
        rehearsal: Address and token of a loopback server; nothing else is used then.
    """

    def __init__(
        self,
        values: Mapping[str, str],
        *,
        config_dir: Path | None = None,
        rehearsal: tuple[str, str] | None = None,
    ) -> None:
        self._values = dict(values)
        self._config_dir = config_dir
        self._rehearsal = rehearsal
        self.trouble = ""
        """Why these cannot be used, with the way out; empty when they can."""
        self.notes: tuple[str, ...] = ()
        """What was corrected, to be shown."""
        self._base_url = self._checked_base_url()
        self.kind: Kind = self._find()
        """Which of the ways to sign in is used."""
        self._check_header_text()

    @classmethod
    def take(cls, environ: MutableMapping[str, str], home: Path | None = None) -> Credentials:
        """Read every ``ANTHROPIC_*`` variable and remove it from `environ`.

        Empty ones count as unset. A profile on disk counts as found.

        Args:
            environ: The environment of this process, changed in place.
            home: Home directory; None: the user's.
        """
        values: dict[str, str] = {}
        for name in [name for name in environ if name.startswith(_PREFIX)]:
            text = environ.pop(name).strip()
            if text:
                values[name] = text
        given = values.get("ANTHROPIC_CONFIG_DIR")
        directory = Path(given) if given else (home or Path.home()) / ".config" / "anthropic"
        return cls(values, config_dir=directory)

    @classmethod
    def for_rehearsal(cls, base_url: str, token: str) -> Credentials:
        """Return credentials for the built-in loopback server; no variable reaches it."""
        return cls({}, rehearsal=(base_url, token))

    @property
    def found(self) -> bool:
        """Whether a request can be signed, as far as it can be told without sending one."""
        return self.kind != "none" and not self.trouble

    @property
    def origin(self) -> str:
        """Where they come from, for the screen: a variable's name or a profile's."""
        return {
            "key": "ANTHROPIC_API_KEY",
            "token": "ANTHROPIC_AUTH_TOKEN",
            "federation": "workload identity (ANTHROPIC_FEDERATION_RULE_ID)",
            "profile": f"profile {self.profile} in {self._config_dir}",
            "rehearsal": "the built-in rehearsal model",
            "none": "none",
        }[self.kind]

    @property
    def account(self) -> str:
        """A short mark that tells one account from another; empty when it cannot be told.

        A key is known by eight digits of its hash, from which nobody gets it back. A bearer token
        changes by itself, so it tells nothing.
        """
        named = {
            "key": self._values.get("ANTHROPIC_API_KEY", ""),
            "federation": self._values.get("ANTHROPIC_ORGANIZATION_ID", ""),
            "profile": self.profile,
        }.get(self.kind, "")
        return hashlib.sha256(f"{self.kind} {named}".encode()).hexdigest()[:8] if named else ""

    @property
    def looked_for(self) -> str:
        """What was looked for, and on a second line what to do; for a screen without them."""
        if self.trouble:
            return self.trouble
        return (
            "No credentials: ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN and ANTHROPIC_PROFILE are not"
            f" set, and there is no profile in {self._config_dir}.\n"
            "Set a key with export ANTHROPIC_API_KEY=… and start forkdeck again."
        )

    @property
    def base_url(self) -> str | None:
        """The endpoint that was asked for, or None for the usual one."""
        return self._base_url

    @property
    def profile(self) -> str:
        """Name of the profile on disk that would be used."""
        return self._values.get("ANTHROPIC_PROFILE") or _active_profile(self._config_dir)

    @property
    def config_dir(self) -> Path | None:
        """Directory of profiles, which no command may see."""
        return self._config_dir

    def get(self, name: str) -> str | None:
        """Return one taken variable for signing a request; never to be shown."""
        return self._values.get(name)

    def rehearsal_token(self) -> str:
        """Return the loopback server's token, or an empty text."""
        return self._rehearsal[1] if self._rehearsal else ""

    def plain_values(self) -> dict[str, str]:
        """Return the variables that are no secrets, as a profile may refer to them."""
        return {name: text for name, text in self._values.items() if name not in _SECRET}

    def custom_headers(self) -> dict[str, str]:
        """Return the headers of ``ANTHROPIC_CUSTOM_HEADERS``; may hold secrets."""
        found: dict[str, str] = {}
        for line in self._values.get("ANTHROPIC_CUSTOM_HEADERS", "").splitlines():
            name, colon, text = line.partition(":")
            if colon and name.strip().isascii() and text.isascii():
                found[name.strip()] = text.strip()
        return found

    def secrets(self) -> tuple[str, ...]:
        """Return every value that must appear nowhere, for scrubbing texts from outside."""
        values = [text for name, text in self._values.items() if name in _SECRET]
        return (*values, *self.custom_headers().values(), *filter(None, [self.rehearsal_token()]))

    def __repr__(self) -> str:
        return f"Credentials({self.origin})"

    def __reduce__(self) -> Any:
        raise TypeError("credentials are not stored")

    def _find(self) -> Kind:
        if self._rehearsal is not None:
            return "rehearsal"
        has = self._values.get
        if has("ANTHROPIC_API_KEY"):
            return "key"
        if has("ANTHROPIC_AUTH_TOKEN"):
            return "token"
        if has("ANTHROPIC_PROFILE"):
            return "profile"
        token = has("ANTHROPIC_IDENTITY_TOKEN") or has("ANTHROPIC_IDENTITY_TOKEN_FILE")
        if token and has("ANTHROPIC_FEDERATION_RULE_ID") and has("ANTHROPIC_ORGANIZATION_ID"):
            return "federation"
        return "profile" if _has_profile(self._config_dir) else "none"

    def _checked_base_url(self) -> str | None:
        if self._rehearsal is not None:
            return self._rehearsal[0]
        given = self._values.get("ANTHROPIC_BASE_URL")
        if not given:
            return None
        try:
            url, note = usable_base_url(given, "ANTHROPIC_BASE_URL")
        except UsageError as error:
            self.trouble = f"{error.what}\n{error.remedy}"
            return None
        self.notes += (note,) if note else ()
        return url

    def _check_header_text(self) -> None:
        for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
            text = self._values.get(name, "")
            if not text.isascii() or not text.isprintable() or " " in text:
                self.trouble = (
                    f"{name} holds a character that no key has (a space, a line break or a letter"
                    " outside ASCII).\nCopy the key again, without anything around it."
                )


def usable_base_url(text: str, origin: str) -> tuple[str, str]:
    """Return an endpoint's address as the SDK wants it, and a note when it was corrected.

    Raises:
        UsageError: It is no web address, or holds a name or password.
    """
    remedy = f"Set {origin} to an address such as {DEFAULT_BASE_URL}."
    try:
        parts = urlsplit(text.strip())
        host = parts.hostname
        _ = parts.port
    except ValueError:
        raise UsageError(f"{origin} is no web address.", remedy) from None
    if "@" in parts.netloc:
        raise UsageError(
            f"{origin} holds a name or password, which is refused.",
            "Take it out of the address and set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN.",
        )
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise UsageError(f"{origin} is no web address.", remedy)
    url = text.strip().rstrip("/")
    for ending in ("/v1/messages", "/v1"):
        if parts.path.rstrip("/").endswith(ending):
            url = url[: -len(ending)]
            return url, f'{origin}: "{ending}" at the end was left out, it is added by itself.'
    return url, ""


def _active_profile(config_dir: Path | None) -> str:
    if config_dir is not None:
        try:
            name = (config_dir / "active_config").read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            name = ""
        if name and name.isprintable():
            return name
    return "default"


def _has_profile(config_dir: Path | None) -> bool:
    if config_dir is None:
        return False
    name = _active_profile(config_dir)
    if "/" in name or name.startswith("."):
        return False
    try:
        loaded: Any = json.loads((config_dir / "configs" / f"{name}.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(loaded, dict)
