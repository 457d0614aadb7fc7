"""`gossamer trim`: old versions go from archive, ledger, tables and index alike, whatever kills it in between."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sampling import sampled

from gossamer.analysis.verifying import verify
from gossamer.cli.main import main
from gossamer.query.archive import ArchiveReader
from gossamer.storage.ledger.ledger import ledgers_of
from gossamer.storage.rewrite_journals import FOLDER, JOURNAL
from gossamer.testing.fakeweb import FakePage, FakeWeb

PAGES = ("/", "/changes", "/same", "/copy", "/gone", "/unchanged")

#: How often each page is visited.
VISITS = 4


def body(path: str, visit: int) -> str | FakePage:
    """What a page says at a visit, counted from 0."""
    if path == "/":
        return "".join(f'<a href="{other}">{other}</a>' for other in PAGES[1:])
    if path == "/gone" and visit == VISITS - 1:
        return FakePage("<p>gone", status=404)
    if path == "/unchanged" and visit:
        return FakePage("", status=304)
    # `/copy` repeats what `/changes` said at first, at each visit: its record refers to one of the oldest.
    said = {"/changes": f"changed {visit}", "/copy": "changed 0", "/gone": f"there {visit}"}
    return f"<title>{path}</title><p>{said.get(path, f'always {path}')} <a href='/'>home</a>"


def visit_again(directory: Path) -> None:
    """Queue every page once more, as a schedule would."""
    [ledger] = ledgers_of(directory)
    ledger.open()
    rows = list(ledger.documents())
    with ledger.group() as group:
        for row in rows:
            group.undo(row)
    ledger.close()


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A crawl of which each page was visited four times, and the address of its site."""
    directory = tmp_path_factory.mktemp("visited") / "crawl"
    pages = {path: body(path, 0) for path in PAGES}
    with FakeWeb(pages) as web:
        words = ["-o", str(directory), "--delay", "0", "--per-host", "1", "--concurrency", "1", "--quiet"]
        assert main(["crawl", web.url("/"), *words]) == 0
        for number in range(1, VISITS):
            web.pages.update({path: body(path, number) for path in PAGES})
            visit_again(directory)
            assert main(["resume", str(directory), "--quiet"]) == 0
        site = web.url("/").rstrip("/")
    assert verify(directory, deep=True).findings == []
    return directory, site


@pytest.fixture
def crawl(visited: tuple[Path, str], tmp_path: Path) -> Path:
    return Path(shutil.copytree(visited[0], tmp_path / "crawl"))


@pytest.fixture
def site(visited: tuple[Path, str]) -> str:
    return visited[1]


