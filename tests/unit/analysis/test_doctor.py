"""The doctor finds what hinders a crawl, says what to do, and changes nothing."""

from pathlib import Path

import pytest

from gossamer.analysis.doctor import Finding, examine
from gossamer.cli.main import main
from gossamer.testing.fakeweb import FakeWeb


def about(findings: list[Finding], name: str) -> list[Finding]:
    return [finding for finding in findings if finding.about == name]


def test_on_a_sound_machine_nothing_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOSSAMER_CONTACT", "me@example.org")
    findings = examine("", "localhost")
    assert [finding for finding in findings if finding.verdict == "bad"] == []
    assert "me@example.org" in about(findings, "contact")[0].text
    assert about(findings, "names")[0].text.startswith("localhost is ")
    (isolation,) = about(findings, "isolation")
    assert (isolation.verdict == "ok") == isolation.text.startswith("no files by ")


def test_proxies_of_the_environment_are_named_since_crawls_do_not_use_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert about(examine("", ""), "proxy")[0].verdict == "note"


def test_a_contact_that_nobody_can_use_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOSSAMER_CONTACT", "nobody")
    assert about(examine("", ""), "contact")[0].verdict == "bad"


def test_a_directory_without_a_crawl_is_bad_and_nothing_is_written(tmp_path: Path) -> None:
    finding = about(examine(str(tmp_path), ""), "crawl")[0]
    assert finding.verdict == "bad"
    assert list(tmp_path.iterdir()) == []


def test_a_crawl_that_rests_is_told_in_one_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeWeb.tree(1, 2) as web:
        assert main(["crawl", web.url("/"), "-o", str(tmp_path / "c"), "--quiet", "--delay", "0"]) == 0
    capsys.readouterr()
    assert main(["doctor", str(tmp_path / "c"), "--host", ""]) == 0
    out = capsys.readouterr().out
    assert "finished: 3 pages, 0 queued" in out
    assert len(out.splitlines()) <= 24
