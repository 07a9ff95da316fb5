"""Whose word about the client and the scheme is taken, and how far."""

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from sameface.api.middleware.forwarded import Forwarded
from sameface.api.settings import Settings

PROXY = ("10.0.0.2", 4000)


def seen(
    settings: Settings, *headers: tuple[str, str], client: tuple[str, int] | None = PROXY
) -> tuple[str | None, str]:
    """The client's address and the scheme that the application sees."""
    scope: dict[str, Any] = {
        "type": "http",
        "client": client,
        "scheme": "http",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
    }

    async def application(*_: object) -> None: ...

    asyncio.run(Forwarded(application, settings)(scope, None, None))
    return scope["client"] and scope["client"][0], scope["scheme"]


FORWARDED = (("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Proto", "https"))
TRUSTING = Settings(trusted_proxies="10.0.0.0/8, 2001:db8::1")


def test_the_word_of_a_trusted_proxy_is_taken() -> None:
    assert seen(TRUSTING, *FORWARDED) == ("203.0.113.9", "https")
    assert seen(TRUSTING, *FORWARDED, client=("2001:db8::1", 1)) == ("203.0.113.9", "https")


@pytest.mark.parametrize("stranger", ["192.0.2.1", "127.0.0.1", "2001:db8::2", "not an address"])
def test_nobody_elses_is(stranger: str) -> None:
    assert seen(TRUSTING, *FORWARDED, client=(stranger, 1)) == (stranger, "http")


def test_by_default_nobodys_is() -> None:
    assert seen(Settings(), *FORWARDED, client=("127.0.0.1", 1)) == ("127.0.0.1", "http")


def test_whoever_may_open_the_unix_socket_is_trusted() -> None:
    assert seen(Settings(unix_socket="/run/s"), *FORWARDED, client=None) == ("203.0.113.9", "https")
    assert seen(Settings(), *FORWARDED, client=None) == (None, "http")


@pytest.mark.parametrize(
    ("chain", "client"),
    [
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),  # the first is what the client itself made up
        ("203.0.113.9, 10.9.9.9, 10.8.8.8", "203.0.113.9"),
        ("203.0.113.9:5432", "203.0.113.9"),
        ("[2001:db8::7]:5432", "2001:db8::7"),
        ("2001:DB8::7", "2001:db8::7"),
        ("10.1.1.1", "10.1.1.1"),
        ("203.0.113.9, unknown, 10.9.9.9", "10.9.9.9"),
        ("unknown", "10.0.0.2"),
        ("", "10.0.0.2"),
        ("<script>", "10.0.0.2"),
    ],
)
def test_a_chain_is_followed_from_its_end_to_the_first_that_nobody_vouches_for(
    chain: str, client: str
) -> None:
    assert seen(TRUSTING, ("X-Forwarded-For", chain))[0] == client


def test_several_headers_are_one_chain() -> None:
    chain = (("X-Forwarded-For", "198.51.100.1"), ("X-Forwarded-For", "203.0.113.9"))
    assert seen(TRUSTING, *chain)[0] == "203.0.113.9"


@pytest.mark.parametrize("scheme", ["https,http", "HTTPS", "javascript", ""])
def test_a_scheme_that_is_not_plain_is_ignored(scheme: str) -> None:
    assert seen(TRUSTING, ("X-Forwarded-Proto", scheme))[1] == "http"


@pytest.mark.parametrize("wrong", ["example.org", "10.0.0.1/8", "*", "10.0.0.0/33"])
def test_what_is_no_network_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError):
        Settings(trusted_proxies=wrong)
