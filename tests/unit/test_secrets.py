"""Credentials of the command line are bound to sites."""

import base64

import pytest

from gossamer.assembly.compiling import compile_wiring
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.secrets import credentials, plain
from gossamer.model.errors import UsageError

SEEDS = ("https://a.test/x", "http://b.test:8080/", "ftp://c.test/")


def basic(pair: str) -> str:
    return f"Authorization: Basic {base64.b64encode(pair.encode()).decode()}"


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ("me:secret", [f"https://a.test {basic('me:secret')}", f"http://b.test:8080 {basic('me:secret')}"]),
        ("me:se=cr:et", [f"https://a.test {basic('me:se=cr:et')}", f"http://b.test:8080 {basic('me:se=cr:et')}"]),
        ("d.test=me:secret", [f"https://d.test {basic('me:secret')}"]),
        ("D.test:8443=me:s=:é", [f"https://d.test:8443 {basic('me:s=:é')}"]),
        ("http://d.test=me:secret", [f"http://d.test {basic('me:secret')}"]),
        ("b.test=me:secret", [f"https://b.test {basic('me:secret')}", f"http://b.test:8080 {basic('me:secret')}"]),
        ("a.test=me:", [f"https://a.test {basic('me:')}"]),
    ],
)
def test_auth_belongs_to_sites(auth: str, expected: list[str]) -> None:
    assert list(credentials([auth], [], SEEDS)) == expected


def test_one_authorization_goes_to_a_site_and_the_one_that_names_it() -> None:
    seeds = ("http://a.test/", "http://b.test/")
    found = credentials(("b.test=y:y", "x:x"), ("authorization: Bearer z", "Cookie: c=1"), seeds)
    assert set(found) == {
        "http://a.test Cookie: c=1",
        "http://b.test Cookie: c=1",
        "http://a.test Authorization: Basic eDp4",
        "http://b.test Authorization: Basic eTp5",
        "https://b.test Authorization: Basic eTp5",
    }
    assert credentials((), ("Authorization: Bearer z",), seeds[:1]) == ("http://a.test Authorization: Bearer z",)


def test_a_header_that_proves_who_asks_goes_to_the_seeds_alone() -> None:
    header = ("Authorization: Bearer x", "X-Own: 1", "cookie: a=1")
    assert credentials([], header, SEEDS[:1]) == (
        "https://a.test Authorization: Bearer x",
        "https://a.test cookie: a=1",
    )
    assert plain(header) == ("X-Own: 1",)
    wiring = compile_wiring(SEEDS[:1], CrawlOptions(header=header))
    assert wiring.providers["http"].settings["header"] == ("X-Own: 1",)


@pytest.mark.parametrize("auth", ["secret", "d.test=secret", "d .test=secret"])
def test_an_auth_that_cannot_be_read_is_refused_without_its_password(auth: str) -> None:
    with pytest.raises(UsageError) as refusal:
        credentials([auth], [], SEEDS)
    assert "secret" not in str(refusal.value)
    assert "--auth" in str(refusal.value)
