"""Microdata to RDF."""

from typing import Any

import pytest

from gossamer.rdf.terms import TYPE, XSD

PAGE = "http://a.test/dir/page"
S = "http://schema.org/"


def test_an_item_says_what_its_properties_say(read: Any) -> None:
    page = (
        '<div lang=en itemscope itemid="#p" itemtype="http://schema.org/Product">'
        '<b itemprop="name">N</b><a itemprop=url href=/u>x</a>'
        "<meta itemprop=sku content=1><data itemprop=width value=2.5>x</data><time itemprop=date datetime=2020-01-02>x</time>"
        '<div itemprop="offers" itemscope itemtype="http://schema.org/Offer"><i itemprop="price">3</i></div></div>'
    )
    triples = read(page).triples
    product = {
        (name, value, datatype, language)
        for subject, name, value, datatype, language in triples
        if subject == f"{PAGE}#p"
    }
    assert product >= {
        (TYPE, f"{S}Product", "", ""),
        (f"{S}url", "http://a.test/u", "", ""),
        (f"{S}width", "2.5", f"{XSD}double", ""),
        (f"{S}date", "2020-01-02", f"{XSD}date", ""),
    }
    assert (f"{S}name", "N", "en") in {(name, value, language) for name, value, _, language in product}
    [offer] = [value for name, value, *_ in product if name == f"{S}offers"]
    assert {(name, value) for subject, name, value, *_ in triples if subject == offer} == {
        (TYPE, f"{S}Offer"),
        (f"{S}price", "3"),
    }


def test_what_stands_in_a_neighbour_without_attributes_is_no_part_of_the_item_before_it(said: Any) -> None:
    page = (
        '<p itemscope itemid="#1" itemtype="http://schema.org/T"><i itemprop="n">in</i></p><div><i itemprop="n">out</i></div>'
        '<div><b lang="de">x</b><p itemscope itemid="#2"><i itemprop="http://s.test/n">two</i></p></div>'
    )
    assert said(page) == {
        (f"{PAGE}#1", TYPE, f"{S}T"),
        (f"{PAGE}#1", f"{S}n", "in"),
        (f"{PAGE}#2", "http://s.test/n", "two"),
    }


def test_an_item_has_what_it_refers_to(said: Any) -> None:
    page = (
        '<i itemprop=n id=x>no</i><div itemscope itemid="#1" itemref="b c missing" itemtype="http://schema.org/T"></div>'
        "<p id=b><i itemprop=n>1</i></p><i id=c itemprop=n>2</i>"
    )
    assert {value for _, name, value in said(page) if name == f"{S}n"} == {"1", "2"}


def test_items_that_refer_to_each_other_come_to_an_end(said: Any) -> None:
    page = (
        '<div itemscope itemid="#1" itemref=b></div><div id=b itemprop=x itemscope itemid="#2" itemref=c></div>'
        '<div id=c itemprop=y itemscope itemid="#3" itemref=b></div>'
    )
    assert said(page) == {
        (f"{PAGE}#1", f"{PAGE}#x", f"{PAGE}#2"),
        (f"{PAGE}#2", f"{PAGE}#y", f"{PAGE}#3"),
        (f"{PAGE}#3", f"{PAGE}#x", f"{PAGE}#2"),
    }


def test_elements_that_all_items_refer_to_are_not_read_for_ever(read: Any) -> None:
    page = "<div id=b>" + "<i id=q></i>" * 10_000 + "</div>" + "<p itemscope itemref=b></p>" * 10_000
    assert read(page).counts["too_many_references"] == 1


@pytest.mark.parametrize("schema", [S, "https://schema.org/"])
def test_an_additional_type_is_a_type(said: Any, schema: str) -> None:
    """Test 0071 of the W3C: its registry calls the property a kind of `rdf:type`."""
    page = (
        f'<div itemscope itemid="#1" itemtype="{schema}Person"><link itemprop="additionalType" href="http://x.test/T">'
        f'<a itemprop="{schema}additionalType" href="U">x</a><meta itemprop="additionalType" content="in words"></div>'
        '<div itemscope itemid="#2" itemtype="http://x.test/V"><link itemprop="additionalType" href="http://x.test/T"></div>'
    )
    triples = said(page)
    assert {(subject[-1], value) for subject, name, value in triples if name == TYPE} == {
        ("1", f"{schema}Person"),
        ("1", "http://x.test/T"),
        ("1", "http://a.test/dir/U"),
        ("2", "http://x.test/V"),
    }
    assert sum(name.endswith("additionalType") for _, name, _ in triples) == 4, "the property stays"


@pytest.mark.parametrize(
    ("kind", "vocabulary"),
    [
        ("http://schema.org/Person/Engineer", "http://schema.org/"),
        ("http://microformats.org/profile/hcard", "http://microformats.org/profile/hcard#"),
        ("http://microformats.org/profile/hcard#vcard", "http://microformats.org/profile/hcard#"),
        ("http://x.test/a/b", "http://x.test/a/"),
        ("http://x.test/a#b", "http://x.test/a#"),
    ],
)
def test_names_of_properties_begin_as_the_registry_says(said: Any, kind: str, vocabulary: str) -> None:
    triples = said(f'<div itemscope itemid="#1" itemtype="{kind}"><b itemprop="n">x</b></div>')
    assert f"{vocabulary}n" in {name for _, name, _ in triples}
