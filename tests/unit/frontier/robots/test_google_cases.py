"""Google's own test cases for robots.txt parsers, all of them, by a small reader of text protobuf."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gossamer.frontier.robots.rules import PathForm, parse

_TOKEN = re.compile(r'\s*(?:#[^\n]*|(?P<string>"(?:[^"\\]|\\.)*")|(?P<word>\w+)|(?P<mark>[\[\]{}:,]))', re.DOTALL)
_ESCAPE = re.compile(rb"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_NAMED = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


class Case(NamedTuple):
    file: str
    body: bytes
    url: str
    agent: str
    allowed: bool
    standard: bool


def _unescape(match: re.Match[bytes]) -> bytes:
    text = match[1]
    if text[:1] == b"x":
        return bytes([int(text[1:], 16)])
    if text.isdigit():
        return bytes([int(text, 8)])
    return _NAMED.get(text, text)


def _string(literal: str) -> bytes:
    return _ESCAPE.sub(_unescape, literal[1:-1].encode())


def _fields(text: str) -> Iterator[tuple[str, bytes]]:
    """(field, value) in the order of the file; what is nested needs no tree, since names tell the levels apart."""
    name, value, at = "", None, 0
    while match := _TOKEN.match(text, at):
        at = match.end()
        if match["string"]:
            value = (value or b"") + _string(match["string"])
        elif match["word"] or match["mark"]:
            if value is not None:
                yield name, value
                value = None
            if match["word"] and name and match["word"].isupper():
                yield name, match["word"].encode()
            name = match["word"] or name
    assert not text[at:].strip(), f"cannot be read from {text[at : at + 40]!r}"


def cases(folder: Path) -> list[Case]:
    found: list[Case] = []
    for path in sorted(folder.glob("*.textproto")):
        body = b""
        for name, value in _fields(path.read_text(encoding="utf-8")):
            text = value.decode("utf-8", "replace")
            if name == "robotstxt":
                body = value
            elif name == "testurl":
                found.append(Case(path.name, body, text, "", True, True))
            elif name == "useragent":
                found[-1] = found[-1]._replace(agent=text)
            elif name == "expected_outcome":
                found[-1] = found[-1]._replace(allowed=text == "ALLOWED")
            elif name == "test_type":
                found[-1] = found[-1]._replace(standard=text != "GOOGLE_SPECIFIC")
    return found


#: Where RFC 9309, 2.2.2, says otherwise: octets outside ASCII "MUST be percent-encoded" and an escaped unreserved one
#: "MUST be unencoded prior to comparison", and its own table lets `/foo/bar/%62%61%7A` match `/foo/bar/baz`. Google's
#: parser leaves both to its caller, and the cases say so.
RFC_DIFFERS = {"http://foo.bar/foo/bar/ツ", "http://foo.bar/foo/bar/baz"}


@pytest.fixture
def google(test_data: Path) -> list[Case]:
    folder = test_data / "robots-google"
    if not folder.is_dir():
        pytest.skip("GOSSAMER_TEST_DATA holds no robots-google")
    return cases(folder)


def test_every_case_comes_out_as_google_expects(google: list[Case]) -> None:
    assert len(google) >= 146
    wrong = [
        case for case in google if parse(case.body, PathForm.BYTES).decide(case.agent, case.url).allowed != case.allowed
    ]
    assert wrong == []


def test_the_form_of_the_rfc_differs_only_where_its_text_does(google: list[Case]) -> None:
    wrong = [case for case in google if parse(case.body).decide(case.agent, case.url).allowed != case.allowed]
    assert {case.url for case in wrong} <= RFC_DIFFERS
    assert len(wrong) <= 3


def test_what_is_kept_for_an_agent_decides_as_the_whole_file_does(google: list[Case]) -> None:
    for case in google:
        rules = parse(case.body, PathForm.BYTES)
        assert rules.for_agent(case.agent).decide(case.agent, case.url) == rules.decide(case.agent, case.url), case
