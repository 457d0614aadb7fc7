"""Credentials of the command line are bound to sites."""

import base64
from typing import Annotated, Any, cast

import pytest

from gossamer.crawls.catalog import catalog, shipped_names
from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.directory import secrets_of
from gossamer.crawls.identity import credentials, plain
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.plan import CrawlPlan, read_seeds, users_of
from gossamer.engine.sheet import Sheet, properties, setting
from gossamer.values.errors import UsageError

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


def test_a_user_in_a_seed_is_one_for_its_site_and_leaves_its_url() -> None:
    seeds = ["http://me:p%40ss=:w@a.test:8080/x", "https://you@[::1]/", "http://c.test/"]
    assert users_of(seeds) == ("http://a.test:8080=me:p@ss=:w", "https://[::1]=you:")
    assert read_seeds(seeds) == ("http://a.test:8080/x", "https://[::1]/", "http://c.test/")
    assert credentials(users_of(seeds), [], read_seeds(seeds)) == (
        f"http://a.test:8080 Authorization: Basic {base64.b64encode(b'me:p@ss=:w').decode()}",
        f"https://[::1] Authorization: Basic {base64.b64encode(b'you:').decode()}",
    )
    for seeds in (["ftp://me:secret@a.test/"], ["http://me:secret@a.test/", "http://you:secret@a.test/y"]):
        with pytest.raises(UsageError) as refusal:
            users_of(seeds)
        assert "secret" not in str(refusal.value)


def test_auth_says_more_than_a_seed() -> None:
    settings = (
        CrawlPlan(["http://me:old@127.0.0.1/"], CrawlOptions(auth=("http://127.0.0.1=me:new",)), None, {}, None, ())
        .graph.wiring.providers["http"]
        .settings
    )
    new = base64.b64encode(b"me:new").decode()
    assert tuple(settings["credentials"]) == (f"http://127.0.0.1 Authorization: Basic {new}",)


@pytest.mark.parametrize(
    "field",
    [
        "X-Api-Key: k",
        "apikey: k",
        "Ocp-Apim-Subscription-Key: k",
        "X-AccessKey: k",
        "X-CSRF: k",
        "X-Passcode: k",
        "PRIVATE-TOKEN: k",
        "X-Auth: k",
        "X-Amz-Security-Token: k",
        "X-Session-Id: k",
        "Proxy-Authorization: k",
        "X-Own: Bearer k",
        "X-CSRFToken: k",
    ],
)
def test_a_field_that_looks_secret_is_one(field: str) -> None:
    assert plain((field,)) == ()
    assert credentials([], (field,), SEEDS[:1]) == (f"https://a.test {field}",)


@pytest.mark.parametrize(
    "field", ["Accept-Language: de", "X-Own: 1", "DNT: 1", "X-Keywords: a", "X-Author: me", "Referer: x"]
)
def test_a_field_that_looks_plain_goes_to_every_host(field: str) -> None:
    assert plain((field,)) == (field,)


def test_secrets_of_the_seeds_go_to_the_hosts_that_header_for_names_too() -> None:
    key = ("X-Api-Key: k",)
    assert credentials([], key, ["https://a.test/"], ["b.test", "c.test:8443", "http://d.test"]) == (
        "https://a.test X-Api-Key: k",
        "https://b.test:* X-Api-Key: k",
        "https://c.test:8443 X-Api-Key: k",
        "http://d.test:* X-Api-Key: k",
    )
    assert credentials([], key, ["http://a.test/"], ["b.test"])[1:] == (
        "https://b.test:* X-Api-Key: k",
        "http://b.test:* X-Api-Key: k",
    )
    for header, host in (((), "b.test"), (("X-Own: 1",), "b.test"), (key, "b test")):
        with pytest.raises(UsageError, match="--header-for"):
            credentials([], header, SEEDS[:1], [host])


@pytest.mark.parametrize("auth", ["secret", "d.test=secret", "d .test=secret"])
def test_an_auth_that_cannot_be_read_is_refused_without_its_password(auth: str) -> None:
    with pytest.raises(UsageError) as refusal:
        credentials([auth], [], SEEDS)
    assert "secret" not in str(refusal.value)
    assert "--auth" in str(refusal.value)


@pytest.mark.parametrize("kind", ["components", "providers"])
def test_the_secrets_of_every_unit_are_known_without_its_annotations(kind: str) -> None:
    sheets = {getattr(catalog(), kind[:-1])(name).sheet_type for name in shipped_names(kind)}
    found = {sheet: set(secrets_of(sheet)) for sheet in sheets}
    assert found == {sheet: {prop.name for prop in properties(sheet) if prop.secret} for sheet in sheets}
    assert kind == "components" or any(found.values())


def test_a_secret_of_a_module_whose_annotations_are_texts_is_known() -> None:
    class Untold(Sheet, frozen=True):
        key: "Annotated[str, setting(secret=True)]" = ""
        name: str = ""

    assert list(secrets_of(Untold)) == ["key"]


def test_a_secret_whose_annotation_is_made_when_it_is_asked_for_is_known() -> None:
    class Late(type):
        """Keeps annotations out of the namespace of its classes, as Python 3.14 does with those of all."""

        @property
        def __annotations__(cls) -> dict[str, Any]:  # type: ignore[override]
            return {"key": Annotated[str, setting(secret=True)], "name": str}

    class Untold(metaclass=Late):
        pass

    assert list(secrets_of(cast("type[Sheet]", Untold))) == ["key"]
