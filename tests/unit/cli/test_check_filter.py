"""`gossamer check-filter` and `gossamer normalize`: one line for each URL."""

import io
import sys

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


def test_a_bad_expression_is_refused_with_a_caret(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-filter", "dpeth < 3", "http://a.test/"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    reason, shown, caret = told.err.splitlines()
    assert "no predicate 'dpeth'; did you mean 'depth'?" in reason
    assert caret.index("^") == shown.index("dpeth")


def test_no_url_forges_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-filter", "query", "http://[\nx\x1b[31m", "http://a.test/\npass"]) == 2
    assert [line[0] for line in lines(capsys)] == ["error", "refuse"]
