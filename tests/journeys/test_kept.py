"""What a crawl leaves behind, and the commands that read it: `query`, `cat`, `export`."""

import csv
import io
import json
import os
import zipfile
from pathlib import Path

import pytest

from gossamer.cli.main import main
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.testing.fakeweb import FakePage, FakeWeb

PAGES = {
    "/": '<title>=Root</title><a href="/one">1</a><a href="/two">2</a><a href="http://elsewhere.test/">3</a>',
    "/one": "<title>One</title>same",
    "/two": FakePage(body="<title>One</title>same"),
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, FakeWeb]:
    """A crawl that kept all tables, and the web that it crawled."""
    folder = tmp_path_factory.mktemp("kept") / "crawl"
    with FakeWeb(PAGES) as web:
        options = build(all_options(), {"output": str(folder), "per_host": 4, "delay": 0})
        job = Crawl([web.url("/")], options, settings={"log": {"tables": ["pages", "links", "items"]}})
        assert run(job).state == "finished"
    return str(folder), web


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that succeeds writes."""
    assert main(arguments) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line by which a command refuses."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_the_directory_holds_what_it_should(crawled: tuple[str, FakeWeb]) -> None:
    folder = Path(crawled[0])
    found = {path.relative_to(folder).parts[0] for path in folder.rglob("*") if path.is_file()}
    assert found >= {"crawl.toml", "index.cdxj", "logs", "tables", "warc"}
    assert {path.name for path in (folder / "tables").iterdir() if path.is_dir()} == {
        "pages",
        "links",
        "hosts",
        "host_notes",
        "samples",
    }
    assert not list(folder.glob("state/*/rows/*.jsonl"))


def test_query_answers_in_every_form(
    crawled: tuple[str, FakeWeb], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, web = crawled
    sql = "SELECT url, title FROM pages ORDER BY depth, url LIMIT 1"
    assert told(capsys, "query", folder, sql).splitlines()[2].split() == [web.url("/"), "=Root"]
    rows = list(csv.reader(io.StringIO(told(capsys, "query", folder, sql, "-f", "csv"))))
    assert rows == [["url", "title"], [web.url("/"), "'=Root"]]
    assert json.loads(told(capsys, "query", folder, sql, "-f", "jsonl")) == {"url": web.url("/"), "title": "=Root"}
    target = tmp_path / "answer.parquet"
    assert told(capsys, "query", folder, sql, "-f", "parquet", "-o", str(target)) == ""
    assert target.read_bytes()[:4] == b"PAR1"


def test_a_question_for_links_that_were_not_kept_is_told_so(
    tmp_path: Path, crawled: tuple[str, FakeWeb], capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeWeb({"/": "<a href=/x>x</a>", "/x": "x"}) as web:
        options = build(all_options(), {"output": str(tmp_path / "c"), "delay": 0})
        assert run(Crawl([web.url("/")], options, settings={"log": {"tables": ["pages"]}}))
    assert main(["query", str(tmp_path / "c"), "SELECT count(*) FROM Links", "-f", "csv"]) == 0
    out, err = capsys.readouterr()
    assert out.split() == ["count_star()", "0"]
    assert "log.tables" in err
    for folder, question in ((str(tmp_path / "c"), "SELECT url FROM pages"), (crawled[0], "SELECT * FROM links")):
        assert main(["query", folder, question]) == 0
        assert capsys.readouterr().err == ""


def test_links_that_were_not_followed_are_in_the_table(
    crawled: tuple[str, FakeWeb], capsys: pytest.CaptureFixture[str]
) -> None:
    text = told(capsys, "query", crawled[0], "SELECT target FROM links", "-f", "csv")
    assert set(text.split()) == {"target", crawled[1].url("/one"), crawled[1].url("/two"), "http://elsewhere.test/"}


def test_cat_writes_the_document_its_headers_or_its_record(
    crawled: tuple[str, FakeWeb], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    folder, web = crawled
    for path in ("/one", "/two"):
        assert main(["cat", folder, web.url(path)]) == 0
        assert capsysbinary.readouterr().out == b"<title>One</title>same"
    assert main(["cat", folder, web.url("/one"), "--headers"]) == 0
    assert capsysbinary.readouterr().out.startswith(b"HTTP/1.1 200 OK\r\n")
    assert main(["cat", folder, web.url("/one"), "--raw"]) == 0
    assert capsysbinary.readouterr().out.startswith(b"WARC/1.1\r\nWARC-Type: re")


def test_export_writes_tables_index_urls_and_wacz(
    crawled: tuple[str, FakeWeb], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, web = crawled
    assert told(capsys, "export", folder, "--to", "urls").split() == sorted(map(web.url, PAGES))
    assert len(told(capsys, "export", folder, "--to", "jsonl", "--table", "links").splitlines()) == 3
    assert told(capsys, "export", folder, "--to", "cdxj") == Path(folder, "index.cdxj").read_text()
    assert "=Root" in told(capsys, "export", folder, "--to", "csv", "--raw")
    told(capsys, "export", folder, "--to", "wacz", "-o", str(tmp_path / "x.wacz"))
    with zipfile.ZipFile(tmp_path / "x.wacz") as package:
        assert package.testzip() is None
        described = json.loads(package.read("datapackage.json"))
        assert described["mainPageUrl"] == web.url("/")
        [warc] = [name for name in package.namelist() if name.startswith("archive/")]
        assert package.getinfo(warc).compress_type == zipfile.ZIP_STORED
        assert len(package.read("pages/extraPages.jsonl").splitlines()) == 3


def test_what_cannot_be_answered_is_refused_in_one_line(
    crawled: tuple[str, FakeWeb], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = crawled
    assert "holds no crawl" in refused(capsys, "query", str(tmp_path), "SELECT 1")
    assert "did you mean 'pages'?" in refused(capsys, "query", folder, "SELECT * FROM page")
    assert "only read" in refused(capsys, "query", folder, "DROP VIEW pages")
    assert "cannot be written" in refused(capsys, "query", folder, "SELECT 1", "-o", str(tmp_path / "no" / "file"))
    assert "is not in the archive" in refused(capsys, "cat", folder, "http://never.test/")
    assert "write it in full" in refused(capsys, "cat", folder, "one")
    assert "did you mean 'links'" in refused(capsys, "export", folder, "--to", "csv", "--table", "link")
    missing = str(tmp_path / "no" / "x.wacz")
    assert "cannot be written" in refused(capsys, "export", folder, "--to", "wacz", "-o", missing)


def test_what_survives_a_power_cut_is_on_the_disk_before_the_ledger_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    for durability, suffixes in (("kill", set()), ("power", {".gz", ".jsonl"})):
        with FakeWeb(PAGES) as web:
            options = build(all_options(), {"output": str(tmp_path / durability), "delay": 0})
            job = Crawl([web.url("/")], options, settings={"ledger": {"durability": durability}}, tables=False)
            assert run(job).state == "finished"
        files = [path for path in (tmp_path / durability).rglob("*") if path.suffix in (".gz", ".jsonl")]
        assert {path.suffix for path in files if path.stat().st_ino in synced} == suffixes
