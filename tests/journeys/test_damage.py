"""A damaged crawl: each kind of damage is named, refused with status 5, and gone on without where a person says so."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer.analysis.verifying import verify
from gossamer.cli.main import main
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.options import all_options
from gossamer.engine.errors import WiringError
from gossamer.engine.sheet import build
from gossamer.engine.wiring import is_as_written
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger, ledgers_of
from gossamer.storage.members import crawl_id, is_id_damaged
from gossamer.storage.recovery import unreadable_lines
from gossamer.storage.tables.places import reading
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.errors import CrawlDirectoryError

#: The second page has the bytes of the first, so that the archive has a revisit of it.
PAGES = {
    "/": '<a href="/one">1</a><a href="/two">2</a><a href="/three">3</a>',
    "/one": "<title>One</title>same",
    "/two": FakePage(body="<title>One</title>same"),
    "/three": "<title>Three</title>another",
}


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
    """A copy to be damaged."""
    return Path(shutil.copytree(sound, tmp_path / "crawl"))


def only(crawl: Path, pattern: str) -> Path:
    [path] = crawl.glob(pattern)
    return path


def remove(pattern: str) -> Callable[[Path], None]:
    return lambda crawl: only(crawl, pattern).unlink()


def cut(pattern: str, size: int) -> Callable[[Path], None]:
    return lambda crawl: os.truncate(path := only(crawl, pattern), path.stat().st_size - size)


def flip(pattern: str) -> Callable[[Path], None]:
    def damage(crawl: Path) -> None:
        path = only(crawl, pattern)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x10
        path.write_bytes(data)

    return damage


ARCHIVE, LOG, INDEX = "warc/*.warc.gz", "logs/crawl.jsonl", "index.cdxj"
PARQUET, LINKS = "tables/pages/*.parquet", "tables/links/*.parquet"


class Case(msgspec.Struct, frozen=True):
    """One damage, and what follows."""

    name: str
    damage: Callable[[Path], None]
    line: str
    """What `verify` says of it."""
    again: tuple[int, int] = (0, 0)
    """URLs that `--accept-loss` fetches again: at least and at most."""
    only_deep: bool = False
    """Names and lengths do not show it."""


ACCEPTED = [
    Case("archive gone", remove(ARCHIVE), "warc.gz is missing", (4, 4)),
    Case("archive cut", cut(ARCHIVE, 20), "warc.gz has", (1, 2)),
    Case("archive changed", flip(ARCHIVE), "hold no whole record", (0, 4), only_deep=True),
    Case("log gone", remove(LOG), "logs/crawl.jsonl is missing"),
    Case("log cut", cut(LOG, 20), "logs/crawl.jsonl has"),
    Case("table gone", remove(PARQUET), ".parquet is missing"),
    Case("table cut", cut(PARQUET, 20), "bytes instead of"),
    Case("table changed", flip(LINKS), "has other bytes than were written"),
]


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_what_is_lost_is_named_and_gone_on_without_where_that_is_said(
    case: Case, crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    case.damage(crawl)
    assert any(case.line in finding for finding in verify(crawl, deep=True).findings)
    assert main(["verify", str(crawl)]) == (0 if case.only_deep else 5)
    assert main(["verify", str(crawl), "--deep"]) == 5
    asked = len(web.requests)
    capsys.readouterr()
    if not case.only_deep:
        assert main(["resume", str(crawl), "--json"]) == 5
        out, err = capsys.readouterr()
        assert out == ""
        assert case.line in err
        assert err.count("\n") == 1
        assert len(web.requests) == asked
    assert main(["resume", str(crawl), "--json", "--accept-loss"]) == 0
    out, err = capsys.readouterr()
    assert "the crawl goes on, although " in err
    summary = json.loads(out)
    assert (summary["state"], summary["queued"]) == ("finished", 0)
    least, most = case.again
    assert least <= len(web.requests) - asked <= most
    assert verify(crawl, deep=True).findings == []


def captures(crawl: Path) -> list[tuple[str, dict[str, str]]]:
    """The lines of the index; without digests, since the archive has one of a robots.txt too."""
    lines = [line.split(" ", 2) for line in (crawl / INDEX).read_text().splitlines()]
    return [(f"{key} {time}", {**json.loads(entry), "digest": ""}) for key, time, entry in lines]


HEALED = [
    Case("index gone", remove(INDEX), "index.cdxj is missing"),
    Case("index cut", cut(INDEX, 100), "index.cdxj has"),
]


@pytest.mark.parametrize("command", ["resume", "export", "cat"])
@pytest.mark.parametrize("case", HEALED, ids=lambda case: case.name)
def test_a_lost_index_is_made_again_from_the_archive(
    case: Case, command: str, crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = captures(crawl)
    case.damage(crawl)
    assert main(["verify", str(crawl)]) == 5
    assert case.line in capsys.readouterr().err
    rest = {"resume": ["--json"], "export": ["--to", "wacz", "-o", str(tmp_path / "x.wacz")], "cat": [web.url("/one")]}
    assert main([command, str(crawl), *rest[command]]) == 0
    assert f"{case.line}" in (err := capsys.readouterr().err)
    assert "made again from the archive" in err
    assert captures(crawl) == before
    assert main(["verify", str(crawl), "--deep"]) == 0


LEDGER = "state/agent-00/ledger"

LOST = [
    Case("manifest gone", remove(f"{LEDGER}/MANIFEST-*"), "is damaged"),
    Case("CURRENT gone", remove(f"{LEDGER}/CURRENT"), "its file CURRENT is missing"),
    Case("a table of the ledger gone", lambda crawl: min(crawl.glob(f"{LEDGER}/*.sst")).unlink(), "is damaged"),
    Case("a log of the ledger gone", remove(f"{LEDGER}/*.log"), "its write-ahead log is missing"),
    Case("ledger gone", lambda crawl: shutil.rmtree(crawl / LEDGER), "its ledger (state/) is missing"),
]


@pytest.mark.parametrize("case", LOST, ids=lambda case: case.name)
def test_a_crawl_whose_ledger_is_lost_begins_again_beside_what_it_has(
    case: Case, crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    case.damage(crawl)
    archive = only(crawl, ARCHIVE)
    records, asked = archive.read_bytes(), len(web.requests)
    for command in ("verify", "resume"):
        assert main([command, str(crawl)]) == 5
        err = capsys.readouterr().err
        assert case.line in err
        assert "--accept-loss" in err
        assert err.count("\n") == 1
    assert len(web.requests) == asked
    assert main(["resume", str(crawl), "--json", "--accept-loss"]) == 0
    out, err = capsys.readouterr()
    assert "the crawl goes on without the ledger of agent-00" in err
    assert json.loads(out)["queued"] == 0
    assert {request.target for request in web.requests[asked:]} >= set(PAGES)
    assert archive.read_bytes() == records
    assert verify(crawl, deep=True).findings == []
    capsys.readouterr()
    assert main(["query", str(crawl), "SELECT count(*) AS n, count(DISTINCT url) AS urls FROM pages", "-f", "csv"]) == 0
    assert capsys.readouterr().out.split() == ["n,urls", "4,4"]  # the later of each
    assert main(["cat", str(crawl), web.url("/three")]) == 0


@pytest.mark.parametrize("damage", [lambda crawl: shutil.rmtree(crawl / LEDGER), None], ids=["ledger", "log"])
def test_an_answer_whose_row_was_not_written_before_its_process_died_is_in_the_index_once_the_ledger_is_lost(
    damage: Callable[[Path], None] | None, crawl: Path, tmp_path: Path
) -> None:
    archive = only(crawl, ARCHIVE)
    place = json.loads((crawl / "index.cdxj").read_bytes().splitlines()[-1].split(b" ", 2)[2])
    with archive.open("r+b") as file:
        file.seek(int(place["offset"]))
        record = file.read(int(place["length"]))
        file.seek(0, os.SEEK_END)
        file.write(record)
    if damage is not None:
        damage(crawl)
    else:
        crawl = with_a_log(crawl, tmp_path / "killed")
        flip(f"{LEDGER}/*.log")(crawl)
    assert main(["resume", str(crawl), "--quiet", "--accept-loss"]) == 0
    assert verify(crawl, deep=True).findings == []


def with_a_log(crawl: Path, copy: Path) -> Path:
    """A copy of a crawl as a kill leaves it: the last commits of its ledger are in the write-ahead log."""
    ledger = RocksLedger(LedgerSheet(directory=str(crawl)))
    ledger.open()
    for number in range(9):
        ledger.put_meta(f"value-{number}", b"committed")
    shutil.copytree(crawl, copy)
    ledger.close()
    return copy


def test_a_crawl_whose_log_has_a_changed_byte_goes_on_from_the_commit_before(
    crawl: Path, web: FakeWeb, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl = with_a_log(crawl, tmp_path / "killed")
    assert verify(crawl, deep=True).findings == []
    flip(f"{LEDGER}/*.log")(crawl)
    records, asked = (archive := only(crawl, ARCHIVE)).read_bytes(), len(web.requests)
    for command in ("verify", "resume"):
        assert main([command, str(crawl)]) == 5
        err = capsys.readouterr().err
        assert "a byte of its write-ahead log has changed" in err
        assert "--accept-loss" in err
        assert err.count("\n") == 1
    assert len(web.requests) == asked
    assert main(["resume", str(crawl), "--json", "--accept-loss"]) == 0
    out, err = capsys.readouterr()
    assert "the crawl goes on from the last commit of agent-00 that can be read" in err
    assert json.loads(out)["queued"] == 0
    assert archive.read_bytes() == records
    assert verify(crawl, deep=True).findings == []
    assert main(["query", str(crawl), "SELECT count(DISTINCT url) AS urls FROM pages", "-f", "csv"]) == 0
    assert capsys.readouterr().out.split() == ["urls", "4"]


@pytest.mark.parametrize(
    ("beside", "line"), [("agent-01/ledger", "several ledgers"), ("agent-00/sieve", "The sieve has URLs")]
)
def test_a_lost_ledger_whose_urls_are_known_elsewhere_too_is_refused(
    beside: str, line: str, crawl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remove(f"{LEDGER}/CURRENT")(crawl)
    (crawl / "state" / beside).mkdir(parents=True)
    assert main(["resume", str(crawl), "--accept-loss"]) == 5
    err = capsys.readouterr().err
    assert line in err
    assert err.count("\n") == 1
    assert (crawl / LEDGER).is_dir()


REFUSED = [
    Case("wiring gone", remove("crawl.toml"), "its crawl.toml is missing"),
    Case("wiring empty", lambda crawl: os.truncate(crawl / "crawl.toml", 0), "crawl.toml is empty"),
    Case("wiring cut", cut("crawl.toml", 200), "crawl.toml is cut"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_no_crawl_can_do_without_is_refused_in_one_line_and_nothing_is_changed(
    case: Case, crawl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case.damage(crawl)
    archive = only(crawl, ARCHIVE).read_bytes()
    for line in (["verify"], ["resume"], ["resume", "--accept-loss"]):
        assert main([line[0], str(crawl), *line[1:]]) == 5
        err = capsys.readouterr().err
        assert case.line in err
        assert err.count("\n") == 1
    assert only(crawl, ARCHIVE).read_bytes() == archive


@pytest.mark.parametrize("case", REFUSED[1:], ids=lambda case: case.name)
def test_status_shows_its_figures_of_a_crawl_whose_wiring_is_damaged_and_says_so(
    case: Case, crawl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case.damage(crawl)
    assert main(["status", str(crawl)]) == 5
    out, err = capsys.readouterr()
    assert "pages:    4 (4 fetched" in out
    assert case.line in err
    assert err.count("\n") == 1


def test_pages_that_are_lost_count_for_no_limit_of_pages(
    web: FakeWeb, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl = tmp_path / "limited"
    options = build(all_options(), {"output": str(crawl), "delay": 0, "max_pages": 3})
    assert run(Crawl([web.url("/")], options)).pages == 3
    remove(ARCHIVE)(crawl)
    assert main(["resume", str(crawl), "--accept-loss", "--quiet", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["state"], told["limit"], told["pages"]) == ("limit", "max_pages", 3)


def test_a_later_copy_of_a_lost_document_is_no_revisit_of_it(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    remove(ARCHIVE)(crawl)
    assert main(["resume", str(crawl), "--quiet", "--accept-loss"]) == 0
    for path in ("/one", "/two"):
        capsys.readouterr()
        assert main(["cat", str(crawl), web.url(path)]) == 0
        assert capsys.readouterr().out == "<title>One</title>same"


def test_an_archive_that_was_mended_is_read_to_its_end_by_other_readers(crawl: Path) -> None:
    flip(ARCHIVE)(crawl)
    assert main(["resume", str(crawl), "--quiet", "--accept-loss"]) == 0
    for path in crawl.glob(ARCHIVE):
        with path.open("rb") as file:
            kinds = [record.rec_type for record in ArchiveIterator(file, check_digests="raise")]
        assert kinds[0] == "warcinfo"
        assert "response" in kinds or "request" in kinds


@pytest.mark.parametrize("damage", [flip(ARCHIVE), cut(ARCHIVE, 20), remove(ARCHIVE)])
def test_no_damaged_record_is_exported_without_a_word(
    damage: Callable[[Path], None], crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = only(crawl, ARCHIVE).name
    damage(crawl)
    target = tmp_path / "crawl.wacz"
    assert main(["export", str(crawl), "--to", "wacz", "-o", str(target)]) == 5
    err = capsys.readouterr().err
    assert f"the archive is damaged: warc/{name} at byte" in err
    assert err.count("\n") == 1
    assert not target.exists()


@pytest.mark.parametrize("damage", [flip(LINKS), cut(LINKS, 9), remove(LINKS)])
def test_a_damaged_table_is_named_and_the_rest_answers(
    damage: Callable[[Path], None], crawl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = only(crawl, LINKS).relative_to(crawl).as_posix()
    damage(crawl)
    assert main(["query", str(crawl), "SELECT count(*) AS n FROM pages", "-f", "csv"]) == 0
    assert capsys.readouterr() == ("n\r\n4\r\n", "")
    assert (
        main(["query", str(crawl), "SELECT (SELECT count(*) FROM pages) AS n, count(*) AS l FROM links", "-f", "csv"])
        == 5
    )
    out, err = capsys.readouterr()
    assert out == "n,l\r\n4,0\r\n"
    assert name in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("damage", "what"),
    [(Path.unlink, "is missing"), (lambda path: os.truncate(path, 9), "has 9 bytes")],
    ids=["gone", "cut"],
)
def test_a_damaged_row_log_is_named_and_the_rest_answers(
    damage: Callable[[Path], None], what: str, web: FakeWeb, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl = tmp_path / "killed"
    options = build(all_options(), {"output": str(crawl), "delay": 0, "per_host": 1, "concurrency": 1})
    run(Crawl([web.url("/")], options, tables=False))  # its rows are in logs, as a killed crawl's are
    question = ["query", str(crawl), "-f", "csv", "SELECT count(*) FROM links"]
    assert main(question) == 0
    capsys.readouterr()
    log = only(crawl, "state/agent-00/rows/links-*.jsonl")
    damage(log)
    assert main(question) == 5
    out, err = capsys.readouterr()
    assert out.split()[1] == "0"
    assert f"{log.name} {what}" in err
    assert err.count("\n") == 1
    assert main(["query", str(crawl), "-f", "csv", "SELECT count(*) FROM pages"]) == 0
    assert capsys.readouterr().out.split()[1] == "4"


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_lost_manifest_of_tables_is_named_and_made_again_from_the_notes(
    damage: str, crawl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a reprocess it says which files count: without it, they would be left out in silence."""
    question = ["query", str(crawl), "SELECT count(*) AS n FROM pages", "-f", "csv"]
    manifest = crawl / "tables/replaced.json"
    with reading(crawl):
        assert main(["reprocess", str(crawl)]) == 0  # what was replaced stays, since somebody reads
    assert len([*crawl.glob(PARQUET)]) == 2
    before = json.loads(manifest.read_bytes())
    if damage == "cut":
        os.truncate(manifest, 9)
        for line in (["verify", str(crawl)], ["resume", str(crawl)], question):
            capsys.readouterr()
            assert main(line) == 5
            assert "tables/replaced.json is damaged" in (err := capsys.readouterr().err)
            assert err.count("\n") == 1
    manifest.unlink()
    for line in (["verify", str(crawl)], ["resume", str(crawl)], question):
        capsys.readouterr()
        assert main(line) == 5
        assert "tables/replaced.json is missing" in (err := capsys.readouterr().err)
        assert err.count("\n") == 1
    assert main(["resume", str(crawl), "--quiet", "--accept-loss"]) == 0
    assert json.loads(manifest.read_bytes())["run"] == before["run"]
    capsys.readouterr()
    assert main(question) == 0
    assert capsys.readouterr().out == "n\r\n4\r\n"
    assert verify(crawl, deep=True).findings == []


