"""`gossamer inspect`: one line of JSON for each document, from wherever it comes."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from gossamer.cli.main import main
from gossamer.documents.document import MAX_DEPTH
from gossamer.testing.fakeweb import FakePage, FakeWeb

PAGE = """<!doctype html><html lang=en><head><title>A  page</title><link rel=canonical href="/real">
<meta name=robots content="noarchive, nosnippet"></head><a rel="nofollow" href="x?a#b">an <b>anchor</b></a>
<a href="mailto:a@b.test">m</a><img src=p.png><p>The committee has decided that the old bridge over the river will be replaced
by a new one in the coming year, because it is no longer safe for the many people who walk across it every day.</p>"""


def seen(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_a_file_is_seen_as_a_crawl_would_see_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGE, encoding="utf-8")
    assert main(["inspect", str(file), "--base", "http://a.test/dir/"]) == 0
    [page] = seen(capsys)
    assert page["url"] == file.as_uri()
    assert (page["mime"], page["charset"], page["title"], page["language"]) == (
        "text/html",
        "windows-1252",
        "A page",
        "en",
    )
    assert page["robots"] == ["noarchive", "nosnippet"]
    assert page["canonical"] == "http://a.test/real"
    assert page["links"] == [
        {"url": "http://a.test/real", "relation": "link href", "anchor": "", "nofollow": False},
        {"url": "http://a.test/dir/x?a", "relation": "a href", "anchor": "an anchor", "nofollow": True},
    ]
    assert page["rejected"] == {"scheme:mailto": 1}
    assert page["text_length"] > 150
    assert set(page["fingerprints"]) == {"sha1", "sha256", "simhash"} and all(page["fingerprints"].values())
    assert page["structured_data"] == [{"kind": "link", "values": {"canonical": ["http://a.test/real"]}}]


def test_an_empty_file_has_no_markdown_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.html").write_bytes(b"")
    assert main(["inspect", "--markdown", str(tmp_path / "page.html")]) == 2
    assert capsys.readouterr().err.endswith("page.html brought no document: it is empty\n")


def test_the_bytes_say_what_a_document_is_unless_somebody_knows_better(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page").write_text(PAGE, encoding="utf-8")
    assert main(["inspect", str(tmp_path / "page")]) == 0
    assert main(["inspect", str(tmp_path / "page"), "--content-type", "text/plain; charset=koi8-r"]) == 0
    assert [page["mime"] for page in seen(capsys)] == ["text/html", "text/plain"]


def test_standard_input_is_a_document_or_a_list_of_urls(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    standard_input(monkeypatch, PAGE.encode())
    assert main(["inspect", "-", "--base", "http://a.test/", "--page-requisites"]) == 0
    [page] = seen(capsys)
    assert page["url"] == "http://a.test/"
    assert "img src" in [link["relation"] for link in page["links"]]
    with FakeWeb({"/": PAGE, "/two": FakePage("two", type="text/plain")}) as web:
        standard_input(monkeypatch, f"{web.url('/')}\n{web.url('/two')}\n".encode())
        assert main(["inspect", "-"]) == 0
    assert [(page["status"], page["mime"]) for page in seen(capsys)] == [(200, "text/html"), (200, "text/plain")]


def test_a_redirect_is_told_and_not_followed(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeWeb({"/": FakePage(status=302, headers=(("Location", "/two"),)), "/two": "two"}) as web:
        assert main(["inspect", web.url("/")]) == 0
        assert web.targets() == ["/"]
        [page] = seen(capsys)
        assert page["outcome"] == "redirect"
        assert page["links"] == [{"url": web.url("/two"), "relation": "redirect", "anchor": "", "nofollow": False}]


def test_what_cannot_be_had_is_said_and_the_rest_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "page.html"
    file.write_text("<title>t</title>", encoding="utf-8")
    assert main(["inspect", "nowhere.html", str(file)]) == 2
    told = capsys.readouterr()
    assert "nowhere.html cannot be read" in told.err
    assert json.loads(told.out)["title"] == "t"
    with FakeWeb({}) as web:
        gone = web.url("/")
    assert main(["inspect", gone]) == 4
    assert seen(capsys)[0]["outcome"] == "connect_failed"
    assert main(["inspect", str(file), "--base", "http://["]) == 2


def test_a_page_that_hangs_parsers_is_seen_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "deep.html"
    file.write_text(
        "<title>deep</title>" + "<div>" * 2 * MAX_DEPTH + "<a href=http://a.test/x>\u202e</a>", encoding="utf-8"
    )
    assert main(["inspect", str(file)]) == 0
    line = capsys.readouterr().out
    assert line.isascii() or "\u202e" not in line
    page = json.loads(line)
    assert (page["title"], [link["url"] for link in page["links"]]) == ("deep", ["http://a.test/x"])
