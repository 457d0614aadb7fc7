"""`gossamer delete`: everything of a URL, host or domain goes, the rest stays and agrees, whatever kills it in between."""

import hashlib
import importlib.resources
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer.analysis.verifying import verify
from gossamer.cli.main import main
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.fetcher.cookies import COOKIES, CookieJar, CookieLog
from gossamer.query.database import Database
from gossamer.query.engine import ParquetWriter
from gossamer.query.table_rewrites import remove_rows
from gossamer.storage.archive.reading import scan
from gossamer.storage.ledger.ledger import ledgers_of
from gossamer.storage.logs import NOTES_LOG, note_line
from gossamer.storage.rewrite_journals import DELETED, FOLDER, JOURNAL, PLACES, Deletion, Trim, note_progress
from gossamer.storage.tables.places import TABLES, reading
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.hosts import DeletionTarget

#: `/secret` is met first, `/copy` has its bytes: the archive has a revisit of it.
PAGES = {
    "/": '<a href="/secret">1</a><a href="/copy">2</a><a href="/other">3</a>',
    "/secret": '<title>Mallory</title>a very private text <a href="/behind">',
    "/copy": FakePage(body='<title>Mallory</title>a very private text <a href="/behind">'),
    "/other": "<title>Other</title>something else",
    "/behind": "<title>Behind</title>behind the secret",
}

TEXT = b"a very private text"
NOW = 1_700_000_000.0


@pytest.fixture(scope="module")
def web() -> Iterator[FakeWeb]:
    with FakeWeb(PAGES) as served:
        yield served


