"""The environment of children: an allow-list plus fixed values, never what ForkDeck was given.

Called by `sandbox.runner` for every command and by the worktree manager for git. Credentials of
the model's endpoint are refused even when a caller names them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

_KEEP = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "SHELL",
    "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "NVM_BIN", "CARGO_HOME", "RUSTUP_HOME",
    "GOPATH", "GOROOT", "JAVA_HOME", "ANDROID_HOME", "RBENV_ROOT", "GEM_HOME", "BUN_INSTALL",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
)  # fmt: skip
_KEEP_PREFIXES = ("LC_",)
_PROXIES = (
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy",
)  # fmt: skip
_NEVER_PREFIXES = ("ANTHROPIC_", "FORKDECK_")

_FIXED = {
    "TMPDIR": "/tmp",  # the private one of the view
    "TERM": "dumb",
    "NO_COLOR": "1",
    "CI": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GCM_INTERACTIVE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
}

_GIT_CONFIG = (
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
)

_LOOK = {"GIT_OPTIONAL_LOCKS": "0", "PYTHONDONTWRITEBYTECODE": "1"}

MARKER = "FORKDECK_CALL"
"""Variable that marks every process of one call, to find what left its group."""


def child_environment(
    extra: Mapping[str, str] | None = None,
    *,
    names: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
    read_only: bool = False,
    network: bool = False,
) -> dict[str, str]:
    """Return the environment of a child.

    Args:
        extra: Values that the caller sets; they win.
        names: Further names to pass on (``sandbox.environment``), each spelled out.
        environ: Where values are read; ForkDeck's own environment by default.
        read_only: Whether the view is read-only: git takes no optional locks.
        network: Whether the network is reached: only then are proxies passed on.
    """
    source = os.environ if environ is None else environ
    wanted = {*_KEEP, *names, *(_PROXIES if network else ())}
    result = {
        name: value
        for name, value in source.items()
        if (name in wanted or name.startswith(_KEEP_PREFIXES))
        and not name.startswith(_NEVER_PREFIXES)
    }
    # Messages in English: a read-only refusal is recognised by its words.
    if "LC_ALL" in result:
        result["LANG"] = result.pop("LC_ALL")
    result["LC_MESSAGES"] = "C"
    result.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    result.update(_FIXED)
    if read_only:
        result.update(_LOOK)
    result["GIT_CONFIG_COUNT"] = str(len(_GIT_CONFIG))
    for index, (key, value) in enumerate(_GIT_CONFIG):
        result[f"GIT_CONFIG_KEY_{index}"] = key
        result[f"GIT_CONFIG_VALUE_{index}"] = value
    for name, value in (extra or {}).items():
        if not name.startswith("ANTHROPIC_"):
            result[name] = value
    return result
