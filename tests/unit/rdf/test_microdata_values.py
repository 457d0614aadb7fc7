"""Microdata to RDF, rule by rule: for each kind of test in the W3C's suite for it, a page of that kind.

The pages of the suite are not part of the project. The numbers are those of its manifest; 1 to 15 and 46 to 80 have a page here
that asks the same, but for 73 and 74, which expand a vocabulary of the suite's own. 16 to 45 are examples of schema.org that ask
nothing else. 81 to 84 are experimental (`itemprop-reverse`), and not read.
"""

from typing import Any

import pytest

from gossamer.rdf.terms import TYPE, XSD

PAGE = "http://a.test/dir/page"
S = "http://schema.org/"
FOAF = "http://xmlns.com/foaf/0.1/"

#: Number -> an element with a property, and its value and datatype.
VALUES = {
    "1 text": ("<b itemprop=p>Text</b>", "Text", "string"),
    "4 meta": ("<meta itemprop=p content=foo>", "foo", "string"),
    "5 audio": ("<audio itemprop=p src=foo></audio>", "http://a.test/dir/foo", ""),
    "6 embed": ("<embed itemprop=p src=foo>", "http://a.test/dir/foo", ""),
    "7 iframe": ("<iframe itemprop=p src=foo></iframe>", "http://a.test/dir/foo", ""),
    "8 img": ("<img itemprop=p src=foo>", "http://a.test/dir/foo", ""),
    "9 source": ("<video><source itemprop=p src=foo></video>", "http://a.test/dir/foo", ""),
    "10 track": ("<video><track itemprop=p src=foo></video>", "http://a.test/dir/foo", ""),
    "11 video": ("<video itemprop=p src=foo></video>", "http://a.test/dir/foo", ""),
    "12 a": ("<a itemprop=p href=foo>x</a>", "http://a.test/dir/foo", ""),
    "13 area": ("<map><area itemprop=p href=foo></map>", "http://a.test/dir/foo", ""),
    "14 link": ("<link itemprop=p href=foo>", "http://a.test/dir/foo", ""),
    "15 object": ("<object itemprop=p data=foo></object>", "http://a.test/dir/foo", ""),
    "46 time": ("<time itemprop=p datetime=00:00:00Z>midnight</time>", "00:00:00Z", "time"),
    "47 date and time": ("<time itemprop=p datetime=2011-06-28T00:00:00Z>x</time>", "2011-06-28T00:00:00Z", "dateTime"),
    "48 duration": ("<time itemprop=p datetime=P2011Y06M28DT00H00M00S>x</time>", "P2011Y06M28DT00H00M00S", "duration"),
    "49 no time": ("<time itemprop=p datetime=foo>28 June 2011</time>", "foo", "string"),
    "50 relative URL": ("<a itemprop=p href=../up>x</a>", "http://a.test/up", ""),
    "75 data, double": ("<data itemprop=p value=1.1>x</data>", "1.1", "double"),
    "76 data, integer": ("<data itemprop=p value=1>x</data>", "1", "integer"),
    "77 data, text": ("<data itemprop=p value=foo>x</data>", "foo", "string"),
    "78 meter, double": ("<meter itemprop=p value=1.1>x</meter>", "1.1", "double"),
    "79 meter, integer": ("<meter itemprop=p value=1>x</meter>", "1", "integer"),
    "80 meter, text": ("<meter itemprop=p value=foo>x</meter>", "foo", "string"),
}

#: Number -> the type of an item, a property, and the property's IRI.
NAMES = {
    "52 no type": ("", "name", f"{PAGE}#name"),
    "53 empty type": ("itemtype=''", "name", f"{PAGE}#name"),
    "54 relative type": ("itemtype=Person", "name", f"{PAGE}#name"),
    "55 type": (f"itemtype={S}Person", "name", f"{S}name"),
    "56 types of two vocabularies": (f"itemtype='{S}Person {FOAF}Person'", "name", f"{S}name"),
    "57 URI, no type": ("", f"{S}name", f"{S}name"),
    "58 URI, empty type": ("itemtype=''", f"{S}name", f"{S}name"),
    "59 URI, relative type": ("itemtype=Person", f"{S}name", f"{S}name"),
    "60 URI, type": (f"itemtype={FOAF}Person", f"{S}name", f"{S}name"),
    "68 type below a slash": ("itemtype=http://foo/bar", "baz", "http://foo/baz"),
    "69 type behind a hash": ("itemtype=http://foo#bar", "baz", "http://foo#baz"),
}


