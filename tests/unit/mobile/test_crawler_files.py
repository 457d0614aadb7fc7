"""A crawler out of a file: what it means, and one line for every mistake."""

import json
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from gossamer.mobile.crawler import MobileCrawler
from gossamer.mobile.reading import MAX_FILE, parse_crawler, read_crawler
from gossamer.values.errors import UsageError

GOOD = """\
name = "health"
seeds = ["https://clinic.example/"]
expand = "links >= 5 and text($subject)"
store = "keywords($health) >= $least"

[limits]
depth = 3
seconds = "10m"
bytes = "1GB"

[bring]
parts = ["whole", "text"]
elements = ["h1"]

[facts]
known = ["https://clinic.example/old"]

[facts.keywords]
health = ["health", "health care"]
subject = ["health"]

[facts.parameters]
least = 3
"""


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as raised:
        parse_crawler(text, "c.toml")
    assert raised.value.exit_code == 2
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_a_file_says_all_of_a_crawler() -> None:
    crawler = parse_crawler(GOOD)
    program, facts = crawler.program, crawler.facts
    assert (program.name, program.limits.depth, program.limits.seconds) == ("health", 3, 600.0)
    assert program.limits.bytes == 1_000_000_000
    assert (program.bring.parts, program.bring.elements) == (("whole", "text"), ("h1",))
    assert facts.known == ("https://clinic.example/old",)
    assert facts.given() == {"health": ("health", "health care"), "subject": ("health",), "least": ("3",)}


def test_the_digest_is_of_the_program_alone_and_however_it_was_written() -> None:
    lines = GOOD.split("\n")
    other = "\n".join([lines[3], lines[0], "", *lines[1:3], *lines[4:]]).replace('"10m"', "600")
    assert parse_crawler(other).program.digest == parse_crawler(GOOD).program.digest
    assert parse_crawler(GOOD.replace("least = 3", "least = 4")).program.digest == parse_crawler(GOOD).program.digest
    assert parse_crawler(GOOD.replace("links >= 5", "links >= 6")).program.digest != parse_crawler(GOOD).program.digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("depth = 3", "dept = 3", "c.toml, line 7: limits.dept: unknown key; did you mean 'depth'?"),
        ("depth = 3", "depth = -1", "c.toml, line 7: limits.depth: expected a whole number >= 0"),
        ('"10m"', '"10x"', "c.toml, line 8: limits.seconds: '10x' is not a quantity; write 10m"),
        ("$least", "$lest", "c.toml, line 4: store: no value is given under the name 'lest'; did you mean 'least'?"),
        ("keywords(", "keyword(", "c.toml, line 4: store: there is no predicate 'keyword'; did you mean 'keywords'?"),
        ('"h1"', '"h1["', "c.toml, line 13: bring.elements[0]: 'h1[' is not a selector that crawlers know; write tags"),
        (
            '["whole", "text"]',
            '["whole", "txt"]',
            "c.toml, line 12: bring.parts[1]: unknown value 'txt'; did you mean 'text'?",
        ),
        ('["whole", "text"]', '["items"]', "c.toml, line 12: bring.parts: `items` come from processors"),
        ('seeds = ["https://clinic.example/"]\n', "", "c.toml: the key 'seeds' is missing; add it"),
        ('seeds = ["https://clinic', 'seeds = ["clinic', "c.toml, line 2: seeds[0]: 'clinic.example/' is not a URL"),
        (
            'https://clinic.example/"]\nexp',
            'ftp://clinic.example/"]\nexp',
            "line 2: seeds[0]: 'ftp://clinic.example/' is not an http",
        ),
        (
            '["health", "health care"]',
            '["health", 3]',
            "c.toml, line 19: facts.keywords.health[1]: expected a text, got a whole number",
        ),
        ("health = [", "'a b' = [", "c.toml, line 19: facts.keywords.a b: cannot be this; write a name of letters"),
        (
            "least = 3",
            "least = []",
            "c.toml, line 23: facts.parameters.least: expected a text or a number, got a list",
        ),
        ("least = 3", "health = 3", "c.toml, line 23: facts.parameters.health: a keyword list has the same name"),
        ("[limits]", "limit = 1\n[limits]", "c.toml, line 6: limit: unknown key; did you mean 'limits'?"),
        ("[limits]", "traversal = 'depth'\n[limits]", 'c.toml, line 8: limits.depth: needs traversal = "breadth"'),
        ("[limits]", "version = 9\n[limits]", "c.toml, line 6: version: 9 is unknown here; this build knows 1"),
        (
            "[limits]",
            "scope = 'any'\n[limits]",
            "line 6: scope: unknown value 'any'; known: domain, host, page, prefix",
        ),
        ("[limits]", "[limits", "c.toml: not TOML: "),
    ],
)
def test_a_mistake_in_a_file_is_one_line_with_its_place_and_a_remedy(old: str, new: str, message: str) -> None:
    assert old in GOOD
    assert message in refusal(GOOD.replace(old, new))


def test_brackets_within_each_other_are_refused_and_end_nothing() -> None:
    assert "too many brackets" in refusal("seeds = " + "[" * 100_000)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    for data, message in (
        (None, "cannot be read"),
        (b'name = "a"\nseeds = ["\xff"]', "line 2: byte 0xFF is not UTF-8"),
    ):
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(UsageError, match=message):
            read_crawler(path)
    with path.open("wb") as file:
        file.truncate(MAX_FILE + 1)
    with pytest.raises(UsageError, match="give the crawler fewer facts"):
        read_crawler(path)
    path.write_text(GOOD, encoding="utf-8")
    assert isinstance(read_crawler(path), MobileCrawler)


@pytest.mark.parametrize(
    "selector",
    [
        "h1",
        "*",
        ".a.b#c",
        "main > p.lead",
        ".menu li > a[href]",
        'a[rel~="next"]',
        "[data-x='1 > 2']",
        "ul>li > a",
        "td  .x",
    ],
)
def test_a_selector_of_tags_classes_and_attributes_is_taken_and_means_what_css_means(selector: str) -> None:
    parse_crawler(f"seeds = ['http://a.test/']\nbring.elements = [{json.dumps(selector)}]")
    LexborHTMLParser("<p>").css(selector)


@pytest.mark.parametrize(
    "selector",
    [
        "a b c",
        "div:has(div)",
        "p:not(div p)",
        "i ~ i",
        "i + i",
        "i:nth-child(2)",
        "a, b",
        "a:hover",
        "a >",
        "",
        " ",
        "a\\62 c",
        "x|y",
    ],
)
def test_a_selector_whose_time_grows_with_powers_of_the_page_is_refused(selector: str) -> None:
    assert "bring.elements[0]" in refusal(f"seeds = ['http://a.test/']\nbring.elements = [{json.dumps(selector)}]")