def rows(crawl: Path, sql: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["query", str(crawl), sql, "-f", "jsonl"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def size_of(crawl: Path) -> int:
    return sum(path.stat().st_size for path in crawl.glob("warc/*"))


def check_trimmed(crawl: Path, site: str, versions: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything that names a version agrees on which are left, and each of them can be read."""
    told = verify(crawl, deep=True)
    assert told.findings == []
    assert told.notes == []
    assert not (crawl / JOURNAL).exists()
    assert not (crawl / FOLDER).exists()
    counts = rows(crawl, "SELECT url, count(*) AS n FROM pages_all GROUP BY 1", capsys)
    left = {str(row["url"]).removeprefix(site): row["n"] for row in counts}
    assert left["/changes"] in (versions, versions + 1), "its first version is what /copy repeats"
    assert left["/gone"] == versions
    assert left["/unchanged"] == versions + 1, "no later visit says anything else of the document"
    [links] = rows(crawl, f"SELECT count(*) AS n FROM links WHERE source = '{site}/unchanged'", capsys)
    assert links == {"n": 1}
    reader = ArchiveReader(crawl)
    for path in PAGES:
        url = site + path
        named = rows(crawl, f"SELECT warc_file, warc_offset FROM pages_all WHERE url = '{url}'", capsys)
        places = {(str(row["warc_file"]).rpartition("/")[2], str(row["warc_offset"])) for row in named}
        captures = reader.captures(url)
        assert {(one.entry.filename, one.entry.offset) for one in captures} == places
        for one in captures:
            record = reader.read(one)
            source = reader.original(record, url, one.entry.digest.removeprefix("sha1:"))
            assert source.body
            if path == "/copy":
                assert b"changed 0" in bytes(source.body)
    assert f"changed {VISITS - 1}".encode() in bytes(reader.document(site + "/changes").source.body)


def killed_at(crawl: Path, number: int, *words: str) -> bool:
    """Trim in a process that dies at the N-th crash point; False where it had ended before."""
    done = subprocess.run(
        [sys.executable, "-m", "gossamer", "trim", str(crawl), *words],
        env={**os.environ, "GOSSAMER_CRASH": f"deletion:{number}"},
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def test_a_trimmed_archive_keeps_the_newest_versions_and_what_they_repeat(
    crawl: Path, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = size_of(crawl)
    assert main(["trim", str(crawl), "--keep-versions", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["visits"] > 0
    assert told["bytes"] == before - size_of(crawl) > 0
    check_trimmed(crawl, site, 2, capsys)


@pytest.mark.long
def test_a_trim_that_was_killed_at_every_step_in_turn_ends_as_one_that_was_not(
    crawl: Path, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    number = 1
    while killed_at(crawl, number, "--keep-versions", "1"):
        if number % 4 == 1:
            assert main(["resume", str(crawl), "--quiet"]) == 5
            err = capsys.readouterr().err
            assert "is not finished; finish it: gossamer trim" in err
            assert err.count("\n") == 1
        number += 1
    assert number > 8
    check_trimmed(crawl, site, 1, capsys)


@pytest.mark.parametrize("number", sampled([4, 2, 6, 8], 4))
def test_a_trim_that_0_2_0_began_is_finished(
    number: int, crawl: Path, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert killed_at(crawl, number, "--keep-versions", "1")
    journal = json.loads((crawl / JOURNAL).read_text())
    del journal["verb"]
    (crawl / "state/trim.json").write_text(json.dumps(journal))
    (crawl / JOURNAL).unlink()
    if (crawl / FOLDER).exists():
        (crawl / FOLDER).rename(crawl / "state/trim")
    assert main(["resume", str(crawl), "--quiet"]) == 5
    assert "is not finished; finish it: gossamer trim" in capsys.readouterr().err
    assert killed_at(crawl, 1)
    assert main(["trim", str(crawl)]) == 0
    check_trimmed(crawl, site, 1, capsys)
    assert not [*crawl.glob("state/trim*")]


def test_a_crawl_goes_on_after_a_trim_and_refers_to_no_record_that_is_gone(
    crawl: Path, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trim", str(crawl), "--keep-versions", "1"]) == 0
    [ledger] = ledgers_of(crawl)
    with ledger.looking():
        owners = dict(ledger.contents.all())
        for row in ledger.documents():
            assert row.location is None or (crawl / row.location.file).exists()
    kept = {
        str(row["digest"]) for row in rows(crawl, "SELECT digest FROM pages_all WHERE duplicate_of IS NULL", capsys)
    }
    assert {digest for digest in owners if digest} <= kept
    assert main(["resume", str(crawl), "--quiet"]) == 0
    assert verify(crawl, deep=True).findings == []


def test_trimming_twice_changes_nothing_more(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trim", str(crawl), "--keep-versions", "2"]) == 0
    before = {path.name: path.read_bytes() for path in crawl.glob("warc/*")}
    capsys.readouterr()
    assert main(["trim", str(crawl), "--keep-versions", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["visits"], told["records"], told["bytes"]) == (0, 0, 0)
    assert {path.name: path.read_bytes() for path in crawl.glob("warc/*")} == before


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "say how much stays: --keep-versions N"), (("--keep-versions", "0"), "0"), (("--keep-versions", "x"), "x")],
)
def test_what_cannot_be_meant_is_refused(
    words: tuple[str, ...], said: str, crawl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trim", str(crawl), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (crawl / JOURNAL).exists()


def test_a_crawl_that_runs_is_not_trimmed(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [ledger] = ledgers_of(crawl)
    ledger.open()
    try:
        assert main(["trim", str(crawl), "--keep-versions", "1"]) == 5
    finally:
        ledger.close()
    err = capsys.readouterr().err
    assert "in use by process" in err
    assert err.count("\n") == 1