@pytest.mark.parametrize("number", VALUES)
def test_the_value_of_a_property_is_what_its_element_gives(read: Any, number: str) -> None:
    element, value, datatype = VALUES[number]
    [(_, name, *found)] = read(f"<div itemscope itemtype={S}Thing>{element}</div>").triples[1:]
    assert name == f"{S}p"
    assert found == [value, datatype and XSD + datatype, ""]


@pytest.mark.parametrize("number", NAMES)
def test_the_name_of_a_property_stands_in_the_vocabulary_of_the_first_type(read: Any, number: str) -> None:
    kind, name, iri = NAMES[number]
    triples = read(f"<div itemscope {kind}><p>Name: <b itemprop={name}>Amanda</b></p></div>").triples
    assert [(name, value) for _, name, value, *_ in triples if name != TYPE] == [(iri, "Amanda")]
    assert {value for _, name, value, *_ in triples if name == TYPE} == {
        word for word in kind.partition("=")[2].strip("'").split() if ":" in word
    }


def test_several_values_and_several_names_give_a_triple_each(said: Any) -> None:
    page = f"<div itemscope itemid='#i' itemtype={S}Person><b itemprop=name>1</b><i itemprop=name>2</i><u itemprop='a b'>3</u>"
    values = {(name, value) for _, name, value in said(page) if name != TYPE}
    assert values == {(f"{S}name", "1"), (f"{S}name", "2"), (f"{S}a", "3"), (f"{S}b", "3")}


def test_an_item_without_a_type_has_the_vocabulary_of_the_item_around_it(said: Any) -> None:
    page = (
        f"<div itemscope itemid='#g' itemtype={S}Person><b itemprop=name>Gregg</b>"
        "<div itemprop=knows itemscope itemid='#j'><p id=a><b itemprop=name>Jeni</b></p></div></div>"
    )
    assert (f"{PAGE}#j", f"{S}name", "Jeni") in said(page)


def test_an_element_that_two_items_refer_to_is_named_by_the_vocabulary_of_each(said: Any) -> None:
    page = (
        f"<div itemscope itemid='#1' itemtype={FOAF}Person itemref=a></div>"
        f"<div itemscope itemid='#2' itemtype={S}Person itemref=a></div><p id=a><b itemprop=name>Amanda</b></p>"
    )
    assert said(page) >= {(f"{PAGE}#1", f"{FOAF}name", "Amanda"), (f"{PAGE}#2", f"{S}name", "Amanda")}


def test_an_item_that_is_referred_to_refers_on(said: Any) -> None:
    page = (
        f"<div itemscope itemid='#1' itemtype={S}Person itemref='a b'></div><p id=a><b itemprop=name>Amanda</b></p>"
        f"<div id=b itemprop=band itemscope itemid='#2' itemtype={S}MusicGroup itemref=c></div>"
        "<div id=c><b itemprop=name>Jazz Band</b><b itemprop=size>12</b></div>"
    )
    assert said(page) == {
        (f"{PAGE}#1", TYPE, f"{S}Person"),
        (f"{PAGE}#1", f"{S}name", "Amanda"),
        (f"{PAGE}#1", f"{S}band", f"{PAGE}#2"),
        (f"{PAGE}#2", TYPE, f"{S}MusicGroup"),
        (f"{PAGE}#2", f"{S}name", "Jazz Band"),
        (f"{PAGE}#2", f"{S}size", "12"),
    }


def test_an_item_that_two_items_share_is_one_item(read: Any) -> None:
    page = (
        "<div itemscope itemref=a></div><div itemscope itemref=a></div>"
        "<div id=a itemprop=refers-to itemscope><b itemprop=name>Amanda</b></div>"
    )
    triples = read(page).triples
    shared = {value for _, name, value, *_ in triples if name == f"{PAGE}#refers-to"}
    assert len(shared) == 1
    assert len({subject for subject, name, *_ in triples if name == f"{PAGE}#refers-to"}) == 2
    assert [value for subject, name, value, *_ in triples if name == f"{PAGE}#name"] == ["Amanda"]
