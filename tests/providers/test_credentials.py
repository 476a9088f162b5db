"""Credentials: found in order, taken out of the environment, and silent."""

from __future__ import annotations

import pickle

import pytest

from forkdeck.errors import UsageError
from forkdeck.providers.credentials import Credentials, usable_base_url
from forkdeck.providers.scrub import scrub
from tests.providers.support import KEY

CHAIN = {
    "ANTHROPIC_API_KEY": KEY,
    "ANTHROPIC_AUTH_TOKEN": "token-SECRET",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Secret: header-SECRET\nbroken",
    "ANTHROPIC_PROFILE": "work",
    "ANTHROPIC_IDENTITY_TOKEN": "identity-SECRET",
    "ANTHROPIC_IDENTITY_TOKEN_FILE": "/nowhere",
    "ANTHROPIC_CONFIG_DIR": "/nowhere/config",
    "ANTHROPIC_FEDERATION_RULE_ID": "rule",
    "ANTHROPIC_ORGANIZATION_ID": "org",
    "ANTHROPIC_WORKSPACE_ID": "ws",
    "ANTHROPIC_SERVICE_ACCOUNT_ID": "sa",
    "ANTHROPIC_SCOPE": "scope",
    "ANTHROPIC_BASE_URL": "https://gate.example",
    "ANTHROPIC_LOG": "debug",
    "ANTHROPIC_WEBHOOK_SIGNING_KEY": "hook-SECRET",
}


def test_everything_is_taken_and_nothing_is_shown(tmp_path):
    environ = {**CHAIN, "PATH": "/bin"}
    found = Credentials.take(environ, tmp_path)
    assert environ == {"PATH": "/bin"}
    assert found.found
    assert found.kind == "key"
    shown = f"{found!r} {found} {found.origin} {found.looked_for} {found.notes} {found.trouble}"
    assert "SECRET" not in shown
    assert (
        found.plain_values()
        .keys()
        .isdisjoint(name for name, text in CHAIN.items() if "SECRET" in text)
    )
    assert {"header-SECRET", KEY, "token-SECRET"} <= set(found.secrets())
    with pytest.raises(TypeError):
        pickle.dumps(found)


def test_an_account_is_told_apart_without_its_key(tmp_path):
    """Two keys are two accounts; a bearer token changes by itself and tells nothing."""

    def account(**values: str) -> str:
        return Credentials.take(dict(values), tmp_path).account

    one, other = account(ANTHROPIC_API_KEY=KEY), account(ANTHROPIC_API_KEY="another-key")
    assert one == account(ANTHROPIC_API_KEY=KEY)
    assert len(one) == 8
    assert one != other
    assert one not in KEY
    assert account(ANTHROPIC_AUTH_TOKEN="t") == account() == ""
    assert account(ANTHROPIC_PROFILE="a") != account(ANTHROPIC_PROFILE="b")


@pytest.mark.parametrize(
    ("drop", "kind"),
    [
        ((), "key"),
        (("ANTHROPIC_API_KEY",), "token"),
        (("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "profile"),
        (("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"), "federation"),
    ],
)
def test_order_of_the_chain(tmp_path, drop, kind):
    environ = {name: text for name, text in CHAIN.items() if name not in drop}
    assert Credentials.take(environ, tmp_path).kind == kind


def test_empty_counts_as_unset_and_space_around_is_cut(tmp_path):
    environ = {"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "  \n", "ANTHROPIC_BASE_URL": ""}
    found = Credentials.take(environ, tmp_path)
    assert environ == {}
    assert not found.found
    assert found.kind == "none"
    assert found.base_url is None
    assert "ANTHROPIC_API_KEY" in found.looked_for
    assert str(tmp_path) in found.looked_for
    spaced = Credentials.take({"ANTHROPIC_API_KEY": f" {KEY}\n"}, tmp_path)
    assert spaced.get("ANTHROPIC_API_KEY") == KEY


def test_a_profile_on_disk_counts(tmp_path):
    configs = tmp_path / ".config/anthropic/configs"
    configs.mkdir(parents=True)
    assert not Credentials.take({}, tmp_path).found
    (configs / "default.json").write_text("not json")
    assert not Credentials.take({}, tmp_path).found
    (configs / "default.json").write_text("{}")
    found = Credentials.take({}, tmp_path)
    assert found.found
    assert found.origin.startswith("profile default")
    (tmp_path / ".config/anthropic/active_config").write_text("../../etc\n")
    assert not Credentials.take({}, tmp_path).found


@pytest.mark.parametrize("bad", ["sk ant", "sk-änt", "sk\nant", "sk-\x1b[31m"])
def test_a_key_that_cannot_be_a_header_is_said_without_showing_it(tmp_path, bad):
    found = Credentials.take({"ANTHROPIC_API_KEY": bad}, tmp_path)
    assert not found.found
    assert "ANTHROPIC_API_KEY" in found.looked_for
    assert bad not in found.looked_for


@pytest.mark.parametrize(
    ("given", "url", "noted"),
    [
        ("https://a.example", "https://a.example", False),
        ("https://a.example/", "https://a.example", False),
        ("https://a.example/v1", "https://a.example", True),
        ("https://a.example/v1/", "https://a.example", True),
        ("https://a.example/anthropic/v1/messages", "https://a.example/anthropic", True),
        ("http://127.0.0.1:8080/anthropic", "http://127.0.0.1:8080/anthropic", False),
        (" https://a.example/dev1 ", "https://a.example/dev1", False),
    ],
)
def test_base_urls(given, url, noted):
    found, note = usable_base_url(given, "X")
    assert found == url
    assert bool(note) is noted


@pytest.mark.parametrize(
    "given",
    [
        "a.example",
        "ftp://a",
        "https://",
        "https://u:p-SECRET@a",
        "https://a:99999",
        "http://[",
        "x",
        "https://a/?key=SECRET",
        "https://tok-SECRET@a/",
        "file:///etc/passwd",
    ],
)
def test_addresses_that_are_refused(tmp_path, given):
    with pytest.raises(UsageError) as caught:
        usable_base_url(given, "ANTHROPIC_BASE_URL")
    assert "SECRET" not in str(caught.value)
    found = Credentials.take({"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": given}, tmp_path)
    assert not found.found
    assert "ANTHROPIC_BASE_URL" in found.looked_for
    assert "SECRET" not in found.looked_for


@pytest.mark.parametrize(
    "text",
    [
        f"key {KEY} bad",
        "Bearer abc.SECRET",
        "https://u:SECRET@h/x",
        "mine-SECRET",
        "eyJhbGciSECRET.x.y",
    ],
)
def test_scrub(text):
    assert "SECRET" not in scrub(text, ["mine-SECRET"])


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("invalid bearer token", "invalid bearer token"),
        ("Bearer authentication is required.", "Bearer authentication is required."),
        ("no Bearer  token: retry", "no Bearer token: retry"),
        ("Bearer hunter2 is wrong", "[hidden] is wrong"),
        ("bearer abcDef", "[hidden]"),
        ("bearer abcdefghijklmnopqrstuvwx", "[hidden]"),
    ],
)
def test_words_about_tokens_are_no_secrets(said, shown):
    assert scrub(said) == shown


def test_scrub_makes_one_short_line():
    shown = scrub("a\x1b[2J\n\tb\u202ec\u200b" + "x" * 9_000)
    assert shown.startswith("a [2J b c x")
    assert len(shown) == 400
