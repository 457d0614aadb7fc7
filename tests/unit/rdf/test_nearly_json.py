"""JSON-LD scripts that are nearly JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.rdf.jsonld import NotNearly, as_json

GOOD = '{"@context":"https://schema.org","@type":"Product","name":"GOOD","more":["a",{"b":1}]}'

READ = {
    "byte order mark": "\ufeff" + GOOD,
    "no-break space": "\u00a0" + GOOD + "\u00a0",
    "wrapped in a comment of HTML": f"<!-- {GOOD} -->",
    "wrapped, with an arrow in a string": f"<!--{GOOD.replace('GOOD', 'GOOD -->')}-->",
    "comments of HTML around it": f"<!-- Yoast [SEO] {{1}} -->\n{GOOD}<!-- / Yoast -->",
    "CDATA behind slashes": f"//<![CDATA[\n{GOOD}\n//]]>",
    "CDATA on one line": f"//<![CDATA[ {GOOD} //]]>",
    "CDATA in comments": f"/*<![CDATA[*/{GOOD}/*]]>*/",
    "CDATA alone": f"<![CDATA[{GOOD}]]>",
    "CDATA in spaced comments": f"/* <![CDATA[ */\n{GOOD};\n/* ]]> */",
    "CDATA in a comment of HTML": f"<!-- <![CDATA[ {GOOD} ]]> -->",
    "every wrapper at once": f"<!--//--><![CDATA[//><!--\n{GOOD}\n//--><!]]>",
    "a comment of HTML behind slashes": f"//<!--\n{GOOD}\n//-->",
    "a comment in a comment": f"<!--\n// what it is\n{GOOD}\n-->",
    "comment of JavaScript": "/* it's \"c\" { */\n// it's so\n" + GOOD,
    "comment behind a comma": GOOD.replace('"name"', '// what it\'s "called"\n"name"'),
    "semicolon": GOOD + ";",
    "semicolons and a comment": GOOD + " ; ; // end",
    "line end in a string": GOOD.replace("GOOD", "GOOD\nx\r\ny"),
    "tab in a string": GOOD.replace("GOOD", "GOOD\tx"),
    "control in a string": GOOD.replace("GOOD", "GOOD\x00\x0b\x1f"),
    "comma behind the last": GOOD.replace("}", ",}"),
    "comma behind the last, and a comment": GOOD.replace("}", " , /* none */ }").replace("]", "\n,\n]"),
    "escaped quote of the other kind": GOOD.replace("GOOD", r"GOOD\'s"),
    "escaped punctuation": GOOD.replace("GOOD", r"GOOD\-\&\$\ "),
    "escape of JavaScript": GOOD.replace("GOOD", r"GOOD\x41\xe9"),
    "line that goes on": GOOD.replace("GOOD", "GOOD\\\nx"),
    "half a character": GOOD.replace("GOOD", r"GOOD \ud83d"),
    "half a character before a whole one": GOOD.replace("GOOD", r"GOOD \ud83d\ud83d\ude00 \\ud83d"),
    "no number": GOOD.replace("}]", ',"price":NaN,"rating":-Infinity,"count":undefined}]'),
    "words of Python": GOOD.replace(":1", ":[None,True]"),
    "a number of JavaScript": GOOD.replace(":1", ":+.5e1"),
    "references for quotes": GOOD.replace('"', "&quot;"),
}

REFUSED = {
    "words": "no json",
    "a comma more": GOOD.replace('"a",', '"a",,'),
    "nothing but a comma": GOOD.replace('["a",{"b":1}]', "[,]"),
    "a value is missing": GOOD.replace(":1}", ":,}"),
    "quotes in a string": GOOD.replace("GOOD", 'GO"OD'),
    "a path": GOOD.replace("GOOD", r"C:\dir"),
    "a short escape": GOOD.replace("GOOD", r"\u12"),
    "a comment without an end": GOOD + "/* c",
    "a string without an end": GOOD[:60],
    "an object without an end": GOOD[:-1],
    "two documents": GOOD + GOOD,
    "an assignment": "var a = " + GOOD,
    "a name without quotes": GOOD.replace('"name"', "name"),
    "single quotes": GOOD.replace('"', "'"),
    "a comment begins": "<!--" + GOOD,
    "a comment ends": GOOD + "-->",
    "a semicolon within": GOOD.replace('"a",', '"a";'),
}


def script(text: str) -> str:
    return f'<!doctype html><meta charset=utf-8><script type="application/ld+json">{text}</script>'


@pytest.mark.parametrize("kind", READ)
def test_what_templates_add_to_json_costs_no_statement_and_is_noted(kind: str, read: Any) -> None:
    found = read(script(READ[kind]))
    values = [value for _, name, value, *_ in found.triples if name.endswith("/name")]
    assert len(values) == 1 and values[0].startswith("GOOD")
    assert len(found.triples) == 5
    assert set(found.counts) == {"NearlyJson"}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_script_with_two_meanings_says_nothing(kind: str, read: Any) -> None:
    found = read(script(REFUSED[kind]))
    assert found.triples == [] and set(found.counts) == {"JsonLdError"}


def test_strings_keep_what_looks_like_a_comment_or_a_comma_too_many(read: Any) -> None:
    told = 'https://a.test/ /* x */ ,} ,] <!-- y --> // <![CDATA[ z ]]> \\" ;'
    found = read(script(GOOD.replace("GOOD", told) + ";"))
    assert told.replace('\\"', '"') in {value for _, _, value, *_ in found.triples}


def test_json_is_noted_as_nothing_else(read: Any) -> None:
    assert not read(script(GOOD)).counts


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(json_values, st.sampled_from([None, 1]), st.booleans())
def test_json_means_the_same_when_it_is_taken_for_nearly_json(value: Any, indent: int | None, is_plain: bool) -> None:
    assert json.loads(as_json(json.dumps(value, indent=indent, ensure_ascii=is_plain))) == value


@given(st.text(alphabet="{}[],:\"\\/*<!->; \n\tau1'&quot", max_size=60))
def test_no_script_is_read_in_two_ways(text: str) -> None:
    """If it is JSON already, it stays what it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return
    try:
        assert json.loads(as_json(text)) == value
    except NotNearly:
        raise AssertionError("it is JSON") from None
