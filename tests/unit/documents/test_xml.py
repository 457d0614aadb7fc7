"""Tags and texts of feeds and sitemaps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costs import is_linear

from gossamer.documents.markup import xml_tags


def read(content: bytes) -> list[tuple[str, str]]:
    return [("/" * event.closing + event.name, event.text) for event in xml_tags(content)]


def test_tags_come_with_the_text_behind_them() -> None:
    content = b"""<?xml version="1.0"?><!-- <no/> --><a:Root><x y="1>2"/> t &amp; <![CDATA[<b>&amp;</b>]]> u</a:Root>"""
    assert read(content) == [("root", ""), ("x", "t & <b>&amp;</b> u"), ("/root", "")]


def test_attributes_are_found_by_name() -> None:
    [event] = xml_tags(b"""<link rel='self' href="/a?b&amp;c"/>""")
    assert (event.attribute("href"), event.attribute("rel"), event.attribute("none")) == ("/a?b&c", "self", "")


LAUGHS = (
    b"<!DOCTYPE l ["
    + b"".join(b'<!ENTITY l%d "%s">' % (n + 1, b"&l%d;" % n * 10) for n in range(9))
    + b"]><l>&l9;<x>&#x41;&nbsp;</x></l>"
)


def test_names_that_come_to_much_or_stand_for_a_file_are_no_text() -> None:
    assert read(LAUGHS)[:2] == [("l", ""), ("x", "A&nbsp;")]
    assert read(b'<!DOCTYPE l [<!ENTITY e SYSTEM "file:///etc/passwd">]><l>&e;</l>')[0] == ("l", "")


@pytest.mark.parametrize(
    "piece",
    [b"<!DOCTYPE[", b"<!--", b"<![CDATA[", b"<?x", b"<a b='", b"<", b"<a", b"</", b"&", b"<!DOCTYPE[]", b"<a b=\"'>"],
)
def test_hostile_documents_are_read_in_linear_time(piece: bytes) -> None:
    assert is_linear(lambda size: list(xml_tags(piece * size)), 25_000)


@given(st.binary(max_size=300))
def test_any_bytes_are_read(content: bytes) -> None:
    assert all(event.name or event.prefix for event in xml_tags(content))
