"""`gossamer check-filter` and `gossamer normalize`: one line for each URL."""

import io
import sys
from pathlib import Path

import pytest

from gossamer.cli.main import main


def lines(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_each_url_has_a_line_with_the_part_that_decided(capsys: pytest.CaptureFixture[str]) -> None:
    told = main(["check-filter", "domain(test.a.*) and not extension(pdf)", "http://A.test", "http://a.test/x.pdf"])
    assert told == 0
    assert lines(capsys) == [
        ["pass", "http://a.test/", "domain(test.a.*) and not extension(pdf)"],
        ["refuse", "http://a.test/x.pdf", "not extension(pdf)"],
    ]


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_without_urls_they_are_read(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "http://a.test/?x\n\n http://a.test/ \nnothing\n")
    assert main(["check-filter", "query", *arguments]) == 2
    assert [line[0] for line in lines(capsys)] == ["pass", "refuse", "error"]


def test_facts_of_other_gates_can_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-filter", "store: mime(text/*) and size < 1kB", "--size", "999", "http://a.test/"]) == 0
    assert main(["check-filter", "depth < 3", "--depth", "3", "http://a.test/"]) == 0
    assert [line[0] for line in lines(capsys)] == ["pass", "refuse"]


def test_a_bad_expression_is_refused_with_an_arrow_before_the_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-filter", "dpeth < 3", "http://a.test/"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    [line] = told.err.splitlines()
    assert "no predicate 'dpeth'; did you mean 'depth'?" in line and line.endswith("; here: -->dpeth < 3")


def test_no_url_forges_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-filter", "query", "http://[\nx\x1b[31m", "http://a.test/\npass"]) == 2
    assert [line[0] for line in lines(capsys)] == ["error", "refuse"]


def test_normalize_says_the_form_that_a_crawl_would_keep(capsys: pytest.CaptureFixture[str]) -> None:
    urls = ["HTTP://U:p@Example.org:80/a/../%7Ex?utm_source=y#top", "http://0x7f.1/", "mailto:a@b"]
    assert main(["normalize", *urls]) == 0
    assert capsys.readouterr().out.splitlines() == ["http://example.org/~x", "http://127.0.0.1/", "mailto:a@b"]


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_normalize_reads_lines_and_says_why_one_has_no_form(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "http://a.test\n\nnothing\nhttp://a.test/" + "x" * 3000)
    assert main(["normalize", *arguments]) == 2
    assert capsys.readouterr().out.splitlines() == [
        "http://a.test/",
        "error: 'nothing' is not a URL",
        "error: the URL has 3014 bytes; at most 2048 are kept",
    ]


def test_normalize_takes_the_steps_that_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    url = "http://www.a.test/index.html?b&a&utm_source=x"
    assert main(["normalize", "--normalise", "sort-query", "--normalise", "no-tracking", url]) == 0
    assert (
        main(["normalize", "--normalise", "www", "--normalize", "index-pages", "--base", "http://a.test/d/", "e", url])
        == 0
    )
    assert capsys.readouterr().out.splitlines() == [
        "http://www.a.test/index.html?a&b&utm_source=x",
        "http://a.test/d/e",
        "http://a.test/?b&a",
    ]
    assert main(["normalize", "--normalise", "sorted", url]) == 2
    assert "no step 'sorted'" in capsys.readouterr().err


def test_normalize_takes_a_list_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list").write_text("tracking from # ours\n")
    assert main(["normalize", "--parameters", str(tmp_path / "list"), "http://a.test/?from=b&utm_source=c"]) == 0
    assert capsys.readouterr().out == "http://a.test/?utm_source=c\n"
    (tmp_path / "list").write_text("from\n")
    assert main(["normalize", "--parameters", str(tmp_path / "list"), "http://a.test/"]) == 2
    assert "line 1: 'from'; write a kind" in capsys.readouterr().err
    assert main(["normalize", "--parameters", str(tmp_path / "none"), "http://a.test/"]) == 2
    assert "cannot be read" in capsys.readouterr().err
