"""`gossamer rdf`: the triples of one page, from a file, a server or standard input; and those that `inspect` shows."""

import io
import json
from pathlib import Path

import pytest

from gossamer.cli.main import main
from gossamer.testing.fakeweb import FakePage, FakeWeb

PAGE = """<!doctype html><title>t</title><body vocab="http://s.test/"><p property="name">N</p>
<a rel="next" href="2">x</a><i property="p:q">y</i>"""
NAME = '<http://a.test/> <http://s.test/name> "N" <http://a.test/> .\n'


def test_a_file_becomes_quads_and_the_rest_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    assert main(["rdf", str(tmp_path / "page.html"), "--base", "http://a.test/"]) == 0
    out, err = capsys.readouterr()
    assert NAME in out and "s.test/next" not in out
    assert "dropped 2" in err and "next 1" in err


def test_names_that_mean_nothing_are_told_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.html"
    path.write_text(
        '<a rel="no-term no:curie" property="zork" href=x>x</a><script type="application/ld+json">{</script>'
    )
    assert main(["rdf", str(path)]) == 0
    err = capsys.readouterr().err
    assert "left out, since no vocabulary that the page names has this word: zork (UnresolvedTerm)" in err
    assert "a script is no JSON-LD: " in err


def test_link_types_of_html_are_no_unknown_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.html"
    path.write_text(
        '<link rel="alternate shortlink" href=/feed><link rel=license href=/l><a rel="nofollow foaf:knows" rev=made href=/x>x</a>'
    )
    assert main(["rdf", str(path), "--base", "http://a.test/"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "vocab#license" in out and "foaf/0.1/knows" in out


def test_the_filter_is_the_persons_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    given = ["rdf", str(tmp_path / "page.html"), "--base", "http://a.test/"]
    assert main([*given, "--keep", "next", "--drop", "http://s.test/name"]) == 0
    out = capsys.readouterr().out
    assert "s.test/next" in out and "s.test/name" not in out
    assert main([*given, "--all"]) == 0
    assert "usesVocabulary" in capsys.readouterr().out


def test_a_server_is_asked_for_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeWeb({"/": PAGE, "/plain": FakePage("text", type="text/plain")}) as web:
        assert main(["rdf", web.url("/"), "--format", "turtle"]) == 0
        assert f'<{web.url("/")}> <http://s.test/name> "N"' in capsys.readouterr().out
        assert main(["rdf", web.url("/plain")]) == 2
        assert "is not an HTML page" in capsys.readouterr().err
    assert main(["rdf", "http://127.0.0.1:9/"]) == 4


def test_standard_input_is_a_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PAGE.encode())))
    assert main(["rdf", "-", "--base", "http://a.test/", "--format", "jsonld"]) == 0
    [graph] = json.loads(capsys.readouterr().out)
    assert graph["@id"] == "http://a.test/"


def test_turtle_declares_the_prefixes_that_it_uses_and_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    page.write_text('<p property="schema:name">N</p><p typeof="foaf:Person" property="dc:title">T</p>')
    assert main(["rdf", str(page), "--format", "turtle"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[1] for line in lines if line.startswith("@prefix")} == {
        "schema:",
        "foaf:",
        "dc:",
        "rdf:",
        "dcterms:",
    }


def test_a_file_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rdf", "no-such-file"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_inspect_shows_what_a_page_says_by_subject(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.html").write_text(f'<meta property="og:title" content="T">{PAGE}')
    assert main(["inspect", str(tmp_path / "page.html"), "--base", "http://a.test/"]) == 0
    page = json.loads(capsys.readouterr().out)
    opengraph, thing = page["structured_data"]
    assert opengraph == {"kind": "opengraph", "values": {"og:title": ["T"]}}
    assert thing["subject"] == "http://a.test/" and thing["properties"]["http://s.test/name"] == ["N"]
    assert page["structured_data_left_out"]["filtered"] == 2
