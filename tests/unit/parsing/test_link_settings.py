"""What settings of the link resolver do with a page's links."""

from pathlib import Path

import msgspec

from gossamer.parsing.links import LinkResolver, LinksSheet
from gossamer.testing.storage import visit
from gossamer.values.visit import Found


def resolved(sheet: LinksSheet, *hrefs: str) -> list[str]:
    seen = msgspec.structs.replace(visit("http://a.test/"), found=tuple(Found(href, "a href") for href in hrefs))
    [after] = LinkResolver(sheet).filter(seen)
    return [link.url for link in after.links]


def test_a_host_with_two_names_is_called_by_the_second() -> None:
    hrefs = ("http://www.example.org/x", "http://example.org/x", "http://other.example.org/x")
    assert resolved(LinksSheet(), *hrefs) == list(hrefs)
    aliased = LinksSheet(aliases=("www.example.org=example.org",))
    assert resolved(aliased, *hrefs) == ["http://example.org/x", "http://other.example.org/x"]


def test_parameters_that_a_list_of_ones_own_names_are_left_out(tmp_path: Path) -> None:
    hrefs = ("/?utm_source=x&a=1", "/?mine=x&a=1")
    assert resolved(LinksSheet(), *hrefs) == ["http://a.test/?a=1", "http://a.test/?mine=x&a=1"]
    own = tmp_path / "parameters.txt"
    own.write_text("tracking mine\n")
    assert resolved(LinksSheet(parameters=str(own)), *hrefs) == [
        "http://a.test/?utm_source=x&a=1",
        "http://a.test/?a=1",
    ]