@pytest.fixture(scope="module")
def sound(web: FakeWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that ended well."""
    directory = tmp_path_factory.mktemp("sound") / "crawl"
    options = build(all_options(), {"output": str(directory), "delay": 0, "per_host": 1, "concurrency": 1})
    assert run(Crawl([web.url("/")], options)).state == "finished"
    return directory


@pytest.fixture
def crawl(sound: Path, tmp_path: Path) -> Path:
    """A copy."""
    return Path(shutil.copytree(sound, tmp_path / "crawl"))


def rows(crawl: Path, sql: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["query", str(crawl), sql, "-f", "jsonl"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def documents(crawl: Path) -> set[str]:
    """The URLs that the ledger has a row of."""
    [ledger] = ledgers_of(crawl)
    with ledger.looking():
        return {row.url for row in ledger.documents()}


def archived(crawl: Path) -> list[tuple[str, str, bytes]]:
    """Kind, URL and body of every record, as another reader has them."""
    found = []
    for path in sorted(crawl.glob("warc/*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                url = record.rec_headers.get_header("WARC-Target-URI") or ""
                found.append((record.rec_type, url, record.content_stream().read()))
    return found


def check_gone(crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of `/secret` is left but what others say of it, and the crawl is whole."""
    secret = web.url("/secret")
    assert verify(crawl, deep=True).findings == []
    assert all(url != secret and TEXT not in body for _, url, body in archived(crawl))
    assert {url for _, url, _ in archived(crawl)} >= {web.url("/"), web.url("/other"), web.url("/behind")}
    index = (crawl / "index.cdxj").read_text()
    assert f'"{secret}"' not in index
    assert web.url("/other") in index
    assert secret not in documents(crawl)
    assert {web.url("/"), web.url("/other"), web.url("/behind")} <= documents(crawl)
    log = [json.loads(line) for line in (crawl / "logs/crawl.jsonl").read_text().splitlines()]
    assert all(line.get("url") != secret and line.get("duplicate_of") != secret for line in log)
    assert any(line.get("url") == web.url("/other") for line in log)
    named = f"'{secret}'"
    sql = f"SELECT url FROM pages_all WHERE url = {named} OR duplicate_of = {named}"
    assert rows(crawl, sql, capsys) == []
    assert rows(crawl, f"SELECT * FROM links_all WHERE source = {named}", capsys) == []
    assert len(rows(crawl, "SELECT * FROM pages_all", capsys)) == 3
    assert not (crawl / JOURNAL).exists()
    assert not (crawl / FOLDER).exists()


def test_a_deleted_url_is_nowhere_and_its_note_has_a_hash_and_no_name(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["delete", str(crawl), web.url("/secret"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    check_gone(crawl, web, capsys)
    [line] = (crawl / DELETED).read_text().splitlines()
    noted = json.loads(line)
    assert noted.pop("line_sum")
    assert noted == told
    assert told["sha256"] == hashlib.sha256(web.url("/secret").encode()).hexdigest()
    assert (told["kind"], told["documents"], told["again"]) == ("url", 1, 1)
    assert told["records"] >= 2
    assert "secret" not in line


def test_a_copy_of_a_deleted_document_is_fetched_again_and_the_deleted_one_is_not(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["delete", str(crawl), web.url("/secret")]) == 0
    assert "had the same document" in capsys.readouterr().out
    before = len(web.requests)
    assert main(["resume", str(crawl), "--quiet"]) == 0
    asked = [request.target for request in web.requests[before:]]
    assert "/copy" in asked
    assert "/secret" not in asked
    assert verify(crawl, deep=True).findings == []
    capsys.readouterr()
    assert main(["cat", str(crawl), web.url("/copy")]) == 0
    assert TEXT.decode() in capsys.readouterr().out


def test_a_forgotten_url_is_fetched_again_when_it_is_met(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["delete", str(crawl), web.url("/secret"), "--forget"]) == 0
    assert main(["delete", str(crawl), web.url("/"), "--forget"]) == 0
    before = len(web.requests)
    assert main(["resume", str(crawl), "--quiet"]) == 0
    asked = [request.target for request in web.requests[before:]]
    assert asked.count("/") == 1
    assert asked.count("/secret") == 1
    assert "/other" not in asked
    assert verify(crawl, deep=True).findings == []


def test_a_deleted_host_is_blocked_and_leaves_nothing_of_its_pages(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    host = web.url("/").split("/")[2].split(":")[0]
    assert main(["delete", str(crawl), host]) == 0
    assert verify(crawl, deep=True).findings == []
    assert {kind for kind, _, _ in archived(crawl)} <= {"warcinfo", "metadata"}
    assert documents(crawl) == set()
    assert rows(crawl, "SELECT url FROM pages_all", capsys) == []
    assert rows(crawl, "SELECT * FROM hosts", capsys) == []
    before = len(web.requests)
    main(["resume", str(crawl), "--quiet"])
    assert len(web.requests) == before


@pytest.mark.parametrize("name", ["localhos", "sub.localhost", "http://localhost:1/secret", "other.example"])
def test_deleting_a_name_that_only_looks_alike_takes_nothing(
    name: str, crawl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = documents(crawl), archived(crawl)
    assert main(["delete", str(crawl), name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["records"], told["documents"], told["rows"], told["lines"]) == (0, 0, 0, 0)
    assert (documents(crawl), archived(crawl)) == before


def killed_at(crawl: Path, number: int, *words: str) -> bool:
    """Delete in a process that dies at the N-th crash point; False where it had ended before."""
    environment = {**os.environ, "GOSSAMER_CRASH": f"deletion:{number}"}
    done = subprocess.run(
        [sys.executable, "-m", "gossamer", "delete", str(crawl), *words],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


@pytest.mark.parametrize(("first", "every"), [(1, 4), pytest.param(1, 1, marks=pytest.mark.long)])
def test_a_deletion_that_was_killed_at_any_step_goes_on_when_called_again(
    first: int, every: int, crawl: Path, web: FakeWeb, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    number = first
    while True:
        copy = Path(shutil.copytree(crawl, tmp_path / f"copy-{number}"))
        if not killed_at(copy, number, web.url("/secret")):
            break
        assert main(["resume", str(copy), "--quiet"]) == 5
        err = capsys.readouterr().err
        assert "is not finished; finish it: gossamer delete" in err
        assert err.count("\n") == 1
        assert main(["delete", str(copy)]) == 0
        check_gone(copy, web, capsys)
        assert len((copy / DELETED).read_text().splitlines()) == 1
        shutil.rmtree(copy)
        number += every
    assert number > 10


@pytest.mark.long
def test_a_deletion_that_is_killed_at_every_step_in_turn_ends_as_one_that_was_not(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    number = 1
    while killed_at(crawl, number, web.url("/secret")):
        number += 1
    check_gone(crawl, web, capsys)


def test_a_crawl_that_runs_is_not_deleted_from(crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]) -> None:
    [ledger] = ledgers_of(crawl)
    ledger.open()
    try:
        assert main(["delete", str(crawl), web.url("/secret")]) == 5
    finally:
        ledger.close()
    err = capsys.readouterr().err
    assert "in use by process" in err
    assert err.count("\n") == 1
    assert not (crawl / JOURNAL).exists()


def test_a_crawl_with_damage_is_not_deleted_from(crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]) -> None:
    [archive] = crawl.glob("warc/*.warc.gz")
    os.truncate(archive, archive.stat().st_size - 10)
    assert main(["delete", str(crawl), web.url("/secret")]) == 5
    assert "--accept-loss" in capsys.readouterr().err
    assert not (crawl / JOURNAL).exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "nothing is left to be deleted"), (("a b",), "a b"), (("http://[/",), "http://[/")],
    ids=["no name", "no host", "no url"],
)
def test_what_cannot_be_meant_is_refused_in_one_line(
    words: tuple[str, ...], said: str, crawl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["delete", str(crawl), *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_another_deletion_first_finishes_the_one_that_was_begun(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    note_progress(crawl, Deletion("x-1", "2026-01-01T00:00:00Z", DeletionTarget("url", web.url("/secret"))))
    assert main(["delete", str(crawl), web.url("/nowhere")]) == 0
    check_gone(crawl, web, capsys)
    assert len((crawl / DELETED).read_text().splitlines()) == 2


def test_copies_beside_the_crawl_go_too_and_what_was_never_committed(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    [ledger] = ledgers_of(crawl)
    ledger.open()
    ledger.checkpoint("before")
    ledger.abandon()
    [archive] = crawl.glob("warc/*.warc.gz")
    whole = archive.stat().st_size
    with archive.open("ab") as file:
        file.write(b"torn off by a kill")
    lost = crawl / "state" / "agent-00" / "damaged-1"
    lost.mkdir()
    skipped = crawl / "logs" / "skipped.jsonl"
    kept = json.dumps({"unit": "process", "item": web.url("/other")})
    skipped.write_text(json.dumps({"unit": "process", "item": {"task": {"url": web.url("/secret")}}}) + f"\n{kept}\n")
    note_line(crawl, f"1 URL waits for a retry: {web.url('/secret')}")
    note_line(crawl, "another one")
    assert main(["delete", str(crawl), web.url("/secret")]) == 0
    check_gone(crawl, web, capsys)
    assert archive.stat().st_size == whole
    assert not (crawl / "quarantine").exists()
    assert not lost.exists()
    assert ledger.checkpoints() == []
    notes = [json.loads(line) for line in (crawl / NOTES_LOG).read_text().splitlines()]
    assert [note["event"] for note in notes[-2:]] == ["deleted", "note"]
    deleted, same = skipped.read_text().splitlines()
    assert json.loads(deleted) == {"event": "deleted"}
    assert same == kept


def test_what_a_server_called_unchanged_is_deleted_like_a_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = {
        "/": '<a href="/same">same</a><a href="/other">other</a>',
        "/same": FakePage("", status=304),
        "/other": "o",
    }
    directory = tmp_path / "crawl"
    with FakeWeb(pages) as web:
        assert main(["crawl", web.url("/"), "-o", str(directory), "--delay", "0", "--quiet"]) == 0
        same = web.url("/same")
    assert rows(directory, f"SELECT outcome FROM pages WHERE url = '{same}'", capsys) == [{"outcome": "not_modified"}]
    assert main(["delete", str(directory), same]) == 0
    assert rows(directory, f"SELECT outcome FROM pages_all WHERE url = '{same}'", capsys) == []
    assert same not in documents(directory) | {url for _, url, _ in archived(directory)}
    assert all("/same" not in path.read_text() for path in (directory / "index.cdxj", directory / "logs/crawl.jsonl"))
    assert verify(directory, deep=True).findings == []


def test_tables_that_somebody_reads_are_finished_by_the_next_call(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    with reading(crawl):
        assert main(["delete", str(crawl), web.url("/secret")]) == 5
        err = capsys.readouterr().err
        assert "is read by another program" in err
        assert err.count("\n") == 1
    assert main(["delete", str(crawl)]) == 0
    check_gone(crawl, web, capsys)


def test_a_file_of_items_loses_those_of_a_deleted_page(web: FakeWeb, tmp_path: Path) -> None:
    text = importlib.resources.files("gossamer.crawls").joinpath("wirings/default.toml").read_text()
    text = text.replace('"text/html" = "html"', '"text/html" = ["html", "tags"]')
    wiring = tmp_path / "wiring.toml"
    wiring.write_text(text + '\n[providers.tags]\nuse = "tag-counter"\nsettings = { items = true }\n')
    directory, items = tmp_path / "crawl", tmp_path / "items.jsonl"
    options = ["-o", str(directory), "--delay", "0", "--items", str(items), "--wiring", str(wiring), "--quiet"]
    assert main(["crawl", web.url("/"), *options]) == 0
    before = items.read_text().splitlines()
    assert any(web.url("/secret") in line for line in before)
    assert main(["delete", str(directory), web.url("/secret")]) == 0
    assert items.read_text().splitlines() == [line for line in before if web.url("/secret") not in line]
    assert verify(directory, deep=True).findings == []


def test_a_deletion_takes_what_a_complete_store_has_to_tell_for_no_trouble(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    no_iri = '<p property="http://s.test/p" datatype="http://[z">1</p>'
    directory = tmp_path / "crawl"
    with FakeWeb({"/": f'<a href="/secret">1</a>{no_iri}', "/secret": no_iri}) as web:
        assert main(["crawl", web.url("/"), "-o", str(directory), "--delay", "0", "--quiet", "--rdf"]) == 0
        assert "the triple store lacks 2 triples of the table" in capsys.readouterr().err
        assert main(["delete", str(directory), web.url("/secret")]) == 0
    assert "the triple store lacks 1 triple of the table" in capsys.readouterr().err
    assert not (directory / JOURNAL).exists()


def test_a_deletion_is_not_done_while_an_item_file_may_have_what_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = '<meta property="og:title" content="T">'
    directory, items = tmp_path / "crawl", tmp_path / "items.jsonl"
    with FakeWeb({"/": f'<a href="/secret">1</a>{said}', "/secret": said}) as web:
        options = ["-o", str(directory), "--delay", "0", "--quiet", "--rdf", "--items", str(items)]
        assert main(["crawl", web.url("/"), *options]) == 0
        items.unlink()
        items.mkdir()
        assert main(["delete", str(directory), web.url("/secret")]) != 0
        assert "items could not be written" in capsys.readouterr().err
        items.rmdir()
        assert main(["delete", str(directory)]) == 0
        assert [web.url("/")] == [json.loads(line)["url"] for line in items.read_text().splitlines()]


@pytest.mark.parametrize(
    ("target", "gone"),
    [
        (
            DeletionTarget("host", "gone.test"),
            ["http://gone.test/", "https://a.gone.test:8443/x?y", "http://gone.test?q"],
        ),
        (DeletionTarget("host", "::1"), ["http://[::1]/", "http://[::1]:80/a"]),
        (DeletionTarget("url", "http://gone.test/it's"), ["http://gone.test/it's"]),
    ],
    ids=["host", "address", "url"],
)
def test_tables_know_a_target_as_the_ledger_does(target: DeletionTarget, gone: list[str], tmp_path: Path) -> None:
    others = [
        "http://begone.test/",
        "http://kept.test/?u=http://gone.test/",
        "http://[::2]:1/",
        "http://gone.tests/it's",
        "",
    ]
    assert [url for url in [*gone, *others] if target.has(url)] == gone
    folder = tmp_path / TABLES / "links"
    folder.mkdir(parents=True)
    with ParquetWriter() as writer:
        texts = ", ".join("('{}')".format(url.replace("'", "''")) for url in [*gone, *others])
        writer.write(
            f"SELECT source, 'http://gone.test/' AS target FROM (VALUES {texts}) t(source)", folder / "a.parquet"
        )
    assert remove_rows(tmp_path, target) == len(gone)
    with Database(tmp_path) as database:
        assert [source for (source,) in database.ask("SELECT source FROM links_all")] == others


def keep_cookies(crawl: Path, host: str) -> None:
    """Have the crawl keep cookies of its host, and one of another."""
    jar = CookieJar()
    log = CookieLog(crawl / COOKIES, {"": jar}, NOW)
    for name in (host, "other.example"):
        log.add(jar.receive(f"http://{name}/", (("set-cookie", f"of={name}"),), NOW))
    log.enter("a log-in")
    log.close()
    shutil.copy(crawl / COOKIES, crawl / f"{COOKIES}.new")  # what a kill leaves


def check_cookies_gone(crawl: Path) -> None:
    """Only the other host's cookie is kept, the log-in too, and nobody but the owner reads the file."""
    assert not (crawl / f"{COOKIES}.new").exists()
    assert stat.S_IMODE((crawl / COOKIES).stat().st_mode) == 0o600
    jar = CookieJar()
    log = CookieLog(crawl / COOKIES, {"": jar}, NOW)
    log.close()
    assert [(domain, cookie.value) for domain, cookie in jar.every()] == [("other.example", "other.example")]
    assert log.entered == {("", "a log-in")}


def check_host_gone(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of the only host is left anywhere, and the crawl is whole."""
    assert verify(crawl, deep=True).findings == []
    assert {kind for kind, _, _ in archived(crawl)} <= {"warcinfo", "metadata"}
    assert documents(crawl) == set()
    assert rows(crawl, "SELECT url FROM pages_all", capsys) == []
    assert rows(crawl, "SELECT * FROM hosts", capsys) == []
    index = crawl / "index.cdxj"
    assert not index.exists() or "secret" not in index.read_text()
    assert not (crawl / JOURNAL).exists()
    assert not (crawl / FOLDER).exists()


@pytest.mark.long
@pytest.mark.parametrize(("first", "every"), [(3, 4), pytest.param(1, 1, marks=pytest.mark.long)])
def test_the_deletion_of_a_host_that_was_killed_at_any_step_goes_on_when_called_again(
    first: int, every: int, crawl: Path, web: FakeWeb, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host = web.url("/").split("/")[2].split(":")[0]
    keep_cookies(crawl, host)
    number = first
    while True:
        copy = Path(shutil.copytree(crawl, tmp_path / f"copy-{number}"))
        if not killed_at(copy, number, host):
            break
        assert main(["delete", str(copy)]) == 0
        check_host_gone(copy, capsys)
        check_cookies_gone(copy)
        assert len((copy / DELETED).read_text().splitlines()) == 1
        shutil.rmtree(copy)
        number += every
    assert number > 10
    check_cookies_gone(copy)
    before = len(web.requests)
    main(["resume", str(copy), "--quiet"])
    assert len(web.requests) == before


def test_the_story_of_a_deleted_url_says_that_it_was_deleted(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["delete", str(crawl), web.url("/secret")]) == 0
    capsys.readouterr()
    assert main(["why", str(crawl), web.url("/secret")]) == 0
    assert "deleted" in capsys.readouterr().out.splitlines()[0]
    host = web.url("/").split("/")[2].split(":")[0]
    assert main(["delete", str(crawl), host]) == 0
    capsys.readouterr()
    assert main(["why", str(crawl), web.url("/other")]) == 0
    assert "deleted" in capsys.readouterr().out.splitlines()[0]


def flip(path: Path, place: int = 0) -> None:
    """Change one bit of a file, in its middle unless a place is named."""
    data = bytearray(path.read_bytes())
    data[place or len(data) // 2] ^= 0x40
    path.write_bytes(data)


def test_a_deletion_that_met_damage_keeps_nobody_out_and_is_finished_once_the_loss_is_accepted(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    [archive] = crawl.glob("warc/*.warc.gz")
    last = list(scan(archive))[-1]
    flip(archive, last.offset + last.length // 2)
    assert main(["delete", str(crawl), web.url("/secret")]) == 5
    err = capsys.readouterr().err
    assert f"gossamer delete {crawl} --accept-loss" in err
    assert err.count("\n") == 1
    assert main(["resume", str(crawl), "--accept-loss", "--quiet"]) == 0
    assert main(["delete", str(crawl)]) == 0
    assert verify(crawl, deep=True).findings == []
    assert web.url("/secret") not in documents(crawl)


@pytest.mark.parametrize("pattern", ["tables/pages/*.parquet", "tables/links/*.parquet", "index.cdxj"])
def test_damage_in_the_middle_of_a_deletion_is_named_and_the_deletion_goes_on_without_what_is_lost(
    pattern: str, crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    assert killed_at(crawl, 3, web.url("/secret"))
    [damaged] = crawl.glob(pattern)
    flip(damaged)
    if pattern != "index.cdxj":  # which is made again from the archive in any case
        assert main(["delete", str(crawl)]) == 5
        err = capsys.readouterr().err
        assert damaged.name in err
        assert f"gossamer delete {crawl} --accept-loss" in err
        assert err.count("\n") == 1
    assert main(["delete", str(crawl), "--accept-loss"]) == 0
    assert verify(crawl, deep=True).findings == []
    assert main(["resume", str(crawl), "--quiet"]) == 0


def test_a_crawl_whose_ledger_is_lost_in_a_deletion_begins_again_and_the_deletion_looks_once_more(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    assert killed_at(crawl, 3, web.url("/secret"))
    (crawl / "state/agent-00/ledger/CURRENT").unlink()
    assert main(["delete", str(crawl)]) == 5
    assert main(["resume", str(crawl), "--accept-loss", "--quiet"]) == 0
    assert main(["delete", str(crawl)]) == 0
    assert web.url("/secret") not in documents(crawl)
    assert all(url != web.url("/secret") for _, url, _ in archived(crawl))
    assert verify(crawl, deep=True).findings == []


def test_a_url_is_deleted_from_logs_however_their_lines_write_it(tmp_path: Path) -> None:
    with FakeWeb({"/": r'<a href="/?a=\\b">', r"/?a=\b": "<title>private</title>"}) as served:
        options = build(all_options(), {"output": str(tmp_path / "c"), "delay": 0})
        assert run(Crawl([served.url("/")], options)).pages == 2
        assert main(["delete", str(tmp_path / "c"), served.url(r"/?a=\b")]) == 0
    assert rb"/?a=\\b" not in (tmp_path / "c/logs/crawl.jsonl").read_bytes()


def test_a_crawl_is_not_whole_while_a_deletion_or_a_trim_is_not_finished(crawl: Path, web: FakeWeb) -> None:
    assert killed_at(crawl, 3, web.url("/secret"))
    assert any("is not finished; finish it: gossamer delete" in one for one in verify(crawl).findings)
    assert main(["delete", str(crawl)]) == 0
    assert verify(crawl, deep=True).findings == []
    note_progress(crawl, Trim(1))
    assert any("is not finished; finish it: gossamer trim" in one for one in verify(crawl).findings)


def test_a_deletion_finishes_a_trim_that_was_begun(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    note_progress(crawl, Trim(1))
    assert main(["delete", str(crawl), web.url("/secret"), "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    check_gone(crawl, web, capsys)


@pytest.mark.parametrize("number", [1, 2, 5, 9])
def test_a_deletion_that_0_2_0_began_is_finished(
    number: int, crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    assert killed_at(crawl, number, web.url("/secret"))
    journal = json.loads((crawl / JOURNAL).read_text())
    del journal["verb"]
    (crawl / "state/deletion.json").write_text(json.dumps(journal))
    (crawl / JOURNAL).unlink()
    if (crawl / PLACES).exists():
        (crawl / PLACES).rename(crawl / "state/deletion-places")
    shutil.rmtree(crawl / FOLDER, ignore_errors=True)
    assert main(["resume", str(crawl), "--quiet"]) == 5
    assert "is not finished; finish it: gossamer delete" in capsys.readouterr().err
    assert killed_at(crawl, 1)
    assert main(["delete", str(crawl)]) == 0
    check_gone(crawl, web, capsys)
    assert not [*crawl.glob("state/deletion*")]
