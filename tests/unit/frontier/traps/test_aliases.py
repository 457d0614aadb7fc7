"""Hosts with two names: proven by address and content, never by the name."""

from collections.abc import Sequence

import msgspec
import pytest

from gossamer.frontier.traps.likeness import NEEDED, PER_DIFFERENCE, AliasSheet, HostAliases
from gossamer.values.body import sha1_base32
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url_normalization import Normaliser, aliases_of
from gossamer.values.visit import Response, Visit


def page(host: str, path: str, text: str = "", address: str = "192.0.2.1") -> Visit:
    body = (text or f"This is the page {path}. " * 40).encode()
    response = Response(Outcome.OK, 200, headers=(("content-type", "text/html"),), body=body, address=address)
    return Visit(Task(f"http://{host}{path}", host), response, digest=sha1_base32(body))


class Forgetful:
    """A ledger in which nothing was learnt."""

    def learnt(self, hosts: Sequence[str], what: str) -> list[None]:
        return [None] * len(hosts)


def aliases(pages: int = 100) -> HostAliases:
    unit = HostAliases(AliasSheet(pages=pages))
    unit.ledger = Forgetful()  # type: ignore[assignment]  # of which one method is asked
    return unit


def proven(*pages: Visit) -> list[tuple[str, str]]:
    book = aliases()
    for one in pages:
        book.observe(one)
    return [(alias.name, alias.other) for alias in book.proven()]


def both(count: int, address: str = "192.0.2.1", **texts: str) -> list[Visit]:
    """So many pages of `a.test` and of `www.a.test`, equal unless `texts` says otherwise of the second's."""
    paths = [f"/{number}" for number in range(count)]
    second = [page("www.a.test", path, texts.get(f"p{path[1:]}", ""), address) for path in paths]
    return [*(page("a.test", path) for path in paths), *second]


def test_equal_pages_at_one_address_prove_an_alias_and_fewer_do_not() -> None:
    assert proven(*both(NEEDED)) == [("a.test", "www.a.test")]
    assert proven(*both(NEEDED - 1)) == []


def test_neither_the_name_nor_the_content_nor_the_address_is_enough() -> None:
    assert proven(*both(9, address="192.0.2.2")) == []
    assert proven(*both(9, **{f"p{number}": f"other {number} " * 99 for number in range(9)})) == []
    assert proven(*(page(host, f"/{host}") for host in ("a.test", "www.a.test"))) == []


def test_a_page_that_changes_takes_some_that_do_not() -> None:
    change = {"p1": "now it is twelve o'clock " * 50}
    assert proven(*both(NEEDED + PER_DIFFERENCE, **change)) == []
    assert proven(*both(NEEDED + PER_DIFFERENCE + 1, **change)) == [("a.test", "www.a.test")]


def test_a_machine_with_many_empty_hosts_has_no_aliases() -> None:
    assert proven(*(page(f"h{number}.test", f"/{n}", "It works!") for number in range(9) for n in range(9))) == []


def test_an_alias_is_told_once_and_counted() -> None:
    unit = aliases()
    told = [unit.observe(one) for one in both(9)]
    assert told.count("alias") == 1
    assert unit.metrics.snapshot() == {"found:alias": 1, "proven": 1}


def test_memory_is_bounded() -> None:
    book = aliases(pages=10)
    for number in range(100):
        book.observe(page("a.test", f"/{number}"))
    for number in range(90):
        book.observe(page("www.a.test", f"/{number}"))
    assert book.proven() == [], "what was forgotten cannot be compared"


def test_what_is_no_page_proves_nothing() -> None:
    replace = msgspec.structs.replace
    pages = both(9)
    assert proven(*pages) != []
    assert proven(*(replace(one, response=replace(one.response, outcome=Outcome.CLIENT_ERROR)) for one in pages)) == []


def test_aliases_are_folded_where_a_setting_says_so() -> None:
    normalise = Normaliser((), (), aliases_of(["www.A.test=a.test", "b.test = bücher.test"]))
    assert normalise("http://www.a.test:8080/x?y") == "http://a.test:8080/x?y"
    assert normalise("http://b.test/") == "http://xn--bcher-kva.test/"
    addresses = Normaliser((), (), aliases_of(["[2001:db8::1]=a.test", "c.test=[::1]"]))
    assert addresses("http://[2001:db8::1]:81/x") == "http://a.test:81/x"
    assert addresses("http://c.test:81/x") == "http://[::1]:81/x"
    assert normalise("http://x.www.a.test/") == "http://x.www.a.test/"
    for bad in (["a.test"], ["a.test=b.test=c.test"], ["a test=b"], ["=a.test"]):
        with pytest.raises(UsageError, match="write OTHER=NAME"):
            aliases_of(bad)
    with pytest.raises(UsageError, match="is given both as a second name and as a first one"):
        aliases_of(["a.test=b.test", "b.test=c.test"])