def test_loss_is_accepted_only_where_a_crawl_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crawl", "http://127.0.0.1:9/", "-o", str(tmp_path / "c"), "--accept-loss"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def test_a_directory_in_which_a_run_was_killed_before_it_was_a_crawl_is_free(web: FakeWeb, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    directory.mkdir()
    (directory / "crawl.toml.new").write_text("[comp")
    assert main(["crawl", web.url("/three"), "-o", str(directory), "--delay", "0", "--quiet"]) == 0
    assert (directory / "crawl.toml").exists()


@pytest.mark.parametrize("moment", [1, 2])
def test_what_a_new_crawl_was_told_holds_if_it_is_killed_while_it_begins(
    moment: int, web: FakeWeb, tmp_path: Path
) -> None:
    directory, items = tmp_path / "crawl", tmp_path / "items.csv"
    plain = ["crawl", web.url("/three"), "-o", str(directory), "--delay", "0", "--quiet"]
    killed = subprocess.run(
        [sys.executable, "-m", "gossamer", *plain, "--index", "--items", str(items)],
        env={**os.environ, "GOSSAMER_CRASH": f"beginning:{moment}"},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert (directory / "crawl.toml").exists() == (moment == 2)
    if moment == 1:
        other = Path(shutil.copytree(directory, tmp_path / "other"))
        assert main([*plain[:3], str(other), *plain[4:]]) == 0
        assert not (other / "index").exists()
    assert (
        main([*plain, "--index", "--items", str(items)] if moment == 1 else ["resume", str(directory), "--quiet"]) == 0
    )
    assert (directory / "index").is_dir()
    assert items.exists()
    assert not (directory / ".beginning").exists()
    assert verify(directory, deep=True).findings == []


def test_what_a_killed_run_was_removing_is_removed_by_the_next(web: FakeWeb, tmp_path: Path) -> None:
    left = tmp_path / ".crawl.removed" / "logs"
    left.mkdir(parents=True)
    assert main(["crawl", web.url("/three"), "-o", str(tmp_path / "crawl"), "--delay", "0", "--quiet"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["crawl"]


#: Files that are written once, and a place in each: its middle, unless another byte says more.
ONCE = [
    "state/agent-00/checkpoints/kept/*.sst",
    "state/agent-00/checkpoints/kept/CURRENT",
    "state/agent-00/checkpoints/kept/MANIFEST-*",
    "state/agent-00/checkpoints/kept/OPTIONS-*",
    "state/agent-00/rows/committed",
    "state/agent-00/rows/last",
    "state/agent-00/rows/*.table",
    "state/agent-00/ledger/*.sst",
    "tables/hosts/hosts.parquet",
    "tables/ranks/ranks.parquet",
    "tables/terms/terms.parquet",
    "tables/*/*.parquet",
    "index/meta.json",
    "index/*.*",
    INDEX,
]


@pytest.fixture(scope="module")
def whole(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl with all that can be made of it."""
    crawl = Path(shutil.copytree(sound, tmp_path_factory.mktemp("whole") / "crawl"))
    assert main(["index", str(crawl), "--terms"]) == 0
    assert main(["rank", str(crawl)]) == 0
    assert main(["checkpoint", str(crawl), "kept"]) == 0
    assert verify(crawl, deep=True).findings == []
    return crawl


@pytest.mark.parametrize("pattern", ONCE)
def test_one_changed_byte_of_a_file_that_is_written_once_is_found(
    pattern: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl = Path(shutil.copytree(whole, tmp_path / "crawl"))
    paths = [path for path in crawl.glob(pattern) if path.suffix != ".lock" and path.name != "sums.json"]
    assert paths
    for path in paths:
        data = path.read_bytes()
        for place in (0, len(data) // 2):
            path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            assert verify(crawl, deep=True).findings, (path.name, place)
        path.write_bytes(data)
    assert verify(crawl, deep=True).findings == []


@pytest.mark.parametrize(("name", "step"), [("crawl.toml", 97), ("state/crawl-id", 1)])
def test_a_changed_byte_of_what_a_crawl_is_called_and_runs_is_found(
    name: str, step: int, whole: Path, tmp_path: Path
) -> None:
    crawl = tmp_path / "crawl"
    for kept in ("crawl.toml", "state/crawl-id"):
        (crawl / kept).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(whole / kept, crawl / kept)
    assert is_as_written(crawl / "crawl.toml") and not is_id_damaged(crawl)
    data = (crawl / name).read_bytes()
    for place in {*range(0, len(data), step), *range(len(data) - 50, len(data))} if step > 1 else range(len(data)):
        (crawl / name).write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        with contextlib.suppress(CrawlDirectoryError, WiringError):  # what cannot be read is told, too
            read_wiring(crawl)
            assert is_id_damaged(crawl) or not is_as_written(crawl / "crawl.toml"), place
    crawl = Path(shutil.copytree(whole, tmp_path / "all"))
    (crawl / name).write_bytes(bytes([data[0] ^ 1]) + data[1:])
    assert any(name in one for one in verify(crawl, deep=True).findings)


def test_what_an_older_version_called_and_ran_is_not_damaged(whole: Path, tmp_path: Path) -> None:
    crawl = Path(shutil.copytree(whole, tmp_path / "crawl"))
    text = (crawl / "crawl.toml").read_text().splitlines(keepends=True)
    (crawl / "crawl.toml").write_text("".join([*text[:-2], text[-1]]))
    (crawl / "state/crawl-id").write_text(f"{crawl_id(crawl)}\n")
    assert verify(crawl, deep=True).findings == []


def test_a_changed_byte_of_any_line_of_the_log_is_found(whole: Path, tmp_path: Path) -> None:
    crawl = Path(shutil.copytree(whole, tmp_path / "crawl"))
    path = crawl / LOG
    data = path.read_bytes()
    for place in range(0, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert list(unreadable_lines(path, len(data))), place
    assert any(LOG in one for one in verify(crawl, deep=True).findings)


def test_a_byte_that_is_no_utf8_is_damage_and_no_traceback(whole: Path, tmp_path: Path) -> None:
    crawl = Path(shutil.copytree(whole, tmp_path / "crawl"))
    for name in ("state/made.json", LOG, "crawl.toml"):
        path = crawl / name
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] + b"\xb0" + data[len(data) // 2 + 1 :])
        assert verify(crawl, deep=True).findings, name
        path.write_bytes(data)


def test_a_changed_byte_anywhere_in_a_table_of_a_checkpoint_is_found(whole: Path, tmp_path: Path) -> None:
    crawl = Path(shutil.copytree(whole, tmp_path / "crawl"))
    path = min(crawl.glob("state/agent-00/checkpoints/kept/*.sst"))
    data = path.read_bytes()
    for place in range(0, len(data), len(data) // 12):
        path.write_bytes(data[:place] + bytes([data[place] ^ 8]) + data[place + 1 :])
        assert verify(crawl, deep=True).findings, place


def test_a_changed_index_is_made_again_and_a_changed_log_is_gone_on_without(
    crawl: Path, web: FakeWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(INDEX)(crawl)
    log = crawl / LOG
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([lines[0], b"[" + lines[1][1:], *lines[2:]]))
    found = verify(crawl, deep=True).findings
    assert any(INDEX in one for one in found)
    assert f"{LOG}, line 2 is not an event that was written" in found
    assert main(["resume", str(crawl), "--quiet", "--accept-loss"]) == 0
    assert "line 2 is damaged" in capsys.readouterr().err
    assert verify(crawl, deep=True).findings == []
    assert len(log.read_bytes().splitlines()[1]) == len(lines[1]) - 1


def test_a_row_that_cannot_be_read_keeps_no_crawl_from_its_tables_once_the_loss_is_accepted(
    web: FakeWeb, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl = tmp_path / "crawl"
    options = build(all_options(), {"output": str(crawl), "delay": 0, "per_host": 1, "concurrency": 1})
    run(Crawl([web.url("/")], options, tables=False))
    for log in crawl.glob("state/agent-00/rows/pages-*.jsonl"):
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join([*lines[:-1], b"[" + lines[-1][1:]]))
    assert main(["resume", str(crawl), "--quiet"]) == 4
    assert "tables and index could not be made" in capsys.readouterr().err
    assert any("is not a row" in one for one in verify(crawl, deep=True).findings)
    assert main(["resume", str(crawl), "--quiet", "--accept-loss"]) == 0
    assert verify(crawl, deep=True).findings == []
    assert main(["query", str(crawl), "-f", "csv", "SELECT count(*) FROM pages"]) == 0
    assert capsys.readouterr().out.split()[-1] == "3"


def test_a_block_that_is_damaged_ends_no_walk_as_if_nothing_followed(crawl: Path) -> None:
    for path in sorted(crawl.glob("state/agent-00/ledger/*.sst")):
        data = path.read_bytes()
        path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        [ledger] = ledgers_of(crawl)
        with pytest.raises(CrawlDirectoryError, match="damaged"), ledger.looking():
            ledger.read_through()
        path.write_bytes(data)


def test_memory_that_the_system_refuses_is_told_in_one_line_before_anything_is_made(
    crawl: Path, web: FakeWeb, tmp_path: Path
) -> None:
    for words in (["crawl", web.url("/"), "-o", str(tmp_path / "new")], ["verify", str(crawl)], ["status", str(crawl)]):
        command = shlex.join([sys.executable, "-P", "-m", "gossamer", *words])
        done = subprocess.run(["sh", "-c", f"ulimit -v 400000; exec {command}"], capture_output=True, check=False)
        assert done.returncode == 2
        assert b"ulimit -v" in done.stderr
        assert done.stderr.count(b"\n") == 1
    assert not (tmp_path / "new").exists()
